// SPDX-License-Identifier: Apache-2.0
// Many ranks on one clock, with its error: who waited for whom (`plumb ranks`, docs/guide/ranks.md). Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/answer.hpp"
#include "plumb/outcome.hpp"
#include "ranks/alignment.hpp"

namespace plumb {

namespace ranks {

inline Words words_of(ClockSource) {
    static constexpr const char* words[] = {"reference", "same clock", "same counter",
                                            "bounds",    "unknown",    "contradicting"};
    return words;
}

} // namespace ranks

/// What a collective's time was spent on: its ranks waited for the last (arrival), or moved data (transfer).
enum class WaitVerdict : std::uint8_t { inconclusive, arrival, mixed, transfer };

inline Words words_of(WaitVerdict) {
    static constexpr const char* words[] = {"INCONCLUSIVE", "ARRIVAL", "MIXED", "TRANSFER"};
    return words;
}

/// Both ends of what the errors of the clocks allow; nanoseconds.
struct TimeRange {
    double least_ns = 0, most_ns = 0;
};

/// Of one rank in all layers of one index, or one layer of one brick and group: its time in collectives.
struct RankCell {
    std::uint32_t layer = 0;
    TimeRange wait; // a collective, on average
};

struct RankRow {
    std::uint32_t rank = 0;
    std::string file, host;
    std::string trace; // that it was imported from
    ranks::ClockSource clock = ranks::ClockSource::unknown;
    std::int64_t origin_ns = 0; // that its trace counts from, by its own clock
    std::int64_t at_ns = 0;     // the middle of its recording, by its own clock
    Figure offset_ns;           // what to add to that to have the first rank's
    Figure error_ns;            // of that, either way, at its worst
    Figure drift_ppm;           // middle of what is allowed
    std::uint64_t collectives = 0;
    std::uint64_t last = 0;         // of these it was certainly the last to arrive
    std::uint64_t last_at_most = 0; // the errors allow it
    std::uint64_t last_likely = 0;  // by the likeliest moments
    Figure alone_ns;                // when it was certainly last: how much later than the one before it, on average
    TimeRange wait;                 // sum
    double time_ns = 0;             // in collectives
    TimeRange message_wait;         // sum: receives that waited for their sends
    std::uint64_t messages = 0;     // receives
    Figure busy_share;              // of its time something ran on a device queue
    Figure hidden_share;            // of its time in collectives other work ran beside them
    std::vector<RankCell> layers;
};

/// Collectives of one brick and group, of all layers or of one.
struct CollectiveRow {
    std::string brick, group;
    std::optional<std::uint32_t> layer;
    std::uint64_t collectives = 0;
    TimeRange wait, move;                   // of one rank in one collective, on average
    double least_share = 0, most_share = 0; // of its time that is waiting
    WaitVerdict verdict = WaitVerdict::inconclusive;
    std::uint64_t arrivals = 0, transfers = 0, mixed = 0, inconclusive = 0; // single collectives
    std::uint32_t last_rank = 0;                                            // most often certainly last
    std::uint64_t last = 0;
    Figure begin_spread_ns, end_spread_ns; // first to last rank by the likeliest moments, median
};

/// One collective in which somebody waited long.
struct CollectiveWait {
    std::string brick, group;
    std::optional<std::uint32_t> layer;
    std::optional<std::uint64_t> step;
    std::uint64_t number = 0;            // among those of its brick and group
    std::vector<std::uint32_t> arrivals; // ranks in the order of the likeliest moments, first and last ones
    TimeRange wait;                      // of the first to arrive
    TimeRange move;                      // of the last
    WaitVerdict verdict = WaitVerdict::inconclusive;
};

/// A rank that is last more often than chance lets any, and costs time.
struct LateRank {
    std::uint32_t rank = 0;
    double margin_ns = 0; // collectives count in which a rank may have been alone by so much
    std::uint64_t last = 0, collectives = 0;
    double expected = 0;     // times, if all were alike
    double alone_ns = 0;     // a time, at least
    TimeRange cost;          // in all: how much later than the others it arrived
    double cost_share = 0;   // of the run's time, at least
    bool host_bound = false; // its devices idle more than those of the others
    Figure idle_share, others_idle_share;
};

struct ExpertRow {
    std::uint32_t layer = 0;
    std::uint32_t rank = 0; // with the most
    double most = 0, mean = 0;
    double imbalance = 0; // most / mean
};

/// A KV cache that went from one rank to another.
struct TransferRow {
    std::uint32_t from = 0, to = 0;
    std::string from_host, to_host;
    bool directed = false; // which one sends is known: it runs prefill steps alone
    std::uint64_t transfers = 0;
    TimeRange time; // from the begin on one to the end on the other, on average
};

struct RanksReport {
    std::uint64_t world = 0; // as the recordings say; 0: they do not
    bool numbered = false;   // no recording says its rank
    std::vector<RankRow> ranks;
    std::uint64_t collectives = 0; // matched
    std::uint64_t hosts = 0;
    std::vector<CollectiveRow> groups, layers;
    std::vector<LateRank> late; // the surest first
    std::uint64_t steps = 0;
    TimeRange gain;    // a step (or the run, where there are no steps): what it would gain if nobody waited
    double run_ns = 0; // from the first to the last moment of a collective
    std::vector<CollectiveWait> worst;
    std::vector<ExpertRow> experts;
    std::vector<TransferRow> transfers;
    std::vector<std::string> contradictions;
    std::vector<std::string> notes;
};

struct RanksOptions {
    std::vector<std::string> offset;
};

/// Files, or folders of them. Errors: no recording can be read, two recordings of one rank, fewer than two ranks.
[[nodiscard]] Result<RanksReport> read_ranks(const std::vector<std::string>& files, const RanksOptions& options);

template <class V>
void describe(V& v, RanksOptions& o) {
    v("offset", o.offset,
      "The wall clock of a rank is ahead of the first rank's by so many microseconds, give or take so many, as PTP or NTP "
      "say: 1=-12.5+-4; all=0+-10",
      {.value = "RANK=US+-US"});
}

template <class V>
void describe(V& v, const TimeRange& t) {
    v.type("time range", "What the errors of the clocks allow.");
    v("least_ns", t.least_ns, "");
    v("most_ns", t.most_ns, "");
}

template <class V>
void describe(V& v, const RankCell& c) {
    v.type("rank cell", "Waiting of one rank in one layer.");
    v("layer", c.layer, "its index");
    v("wait", c.wait, "in a collective, on average");
}

template <class V>
void describe(V& v, const RankRow& r) {
    v.type("rank", "One rank: its clock, and its part in collectives.");
    v("rank", r.rank, "");
    v("file", r.file, "");
    v("trace", r.trace, "name of the file that it was imported from", !r.trace.empty());
    v("host", r.host, "");
    v("clock", r.clock, "how its clock is known");
    v("origin_ns", r.origin_ns, "moment of its clock that its trace counts from");
    v("at_ns", r.at_ns, "the middle of its recording, by its own clock");
    v("offset_ns", r.offset_ns, "to add to that to have the first rank's");
    v("error_ns", r.error_ns, "of that, either way, at its worst moment");
    v("drift_ppm", r.drift_ppm, "middle of what is allowed");
    v("collectives", r.collectives, "matched with other ranks");
    v("last", r.last, "of these it certainly was the last to arrive");
    v("last_at_most", r.last_at_most, "of these it may have been");
    v("last_likely", r.last_likely, "of these it was by the likeliest moments");
    v("alone_ns", r.alone_ns, "when it certainly was last: how much later than the one before it at least, on average");
    v("wait", r.wait, "for the last rank, in all");
    v("time_ns", r.time_ns, "in collectives, in all");
    v("message_wait", r.message_wait, "of receives for their sends, in all: pipeline bubbles");
    v("messages", r.messages, "receives");
    v("busy_share", r.busy_share,
      "of its time something ran on a device queue; where queues are timed in some steps only, of the periods of those");
    v("hidden_share", r.hidden_share,
      "of its time in collectives other work ran beside them; where queues are timed in some steps only, in those");
    v("layers", r.layers, "waiting by layer");
}

template <class V>
void describe(V& v, const CollectiveRow& r) {
    v.type("collective row", "Collectives of one brick and group.");
    v("brick", r.brick, "");
    v("group", r.group, "empty: all ranks");
    v("layer", r.layer, "of these alone");
    v("collectives", r.collectives, "");
    v("wait", r.wait, "of one rank in one collective, on average: begin of the last rank - own begin");
    v("move", r.move, "the same: own end - begin of the last rank");
    v("least_share", r.least_share, "of its time that is waiting");
    v("most_share", r.most_share, "of its time that is waiting");
    v("verdict", r.verdict, "of all together");
    v("arrivals", r.arrivals, "single collectives with that verdict");
    v("transfers", r.transfers, "");
    v("mixed", r.mixed, "");
    v("inconclusive", r.inconclusive, "");
    v("last_rank", r.last_rank, "most often certainly the last to arrive", r.last != 0);
    v("last", r.last, "how often");
    v("begin_spread_ns", r.begin_spread_ns, "first to last rank by the likeliest moments, median");
    v("end_spread_ns", r.end_spread_ns, "the same of their ends");
}

template <class V>
void describe(V& v, const CollectiveWait& w) {
    v.type("collective", "One in which somebody waited long.");
    v("brick", w.brick, "");
    v("group", w.group, "");
    v("layer", w.layer, "");
    v("step", w.step, "");
    v("number", w.number, "among those of its brick and group");
    v("arrivals", w.arrivals,
      "ranks in the order in which they arrived, by the likeliest moments; at most the first and last four");
    v("wait", w.wait, "of the rank that waited longest");
    v("move", w.move, "of the rank that waited least");
    v("verdict", w.verdict, "");
}

template <class V>
void describe(V& v, const LateRank& l) {
    v.type("late rank", "A rank that is last more often than chance lets any, and costs 1 % of the time or more.");
    v("rank", l.rank, "");
    v("margin_ns", l.margin_ns, "by so much or more later than all others: less does not count here");
    v("last", l.last, "of `collectives` it certainly was the last to arrive");
    v("collectives", l.collectives, "in which some rank may have been, but for the late ranks before this one");
    v("expected", l.expected, "times, if all ranks were alike");
    v("alone_ns", l.alone_ns, "in these: how much later than the one before it at least, on average");
    v("cost", l.cost, "in all: how much later than all others it arrived");
    v("cost_share", l.cost_share, "of the time of the run, at least");
    v("host_bound", l.host_bound, "its devices idle more than those of the others");
    v("idle_share", l.idle_share, "of its devices");
    v("others_idle_share", l.others_idle_share, "median");
}

template <class V>
void describe(V& v, const ExpertRow& e) {
    v.type("expert load", "Elements of moe_experts in one layer.");
    v("layer", e.layer, "");
    v("rank", e.rank, "with the most");
    v("most", e.most, "");
    v("mean", e.mean, "of all ranks");
    v("imbalance", e.imbalance, "most / mean");
}

template <class V>
void describe(V& v, const TransferRow& t) {
    v.type("transfer", "KV caches that went from one rank to another.");
    v("from", t.from, "");
    v("to", t.to, "");
    v("from_host", t.from_host, "");
    v("to_host", t.to_host, "");
    v("directed", t.directed, "which one sends is known: it runs prefill steps alone");
    v("transfers", t.transfers, "");
    v("time", t.time, "from the first begin to the last end, on average");
}

template <class V>
void describe(V& v, const RanksReport& r) {
    v.type("ranks", "Many ranks on one clock, with its error: who waited for whom (`plumb ranks`).");
    v("world", r.world, "ranks of the job, as the recordings say; 0: they do not");
    v("numbered", r.numbered, "no recording says its rank: they are numbered in the natural order of their names");
    v("hosts", r.hosts, "");
    v("collectives", r.collectives, "matched");
    v("steps", r.steps, "of the first rank that have collectives");
    v("run_ns", r.run_ns, "from the first to the last moment of a collective");
    v("gain", r.gain, "what a step would gain if nobody waited; of the whole run where there are no steps");
    v("ranks", r.ranks, "");
    v("late", r.late, "the surest first");
    v("groups", r.groups, "");
    v("layers", r.layers, "the same by layer");
    v("worst", r.worst, "collectives in which somebody waited longest");
    v("experts", r.experts, "");
    v("transfers", r.transfers, "");
    v("contradictions", r.contradictions, "clocks for which no line fits: one sentence each");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const RanksReport&) { return "plumb.ranks/1"; }
[[nodiscard]] page::Page page_of(const RanksReport& report, const TextOptions& options);
/// Undecided where clocks contradict.
[[nodiscard]] inline Outcome outcome_of(const RanksReport& report) noexcept {
    return report.contradictions.empty() ? Outcome::pass : Outcome::unknown;
}

} // namespace plumb
