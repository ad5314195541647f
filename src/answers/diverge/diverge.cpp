// SPDX-License-Identifier: Apache-2.0
#include "answers/diverge/diverge.hpp"

#include "answers/answer.hpp"

namespace plumb {
namespace {

Result<DivergeReport> read_diverge(const std::vector<std::string>& files, const DivergeQuestion& question) {
    if (question.tolerance && question.expect) {
        return Error{ErrorCode::invalid_argument, "--expect exact leaves no tolerance; give one of the two"};
    }
    return diverge_recordings(files[0], files[1], {question.tolerance, question.expect.has_value()});
}

} // namespace

const answers::Entry& diverge_answer() {
    static const answers::Entry entry = answers::entry_of<DivergeQuestion, DivergeReport, read_diverge>(
        "diverge", "Name the first operation where two recorded runs part",
        {{"a", "Recording made with tensors=all (.plumb): the reference"}, {"b", "Recording to compare with it"}});
    return entry;
}

} // namespace plumb
