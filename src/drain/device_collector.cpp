// SPDX-License-Identifier: Apache-2.0
#include "drain/device_collector.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

namespace plumb::drain {
namespace {

constexpr std::size_t most_unwritten_pairs = 4096;   // an hour of a full disk
constexpr std::size_t most_unwritten_checks = 65536; // about 32 MiB
constexpr std::size_t deepest = 1024;                // a track that nests deeper than recorders can is broken

Work absent_work() { return make_work(); }

double as_double(std::uint64_t bits) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

void set_quantity(Work& work, std::uint64_t quantity, double value) {
    double* const values[] = {&work.bytes, &work.flops, &work.elements, &work.bytes_per_kv};
    if (quantity < work_quantities) {
        *values[quantity] = value;
    }
}

/// Its device went, or its context: another timer of that clock may still answer.
bool is_gone(QueueTimer& timer) {
    const Result<DeviceClockPair> pair = timer.clock_pair();
    return !pair.ok() && pair.error().code == ErrorCode::unavailable;
}

/// Timers that serve the whole process read CLOCK_MONOTONIC, others the clock they were given: the nearer one is meant.
std::int64_t on_injected_clock(std::int64_t ns, const clock::HostClockSource& injected) {
    std::int64_t own = 0, common = 0, narrowest = std::numeric_limits<std::int64_t>::max();
    for (int attempt = 0; attempt < 3; ++attempt) { // one that was interrupted loses
        const std::int64_t before = clock::monotonic_ns();
        const std::int64_t read = clock::now_ns(injected).value;
        const std::int64_t width = clock::monotonic_ns() - before;
        if (width < narrowest) {
            narrowest = width;
            own = read;
            common = before + width / 2;
        }
    }
    return std::abs(ns - common) < std::abs(ns - own) ? ns + (own - common) : ns;
}

} // namespace

void DeviceCollector::add(QueueTimer& timer, recording::TrackInfo track) {
    const std::lock_guard<std::mutex> lock(mutex_);
    add_locked(&timer, std::move(track));
}

DeviceCollector::DeviceTrack& DeviceCollector::add_locked(QueueTimer* timer, recording::TrackInfo track) {
    if (timer != nullptr) {
        track.source = timer->source();
        if (!timer->clock_is_host()) {
            track.clock_name = timer->clock_name();
            track.device_name = timer->device_name();
            track.clock = clock_id(track.clock_name, timer, track.id);
        }
        track.sampled_every = timer->sampled_by_step() ? static_cast<std::uint32_t>(device_every_) : 1;
    }
    const std::uint32_t id = track.id;
    active_.store(true, std::memory_order_release);
    return devices_.try_emplace(id, DeviceTrack{timer, std::move(track), false, {}, {}, 0, {}}).first->second;
}

std::uint32_t DeviceCollector::clock_id(const std::string& name, QueueTimer* timer, std::uint32_t track) {
    Clock& clock = clocks_.try_emplace(name, Clock{track, nullptr}).first->second;
    if (timer != nullptr && timer != clock.timer && (clock.timer == nullptr || is_gone(*clock.timer))) {
        clock.timer = timer;
        read_pair(name, clock); // at once: a short run has no other before its end
    }
    return clock.id;
}

void DeviceCollector::add_feed(DeviceFeed& feed) {
    const std::lock_guard<std::mutex> lock(feeds_mutex_);
    feeds_.push_back(&feed);
    active_.store(true, std::memory_order_release);
}

void DeviceCollector::remove_feed(DeviceFeed& feed) {
    const std::lock_guard<std::mutex> lock(feeds_mutex_);
    feeds_.erase(std::remove(feeds_.begin(), feeds_.end(), &feed), feeds_.end());
}

// A queue of the whole process is met for the first time here.
DeviceCollector::DeviceTrack* DeviceCollector::track_of(std::uint32_t id) {
    if (const auto found = devices_.find(id); found != devices_.end()) {
        return &found->second;
    }
    const std::optional<record::RegisteredQueue> queue = record::find_queue(id);
    if (!queue) {
        return nullptr;
    }
    recording::TrackInfo track;
    track.id = id;
    track.kind = recording::TrackKind::device_queue;
    track.name = queue->name;
    return &add_locked(queue->timer, std::move(track));
}

std::vector<DeviceCollector::DeviceTrack*> DeviceCollector::devices() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<DeviceTrack*> list;
    for (auto& [id, device] : devices_) {
        list.push_back(&device);
    }
    return list;
}

