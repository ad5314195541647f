// SPDX-License-Identifier: Apache-2.0
// The reading side of a probe: completed replays become samples, and figures of the key's account.
#include <algorithm>
#include <cmath>

#include "cudagraph/graph_entry.hpp"
#include "record/queue_registry.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

/// Only our own thread or the drain is here at a time; a shot that is enqueued is not touched by launches.
void GraphEntry::read_samples() {
    if (graph_.device == nullptr) {
        return;
    }
    std::vector<Shot*> enqueued;
    {
        const std::lock_guard lock(mutex_);
        for (Shot& shot : shots_) {
            if (shot.used && shot.enqueued) {
                enqueued.push_back(&shot);
            }
        }
    }
    // In their order: once a replay of a twin is read, the next launch may write its slots again, and neighbours meet.
    std::sort(enqueued.begin(), enqueued.end(), [](const Shot* a, const Shot* b) { return a->number < b->number; });
    std::vector<const Twin*> behind; // of a replay that is not over
    for (Shot* const shot : enqueued) {
        const Twin* const twin = shot->twin.get();
        if (twin != nullptr && std::find(behind.begin(), behind.end(), twin) != behind.end()) {
            continue;
        }
        if (completed(*shot)) {
            read(*shot);
        } else if (twin != nullptr) {
            behind.push_back(twin);
        }
    }
}

bool GraphEntry::completed(const Shot& shot) {
    Timeline& timeline = graph_.device->timeline();
    if (timeline.lost()) {
        return true;
    }
    const bool copied = shot.copied != nullptr && !shot.unread;
    const Result<bool> reached = copied                 ? timeline.reached(shot.copied)
                                 : shot.ended           ? timeline.reached(shot.after)
                                 : shot.twin != nullptr ? shot.twin->over(shot.replay)
                                                        : Result<bool>(true);
    // An error of one query says nothing about the device: it is asked again. A sticky one loses the timeline.
    return timeline.lost() || (reached && *reached);
}

void GraphEntry::read(Shot& shot) {
    Timeline& timeline = graph_.device->timeline();
    if (!timeline.lost() && !shot.unread) {
        if (shot.twin == nullptr) {
            learn_plain(shot);
        }
        if (shot.twin != nullptr) {
            static_cast<void>(learn_sample(shot)); // what could not be read stays among the unresolved
        }
    }
    if (!timeline.lost() && shot.twin != nullptr) {
        shot.twin->forget(shot.replay);
    }
    disarm(shot);
}

SiteCost GraphEntry::site_cost() const {
    return cost_of_a_site(pairs_, graph_.device->prior(kind_), tick_ns(), sites_.site());
}

GraphEntry::Outer GraphEntry::outer_of(const Shot& shot) {
    const Result<EventSpan> span = graph_.device->timeline().span(shot.before, shot.after);
    if (!span) {
        return {};
    }
    // The stream drained before the launch was done: the wait for it is inside.
    const auto after_launch = static_cast<double>(span->begin_place.monotonic_ns - shot.launched_ns);
    return {span->length_ns, !(after_launch >= span->begin_place.bound_ns)};
}

void GraphEntry::learn_plain(const Shot& shot) {
    const Outer outer = outer_of(shot);
    if (std::isnan(outer.ns)) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        plain_spans_.add(outer.ns);
        book_.add_plain(outer.ns, outer.waited);
        sites_.add_plain(shot.number, outer.ns, outer.waited);
        if (twin_ != nullptr && !turning_) { // else its plan is being changed, without the lock
            rate_.learn(twin_->cost_units(), site_cost().pair, plain_spans_.median());
        }
    }
    describe_sampling();
}

namespace {

/// From the head's last stamp to the tail's first, without the second stamps of empty pairs.
double inside_of(const Twin& twin, const ReplayReadings& readings) {
    double inside = 0;
    for (std::size_t i = twin.plan().stamps.size() - 1; i != no_index && i != 0; i = twin.plan().stamps[i].anchor) {
        inside += readings.since_anchor[i];
    }
    return inside;
}

/// Stamps in line between the two that inside_of() is from and to, the first one included.
std::size_t sites_inside(const StampPlan& plan) {
    std::size_t sites = 0;
    for (std::size_t i = plan.stamps.size() - 1; i != no_index && i != 0; i = plan.stamps[i].anchor) {
        ++sites;
    }
    return sites;
}

/// From before the head's first stamp to the last stamp of a replay, stamps included, and what is behind it: one-thread
/// kernels are taken to cost alike.
double stamped_length(const Twin& twin, const ReplayReadings& readings, double cost) {
    const StampPlan& plan = twin.plan();
    const auto pair = [&readings](std::size_t i) {
        return std::isnan(readings.pair[i]) ? 0 : readings.pair[i];
    };
    std::vector<double> at(plan.stamps.size(), 0); // from the head's last copy to the last copy of each
    double last = 0;
    for (std::size_t i = 1; i < plan.stamps.size(); ++i) {
        at[i] = at[plan.stamps[i].anchor] + readings.since_anchor[i] + pair(i);
        last = std::max(last, at[i]);
    }
    return static_cast<double>(twin.behind()) * cost + pair(0) + last;
}

} // namespace

