// SPDX-License-Identifier: Apache-2.0
#include "answers/requests/requests.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>

#include "analysis/loss_note.hpp"
#include "analysis/request_lives.hpp"
#include "answers/reading.hpp"
#include "base/hex.hpp"
#include "stats/distribution.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

using analysis::RequestLife;
using analysis::RequestLives;

constexpr const char* no_arrival = "its arrival was not marked (RequestPhase::queue)";
constexpr const char* no_first_token =
    "neither kv_transfer nor decode followed its prefill, so when its first token was there is not known";
constexpr const char* no_prefill = "it left no prefill";
constexpr const char* no_end = "it has no end in the recording";
constexpr const char* no_tokens = "its end does not say how many tokens it gave";
constexpr const char* one_token = "it gave fewer than two tokens";
constexpr const char* no_steps = "no step of it is known";
constexpr const char* no_step_end = "a step that had it in its batch has no known end";

/// A duration, or why there is none.
struct KnownTime {
    std::int64_t ns = 0;
    const char* missing = nullptr;
};

const char* why_no_first_token(const RequestLife& life) {
    return life.left(RequestPhase::prefill) ? no_first_token : no_prefill;
}

KnownTime ttft_of(const RequestLife& life) {
    return !life.first_token_ns ? KnownTime{0, why_no_first_token(life)}
           : !life.arrived      ? KnownTime{0, no_arrival}
                                : KnownTime{*life.first_token_ns - life.begin_ns};
}

KnownTime tpot_of(const RequestLife& life) {
    if (!life.ended || !life.tokens || !life.first_token_ns) {
        return {0, !life.ended ? no_end : !life.tokens ? no_tokens : why_no_first_token(life)};
    }
    if (*life.tokens < 2) {
        return {0, one_token};
    }
    const auto further = static_cast<std::int64_t>(std::min<std::uint64_t>(*life.tokens - 1, INT64_MAX / 2));
    return {(life.end_ns - *life.first_token_ns + further / 2) / further};
}

KnownTime total_of(const RequestLife& life) {
    return !life.ended     ? KnownTime{0, no_end}
           : !life.arrived ? KnownTime{0, no_arrival}
                           : KnownTime{life.end_ns - life.begin_ns};
}

KnownTime stalled_of(const RequestLife& life) {
    return life.step_count == 0  ? KnownTime{0, no_steps}
           : life.stalls_unknown ? KnownTime{0, no_step_end}
                                 : KnownTime{life.stalled_ns};
}

template <RequestPhase phase>
KnownTime in_phase(const RequestLife& life) {
    return life.left(phase) ? KnownTime{life.in(phase)} : KnownTime{0, "it was not in this phase, or did not leave it"};
}

struct Time {
    const char* what;
    KnownTime (*of)(const RequestLife&);
};
constexpr std::array<Time, 8> times = {{{"ttft", ttft_of},
                                        {"tpot", tpot_of},
                                        {"queue", in_phase<RequestPhase::queue>},
                                        {"prefill", in_phase<RequestPhase::prefill>},
                                        {"kv_transfer", in_phase<RequestPhase::kv_transfer>},
                                        {"decode", in_phase<RequestPhase::decode>},
                                        {"stalled", stalled_of},
                                        {"total", total_of}}};

Figure figure_of(const KnownTime& known) {
    return known.missing != nullptr ? stats::absent(known.missing) : stats::measured(static_cast<double>(known.ns));
}

class RequestsReader final : public read::Observer {
  public:
    RequestsReader(const recording::RunFacts& facts, const RequestsOptions& options)
        : options_(options),
          lives_(
              {}, [this](std::uint64_t id) { return end_of(id); }, [this](const RequestLife& life) { add(life); }) {
        analysis::add_loss_note(analysis::lost_of(facts), out_.notes);
    }
    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) override { steps_ = &steps; }
    void consume(const resolve::ResolvedBatch& batch) override {
        for (const resolve::RequestEvent& event : batch.requests) {
            lives_.take(event);
        }
    }
    void finish(const resolve::Resolution& resolution) override;
    [[nodiscard]] Result<RequestsReport> take() {
        if (out_.requests == 0) {
            return Error{ErrorCode::not_found,
                         "this recording holds no request; mark each one's phases with PLUMB_REQUEST in the server"};
        }
        return std::move(out_);
    }

  private:
    struct Spread {
        stats::DurationStatistics durations;
        std::map<std::string, std::uint64_t> missing;
    };
    struct Waiting {
        RequestLife life;
        [[nodiscard]] std::int64_t length() const { return life.longest_wait.end_ns - life.longest_wait.begin_ns; }
    };

    [[nodiscard]] std::optional<std::int64_t> end_of(std::uint64_t step) const {
        const std::size_t index = steps_->find(step);
        return index == resolve::step_not_found ? std::nullopt : std::optional((*steps_)[index].end_ns);
    }
    void add(const RequestLife& life);
    void finish_times();
    void finish_waits();
    void add_notes(const resolve::Losses& losses);
    /// Heaps and lists of waits: the longest first, of equal ones the earlier request.
    static bool longer(const Waiting& a, const Waiting& b) {
        return std::tuple(-a.length(), a.life.number) < std::tuple(-b.length(), b.life.number);
    }

    const RequestsOptions options_;
    const resolve::StepTable* steps_ = nullptr;
    RequestLives lives_;
    std::array<Spread, times.size()> spreads_;
    std::vector<Waiting> waits_; // a heap, the shortest of the longest first
    std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
    RequestsReport out_;
};