void DeviceCollector::scan(const recording::RecordBatch& batch) {
    HostTrack& host = hosts_[batch.track];
    for (std::size_t i = 0; i < batch.count; ++i) {
        const Record& record = batch.records[i];
        if (kind_of(record) == RecordKind::scope && host.collectives.empty()) {
            continue; // most are
        }
        if (kind_of(record) != RecordKind::device_scope) {
            follow(host, record);
            continue;
        }
        expect(record, {batch.track, batch.first_sequence + i}, host);
    }
}

void DeviceCollector::expect(const Record& record, const Cause& cause, HostTrack& host) {
    const std::lock_guard<std::mutex> lock(mutex_);
    DeviceTrack* const device = track_of(static_cast<std::uint32_t>(payload_of(record)));
    if (device == nullptr || device->timer == nullptr) {
        ++failed_;
        return;
    }
    const auto known = host.work.find(id_of(record));
    const bool has_work = (record.second & flag_work) != 0 && known != host.work.end();
    device->pending.push_back(
        {cause, record.first,
         pack(RecordKind::scope, id_of(record)) | (record.second & flag_lap) | (has_work ? flag_work : 0),
         host.places.back(), has_work ? known->second : absent_work(), std::nullopt});
    if (const auto said = host.collectives.find(id_of(record)); said != host.collectives.end()) {
        device->pending.back().collective = said->second;
        host.collectives.erase(said);
    }
}

void DeviceCollector::follow(HostTrack& host, const Record& record) {
    const Place here = host.places.back();
    const auto enter = [&](Place place) {
        if (host.places.size() < deepest) {
            host.places.push_back(place);
        }
    };
    const auto leave = [&] {
        if (host.places.size() > 1) {
            host.places.pop_back();
        }
    };
    switch (kind_of(record)) {
    case RecordKind::step_begin:
        enter({payload_of(record) + 1, 0});
        break;
    case RecordKind::layer_begin:
        enter({here.step_plus_one, static_cast<std::uint16_t>(id_of(record) + 1)});
        break;
    case RecordKind::context:
        enter({record.first, id_of(record)});
        break;
    case RecordKind::step_end:
    case RecordKind::layer_end:
    case RecordKind::context_end:
        leave();
        break;
    case RecordKind::mark:
        if (id_of(record) == static_cast<std::uint16_t>(Mark::cut_step) ||
            id_of(record) == static_cast<std::uint16_t>(Mark::cut_layer)) {
            leave();
        }
        break;
    case RecordKind::work:
        set_quantity(host.work.try_emplace(id_of(record), absent_work()).first->second, payload_of(record),
                     as_double(record.first));
        break;
    case RecordKind::collective:
        host.collectives[static_cast<std::uint16_t>(payload_of(record))] = record;
        break;
    case RecordKind::scope: // on the thread itself
        if (!host.collectives.empty()) {
            host.collectives.erase(id_of(record));
        }
        break;
    default:
        break;
    }
}

Status DeviceCollector::collect(recording::Writer& writer) {
    for (DeviceTrack* device : devices()) {
        take_ready(*device);
    }
    Status status = take_feeds(writer);
    return status.ok() ? write_ready(writer) : status;
}

