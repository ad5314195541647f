// SPDX-License-Identifier: Apache-2.0
#include "drain/device_collector.hpp"

#include <cstring>
#include <limits>

namespace plumb::drain {
namespace {

constexpr std::size_t deepest = 1024; // a track that nests deeper than recorders can is broken

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

} // namespace

void DeviceCollector::add(QueueTimer& timer, recording::TrackInfo track) {
    const std::lock_guard<std::mutex> lock(mutex_);
    track.source = timer.source();
    track.clock = timer.clock_is_host() ? 0 : track.id;
    devices_.try_emplace(track.id, DeviceTrack{&timer, track, false, {}, {}, 0, {}});
    active_.store(true, std::memory_order_release);
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
        if (kind_of(record) != RecordKind::device_scope) {
            follow(host, record);
            continue;
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = devices_.find(static_cast<std::uint32_t>(payload_of(record)));
        if (found == devices_.end()) {
            ++failed_;
            continue;
        }
        const auto known = host.work.find(id_of(record));
        const bool has_work = (record.second & flag_work) != 0 && known != host.work.end();
        found->second.pending.push_back(
            {record.first,
             pack(RecordKind::scope, id_of(record)) | (record.second & flag_lap) | (has_work ? flag_work : 0),
             host.places.back(), has_work ? known->second : absent_work()});
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
    default:
        break;
    }
}

Status DeviceCollector::collect(recording::Writer& writer) {
    for (DeviceTrack* device : devices()) {
        if (!device->announced) {
            if (Status status = writer.add_track(device->info); !status.ok()) {
                return status;
            }
            device->announced = true;
        }
        take_ready(*device);
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

void DeviceCollector::take_ready(DeviceTrack& device) {
    while (!device.pending.empty()) {
        const Pending& pending = device.pending.front();
        const Result<DeviceSpan> span = device.timer->collect(DeviceToken{pending.token});
        if (!span.ok() && span.error().code == ErrorCode::pending) {
            return; // in-order queue: what follows is not ready either
        }
        if (!span.ok() || span->end_ticks < span->begin_ticks) {
            ++failed_;
        } else {
            emit(device, pending, *span);
        }
        device.pending.pop_front();
    }
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
    const std::uint64_t duration = span.end_ticks - span.begin_ticks;
    if (duration >= payload_mask) {
        out.push_back({duration, pack(RecordKind::long_value)});
    }
    out.push_back({span.begin_ticks, pending.bits | (duration < payload_mask ? duration : payload_mask)});
    out.push_back({0, pack(RecordKind::context_end)});
}

Status DeviceCollector::write_clock_pairs(recording::Writer& writer) {
    for (DeviceTrack* device : devices()) {
        if (device->timer->clock_is_host()) {
            continue;
        }
        const Result<DeviceClockPair> pair = device->timer->clock_pair();
        if (!pair.ok()) {
            continue; // without pairs the track's samples stay unresolved, and are counted as such
        }
        const recording::ClockPair written{device->info.clock, pair->ticks, pair->monotonic_ns, pair->realtime_ns,
                                           pair->uncertainty_ticks};
        if (Status status = writer.add_clock_pair(written); !status.ok()) {
            return status;
        }
    }
    return {};
}

std::uint64_t DeviceCollector::unresolved() const noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::uint64_t count = failed_;
    for (const auto& [id, device] : devices_) {
        count += device.pending.size();
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
