// SPDX-License-Identifier: Apache-2.0
// The file-level functions of numerics.hpp: recordings as sources of checks.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "numerics/diverge.hpp"
#include "numerics/health.hpp"
#include "plumb/numerics.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {
namespace {

std::string in_file(const std::string& path, const std::string& sentence) { return path + ": " + sentence; }

void add_notes(const recording::RunFacts& facts, const std::string& path, std::vector<std::string>& notes) {
    for (const std::string& note : facts.notes) {
        notes.push_back(in_file(path, note));
    }
    for (const auto& [reason, count] : facts.counters.drops) {
        if (count != 0 && reason.find("check") != std::string::npos) {
            notes.push_back(in_file(path, std::to_string(count) + " lost: " + reason));
        }
    }
}

/// The last value; empty: none.
std::string description(const recording::RunFacts& facts, const std::string& of) {
    std::string last;
    for (const auto& [name, value] : facts.descriptions) {
        last = name == of ? value : last;
    }
    return last;
}

/// What the session said of the tensors it looked at: with tensors=nonfinite they leave no check. Empty: none.
std::string looked_at(const recording::RunFacts& facts) {
    std::string last = description(facts, "checked");
    return last.rfind("0 ", 0) == 0 ? std::string() : last;
}

/// How many tensors with NaN or Inf the session counted; absent: it did not say, as when it was killed.
std::optional<std::uint64_t> counted_nonfinite(const recording::RunFacts& facts) {
    const std::string text = description(facts, "nonfinite");
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error == std::errc::result_out_of_range) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    return error == std::errc() && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

void add_counts(const recording::RunFacts& facts, HealthReport& report, bool of_twin) {
    if (const std::optional<std::uint64_t> counted = counted_nonfinite(facts)) {
        numerics::add_count(report, *counted, of_twin);
    } else if (description(facts, "checked").rfind("tensors are ", 0) == 0) {
        report.notes.push_back(
            std::string("the ") + (of_twin ? "twin" : "run") +
            " has not ended, or was killed: how many tensors it looked at is not known; those with NaN or Inf that "
            "reached the recording are listed");
    }
}

} // namespace

Result<DivergeReport> diverge_recordings(const std::string& path_a, const std::string& path_b,
                                         const DivergeOptions& options) {
    const Result<recording::RecordedRun> a = recording::open_run(path_a);
    if (!a.ok()) {
        return a.error();
    }
    const Result<recording::RecordedRun> b = recording::open_run(path_b);
    if (!b.ok()) {
        return b.error();
    }
    Result<DivergeReport> report = numerics::diverge(*a, *b, options);
    if (report.ok()) {
        report->path_a = path_a;
        report->path_b = path_b;
        add_notes(*a->facts, path_a, report->notes);
        add_notes(*b->facts, path_b, report->notes);
    }
    return report;
}

Result<HealthReport> health_recording(const std::string& path, const std::string& twin_path) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    if (!run.ok()) {
        return run.error();
    }
    if (twin_path.empty()) {
        Result<HealthReport> report = numerics::health(*run, nullptr, looked_at(*run->facts));
        if (report.ok()) {
            report->path = path;
            add_counts(*run->facts, *report, false);
            add_notes(*run->facts, path, report->notes);
        }
        return report;
    }
    const Result<recording::RecordedRun> twin = recording::open_run(twin_path);
    if (!twin.ok()) {
        return twin.error();
    }
    Result<HealthReport> report = numerics::health(*run, &*twin, looked_at(*run->facts));
    if (report.ok()) {
        report->path = path;
        report->twin = twin_path;
        add_counts(*run->facts, *report, false);
        add_counts(*twin->facts, *report, true);
        add_notes(*run->facts, path, report->notes);
        add_notes(*twin->facts, twin_path, report->notes);
    }
    return report;
}

} // namespace plumb
