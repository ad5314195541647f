// SPDX-License-Identifier: Apache-2.0
// A recording's device times against a vendor's trace of the same work, brick by brick, as an answer. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/figure.hpp"
#include "plumb/outcome.hpp"
#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {

/// What may be asked for on the command line.
struct AuditQuestion {
    std::optional<double> max_error; // percent
};

template <class V>
void describe(V& v, AuditQuestion& q) {
    v("max-error", q.max_error,
      "Fail (exit 1) where all bricks together, or one that takes 1 % of the time or more, differ by more than so many percent",
      {.value = "PERCENT"});
}

/// One brick of one source of times. Means are of the calls that hold operations of the trace.
struct AuditRow {
    std::string brick;
    std::string source;        // of our times
    std::uint64_t calls = 0;   // ours, within the trace's time
    std::uint64_t matched = 0; // of those, with operations of the trace
    std::uint64_t launch_wait = 0;
    std::uint64_t operations = 0; // of the trace, in those
    std::uint64_t by_launch = 0;  // of those
    Figure ours_ns, sum_ns, span_ns, error_ns, error, covered;
    Figure least_error_ns, median_error_ns, most_error_ns; // of a call
    double total_span_ns = 0;
    std::vector<std::pair<std::string, std::uint64_t>> names; // of operations, the most frequent first
};

/// One of our queues or captured graphs, and the stream of the trace that it was found on.
struct AuditLane {
    std::string name, source;
    std::string stream; // empty: none
    std::uint64_t calls = 0, ends = 0, agreeing = 0;
    Figure offset_ns, drift_ppm, residual_ns, placement_ns;
};

/// Operations of the trace of one name, that no scope covers.
struct AuditLeftover {
    std::string name, stream;
    std::uint64_t operations = 0;
    double ns = 0;
};

struct AuditReport {
    std::string recording, trace, tool;
    Outcome verdict = Outcome::unknown;
    bool fits = false;
    std::string reason; // where it does not
    std::vector<AuditLane> lanes;
    std::vector<AuditRow> rows;
    Figure ours_ns, span_ns, error;
    std::optional<std::string> worst, worst_source; // of one row
    Figure covered, uncovered, follows;
    std::uint64_t operations = 0, inside = 0, outside = 0, elsewhere = 0, not_covered = 0;
    std::uint64_t calls_outside = 0;
    std::vector<AuditLeftover> leftovers;
    std::optional<double> max_error;
    std::vector<std::string> notes;
};

/// Errors: invalid_argument where one of them is not what it should be.
[[nodiscard]] Result<AuditReport> audit_runs(const recording::RecordedRun& ours, const recording::RecordedRun& trace,
                                             const AuditQuestion& question = {});

template <class V>
void describe(V& v, const AuditRow& r) {
    v.type("audit row", "One brick. Times are means of a call, over the calls that hold operations of the trace.");
    v("brick", r.brick, "");
    v("source", r.source, "of our times");
    v("calls", r.calls, "ours, within the time of the trace");
    v("matched", r.matched, "of those, with operations of the trace");
    v("launch_wait", r.launch_wait, "of those, known to hold a wait for their launch");
    v("operations", r.operations, "of the trace, in those calls");
    v("by_launch", r.by_launch, "of those, found by their launch alone: our interval does not cover them");
    v("ours_ns", r.ours_ns, "");
    v("sum_ns", r.sum_ns, "durations of the operations, added up");
    v("span_ns", r.span_ns, "from the begin of the first operation to the end of the last");
    v("error_ns", r.error_ns, "`ours_ns` - `span_ns`");
    v("error", r.error, "`error_ns` / `span_ns`");
    v("least_error_ns", r.least_error_ns, "of 20 calls, one has less");
    v("median_error_ns", r.median_error_ns, "of a call: what is missing in a few of them does not move it");
    v("most_error_ns", r.most_error_ns, "of 20 calls, one has more");
    v("covered", r.covered, "share of our time in which an operation of the trace runs");
    v.pairs("names", "name", "operations", r.names, "the most frequent ones of the trace");
}

template <class V>
void describe(V& v, const AuditLane& l) {
    v.type("audit lane", "One of our queues or captured graphs, and the stream of the trace that it was found on.");
    v("name", l.name, "");
    v("source", l.source, "of our times");
    v("stream", l.stream, "of the trace", !l.stream.empty());
    v("calls", l.calls, "ours");
    v("ends", l.ends,
      "of those, innermost ones within the time of the trace: the two clocks were laid over each other by their ends");
    v("agreeing", l.agreeing, "of those, where an operation ends too");
    v("offset_ns", l.offset_ns, "what our clock is ahead of that of the trace, in the middle of both");
    v("drift_ppm", l.drift_ppm, "by how much our clock runs faster");
    v("residual_ns", l.residual_ns, "median distance of agreeing ends");
    v("placement_ns", l.placement_ns,
      "how far steps lie from the line between the clocks, 19 of 20 less; each was laid anew as a whole");
}

template <class V>
void describe(V& v, const AuditLeftover& l) {
    v.type("audit leftover", "Operations of the trace of one name that no scope covers.");
    v("name", l.name, "");
    v("stream", l.stream, "");
    v("operations", l.operations, "");
    v("ns", l.ns, "in all");
}

template <class V>
void describe(V& v, const AuditReport& r) {
    v.type("audit", "A recording held against a vendor's trace of the same work (`plumb audit`).");
    v("verdict", r.verdict,
      "`unknown` where the trace does not fit, or nothing tells the run from another of the same work; `fail` beyond `--max-error`");
    v("recording", r.recording, "");
    v("trace", r.trace, "");
    v("tool", r.tool, "that wrote the trace");
    v("fits", r.fits, "the trace is of the same work");
    v("reason", r.reason, "why it does not fit", !r.fits);
    v("ours_ns", r.ours_ns, "of all outermost scopes that hold operations of the trace");
    v("span_ns", r.span_ns, "of the operations in them");
    v("error", r.error, "(`ours_ns` - `span_ns`) / `span_ns`");
    v("worst", r.worst, "the brick with the largest error, of those that take 1 % of the time or more");
    v("worst_source", r.worst_source, "of its times: bricks have a row for each source");
    v("covered", r.covered, "share of our time in which an operation of the trace runs");
    v("uncovered", r.uncovered,
      "share of the time of operations on our streams, between our scopes, that no scope covers");
    v("follows", r.follows,
      "where a call of a brick takes longer than others in the trace, how much of that ours takes longer: 1 of the same calls, 0 of another run's");
    v("operations", r.operations, "of the trace");
    v("inside", r.inside, "of those, in our scopes");
    v("not_covered", r.not_covered, "of those, between scopes of steps that were timed");
    v("outside", r.outside, "of those, in steps that were not timed, or before and after the recording");
    v("elsewhere", r.elsewhere, "of those, on streams where we have no scope");
    v("calls_outside", r.calls_outside, "our scopes before and after the trace");
    v("rows", r.rows, "by brick, what takes longest first");
    v("lanes", r.lanes, "");
    v("leftovers", r.leftovers, "what no scope covers, by name");
    v("max_error", r.max_error, "as asked for, a share");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const AuditReport&) { return "plumb.audit/1"; }
inline Outcome outcome_of(const AuditReport& report) noexcept { return report.verdict; }
[[nodiscard]] page::Page page_of(const AuditReport& report, const TextOptions& options);

} // namespace plumb
