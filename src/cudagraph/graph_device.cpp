// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/graph_device.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cudagraph/stamp_cost.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {
constexpr std::int64_t longest_clear_ns = 100'000'000;
constexpr double fine_tick_ns = 64;
constexpr double tick_share = 0.05; // of a brick
} // namespace

void GraphDevice::prepare(ProbeKind wanted, std::size_t ring_bytes, std::size_t rings) noexcept {
    const OurThread ours(*timeline_);
    if (timeline_->lost()) {
        return;
    }
    static_cast<void>(timeline_->reserve(64));
    const bool events_only = calibrated() && kind_for(std::numeric_limits<double>::infinity()) == ProbeKind::event;
    if (driver().vendor->stamp_source == nullptr || wanted == ProbeKind::event || wanted == ProbeKind::off ||
        events_only || !stamp_module(driver(), timeline_->context())) { // calibrate() tells why
        return;
    }
    const std::lock_guard one(prepare_mutex_);
    const auto enough = [&] {
        const std::lock_guard lock(ring_mutex_);
        return static_cast<std::size_t>(std::count_if(free_rings_.begin(), free_rings_.end(), [&](const auto& ring) {
                   return ring.bytes >= ring_bytes;
               })) >= rings;
    };
    while (!enough()) {
        RingMemory ring;
        ring.bytes = (ring_bytes + 4095) / 4096 * 4096;
        if (!make_ring(ring)) {
            return; // whoever needs it asks again
        }
        if (!ran_stamps_) {
            ran_stamps_ = true;
            run_stamps_once(ring);
        }
        return_ring(ring);
    }
}

/// What they write is cleared when the ring is taken, on the same stream.
void GraphDevice::run_stamps_once(const RingMemory& ring) noexcept {
    const StampModule& module = **stamp_module(driver(), timeline_->context());
    StampParameters values{ring.device + RingMemory::values_at, ring.device, 0, 1, 0, 0};
    void* pointers[6];
    values.fill(pointers);
    DevicePointer counter = ring.device;
    void* of_advance[1] = {&counter};
    const auto launch = driver().launch_kernel;
    static_cast<void>(launch(module.stamp, 1, 1, 1, 1, 1, 1, 0, timeline_->stream(), pointers, nullptr));
    static_cast<void>(launch(module.advance, 1, 1, 1, 1, 1, 1, 0, timeline_->stream(), of_advance, nullptr));
}

void GraphDevice::calibrate(ProbeKind wanted) {
    events_ = timeline_->event_nodes();
    if (!events_) {
        calibrated_.store(events_.error().code != ErrorCode::pending, std::memory_order_release);
        return;
    }
    RingMemory scratch;
    if (driver().vendor->stamp_source == nullptr) {
        no_stamps_ = wanted != ProbeKind::event ? std::string(driver().vendor->api) + " has event nodes only" : "";
    } else if (wanted != ProbeKind::event) {
        const Result<const StampModule*> module = stamp_module(driver(), timeline_->context());
        const Result<RingMemory> ring = module ? take_ring(4096) : Result<RingMemory>(module.error());
        if (ring) {
            module_ = *module;
            scratch = *ring;
        } else {
            no_stamps_ = ring.error().message;
        }
    }
    const StampCosts costs = measure_stamp_costs(*timeline_, module_, scratch);
    event_ = costs.event;
    stamp_ = costs.stamp;
    wanted_ = wanted;
    learn_stamp_tick(costs.stamp_tick);
    if (scratch.host != nullptr && costs.ring_in_use) {
        const std::lock_guard lock(ring_mutex_);
        given_up_.push_back(scratch);
    } else if (scratch.host != nullptr) {
        return_ring(scratch);
    }
    calibrated_.store(true, std::memory_order_release);
}

double GraphDevice::tick_ns(ProbeKind kind) const noexcept {
    const double stamp_tick = stamp_tick_.load(std::memory_order_relaxed);
    return kind == ProbeKind::stamp && std::isfinite(stamp_tick) ? stamp_tick : timeline_->tick_ns();
}

ProbeKind GraphDevice::kind_for(double brick_ns) const noexcept {
    if (module_ == nullptr || wanted_ == ProbeKind::event) {
        return ProbeKind::event;
    }
    const double tick = stamp_tick_.load(std::memory_order_relaxed);
    const bool fine = tick <= std::max(2 * timeline_->tick_ns(), fine_tick_ns) || tick <= tick_share * brick_ns;
    const bool better = stamp_ < event_ && fine; // false where one is unknown
    return wanted_ == ProbeKind::stamp || better ? ProbeKind::stamp : ProbeKind::event;
}

Result<RingMemory> GraphDevice::take_ring(std::size_t bytes) {
    RingMemory ring;
    ring.bytes = (bytes + 4095) / 4096 * 4096;
    {
        const std::lock_guard lock(ring_mutex_);
        const auto fits = std::find_if(free_rings_.begin(), free_rings_.end(),
                                       [&](const RingMemory& free) { return free.bytes >= ring.bytes; });
        if (fits != free_rings_.end()) {
            ring = *fits;
            free_rings_.erase(fits);
        }
    }
    Status status = ring.host != nullptr ? Status() : make_ring(ring);
    status = status ? clear(ring) : status;
    if (status) {
        return ring;
    }
    if (ring.host != nullptr) {
        const std::lock_guard lock(ring_mutex_);
        given_up_.push_back(ring); // zeros may still be on their way
    }
    return status.error();
}

/// Both sides of it, or nothing.
Status GraphDevice::make_ring(RingMemory& ring) {
    if (const CuResult made = driver().mem_alloc(&ring.device, ring.bytes); made != CuResult::success) {
        return timeline_->failed(made, "cuMemAlloc");
    }
    if (const CuResult made = driver().mem_host_alloc(&ring.host, ring.bytes, memory_host_portable);
        made != CuResult::success) {
        ring.host = nullptr;
        static_cast<void>(driver().mem_free(ring.device));
        return timeline_->failed(made, "cuMemHostAlloc");
    }
    return {};
}

Status GraphDevice::clear(const RingMemory& ring) {
    std::memset(ring.host, 0, ring.bytes);
    const CuResult set = driver().memset_d32_async(ring.device, 0, ring.bytes / 4, timeline_->stream());
    if (set != CuResult::success) {
        return timeline_->failed(set, "cuMemsetD32Async");
    }
    const Result<Event> done = timeline_->acquire();
    if (!done) {
        return done.error();
    }
    const CuResult recorded = driver().event_record(*done, timeline_->stream());
    Status status = recorded == CuResult::success ? timeline_->wait_for(*done, longest_clear_ns)
                                                  : Status(timeline_->failed(recorded, "cuEventRecord"));
    timeline_->release(*done);
    return status;
}

bool GraphDevice::free_ring(const RingMemory& ring) {
    const bool device = driver().mem_free(ring.device) == CuResult::success;
    const bool host = driver().mem_free_host(ring.host) == CuResult::success;
    return device && host;
}

void GraphDevice::return_ring(const RingMemory& ring) {
    const std::lock_guard lock(ring_mutex_);
    free_rings_.push_back(ring);
}

bool GraphDevice::close() {
    const std::lock_guard lock(ring_mutex_);
    bool clean = true;
    free_rings_.insert(free_rings_.end(), given_up_.begin(), given_up_.end());
    given_up_.clear();
    for (const RingMemory& ring : free_rings_) {
        clean &= timeline_->ended() || (!timeline_->lost() && free_ring(ring)); // they end with the context
    }
    free_rings_.clear();
    return clean;
}

} // namespace plumb::cudagraph
