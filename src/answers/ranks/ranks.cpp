// SPDX-License-Identifier: Apache-2.0
#include "answers/ranks/ranks.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "answers/answer.hpp"
#include "answers/ranks/summary.hpp"
#include "base/natural_order.hpp"
#include "recording/import_notes.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {
namespace {

using namespace ranks;
namespace fs = std::filesystem;

/// Recordings that were named, and those in folders that were, in the natural order of their names.
std::vector<std::string> files_of(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        std::vector<std::string> inside;
        for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
            if (at->path().extension() == ".plumb") {
                inside.push_back(at->path().string());
            }
        }
        std::sort(inside.begin(), inside.end(), base::natural_before);
        files.insert(files.end(), inside.begin(), inside.end());
    }
    return files;
}

Result<Rank> read_rank(const std::string& path) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    if (!run.ok()) {
        return run.error();
    }
    Result<RankEvents> events = read_events(*run);
    if (!events.ok()) {
        return events.error();
    }
    Rank rank;
    rank.path = path;
    rank.metadata = run->facts->metadata;
    for (const auto& [key, text] : run->facts->descriptions) {
        rank.trace = key == recording::trace_key ? text : rank.trace;
    }
    rank.losses = run->facts->notes;
    if (events->left_out != 0) {
        rank.losses.push_back(std::to_string(events->left_out) +
                              " collectives beyond the first 1,048,576 are left out");
    }
    rank.events = *std::move(events);
    for (const recording::ClockPair& pair : run->facts->clock_pairs) {
        const bool first = &pair == run->facts->clock_pairs.data();
        rank.origin_ns = first ? pair.monotonic_ns : std::min(rank.origin_ns, pair.monotonic_ns);
        if (pair.clock == 0) { // the first and the last one
            rank.clock_pairs.size() < 2 ? rank.clock_pairs.push_back(pair) : void(rank.clock_pairs.back() = pair);
        }
    }
    return rank;
}

std::optional<double> number_in(std::string_view text) {
    double value = 0;
    text.remove_prefix(text.starts_with('+') ? 1 : 0);
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = failed == std::errc{} && end == text.data() + text.size() && value > -1e12 && value < 1e12;
    return good ? std::optional(value) : std::nullopt;
}

/// "1=-12.5+-4", in microseconds.
Result<GivenOffset> given_offset(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::size_t sign = text.find("+-");
    GivenOffset given;
    if (equals != text.npos && sign != text.npos && sign > equals) {
        const std::string_view rank = text.substr(0, equals);
        const auto number = number_in(rank);
        const auto ahead = number_in(text.substr(equals + 1, sign - equals - 1));
        const auto error = number_in(text.substr(sign + 2));
        if ((rank == "all" || (number && *number >= 0 && *number < 1e9)) && ahead && error && *error >= 0) {
            given.ahead_ns = *ahead * 1e3;
            given.error_ns = *error * 1e3;
            if (rank != "all") {
                given.rank = static_cast<std::uint32_t>(*number);
            }
            return given;
        }
    }
    return Error{ErrorCode::invalid_argument,
                 "the option offset takes RANK=US+-US, such as 1=-12.5+-4 or all=0+-10, not \"" + std::string(text) +
                     "\""};
}

} // namespace

Result<RanksReport> read_ranks(const std::vector<std::string>& paths, const RanksOptions& options) {
    std::vector<GivenOffset> given;
    for (const std::string& text : options.offset) {
        const Result<GivenOffset> one = given_offset(text);
        if (!one.ok()) {
            return one.error();
        }
        given.push_back(*one);
    }
    std::vector<Rank> found;
    std::vector<Error> refused;
    for (const std::string& path : files_of(paths)) {
        Result<Rank> rank = read_rank(path);
        rank.ok() ? found.push_back(*std::move(rank)) : refused.push_back(rank.error());
    }
    if (found.empty()) {
        return refused.empty() ? Error{ErrorCode::not_found, paths.front() + " holds no recording (*.plumb): name the "
                                                                             "recordings, or the folder they lie in"}
                               : refused.front();
    }
    Result<Job> job = assemble(std::move(found));
    if (!job.ok()) {
        Error error = job.error();
        if (!refused.empty() && error.message.starts_with("there is one rank")) {
            error.message += "; " + refused.front().message;
        }
        return error;
    }
    for (const Error& error : refused) {
        job->notes.push_back(error.message + "; it is left out");
    }
    Joints joints = match(*job);
    const RankAlignment alignment = align(*job, joints, given);
    return summary_of(*job, joints, alignment);
}

const answers::Entry& ranks_answer() {
    static const answers::Entry entry = answers::entry_of<RanksOptions, RanksReport, read_ranks>(
        "ranks", "Put the ranks of one job on one clock, and say who waited for whom",
        {{"recordings", "Recordings of the ranks (.plumb), or a folder of them", true, true}});
    return entry;
}

} // namespace plumb
