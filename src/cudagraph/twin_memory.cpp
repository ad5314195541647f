// SPDX-License-Identifier: Apache-2.0
// Which twins there are at a time: together they take no more than so many bytes of a device, and none of what an engine
// that fills its memory needs. The worker's.
#include <algorithm>

#include "cudagraph/graph_entry.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

constexpr std::uint64_t kept_free = 64; // a device's share that twins leave alone
constexpr std::int64_t look_every_ns = 1'000'000'000;
constexpr std::int64_t unused_ns = 1'000'000'000; // a twin that was not sampled for so long has had its turn

struct DeviceMemory {
    std::size_t free = 0;
    std::size_t total = 0; // 0: nobody tells
    [[nodiscard]] bool short_of(std::uint64_t bytes) const { return total != 0 && free < total / kept_free + bytes; }
};

/// With the context current.
DeviceMemory memory_of(const Driver& driver) {
    DeviceMemory memory;
    if (driver.mem_get_info == nullptr || driver.mem_get_info(&memory.free, &memory.total) != CuResult::success) {
        memory.total = 0;
    }
    return memory;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

} // namespace

std::uint64_t ProbesState::free_bytes() const { return memory_of(driver_).free; }

std::shared_ptr<GraphEntry> ProbesState::least_used(const GraphDevice& device, bool at_any_cost) {
    std::shared_ptr<GraphEntry> least;
    for (const std::shared_ptr<GraphEntry>& entry : entries()) {
        const bool candidate = entry->device() == &device && entry->may_lose_twin(at_any_cost, now_ns() - unused_ns);
        if (candidate && (least == nullptr || entry->twin_used_ns() < least->twin_used_ns())) {
            least = entry;
        }
    }
    return least;
}

Result<bool> ProbesState::room_for_twin(const GraphDevice& device, std::uint64_t bytes) {
    if (bytes > options_.max_twin_bytes) {
        return Error{ErrorCode::out_of_memory, "its twin would take " + mebibytes(bytes) + ", and all twins may take " +
                                                   mebibytes(options_.max_twin_bytes)};
    }
    if (std::find(full_.begin(), full_.end(), &device) != full_.end()) {
        return false;
    }
    const std::uint64_t taken = device.twin_bytes.load(std::memory_order_relaxed);
    const bool fits = taken + bytes <= options_.max_twin_bytes;
    const DeviceMemory memory = fits ? memory_of(driver_) : DeviceMemory();
    if (fits && !memory.short_of(bytes)) {
        return true;
    }
    if (fits && taken == 0) {
        return Error{ErrorCode::out_of_memory,
                     "memory of the device is short: " + mebibytes(memory.free) + " are free"};
    }
    full_.push_back(&device);
    if (const std::shared_ptr<GraphEntry> other = least_used(device, fits); other != nullptr) {
        other->lose_twin(fits ? "memory of the device is short" : "other graphs had their turn");
        wake(); // the next round finds its place free
    }
    return false;
}

/// Engines take memory at any time: twins make way.
void ProbesState::tend_memory() {
    if (now_ns() < next_look_ns_ || !open()) {
        return;
    }
    next_look_ns_ = now_ns() + look_every_ns;
    for (const std::shared_ptr<GraphDevice>& device : devices()) {
        const std::shared_ptr<GraphEntry> least = least_used(*device, true);
        if (least == nullptr || device->timeline().lost()) {
            continue;
        }
        const OurThread ours(device->timeline());
        if (!device->timeline().lost() && memory_of(driver_).short_of(0)) {
            least->lose_twin("memory of the device is short");
            next_look_ns_ = 0; // one after the other, until there is enough
            wake();
        }
    }
}

bool GraphEntry::may_lose_twin(bool at_any_cost, std::int64_t unused_since_ns) const {
    const std::lock_guard lock(mutex_);
    const bool had_its_turn = samples_ >= std::uint64_t{state_->options().samples_per_turn} * plans_.turns.size();
    return twin_ != nullptr && !turning_ && (at_any_cost || had_its_turn || twin_used_ns_ < unused_since_ns);
}

std::int64_t GraphEntry::twin_used_ns() const {
    const std::lock_guard lock(mutex_);
    return twin_used_ns_;
}

/// What it measured stays.
void GraphEntry::lose_twin(const std::string& why) {
    std::uint64_t samples = 0;
    {
        const std::lock_guard lock(mutex_);
        if (twin_ == nullptr) {
            return;
        }
        samples = samples_;
        refused_ = true;
        retiring_.push_back(std::move(twin_));
        twin_ = nullptr;
        tell_device();
    }
    state_->attend(*this);
    graph_.account->change_of(graph_.capture, [&](recording::GraphInfo& info) {
        info.twin_bytes = recording::GraphInfo::unknown;
        info.twin_reason = "given up after " + std::to_string(samples) + " samples: " + why;
    });
}

} // namespace plumb::cudagraph