Status DeviceCollector::take_feeds(recording::Writer& writer) {
    FeedRound round;
    {
        const std::lock_guard<std::mutex> lock(feeds_mutex_);
        for (DeviceFeed* feed : feeds_) {
            feed->collect(round);
        }
    }
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (FeedTrack& track : round.tracks) {
            track.info.clock = clock_id(track.clock_name, track.clock, track.info.id);
            track.info.clock_name = std::move(track.clock_name);
            add_locked(nullptr, std::move(track.info));
        }
    }
    feeds_cpu_ns_ += round.cpu_ns;
    take_samples(round);
    graphs_.insert(graphs_.end(), round.graphs.begin(), round.graphs.end());
    take_checks(round);
    while (!graphs_.empty()) {
        if (Status status = writer.add_graph(graphs_.front()); !status.ok()) {
            return status; // kept: it is written when there is room
        }
        graphs_.erase(graphs_.begin());
    }
    Status written = writer.add_checks(checks_.data(), checks_.size());
    if (written.ok()) {
        checks_.clear();
    }
    return written; // else kept, like the graphs
}

// When there is no room for long, the oldest stay: what went wrong first is what they are for.
void DeviceCollector::take_checks(FeedRound& round) {
    const std::size_t room = most_unwritten_checks - std::min(checks_.size(), most_unwritten_checks);
    const std::size_t taken = std::min(room, round.checks.size());
    std::move(round.checks.begin(), round.checks.begin() + static_cast<std::ptrdiff_t>(taken),
              std::back_inserter(checks_));
    lost_checks_ += round.checks.size() - taken;
}

void DeviceCollector::take_samples(const FeedRound& round) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const DeviceSample& sample : round.samples) {
        const auto found = devices_.find(sample.track);
        if (found == devices_.end() || sample.end_ticks < sample.begin_ticks) {
            ++failed_;
            continue;
        }
        const std::uint64_t bits =
            pack(RecordKind::scope, sample.name) | (sample.lap ? flag_lap : 0) | (sample.has_work ? flag_work : 0);
        emit(found->second,
             {std::nullopt, 0, bits, {sample.step_plus_one, sample.layer_plus_one}, sample.work, std::nullopt},
             {sample.begin_ticks, sample.end_ticks, sample.flags});
    }
}

Status DeviceCollector::write_ready(recording::Writer& writer) {
    for (DeviceTrack* device : devices()) {
        if (!device->announced) {
            if (Status status = writer.add_track(device->info); !status.ok()) {
                return status;
            }
            device->announced = true;
        }
        if (device->ready.empty()) {
            continue;
        }
        const recording::RecordBatch batch{device->info.id, device->written, device->ready.data(),
                                           device->ready.size()};
        if (Status status = writer.append(batch); !status.ok()) {
            return status;
        }
        device->written += device->ready.size();
        device->ready.clear();
    }
    return {};
}

// False: it is not ready.
bool DeviceCollector::take(DeviceTrack& device, const Pending& pending) {
    const Result<DeviceSpan> span = device.timer->collect(DeviceToken{pending.token});
    if (!span.ok() && span.error().code == ErrorCode::pending) {
        return false;
    }
    if (!span.ok() || span->end_ticks < span->begin_ticks) {
        ++failed_;
    } else {
        emit(device, pending, *span);
    }
    return true;
}

void DeviceCollector::take_ready(DeviceTrack& device) {
    if (device.timer == nullptr) {
        return;
    }
    while (!device.pending.empty() && take(device, device.pending.front())) {
        device.pending.pop_front();
    }
    if (!device.pending.empty() && device.timer->group_of(DeviceToken{device.pending.front().token}) != 0) {
        take_unordered(device);
        look_behind(device); // else an in-order queue: what follows is not ready either
    }
}

// Commands that run out of order lie in nothing and hold nothing back: each is asked, once.
void DeviceCollector::take_unordered(DeviceTrack& device) {
    std::erase_if(device.pending, [&](const Pending& pending) {
        return device.timer->group_of(DeviceToken{pending.token}) == pending.token && take(device, pending);
    });
}

