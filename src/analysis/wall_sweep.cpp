// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_sweep.hpp"

#include <algorithm>
#include <utility>

namespace plumb::analysis {

using Kind = Detail::Kind;

void LaneSums::add(const LaneSums& other) {
    steps += other.steps;
    period += other.period;
    busy += other.busy;
    busy_sum += other.busy_sum;
    launch_wait += other.launch_wait;
    host_waits += other.host_waits;
    bricks += other.bricks;
    bricks_sum += other.bricks_sum;
    laps += other.laps;
    exposed += other.exposed;
    host += other.host;
    queued += other.queued;
    unnamed += other.unnamed;
    off_cpu += other.off_cpu;
    between_calls += other.between_calls;
    in_waits += other.in_waits;
    for_device += other.for_device;
    waiting += other.waiting;
    uncertain += other.uncertain;
    for (const auto& [name, scope] : other.scopes) {
        Scope& sum = scopes[name];
        sum.self += scope.self;
        sum.total += scope.total;
    }
}

bool WallSweep::wanted(const Detail& detail) const {
    const Role role = role_of(detail.track);
    const bool thread = role == Role::thread || role == Role::feeder;
    switch (detail.kind) {
    case Kind::brick:
    case Kind::lap:
        return device_ ? role == Role::queue : thread;
    case Kind::presence:
        return thread || role == Role::queue || (!device_ && role == Role::other_queue);
    case Kind::unsure:
    case Kind::sure:
    case Kind::flying:
    case Kind::queued:
    case Kind::unlinked:
        return role == Role::queue;
    case Kind::submit:
    case Kind::piece:
    case Kind::whole:
    case Kind::waiting:
        return thread;
    }
    return false;
}

void WallSweep::enter(Thread& thread, const Detail& detail) {
    // Pieces of one thread are disjoint, but where one ends and another begins the order of the two is open.
    leave(thread, detail.track);
    thread.inside = true;
    thread.launching = detail.kind == Kind::submit && device_ && role_of(detail.other) == Role::queue;
    thread.name = detail.name;
    thread.since = detail.interval.begin;
    launching_ += thread.launching ? 1 : 0;
    if (!thread.launching && thread.name != 0) {
        (role_of(detail.track) == Role::feeder ? feeders_inside_ : others_inside_).emplace(thread.since, detail.track);
    }
}

void WallSweep::leave(Thread& thread, std::uint32_t track) {
    if (!thread.inside) {
        return;
    }
    launching_ -= thread.launching ? 1 : 0;
    (role_of(track) == Role::feeder ? feeders_inside_ : others_inside_).erase({thread.since, track});
    thread.inside = thread.launching = false;
}

void WallSweep::apply_whole(Thread& thread, std::uint16_t name, bool begin) {
    const auto found = std::find(thread.wholes.begin(), thread.wholes.end(), name);
    if (!begin && found != thread.wholes.end()) {
        thread.wholes.erase(found);
    } else if (begin && thread.wholes.size() < deepest) {
        thread.wholes.push_back(name);
    }
}

void WallSweep::apply_thread(const Detail& detail, bool begin) {
    Thread& thread = threads_[detail.track];
    switch (detail.kind) {
    case Kind::presence:
        thread.present += begin ? 1 : -1;
        present_ += begin ? (thread.present == 1 ? 1 : 0) : (thread.present == 0 ? -1 : 0);
        break;
    case Kind::submit:
    case Kind::piece:
        if (begin) {
            enter(thread, detail);
        } else if (thread.since == detail.interval.begin) {
            leave(thread, detail.track);
        }
        break;
    case Kind::whole:
        apply_whole(thread, detail.name, begin);
        break;
    case Kind::waiting:
        thread.waiting += begin ? 1 : -1;
        break;
    default:
        break;
    }
    const bool works = role_of(detail.track) == Role::feeder && thread.present > 0 && thread.inside;
    workers_ += (works ? 1 : 0) - (thread.works ? 1 : 0);
    thread.works = works;
}

void WallSweep::apply_queue(const Detail& detail, int by) {
    switch (detail.kind) {
    case Kind::presence: {
        int& busy = queues_[detail.track];
        const int before = busy > 0 ? 1 : 0;
        busy += by;
        const int change = (busy > 0 ? 1 : 0) - before;
        (role_of(detail.track) == Role::queue ? busy_queues_ : other_busy_) += change;
        open_ += role_of(detail.track) == Role::queue ? by : 0;
        break;
    }
    case Kind::unsure:
        unsure_ += by;
        break;
    case Kind::sure:
        sure_ += by;
        break;
    case Kind::flying:
        flying_ += by;
        break;
    case Kind::queued:
        queued_ += by;
        break;
    case Kind::unlinked:
        unlinked_ += by;
        break;
    default:
        break;
    }
}

void WallSweep::apply(const Detail& detail, bool begin) {
    const int by = begin ? 1 : -1;
    const Role role = role_of(detail.track);
    if (detail.kind == Kind::brick) {
        bricks_ += by;
    } else if (detail.kind == Kind::lap) {
        laps_ += by;
    } else if (role == Role::thread || role == Role::feeder) {
        apply_thread(detail, begin);
    } else {
        apply_queue(detail, by);
    }
}

const WallSweep::Thread* WallSweep::innermost() const {
    const Inside& inside = feeders_inside_.empty() ? others_inside_ : feeders_inside_;
    return inside.empty() ? nullptr : &threads_[inside.rbegin()->second];
}

void WallSweep::name(const Thread& thread, std::int64_t length) {
    LaneSums::Scope& inner = sums_.scopes[thread.name];
    inner.self += length;
    inner.total += length;
    for (std::size_t i = 0; i < thread.wholes.size(); ++i) {
        const std::uint16_t outer = thread.wholes[i];
        const auto before = thread.wholes.begin() + static_cast<std::ptrdiff_t>(i);
        if (outer != thread.name && std::find(thread.wholes.begin(), before, outer) == before) {
            sums_.scopes[outer].total += length;
        }
    }
}

void WallSweep::count_busy(std::int64_t length, int tracks) {
    sums_.busy += length;
    sums_.busy_sum += length * tracks;
    sums_.bricks += bricks_ > 0 ? length : 0;
    sums_.bricks_sum += length * bricks_;
    sums_.laps += bricks_ == 0 && laps_ > 0 ? length : 0;
}

void WallSweep::find_launches(const std::vector<Detail>& details) {
    launches_.clear();
    next_launch_ = 0;
    for (const Detail& detail : details) {
        if (detail.kind == Kind::submit && role_of(detail.other) == Role::queue) {
            launches_.emplace_back(detail.interval.begin, detail.track);
        }
    }
    std::sort(launches_.begin(), launches_.end());
}

/// Of several threads it is the one with the next launch that the device would wait for; behind the last launch of a period, the
/// one that made it.
bool WallSweep::next_to_launch_waits(std::int64_t at) {
    while (next_launch_ < launches_.size() && launches_[next_launch_].first < at) {
        ++next_launch_;
    }
    if (launches_.empty()) {
        return std::any_of(threads_.begin(), threads_.end(), [](const Thread& thread) { return thread.waiting > 0; });
    }
    return threads_[launches_[std::min(next_launch_, launches_.size() - 1)].second].waiting > 0;
}

void WallSweep::count_device(std::int64_t at, std::int64_t length) {
    if (busy_queues_ > 0) {
        count_busy(length, busy_queues_);
        const bool surely = open_ - unsure_ + sure_ > 0;
        const bool host_waits = calls_only_ ? launching_ == 0 && next_to_launch_waits(at) : workers_ == 0;
        sums_.launch_wait += surely ? 0 : length;
        sums_.host_waits += surely && host_waits ? length : 0;
    } else if (queued_ > 0) {
        sums_.queued += length;
    } else if (flying_ > 0 || launching_ > 0) {
        sums_.exposed += length;
    } else if (const Thread* thread = innermost(); thread != nullptr) {
        sums_.host += length;
        name(*thread, length);
    } else if (calls_only_ && unlinked_ == 0) {
        sums_.host += length;
        (next_to_launch_waits(at) ? sums_.in_waits : sums_.between_calls) += length;
    } else {
        (present_ > 0 ? sums_.unnamed : sums_.off_cpu) += length;
    }
}

void WallSweep::count_host(std::int64_t length) {
    if (present_ > 0) {
        count_busy(length, present_);
        return;
    }
    (other_busy_ > 0 ? sums_.for_device : sums_.waiting) += length;
    if (const Thread* thread = innermost(); thread != nullptr) {
        name(*thread, length);
    }
}

void WallSweep::clear(const std::vector<Detail>& details, const std::vector<Role>& roles) {
    roles_ = &roles;
    sums_ = LaneSums();
    edges_.clear();
    feeders_inside_.clear();
    others_inside_.clear();
    present_ = launching_ = workers_ = busy_queues_ = other_busy_ = 0;
    open_ = unsure_ = sure_ = flying_ = queued_ = unlinked_ = bricks_ = laps_ = 0;
    std::size_t tracks = roles.size();
    for (const Detail& detail : details) {
        tracks = std::max<std::size_t>(tracks, detail.track + std::size_t{1});
    }
    threads_.resize(std::max(threads_.size(), tracks));
    queues_.resize(threads_.size());
}

LaneSums WallSweep::lane(Interval period, const std::vector<Detail>& details, const std::vector<Role>& roles,
                         bool device, bool calls_only) {
    clear(details, roles);
    device_ = device;
    calls_only_ = calls_only;
    if (calls_only) {
        find_launches(details);
    }
    for (std::uint32_t i = 0; i < details.size(); ++i) {
        if (!wanted(details[i])) {
            continue;
        }
        edges_.push_back({details[i].interval.begin, i, true});
        edges_.push_back({details[i].interval.end, i, false});
    }
    std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
    std::int64_t at = period.begin;
    const auto count_until = [&](std::int64_t time) {
        if (time > at && device_) {
            count_device(at, time - at);
        } else if (time > at) {
            count_host(time - at);
        }
        at = std::max(at, time);
    };
    for (const Edge& edge : edges_) {
        count_until(edge.time);
        apply(details[edge.detail], edge.begin);
    }
    count_until(period.end);
    sums_.steps = 1;
    sums_.period = period.end - period.begin;
    for (const Detail& detail : details) {
        threads_[detail.track] = Thread();
        queues_[detail.track] = 0;
    }
    return std::move(sums_);
}

} // namespace plumb::analysis
