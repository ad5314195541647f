// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_events.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ranks/intervals.hpp"
#include "resolve/name_table.hpp"
#include "resolve/resolve.hpp"

namespace plumb::ranks {
namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr std::size_t most_intervals = std::size_t{1} << 22;
constexpr std::size_t most_groups = 255;

class Collector {
  public:
    explicit Collector(const recording::RecordedRun& run) : run_(run), names_(run.facts->names) {}

    Result<RankEvents> read() {
        resolve::ResolveOptions options;
        options.warmup_steps = 0;
        const auto resolved = resolve::resolve(
            run_, options,
            [this](const resolve::StepTable& steps, const resolve::TrackTable& tracks) { known(steps, tracks); },
            [this](const resolve::ResolvedBatch& batch) { take(batch); });
        if (!resolved.ok()) {
            return resolved.error();
        }
        finish();
        return std::move(out_);
    }

  private:
    struct About {
        bool collective = false;
        bool experts = false;
        std::uint16_t index = 0; // into RankEvents::names
    };

    void known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
        out_.steps = steps.size();
        for (const resolve::ResolvedStep& step : steps.all()) {
            out_.prefill_steps += step.phase == Phase::prefill ? 1 : 0;
        }
        if (tracks.size() != 0 && tracks.host_line().ok()) {
            out_.line = *tracks.host_line();
        }
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            out_.queues_sampled = out_.queues_sampled || tracks[i].info.sampled_every > 1;
        }
        for (std::size_t i = 0; out_.queues_sampled && i < steps.size(); ++i) {
            if (steps[i].device_timed) {
                timed_.push_back({steps[i].period_begin_ns, steps[i].end_ns});
            }
        }
    }

    const About& about(std::uint16_t id) {
        const auto [found, is_new] = known_.try_emplace(id);
        if (is_new) {
            const std::string name = names_.text(id);
            found->second.experts = name == "moe_experts";
            if (crosses_ranks(name, names_.category(id))) {
                found->second.collective = true;
                found->second.index = static_cast<std::uint16_t>(out_.names.size());
                out_.names.push_back(name);
            }
        }
        return found->second;
    }

    std::uint8_t group_of(std::uint16_t id) {
        if (id == 0) {
            return 0;
        }
        const auto [found, is_new] = groups_.try_emplace(id, std::uint8_t{0});
        if (is_new && out_.groups.size() <= most_groups) {
            found->second = static_cast<std::uint8_t>(out_.groups.size());
            out_.groups.push_back(names_.text(id));
        }
        return found->second;
    }

    void take(const resolve::ResolvedBatch& batch) {
        const bool device = batch.track->info.kind != recording::TrackKind::host_thread;
        replayed_ = replayed_ || batch.track->info.kind == recording::TrackKind::captured_graph ||
                    std::any_of(batch.submissions.begin(), batch.submissions.end(),
                                [](const resolve::Submission& one) { return one.graph && !one.linked(); });
        const auto error = static_cast<std::uint32_t>(
            batch.track->line != nullptr ? std::min(std::ceil(batch.track->line->residual_ns()), 4e9) : 0);
        std::size_t mark = 0;
        for (std::size_t i = 0; i < batch.samples.size(); ++i) {
            const Sample& sample = batch.samples[i];
            out_.first_ns = out_.samples == 0 ? sample.begin_ns : std::min(out_.first_ns, sample.begin_ns);
            out_.last_ns = std::max(out_.last_ns, sample.begin_ns + sample.duration_ns);
            ++out_.samples;
            if (sample.kind == SampleKind::step || sample.kind == SampleKind::layer) {
                continue;
            }
            const About& what = about(sample.name);
            if (what.collective) {
                while (mark < batch.collectives.size() && batch.collectives[mark].sample < i) {
                    ++mark;
                }
                const bool said = mark < batch.collectives.size() && batch.collectives[mark].sample == i;
                add(sample, what, error, said ? &batch.collectives[mark] : nullptr);
            } else if (what.experts && sample.leaf && !std::isnan(sample.elements)) {
                ExpertLoad& load = out_.experts[sample.layer.value_or(0)];
                load.elements += sample.elements;
                ++load.calls;
            }
            if (sample.leaf) {
                note(sample, device, what.collective);
            }
        }
    }

    void add(const Sample& sample, const About& what, std::uint32_t error, const resolve::CollectiveMark* said) {
        if (out_.events.size() >= most_events) {
            ++out_.left_out;
            return;
        }
        RankEvent event;
        event.begin = sample.begin_ns;
        event.end = sample.begin_ns + sample.duration_ns;
        event.step = sample.step;
        event.error = error;
        event.name = what.index;
        event.layer_plus_one = static_cast<std::uint16_t>(sample.layer ? *sample.layer + 1 : 0);
        event.phase = sample.phase;
        if (said != nullptr) {
            event.group = group_of(said->group);
            event.sequence = said->sequence_plus_one - 1; // not_said where it is 0
        }
        out_.events.push_back(event);
    }

    void note(const Sample& sample, bool device, bool collective) {
        devices_ = devices_ || device;
        if (work_.size() + collectives_.size() >= most_intervals) {
            too_many_ = true;
            return;
        }
        (collective ? collectives_ : work_).push_back({sample.begin_ns, sample.begin_ns + sample.duration_ns});
        if (device) {
            on_devices_.push_back({sample.begin_ns, sample.begin_ns + sample.duration_ns});
        }
    }

    void finish() {
        std::sort(out_.events.begin(), out_.events.end(), [](const RankEvent& a, const RankEvent& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
        });
        auto span = static_cast<double>(out_.last_ns - out_.first_ns);
        merge(on_devices_);
        merge(collectives_);
        merge(work_);
        if (out_.queues_sampled) { // what other steps did on these queues was not timed
            merge(timed_);
            span = static_cast<double>(length(timed_));
            for (BusyIntervals* some : {&on_devices_, &collectives_, &work_}) {
                *some = in_both(*some, timed_);
            }
        }
        out_.collective_ns = length(collectives_);
        const char* const reason = too_many_   ? "it holds more than 4,194,304 bricks"
                                   : replayed_ ? "captured graphs ran, and not each of their replays is timed"
                                               : nullptr;
        const auto figure = [](const char* why, double value) {
            return why != nullptr ? Figure{std::nullopt, why} : Figure{value, {}};
        };
        const char* const no_busy = reason != nullptr ? reason
                                    : !devices_       ? "no device queue was recorded"
                                    : !(span > 0)     ? "nothing was timed"
                                                      : nullptr;
        out_.busy_share = figure(no_busy, static_cast<double>(length(on_devices_)) / span);
        out_.hidden_ns = figure(reason, static_cast<double>(length(in_both(collectives_, work_))));
    }

    const recording::RecordedRun& run_;
    resolve::NameTable names_;
    RankEvents out_;
    std::unordered_map<std::uint16_t, About> known_;
    std::unordered_map<std::uint16_t, std::uint8_t> groups_;
    BusyIntervals work_, collectives_, on_devices_; // of leaves
    BusyIntervals timed_;                           // periods of steps in which sampled queues were timed
    bool replayed_ = false;                         // a captured graph, whose bricks are not on queues
    bool devices_ = false;
    bool too_many_ = false;
};

} // namespace

bool crosses_ranks(const std::string& brick, Category category) {
    return category == Category::collective || brick == "moe_dispatch" || brick == "moe_combine" ||
           brick == "kv_transfer";
}

Result<RankEvents> read_events(const recording::RecordedRun& run) { return Collector(run).read(); }

} // namespace plumb::ranks