// A command buffer that nobody submits never becomes ready: it must not hold back what was recorded after it.
void DeviceCollector::look_behind(DeviceTrack& device) {
    constexpr std::size_t most_held = 64;
    std::deque<Pending>& pending = device.pending;
    std::vector<std::uint64_t> held;
    for (std::size_t i = 0; i < pending.size() && held.size() < most_held;) {
        const std::uint64_t group = device.timer->group_of(DeviceToken{pending[i].token});
        if (group == pending[i].token || std::find(held.begin(), held.end(), group) != held.end()) {
            ++i;
            continue;
        }
        const Result<DeviceSpan> span = device.timer->collect(DeviceToken{pending[i].token});
        if (!span.ok() && span.error().code == ErrorCode::pending) {
            held.push_back(group);
            ++i;
            continue;
        }
        // What lies inside it was before it in the file's order, and is ready by now even if it was not a moment ago.
        i -= take_before(device, i);
        if (!span.ok() || span->end_ticks < span->begin_ticks) {
            ++failed_;
        } else {
            emit(device, pending[i], *span);
        }
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

/// Takes what is ready of the first `end` that wait; returns how many those were.
std::size_t DeviceCollector::take_before(DeviceTrack& device, std::size_t end) {
    std::deque<Pending>& pending = device.pending;
    std::vector<std::uint64_t> held;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < end - taken;) {
        const std::uint64_t group = device.timer->group_of(DeviceToken{pending[i].token});
        const bool waits = group == pending[i].token || std::find(held.begin(), held.end(), group) != held.end();
        if (!waits && take(device, pending[i])) {
            pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
            ++taken;
            continue;
        }
        if (!waits) {
            held.push_back(group);
        }
        ++i;
    }
    return taken;
}

void DeviceCollector::emit(DeviceTrack& device, const Pending& pending, const DeviceSpan& span) {
    const auto id = static_cast<std::uint16_t>(pending.bits >> id_shift);
    auto& out = device.ready;
    out.push_back({pending.place.step_plus_one, pack(RecordKind::context, pending.place.layer_plus_one)});
    if ((pending.bits & flag_work) != 0) {
        const auto [known, fresh] = device.known_work.try_emplace(id, absent_work());
        if (fresh || !same(known->second, pending.work)) {
            const double values[] = {pending.work.bytes, pending.work.flops, pending.work.elements,
                                     pending.work.bytes_per_kv};
            for (std::size_t i = 0; i < work_quantities; ++i) {
                std::uint64_t bits = 0;
                std::memcpy(&bits, &values[i], sizeof bits);
                out.push_back({bits, pack(RecordKind::work, id, i)});
            }
            known->second = pending.work;
        }
    }
    if (pending.collective) {
        out.push_back(*pending.collective);
    }
    if (pending.cause) {
        out.push_back({pending.cause->sequence, pack(RecordKind::cause, 0, pending.cause->track)});
    }
    // A moment behind the begin contradicts it: not known.
    const auto lead = [&span](std::uint64_t moment) {
        return moment <= span.begin_ticks ? span.begin_ticks - moment : no_ticks;
    };
    const std::uint64_t queued = lead(span.queued_ticks);
    const std::uint64_t submitted = lead(span.submitted_ticks);
    if (queued != no_ticks || submitted < payload_mask) {
        out.push_back({queued, pack(RecordKind::span_lead, 0, std::min(submitted, payload_mask))});
    }
    if (span.flags != 0) {
        out.push_back({0, pack(RecordKind::span_quality, static_cast<std::uint16_t>(span.flags))});
    }
    const std::uint64_t duration = span.end_ticks - span.begin_ticks;
    if (duration >= payload_mask) {
        out.push_back({duration, pack(RecordKind::long_value)});
    }
    out.push_back({span.begin_ticks, pending.bits | (duration < payload_mask ? duration : payload_mask)});
    out.push_back({0, pack(RecordKind::context_end)});
}

Status DeviceCollector::write_clock_pairs(recording::Writer& writer) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto& [name, clock] : clocks_) {
            read_pair(name, clock);
        }
    }
    return write_pairs(writer);
}

