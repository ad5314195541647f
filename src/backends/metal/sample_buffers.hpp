// SPDX-License-Identifier: Apache-2.0
// Places for counter samples: pairs of indices in counter sample buffers of 4,096 samples (32 KiB), of which a process may
// have 32. Pooled: a buffer is made when no place is free, and kept; a place is handed out anew only once the device can no
// longer write to it. Owned by a counter timer. Thread rule: any thread; short locks.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/metal/completion.hpp"
#include "backends/metal/driver.hpp"

namespace plumb::backends::metal {

struct SamplePlace {
    Id buffer = nullptr;
    std::uint32_t number = 0; // among all places
    std::uint64_t first = 0;  // its two indices: first, first + 1
};

class SampleBuffers {
  public:
    static constexpr std::uint32_t samples_each = 4'096;
    static constexpr int most_in_process = 32;

    /// Keeps the device.
    SampleBuffers(const MetalDriver& driver, Id device) : driver_(driver), device_(Held::retained(driver, device)) {}
    ~SampleBuffers();
    SampleBuffers(const SampleBuffers&) = delete;
    SampleBuffers& operator=(const SampleBuffers&) = delete;

    /// Error unsupported where the device has no timestamp counters.
    Status find_counters();
    Result<SamplePlace> take() noexcept;
    /// `writer`: after its end the place is free.
    void give_back(const SamplePlace& place, Completion& writer) noexcept;
    /// What the device wrote, after its command buffer's end: `count` samples, 1 or 2. Error unsupported for a sample that it
    /// left out.
    Result<std::pair<std::uint64_t, std::uint64_t>> read(const SamplePlace& place, std::uint64_t count) noexcept;

  private:
    struct Late {
        std::uint32_t number;
        Completion* writer; // we are an owner
    };
    static constexpr std::uint32_t places_each = samples_each / 2;
    Status add_buffer();
    void sweep() noexcept;

    const MetalDriver& driver_;
    Held device_;
    Held counters_;
    std::mutex mutex_; // guards what follows
    std::vector<Held> buffers_;
    std::vector<std::uint32_t> free_;
    std::vector<Late> late_;
    // Each sample's value at its place's last reading, and at that of the scope before: unchanged means not written.
    std::vector<std::uint64_t> read_;
    std::vector<std::uint64_t> before_;
};

} // namespace plumb::backends::metal
