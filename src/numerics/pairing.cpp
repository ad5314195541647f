// SPDX-License-Identifier: Apache-2.0
#include "numerics/pairing.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace plumb::numerics {
namespace {

using Series = std::tuple<Phase, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, TensorRole, std::uint32_t>;
using Lane = std::tuple<Phase, std::uint32_t, std::uint32_t>; // phase, sequence, pass

struct Placed {
    Series series;
    std::int64_t begin = 0, end = 0; // [begin, end) of what orders a series: positions, or ordinals of steps
    std::uint32_t check = 0;
    bool partial = false; // fewer rows than its step

    [[nodiscard]] auto key() const { return std::tie(series, begin, end, check); }
};

struct StepSpan {
    std::int64_t begin, end;
};

/// (phase, sequence) of which some step does not know its position, in either run.
using Unknown = std::set<std::pair<Phase, std::uint32_t>>;

void note_unknown(const CheckedRun& run, Unknown& unknown) {
    for (const RunStep& step : run.steps) {
        if (step.begin < 0) {
            unknown.insert({step.phase, step.sequence});
        }
    }
}

/// One run, sorted by series and place, and what its steps cover.
class PairingSide {
  public:
    PairingSide(const CheckedRun& run, const Unknown& unknown) : run_(run) {
        for (const RunStep& step : run.steps) {
            sequences_.insert(step.sequence);
            lanes_[lane_of(step, unknown)].push_back(span_of(step, unknown));
        }
        for (auto& [lane, spans] : lanes_) {
            std::sort(spans.begin(), spans.end(), [](StepSpan a, StepSpan b) { return a.begin < b.begin; });
            std::vector<std::int64_t>& ends = ends_[lane];
            for (StepSpan& span : spans) {
                ends.push_back(span.end);
                span.end = std::max(span.end, (&span == spans.data() ? &span : &span - 1)->end);
            }
            std::sort(ends.begin(), ends.end());
        }
        placed.reserve(run.checks.size());
        for (std::uint32_t i = 0; i < run.checks.size(); ++i) {
            placed.push_back(place(i, unknown));
            if (placed.back().partial) {
                cut_.insert(placed.back().series);
            }
        }
        std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.key() < b.key(); });
    }

    /// Why this run lacks what the other one placed there.
    [[nodiscard]] Lack lack_of(const Placed& other) const {
        if (sequences_.count(std::get<1>(other.series)) == 0) {
            return Lack::sequence;
        }
        const Lane lane{std::get<0>(other.series), std::get<1>(other.series), std::get<2>(other.series)};
        const auto spans = lanes_.find(lane);
        if (spans == lanes_.end()) {
            return Lack::step;
        }
        // The last step that begins before the tensor ends knows how far it and those before it reach.
        const auto behind = std::lower_bound(spans->second.begin(), spans->second.end(), other.end,
                                             [](StepSpan span, std::int64_t end) { return span.begin < end; });
        const bool overlaps = behind != spans->second.begin() && std::prev(behind)->end > other.begin;
        const std::vector<std::int64_t>& ends = ends_.at(lane);
        const bool border = std::binary_search(ends.begin(), ends.end(), other.end);
        // The last row of a chunk of one row is the whole chunk there; that it stands for a last row is seen here.
        const bool partial = other.partial || cut_.count(other.series) != 0;
        return !overlaps ? Lack::step : partial && !border ? Lack::chunking : Lack::tensor;
    }

    std::vector<Placed> placed;

  private:
    static bool joins(const RunStep& step) { return step.phase == Phase::prefill; }

    static Lane lane_of(const RunStep& step, const Unknown& unknown) {
        const bool known = unknown.count({step.phase, step.sequence}) == 0;
        return {step.phase, step.sequence, known ? step.pass : 0};
    }

    static StepSpan span_of(const RunStep& step, const Unknown& unknown) {
        if (unknown.count({step.phase, step.sequence}) != 0) {
            return {step.ordinal, std::int64_t{step.ordinal} + 1};
        }
        return {step.begin, joins(step) ? step.end : step.begin + 1};
    }

    [[nodiscard]] Placed place(std::uint32_t index, const Unknown& unknown) const {
        const RunCheck& check = run_.checks[index];
        const RunStep& step = run_.steps[check.step];
        const Lane lane = lane_of(step, unknown);
        Placed made;
        made.series = {step.phase,  step.sequence,    std::get<2>(lane),     check.check.layer_plus_one,
                       check.brick, check.check.role, check.check.occurrence};
        made.check = index;
        const StepSpan span = span_of(step, unknown);
        made.begin = span.begin;
        made.end = span.end;
        if (joins(step) && unknown.count({step.phase, step.sequence}) == 0 && check.check.position >= 0) {
            made.begin = check.check.position;
            made.end = std::min(
                span.end, made.begin + static_cast<std::int64_t>(std::min<std::uint64_t>(
                                           rows_of(check.check), static_cast<std::uint64_t>(span.end - made.begin))));
            made.partial = made.end - made.begin < span.end - span.begin;
        }
        return made;
    }

    const CheckedRun& run_;
    std::set<std::uint32_t> sequences_;
    std::map<Lane, std::vector<StepSpan>> lanes_; // by begin; end: the furthest so far
    std::map<Lane, std::vector<std::int64_t>> ends_;
    std::set<Series> cut_; // with tensors that hold some rows of their step alone
};