Status GraphEntry::learn_sample(const Shot& shot) {
    if (Status status = shot.twin->stamped_between(shot.before, shot.after); !status) {
        if (status.error().code == ErrorCode::unsupported) {
            drop_twin("unsupported (" + status.error().message + ")");
        }
        return status;
    }
    ReplayReadings readings;
    if (Status status = shot.twin->read(shot.replay, readings); !status) {
        return status;
    }
    if (shot.twin->is_frame()) {
        learn_frame(shot, readings);
        describe_sampling();
        return {};
    }
    const bool coarser = reads_coarser(shot);
    learn_tick(shot);
    const Outer outer = outer_of(shot);
    const Result<std::uint64_t> head = shot.twin->head_ticks(readings, shot.before, shot.after, outer.waited);
    if (!head) {
        return head.error();
    }
    SiteCost cost;
    bool sound = true;
    {
        const std::lock_guard lock(mutex_);
        sound = !coarser && !held_up(shot, readings, outer);
        for (const double pair : readings.pair) {
            if (!std::isnan(pair)) {
                pairs_.add(pair);
            }
        }
        for (const Part& part : shot.twin->plan().parts) {
            book_.add_part(part.number, readings.since_anchor[part.end]);
        }
        ++samples_of_turn_;
        ++samples_;
        sites_.add_stamped(shot.number, inside_of(*shot.twin, readings), outer.waited);
        cost = site_cost();
        // Samples with their stamps' cost inside would stand among corrected ones.
        sound = sound && !(cost_was_known_ && std::isnan(cost.ns));
        cost_was_known_ = cost_was_known_ || (pairs_.count() >= SiteBook::enough_stamped && !std::isnan(cost.ns));
        if (!std::isnan(outer.ns)) {
            book_.add_around(outer.ns - stamped_length(*shot.twin, readings, cost.pair), outer.waited);
        }
        rate_.learn(shot.twin->cost_units(), cost.pair, plain_spans_.median());
    }
    if (sound && announce_track(shot.timer, shot.twin->kind())) {
        deliver(shot, readings, *head, cost);
    } // else its samples stay among the unresolved
    describe_sampling();
    return {};
}

/// An executable as large as the plain one starts when that would: what lies around its two stamps lies around plain
/// replays too.
void GraphEntry::learn_frame(const Shot& shot, const ReplayReadings& readings) {
    const Outer outer = outer_of(shot);
    const double pair = readings.pair[0];
    const std::lock_guard lock(mutex_);
    ++samples_of_turn_;
    sites_.add_framed(shot.number, inside_of(*shot.twin, readings), outer.waited);
    if (!std::isnan(outer.ns)) {
        book_.add_framed(outer.ns - stamped_length(*shot.twin, readings, pair), outer.waited);
    }
}

/// Whether the timer ticks in more than the error that is stated allows, and that is not learnt yet.
bool GraphEntry::reads_coarser(const Shot& shot) const {
    constexpr double times = 4;
    TimerTick own;
    shot.twin->tell_timers(shot.replay, own);
    return own.differences() >= TimerTick::few && own.ns() > times * graph_.device->tick_ns(shot.twin->kind());
}

void GraphEntry::learn_tick(const Shot& shot) {
    shot.twin->tell_timers(shot.replay, timer_tick_);
    if (timer_tick_.differences() >= TimerTick::enough) {
        graph_.device->learn_stamp_tick(timer_tick_.ns());
        timer_tick_ = TimerTick();
    }
}

void GraphEntry::begin_turn() {
    sites_.begin_turn(next_turn_, sites_inside(plans_.turns[next_turn_]) - 1); // a frame has one too
}

/// The caller holds mutex_.
bool GraphEntry::held_up(const Shot& shot, const ReplayReadings& readings, const Outer& outer) const {
    constexpr double off = 0.25; // of what a stamp costs
    const double usual = pairs_.median();
    const double slack = off * usual + 2 * tick_ns();
    const double furthest = slack + 3 * pairs_.spread();
    const bool pairs_differ = pairs_.count() >= SiteBook::enough_stamped &&
                              std::any_of(readings.pair.begin(), readings.pair.end(), [&](double pair) {
                                  return std::abs(pair - usual) > furthest;
                              }); // false where there is none
    return pairs_differ || sites_.stands_out(shot.number, inside_of(*shot.twin, readings), outer.waited, slack);
}

