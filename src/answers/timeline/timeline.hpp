// SPDX-License-Identifier: Apache-2.0
// What ran when in one step, lane by lane: a thread, a queue or a captured graph each, with what waited for what between them and the
// critical path. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/path/path.hpp"

namespace plumb {

enum class TimelineChoice : std::uint8_t { asked, median, slowest };
inline Words words_of(TimelineChoice) {
    static constexpr const char* words[] = {"asked", "median", "slowest"};
    return words;
}

struct TimelineOptions {
    std::optional<std::uint64_t> step, slowest;
};

template <class V>
void describe(V& v, TimelineOptions& o) {
    v("step", o.step, "Number of the step (default: the decode step of median length, and that of the longest period)",
      {.excludes = "slowest"});
    v("slowest", o.slowest,
      "So many of the slowest steps of each phase, by their periods, instead of the slowest decode step", {.most = 20});
}

struct TimelineLane {
    std::string name;
    bool device = false;
    std::uint64_t spans = 0; // also those that are left out
    double busy_ns = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>>
        busy; // union of its leaves: begins and ends, since the first begin
};

/// Lists are parallel: one entry a span, by begin, the longer of two first.
struct TimelineSpans {
    std::vector<std::uint32_t> names, lanes; // indices
    std::vector<std::int64_t> layers;        // -1: outside of layers
    std::vector<std::int64_t> begins_ns;     // since the begin of the span before; of the first: since that of the step
    std::vector<std::int64_t> durations_ns;
    std::string kinds; // a letter each
};

struct TimelineStep {
    TimelineChoice choice = TimelineChoice::asked;
    std::uint64_t step = 0;
    Phase phase = Phase::none;
    std::uint32_t place = 0; // of the slowest: 1, 2, ...
    double period_ns = 0, before_ns = 0;
    double span_ns = 0, path_ns = 0;
    std::vector<std::string> names;
    std::vector<TimelineLane> lanes;
    TimelineSpans spans;
    std::vector<std::uint32_t> path; // indices of spans, first to last
    std::vector<std::uint32_t> from, to;
    std::uint64_t left_out = 0, untimed = 0;
    std::vector<PathRow> rows;
    std::vector<std::string> notes;
};

struct TimelineReport {
    std::vector<TimelineStep> steps;
};

[[nodiscard]] Result<TimelineReport> read_timeline(const std::vector<std::string>& files,
                                                   const TimelineOptions& options);
/// How many spans of each step are kept where steps hold so many: 40,000 in all, at most 20,000 of one. What one does not need the others
/// have.
[[nodiscard]] std::vector<std::size_t> shares_of_timelines(const std::vector<std::size_t>& spans);
/// Of one step; `most` spans, the longest.
[[nodiscard]] TimelineStep timeline_of(const PathReport& path, TimelineChoice choice, std::size_t most);

template <class V>
void describe(V& v, const TimelineLane& l) {
    v.type("timeline lane", "A thread, a queue or a captured graph in the step.");
    v("name", l.name, "");
    v("device", l.device, "else a thread of the host");
    v("spans", l.spans, "on it, also those that are left out");
    v("busy_ns", l.busy_ns, "at least one of its leaves ran");
}

template <class V>
void describe(V& v, const TimelineSpans& s) {
    v.type("timeline spans",
           "Parallel lists, one entry a span, by begin; of two that begin together the longer first.");
    v("names", s.names, "indices of `names`");
    v("lanes", s.lanes, "indices of `lanes`");
    v("layers", s.layers, "-1: outside of layers");
    v("begins_ns", s.begins_ns, "since the begin of the span before; of the first: since that of the step");
    v("durations_ns", s.durations_ns, "");
    v("kinds", s.kinds,
      "a letter each: `s` step, `l` layer, `b` brick, `k` kernel, `t` transfer, `o` another task; a capital: it holds "
      "others");
}

template <class V>
void describe(V& v, const TimelineStep& s) {
    v.type("timeline step", "One step.");
    v("choice", s.choice, "why this one: the median is by length, the slowest is by period");
    v("place", s.place, "among the slowest of its phase: 1 is the slowest; 0: chosen otherwise");
    v("step", s.step, "its number");
    v("phase", s.phase, "");
    v("period_ns", s.period_ns, "from the end of the step before to the end of this one");
    v("before_ns", s.before_ns, "of the period what passed before the step began; no lane shows it");
    v("span_ns", s.span_ns, "from the step's begin to its last end on any lane");
    v("path_ns", s.path_ns, "length of the critical path");
    v("names", s.names, "each name once");
    v("lanes", s.lanes, "");
    v("spans", s.spans, "");
    v("path", s.path, "the critical path: indices of spans, first to last");
    v("from", s.from, "of each dependency between two lanes: the span that had to end");
    v("to", s.to, "of each dependency between two lanes: the span that waited");
    v("left_out", s.left_out, "the shortest spans, beyond what a timeline holds");
    v("untimed", s.untimed, "what ran and was not timed by itself");
    v("rows", s.rows, "what to shorten, by time on the path, then by slack");
    v("notes", s.notes, "sentences the reader must know");
}

template <class V>
void describe(V& v, const TimelineReport& r) {
    v.type("timeline", "What ran when in one step, lane by lane (`plumb timeline`).");
    v("steps", r.steps,
      "the one that was asked for; else the one of median length, then the slowest, by their periods");
}

constexpr const char* schema_of(const TimelineReport&) { return "plumb.timeline/1"; }
[[nodiscard]] page::Page page_of(const TimelineReport& report, const TextOptions& options);

} // namespace plumb