/// Walks one series of both runs.
class Sweep {
  public:
    Sweep(const PairingSide& a, const PairingSide& b, Pairing& to) : a_(a), b_(b), to_(to) {}

    void run(std::size_t i, std::size_t end_a, std::size_t j, std::size_t end_b) {
        while (i < end_a && j < end_b) {
            const Placed& first = a_.placed[i];
            const Placed& second = b_.placed[j];
            if (first.begin < second.begin) {
                lost(true, i++);
            } else if (second.begin < first.begin) {
                lost(false, j++);
            } else {
                match(i, end_a, j, end_b);
            }
        }
        while (i < end_a) {
            lost(true, i++);
        }
        while (j < end_b) {
            lost(false, j++);
        }
    }

  private:
    /// Gathers pieces from a common begin to a common end; where there is none, all of them have no counterpart.
    void match(std::size_t& i, std::size_t end_a, std::size_t& j, std::size_t end_b) {
        std::size_t to_a = i + 1;
        std::size_t to_b = j + 1;
        while (a_.placed[to_a - 1].end != b_.placed[to_b - 1].end) {
            const bool a_is_short = a_.placed[to_a - 1].end < b_.placed[to_b - 1].end;
            const std::vector<Placed>& placed = a_is_short ? a_.placed : b_.placed;
            std::size_t& to = a_is_short ? to_a : to_b;
            if (to == (a_is_short ? end_a : end_b) || placed[to].begin != placed[to - 1].end) {
                while (i < to_a) {
                    lost(true, i++);
                }
                while (j < to_b) {
                    lost(false, j++);
                }
                return;
            }
            ++to;
        }
        PairedTensor pair;
        for (; i < to_a; ++i) {
            pair.a.push_back(a_.placed[i].check);
        }
        for (; j < to_b; ++j) {
            pair.b.push_back(b_.placed[j].check);
        }
        to_.pairs.push_back(std::move(pair));
    }

    void lost(bool of_a, std::size_t at) {
        const Placed& placed = (of_a ? a_ : b_).placed[at];
        to_.unpaired.push_back({of_a, placed.check, (of_a ? b_ : a_).lack_of(placed)});
    }

    const PairingSide& a_;
    const PairingSide& b_;
    Pairing& to_;
};

std::size_t end_of_series(const std::vector<Placed>& placed, std::size_t at) {
    std::size_t end = at;
    while (end < placed.size() && placed[end].series == placed[at].series) {
        ++end;
    }
    return end;
}

} // namespace

Pairing pair_runs(const CheckedRun& run_a, const CheckedRun& run_b) {
    Unknown unknown;
    note_unknown(run_a, unknown);
    note_unknown(run_b, unknown);
    const PairingSide a(run_a, unknown);
    const PairingSide b(run_b, unknown);
    Pairing made;
    made.by_position =
        std::all_of(unknown.begin(), unknown.end(), [](const auto& of) { return of.first == Phase::none; });
    Sweep sweep(a, b, made);
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.placed.size() || j < b.placed.size()) {
        const bool has_a = i < a.placed.size();
        const bool has_b = j < b.placed.size();
        const bool take_a = has_a && (!has_b || a.placed[i].series <= b.placed[j].series);
        const bool take_b = has_b && (!has_a || b.placed[j].series <= a.placed[i].series);
        const std::size_t end_a = take_a ? end_of_series(a.placed, i) : i;
        const std::size_t end_b = take_b ? end_of_series(b.placed, j) : j;
        sweep.run(i, end_a, j, end_b);
        i = end_a;
        j = end_b;
    }
    std::sort(made.pairs.begin(), made.pairs.end(),
              [](const PairedTensor& x, const PairedTensor& y) { return x.a.front() < y.a.front(); });
    std::sort(made.unpaired.begin(), made.unpaired.end(), [](const Unpaired& x, const Unpaired& y) {
        return std::tie(y.of_a, x.check) < std::tie(x.of_a, y.check);
    });
    return made;
}

} // namespace plumb::numerics