void GraphEntry::describe_sampling() {
    Closure closure;
    bool closed = false;
    double plain = 0;
    SiteCost cost{unknown_cost, unknown_cost, unknown_cost};
    double tick = unknown_cost;
    std::uint64_t every = 0;
    {
        const std::lock_guard lock(mutex_);
        plain = book_.plain_span();
        every = twin_ != nullptr ? rate_.every() : 0;
        if (!plans_.turns.empty()) {
            cost = site_cost();
            tick = tick_ns();
        }
        closed = book_.closure(cost.ns, closure);
    }
    graph_.account->measure_of(graph_.capture, [&](recording::GraphInfo& info) {
        info.plain_span_ns = plain;
        info.every = every;
        info.site_cost_ns = cost.ns;
        info.site_cost_error_ns = std::isnan(cost.ns) ? cost.ns : cost.error;
        info.tick_ns = tick > 0 ? tick : unknown_cost;
        if (closed) {
            info.closure_raw = closure.raw;
            info.closure = closure.calibrated;
        }
    });
}

/// False: there is none, and its samples stay among the unresolved.
bool GraphEntry::announce_track(QueueTimer* timer, ProbeKind kind) {
    if (track_ != 0 && track_kind_ == kind) {
        return true;
    }
    drain::FeedTrack track;
    const Vendor& vendor = *state_->driver().vendor;
    track.info.source = kind == ProbeKind::stamp ? vendor.stamp_source : vendor.graph_source;
    track.clock_name = graph_.device->timeline().clock_name();
    track.info.device_name = graph_.device->timeline().device_name();
    const TrackChoice choice = graph_.account->choose_track(graph_.capture, track.info.source, track.clock_name,
                                                            [] { return record::new_process_track(); });
    track_ = choice.id;
    track_kind_ = kind;
    if (!choice.is_new) {
        return track_ != 0;
    }
    track.info.id = track_;
    track.info.kind = recording::TrackKind::captured_graph;
    track.info.name = "graph " + std::to_string(graph_.key);
    track.info.graph_key = graph_.key;
    {
        const std::lock_guard lock(mutex_);
        track.info.sampled_every = static_cast<std::uint32_t>(rate_.every());
    }
    track.clock = timer;
    state_->announce(std::move(track));
    return true;
}

/// Positions without what the stamps cost: each part is shortened by the stamp that it holds, so that scopes that follow
/// each other still do, and a parent is as long as its children.
void GraphEntry::deliver(const Shot& shot, const ReplayReadings& readings, std::uint64_t head, const SiteCost& cost) {
    const StampPlan& plan = shot.twin->plan();
    const double floor = std::max(graph_.device->tick_ns(shot.twin->kind()), 1.0);
    // Where their cost is not known, samples hold it.
    const double site = std::isnan(cost.ns) ? 0 : cost.ns;
    const double of_pair = std::isnan(cost.ns) ? 0 : cost.pair;
    std::vector<double> at(plan.stamps.size(), 0);
    for (std::size_t i = 1; i < plan.stamps.size(); ++i) {
        // All that lies between the two, an empty pair included: then what the clock's tick cuts off does not add up.
        const std::uint32_t anchor = plan.stamps[i].anchor;
        const double pair = anchor == 0 || std::isnan(readings.pair[anchor]) ? 0 : readings.pair[anchor] - of_pair;
        at[i] = at[anchor] + readings.since_anchor[i] - site + pair;
    }
    const auto stamp_at = [&](std::uint32_t place) {
        const auto found =
            std::lower_bound(plan.stamps.begin(), plan.stamps.end(), place,
                             [](const PlannedStamp& stamp, std::uint32_t wanted) { return stamp.place < wanted; });
        return static_cast<std::size_t>(found - plan.stamps.begin());
    };
    std::vector<drain::DeviceSample> samples;
    samples.reserve(plan.scopes.size());
    for (const std::uint32_t scope : plan.scopes) {
        const ScopeNote& note = graph_.notes[scope];
        const std::size_t first = stamp_at(graph_.places[scope].begin);
        const std::size_t last = stamp_at(graph_.places[scope].end);
        const double begin = at[first];
        // Each of its two readings is cut to a tick, and each stamp inside cost more or less than it was taken to.
        const double unsure = static_cast<double>(last - first) * cost.error;
        if (at[last] - begin < -(2 * floor + unsure)) {
            continue; // what is less cannot be: it stays among the unresolved
        }
        const double end = std::max(begin, at[last]);
        drain::DeviceSample sample;
        sample.track = track_;
        sample.name = note.label.name;
        sample.lap = note.label.lap;
        sample.layer_plus_one = note.label.layer_plus_one;
        sample.step_plus_one = shot.step_plus_one;
        sample.has_work = note.has_work;
        sample.work = note.work;
        sample.flags = end - begin < std::max(floor, unsure) ? span_below_floor : 0;
        sample.begin_ticks = head + static_cast<std::uint64_t>(std::llround(begin));
        sample.end_ticks = head + static_cast<std::uint64_t>(std::llround(end));
        samples.push_back(sample);
    }
    state_->hand_over(std::move(samples));
}

} // namespace plumb::cudagraph