bool DeviceCollector::lacks_pair(const Clock& clock) const {
    return clock.timer != nullptr && !clock.has_two &&
           std::any_of(devices_.begin(), devices_.end(), [&](const auto& device) {
               return device.second.info.clock == clock.id && device.second.written != 0;
           });
}

bool DeviceCollector::read_missing_pairs() {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool missing = false;
    for (auto& [name, clock] : clocks_) {
        if (lacks_pair(clock)) {
            read_pair(name, clock);
            missing = missing || !clock.has_two;
        }
    }
    return missing;
}

Status DeviceCollector::write_pairs(recording::Writer& writer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (!pairs_.empty()) {
        if (Status status = writer.add_clock_pair(pairs_.front()); !status.ok()) {
            return status; // kept: it is written when there is room
        }
        pairs_.pop_front();
    }
    return {};
}

void DeviceCollector::read_pair(const std::string& name, Clock& clock) {
    Result<DeviceClockPair> pair =
        clock.timer != nullptr ? clock.timer->clock_pair() : Result<DeviceClockPair>(Error{});
    if (pair.ok() && host_clock_.kind == clock::HostClockKind::caller && clock.timer->clock_name() == name) {
        pair->monotonic_ns = on_injected_clock(pair->monotonic_ns, host_clock_);
    }
    if (pair.ok() &&
        pairs_.size() <
            most_unwritten_pairs) { // without pairs the track's samples stay unresolved, and are counted as such
        pairs_.push_back({clock.id, pair->ticks, pair->monotonic_ns, pair->realtime_ns, pair->uncertainty_ticks});
        clock.has_two = clock.has_two || pair->ticks != clock.first_ticks.value_or(pair->ticks);
        clock.first_ticks = clock.first_ticks.value_or(pair->ticks);
    }
}

void DeviceCollector::give_up(const Record& record) {
    if (kind_of(record) != RecordKind::device_scope) {
        return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto track = static_cast<std::uint32_t>(payload_of(record));
    const auto known = devices_.find(track);
    const std::optional<record::RegisteredQueue> registered = record::find_queue(track);
    QueueTimer* const timer = known != devices_.end() ? known->second.timer : registered ? registered->timer : nullptr;
    if (timer != nullptr) {
        timer->cancel(DeviceToken{record.first});
    }
}

void DeviceCollector::give_up_pending() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [id, device] : devices_) {
        for (const Pending& pending : device.pending) {
            device.timer->cancel(DeviceToken{pending.token});
        }
        failed_ += device.pending.size();
        device.pending.clear();
    }
}

std::uint64_t DeviceCollector::dropped_checks() const noexcept {
    std::uint64_t count = lost_checks_;
    const std::lock_guard<std::mutex> lock(feeds_mutex_);
    for (const DeviceFeed* feed : feeds_) {
        count += feed->dropped_checks();
    }
    return count;
}

std::uint64_t DeviceCollector::unresolved() const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::uint64_t count = failed_;
    for (const auto& [id, device] : devices_) {
        count += device.pending.size();
    }
    const std::lock_guard<std::mutex> feeds_lock(feeds_mutex_);
    for (const DeviceFeed* feed : feeds_) {
        count += feed->unresolved();
    }
    return count;
}

std::map<std::uint32_t, std::uint64_t> DeviceCollector::written() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<std::uint32_t, std::uint64_t> result;
    for (const auto& [id, device] : devices_) {
        result[id] = device.written;
    }
    return result;
}

} // namespace plumb::drain
