// SPDX-License-Identifier: Apache-2.0
// Tokens, positions and kv lengths in device memory, for captured kernels to read: three arrays of int32 per stream or per
// key. One value travels by value; a batch through a ring of pinned slots, each with an event, so that the host may
// change its own arrays at once. Owned by a cache. Thread rule: any thread; one lock per set of arrays, held around
// enqueueing only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cudagraph/guarded_driver.hpp"
#include "plumb/cuda_graph.hpp"

namespace plumb::cudagraph {

/// Whose arrays: of a stream (with the driver's id for it, since handles are reused) or of a key.
struct StateOwner {
    bool of_key = false;
    std::uint64_t name = 0;
    std::uint64_t stream_id = 0;
    bool operator<(const StateOwner& other) const {
        return std::tie(of_key, name, stream_id) < std::tie(other.of_key, other.name, other.stream_id);
    }
};

class DecodeStates {
  public:
    static constexpr std::size_t max_owners = 4096;

    DecodeStates(GuardedDriver& driver, std::size_t max_batch, std::size_t slots);
    ~DecodeStates();
    DecodeStates(const DecodeStates&) = delete;
    DecodeStates& operator=(const DecodeStates&) = delete;

    StateOwner owner_of(cuda::Stream stream) const noexcept;
    static StateOwner owner_of(std::uint64_t key) noexcept { return {true, key, 0}; }

    /// The arrays, made at the first call; during a capture too.
    Result<CudaDecodeState> arrays(const StateOwner& owner, cuda::Stream stream);
    Status set(const StateOwner& owner, std::int32_t token, std::int32_t position, cuda::Stream stream);
    Status set(const StateOwner& owner, const std::int32_t* tokens, const std::int32_t* positions, std::size_t count,
               cuda::Stream stream);
    void abandon();

  private:
    struct Slot {
        cuda::Event event = nullptr;
        bool used = false;   // its event was recorded
        bool spoilt = false; // a copy reads it and no event tells when: never used again
    };
    struct Arrays {
        std::mutex mutex;
        cuda::Context context = nullptr;
        unsigned long long context_id = 0; // a handle may be given out anew
        cuda::DevicePointer device = 0;
        std::int32_t* pinned = nullptr; // slots of 3 * max_batch
        std::vector<Slot> slots;
        std::size_t next = 0;
    };

    [[nodiscard]] cuda::DevicePointer part(const Arrays& arrays, std::size_t index) const noexcept {
        return arrays.device + index * max_batch_ * sizeof(std::int32_t);
    }
    Result<std::shared_ptr<Arrays>> find_or_make(const StateOwner& owner, cuda::Stream stream);
    /// The same, refused while the stream captures.
    Result<std::shared_ptr<Arrays>> arrays_to_set(const StateOwner& owner, cuda::Stream stream);
    /// Whether their context is still there: it takes them along.
    Result<bool> alive(const Arrays& arrays) noexcept;
    Status allocate(Arrays& arrays, cuda::Stream stream);
    void free(Arrays& arrays) noexcept;
    Status refuse_while_capturing(cuda::Stream stream);
    Status write(const Arrays& arrays, const std::int32_t (&values)[3], cuda::Stream stream);
    Result<std::size_t> free_slot(Arrays& arrays);
    Status copy(Arrays& arrays, std::size_t slot, std::size_t count, cuda::Stream stream);

    GuardedDriver& driver_;
    const std::size_t max_batch_;
    const std::size_t slots_;
    std::atomic<bool> memory_operations_{true}; // relaxed: found out once not to work, a second try does no harm
    std::mutex mutex_;                          // guards the map; never held around a driver call
    std::map<StateOwner, std::shared_ptr<Arrays>> arrays_;
};

} // namespace plumb::cudagraph
