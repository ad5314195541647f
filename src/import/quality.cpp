// SPDX-License-Identifier: Apache-2.0
#include "import/quality.hpp"

#include <algorithm>
#include <cstdio>

namespace plumb::imported {
namespace {

constexpr std::int64_t abut_ns = 2;
constexpr double most_abut = 0.5; // beyond it dispatch gaps lie inside of durations

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
    return text;
}

/// Of operations that follow another on their stream, how many begin where that one ended.
double abutting_share(const Trace& trace) {
    std::vector<std::int64_t> ends(trace.streams.size(), std::numeric_limits<std::int64_t>::min());
    std::uint64_t pairs = 0;
    std::uint64_t abut = 0;
    for (const DeviceOp& op : trace.ops) {
        std::int64_t& end = ends[op.stream];
        if (end != std::numeric_limits<std::int64_t>::min()) {
            ++pairs;
            abut += op.start_ns >= end && op.start_ns - end <= abut_ns ? 1 : 0;
        }
        end = std::max(end, op.end_ns);
    }
    return pairs == 0 ? 0 : static_cast<double>(abut) / static_cast<double>(pairs);
}

} // namespace

std::vector<std::string> quality_notes(const Trace& trace, const Steps& steps) {
    std::vector<std::string> notes = trace.facts.notes;
    if (trace.facts.cut) {
        notes.emplace_back("the file ends before the trace does: what it holds was taken");
    }
    notes.push_back("times are multiples of " + std::to_string(trace.tick_ns) + " ns");
    for (std::size_t i = 0; i < anomalies; ++i) {
        if (trace.counts[i] != 0) {
            notes.push_back(std::to_string(trace.counts[i]) +
                            (trace.counts[i] == 1 ? " operation: " : " operations: ") +
                            anomaly_words(static_cast<Anomaly>(i)));
        }
    }
    const double abutting = abutting_share(trace);
    if (abutting > most_abut && trace.tick_ns <= abut_ns) {
        notes.push_back("gaps between operations are not in this trace: " + percent(abutting) +
                        " of them begin where the one before ended, so that launch gaps lie inside of durations");
    }
    if (steps.partial != 0) {
        notes.push_back(std::to_string(steps.partial) + (steps.partial == 1 ? " step" : " steps") +
                        " began before the trace: left out");
    }
    const auto outside = std::count(steps.of_op.begin(), steps.of_op.end(), no_step);
    if (outside != 0) {
        notes.push_back(std::to_string(outside) + " operations belong to no step");
    }
    if (std::any_of(steps.steps.begin(), steps.steps.end(), [](const Step& step) { return !step.phase_known; })) {
        notes.emplace_back("whether steps are prefill or decode is not in the trace: --phase says it");
    }
    return notes;
}

} // namespace plumb::imported