void RequestsReader::add(const RequestLife& life) {
    ++out_.requests;
    ++(life.ended ? out_.ended : out_.cut);
    out_.traced += life.trace.known() ? 1 : 0;
    first_ns_ = std::min(first_ns_, life.begin_ns);
    for (std::size_t i = 0; i < times.size(); ++i) {
        const KnownTime known = times[i].of(life);
        if (known.missing != nullptr) {
            ++spreads_[i].missing[known.missing];
        } else {
            spreads_[i].durations.add(static_cast<std::uint64_t>(std::max<std::int64_t>(known.ns, 0)));
        }
    }
    const Waiting waiting{life};
    if (waiting.length() == 0 || options_.waits == 0 ||
        (waits_.size() == options_.waits && !longer(waiting, waits_.front()))) {
        return;
    }
    if (waits_.size() == options_.waits) {
        std::pop_heap(waits_.begin(), waits_.end(), longer);
        waits_.pop_back();
    }
    waits_.push_back(waiting);
    std::push_heap(waits_.begin(), waits_.end(), longer);
}

void RequestsReader::finish_times() {
    for (std::size_t i = 0; i < times.size(); ++i) {
        RequestTime& time = out_.times.emplace_back();
        Spread& spread = spreads_[i];
        const Distribution found = spread.durations.finish();
        time.what = times[i].what;
        time.count = found.count;
        time.missing.assign(spread.missing.begin(), spread.missing.end());
        const auto most = std::max_element(time.missing.begin(), time.missing.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        if (found.count == 0) {
            const std::string why = "of no request: " + (most != time.missing.end() ? most->first : std::string());
            time.mean_ns = time.p50_ns = time.p90_ns = time.p99_ns = time.max_ns = stats::absent(why);
            continue;
        }
        time.mean_ns = stats::measured(found.mean_ns);
        time.p50_ns = found.p50_ns;
        time.p90_ns = found.p90_ns;
        time.p99_ns = found.p99_ns;
        time.max_ns = stats::measured(found.max_ns);
    }
}

void RequestsReader::finish_waits() {
    std::sort_heap(waits_.begin(), waits_.end(), longer);
    for (const Waiting& waiting : waits_) {
        RequestWait& wait = out_.waits.emplace_back();
        const RequestLife& life = waiting.life;
        wait.id = std::to_string(life.id);
        if (life.trace.known()) {
            wait.trace = base::hex_digits(life.trace.high) + base::hex_digits(life.trace.low);
        }
        wait.phase = life.longest_wait.phase;
        wait.begin_ns = life.longest_wait.begin_ns - first_ns_;
        wait.wait_ns = static_cast<double>(waiting.length());
        wait.ttft_ns = figure_of(ttft_of(life));
        wait.tpot_ns = figure_of(tpot_of(life));
    }
    for (const resolve::ResolvedStep& step : steps_->all()) {
        for (std::size_t i = 0; i < waits_.size(); ++i) {
            const analysis::RequestStretch& when = waits_[i].life.longest_wait;
            const std::int64_t shared = std::min(step.end_ns, when.end_ns) - std::max(step.begin_ns, when.begin_ns);
            if (shared <= 0) {
                continue;
            }
            RequestWait& wait = out_.waits[i];
            ++wait.steps;
            if (static_cast<double>(shared) > wait.step_ns) {
                wait.step = step.id;
                wait.step_phase = step.phase;
                wait.step_tokens = step.prefill_tokens + step.decode_tokens;
                wait.step_sequences = step.sequences;
                wait.step_ns = static_cast<double>(shared);
            }
        }
    }
}

void RequestsReader::add_notes(const resolve::Losses& losses) {
    const auto note = [this](std::uint64_t count, const std::string& what) {
        if (count != 0) {
            out_.notes.push_back(page::grouped(count) + what);
        }
    };
    const analysis::RequestCounts& counts = lives_.counts();
    note(out_.cut, " requests have no end in the recording: what they had finished counts, the rest is not known.");
    note(counts.ends_without_begin,
         " ends are of a request that had ended before, or of which no mark is in the recording.");
    note(counts.steps_without_begin,
         " times a request was in the batch of a step before its first mark or behind its end.");
    note(
        counts.steps_without_end,
        " times a request was in the batch of a step of which no end is known (it is of phase none, or was cut short). "
        "How long it was stalled behind that step is not known, and no such wait is listed.");
    note(counts.not_followed, " requests began while " + page::grouped(RequestLives::most_open) +
                                  " others were open, as many as are followed at once: they are missing here" +
                                  (counts.rest_not_followed ? ", and all that began after them." : "."));
    note(counts.out_of_order, " marks lie more than " + page::grouped(RequestLives::most_marks) +
                                  " marks behind later ones: phases of their requests may be wrong.");
    note(counts.traces_unread, " trace ids could not be read: give the W3C traceparent header as it came.");
    note(losses.of(resolve::Loss::request_incomplete),
         " marks have no place (a part, the time or the step is missing) and are left out.");
}

void RequestsReader::finish(const resolve::Resolution& resolution) {
    lives_.finish();
    finish_times();
    finish_waits();
    add_notes(resolution.losses);
}

Result<answers::Pending<RequestsReport>> begin(answers::Reading& reading, const RequestsOptions& options) {
    auto& requests = reading.join<RequestsReader>(reading.facts(), options);
    return answers::Pending<RequestsReport>([&requests] { return requests.take(); });
}

} // namespace

Result<RequestsReport> read_requests(const std::vector<std::string>& files, const RequestsOptions& options) {
    return answers::read_one<RequestsReport>(files.front(),
                                             [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& requests_answer() {
    static const answers::Entry entry = answers::joining_entry<RequestsOptions, RequestsReport, begin>(
        "requests", "Show time to first token, time per token and queue time, and which step each request waited for");
    return entry;
}

} // namespace plumb
