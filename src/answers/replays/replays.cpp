// SPDX-License-Identifier: Apache-2.0
#include "answers/replays/replays.hpp"

#include "answers/reading.hpp"

namespace plumb {
namespace {

Result<answers::Pending<ReplayReport>> begin(answers::Reading& reading, const ReplayOptions&) {
    auto& replays = reading.join<analysis::ReplayReader>(reading.facts());
    return answers::Pending<ReplayReport>([&replays] { return replays.take(); });
}

} // namespace

Result<ReplayReport> read_replays(const std::vector<std::string>& files, const ReplayOptions& options) {
    return answers::read_one<ReplayReport>(files.front(),
                                           [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& replays_answer() {
    static const answers::Entry entry = answers::joining_entry<ReplayOptions, ReplayReport, begin>(
        "replays", "Show what became of captured graphs: replays, eager steps, padding, node check, costs");
    return entry;
}

} // namespace plumb
