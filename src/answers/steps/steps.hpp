// SPDX-License-Identifier: Apache-2.0
// Every step of a recording on one line of time: how long each took, and the slowest. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/bricks.hpp"

namespace plumb {

struct StepsOptions {
    std::uint64_t slowest = 10;
};

template <class V>
void describe(V& v, StepsOptions& o) {
    v("slowest", o.slowest, "List so many of the slowest steps", {.most = 1000});
}

struct SlowStep {
    std::uint64_t step = 0;
    Phase phase = Phase::none;
    std::int64_t begin_ns = 0; // since the first step began
    double period_ns = 0, span_ns = 0;
    std::optional<std::uint64_t> tokens; // none: nobody gave it any
    Figure times_median;                 // of the counted steps of its phase
};

struct StepsReport {
    std::uint64_t steps = 0;   // of the recording
    std::uint64_t counted = 0; // without warm-up and sampled ones
    std::uint64_t every = 1;   // one of so many is listed, the longest of them
    // In the order of their ends, one entry a listed step.
    std::vector<std::int64_t> id_deltas;
    std::vector<std::int64_t> gaps_ns; // between the end of the listed one before and the begin of its period
    std::vector<std::int64_t> periods_ns;
    std::string phases, marks; // a letter each
    std::vector<SlowStep> slowest;
    std::vector<std::string> notes;
};

[[nodiscard]] Result<StepsReport> read_steps(const std::vector<std::string>& files, const StepsOptions& options);

template <class V>
void describe(V& v, const SlowStep& s) {
    v.type("slow step", "One of the slowest counted steps.");
    v("step", s.step, "its number");
    v("phase", s.phase, "");
    v("begin_ns", s.begin_ns, "of its period, since that of the first step began");
    v("period_ns", s.period_ns, "step end to step end");
    v("span_ns", s.span_ns, "its begin to its last end");
    v("tokens", s.tokens, "missing: the step carries none");
    v("times_median", s.times_median, "its period in medians of the counted steps of its phase");
}

template <class V>
void describe(V& v, const StepsReport& r) {
    v.type(
        "steps",
        "How long each step took (`plumb steps`). Lists are parallel: one entry a listed step, in the order of their "
        "ends.");
    v("steps", r.steps, "complete ones in the recording");
    v("counted", r.counted, "of these: no warm-up, and not made different by sampling");
    v("every", r.every, "of so many steps that follow each other one is listed, the longest; 1: all are");
    v("id_deltas", r.id_deltas, "number of the step less that of the one before; the first: its number");
    v("gaps_ns", r.gaps_ns, "from the end of the one before to the begin of its period; the first: 0");
    v("periods_ns", r.periods_ns, "step end to step end");
    v("phases", r.phases, "a letter each: `d` decode, `p` prefill, `m` mixed, `n` none");
    v("marks", r.marks, "a letter each: `.` counted, `w` warm-up, `s` made different by sampling");
    v("slowest", r.slowest, "of the counted ones, the longest period first");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const StepsReport&) { return "plumb.steps/2"; }
[[nodiscard]] page::Page page_of(const StepsReport& report, const TextOptions& options);

} // namespace plumb
