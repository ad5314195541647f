// SPDX-License-Identifier: Apache-2.0
// The timestamp queries of one queue: a pool that is dealt in blocks and used round and round. Owned by that queue's
// timer. Thread rule: its owner's lock.
//
// Invariants
//  1. A query is read only after the pool's first reset has run: before, its content is undefined.
//  2. Who takes a block can tell its old stamps from new ones: the old value is remembered (a clock does not read the same
//     twice), or the block is reset from the host.
//  3. A block is given back only when no command buffer that writes it can run any more.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "backends/vulkan/queue_access.hpp"

namespace plumb::backends::vulkan {

class QueryRing {
  public:
    static constexpr std::uint32_t block = 32; // queries that one recorded reset makes ready

    /// Submits the pool's first reset, unless the host can reset it.
    static Result<std::unique_ptr<QueryRing>> create(QueueAccess& access, std::uint32_t blocks, CommandPool commands);
    ~QueryRing();
    QueryRing(const QueryRing&) = delete;
    QueryRing& operator=(const QueryRing&) = delete;

    [[nodiscard]] QueryPool pool() const noexcept { return pool_; }
    /// The first query of a block that nobody uses. Error out_of_memory when all are in use.
    [[nodiscard]] Result<std::uint32_t> take_block() noexcept;
    void give_block(std::uint32_t first) noexcept { free_.push_back(first); } // create() made room for all
    [[nodiscard]] bool empty() const noexcept { return free_.empty(); }

    /// The raw stamp. Error pending until the device has written it since the last settle().
    [[nodiscard]] Result<std::uint64_t> read(std::uint32_t query) noexcept;
    /// The same for neighbours; pending until all of them are there.
    [[nodiscard]] Status read_many(std::uint32_t first, std::uint32_t count, std::uint64_t* to) noexcept;
    /// Whether read() has succeeded since then.
    [[nodiscard]] bool seen(std::uint32_t query) const noexcept { return states_[query].seen; }
    /// What is in it was read: the next stamp there is a new one.
    void settle(std::uint32_t query) noexcept;

    /// Copies what the pool holds, so that it can still be read, and gives the pool back.
    void close() noexcept;

  private:
    struct State {
        std::uint64_t old = 0;  // what lay there before it was used anew
        std::uint64_t last = 0; // what was read since
        bool has_old = false;
        bool seen = false;
    };
    struct Raw {
        std::uint64_t value = 0;
        std::uint64_t available = 0;
    };

    QueryRing(QueueAccess& access, std::uint32_t blocks);
    Status first_reset(CommandPool commands) noexcept;
    [[nodiscard]] Result<bool> ready() noexcept;
    Status look(std::uint32_t first, std::uint32_t count, Raw* to) noexcept;
    VkResult fetch(std::uint32_t first, std::uint32_t count, Raw* to) noexcept;

    QueueAccess& access_;
    QueryPool pool_ = 0;
    Fence fence_ = 0;    // of the first reset; 0 once it has run
    bool reset_ = false; // it was asked for
    std::uint64_t mask_;
    std::vector<State> states_;
    std::deque<std::uint32_t> free_;
    std::vector<Raw> last_words_; // after close()
};

} // namespace plumb::backends::vulkan
