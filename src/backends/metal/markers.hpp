// SPDX-License-Identifier: Apache-2.0
// Markers on a command queue: empty command buffers that end after everything committed before them and that nothing
// committed later overtakes, because they signal an event and then wait for it. Owned by a timer or a timeline. Thread rule:
// any thread; commit() takes a short lock, so that values grow in the order of commits. Bounded: Metal blocks a thread
// that asks a queue for too many command buffers, so that no more than `most` of ours are ever on their way.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/metal/completion.hpp"
#include "backends/metal/driver.hpp"

namespace plumb::backends::metal {

struct Marker {
    Completion* done = nullptr; // we are an owner
    Id buffer = nullptr;        // ours: one reference
    std::uint64_t queued_ns = 0;
};

class Markers {
  public:
    static Result<std::unique_ptr<Markers>> create(const MetalDriver& driver, Id queue, std::uint32_t most,
                                                   Completions& completions);
    ~Markers();
    Markers(const Markers&) = delete;
    Markers& operator=(const Markers&) = delete;

    /// Whether a scope may begin: the clock can be read, and fewer than `most` / 3 markers are on their way, so that there
    /// is room for ends.
    Status room_to_begin() noexcept;
    Result<Marker> commit() noexcept;
    void drop(Marker& marker) const noexcept;

  private:
    Markers(const MetalDriver& driver, Id queue, std::uint32_t most, Completions& completions)
        : driver_(driver), queue_(Held::retained(driver, queue)), completions_(completions), last_(most) {}
    Result<Marker> encode() noexcept;
    Status room(std::uint64_t behind) const noexcept;

    const MetalDriver& driver_;
    Held queue_;
    Completions& completions_;
    Held event_;
    std::mutex mutex_; // guards what follows
    std::uint64_t value_ = 0;
    std::vector<Completion*> last_; // of the last `most` markers; we are an owner
};

/// Nanoseconds of the system's uptime, the clock of GPUStartTime and GPUEndTime.
Result<std::uint64_t> uptime_ns(const MetalDriver& driver) noexcept;

} // namespace plumb::backends::metal
