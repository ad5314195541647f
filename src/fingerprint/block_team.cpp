// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/block_team.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/os.hpp"

namespace plumb::fingerprint {
namespace {

using Take = std::function<void(const BlockSums&, std::size_t)>;

/// Invariants, under the mutex: taken_ <= claimed_ <= taken_ + slots_.size(); the slot of block b is b mod their number;
/// `done` is set only for claimed blocks that were not taken yet. Who holds the lowest claimed block never waits.
class BlockTeam {
  public:
    BlockTeam(const Blocks& blocks, unsigned threads, const Take& take)
        : blocks_(blocks), take_(take), count_(blocks.count()), slots_(std::size_t{4} * threads) {
        threads_.reserve(threads);
    }

    void run(unsigned threads) {
        const int here = base::current_cpu();
        for (unsigned i = 1; i < threads; ++i) {
            try {
                threads_.push_back(base::start_quiet_thread([this, here] {
                    base::leave_cpu(here);
                    const PlainArithmetic arithmetic;
                    work();
                }));
            } catch (...) { // no thread, or no memory for one
                break;      // fewer then: the result is the same
            }
        }
        work();
        for (std::thread& thread : threads_) {
            thread.join();
        }
    }

  private:
    struct Slot {
        Slot() noexcept {} // NOLINT: a default one would fill the whole block with zeros first
        BlockSums block;
        bool done = false;
    };

    void work() {
        std::unique_lock lock(mutex_);
        while (true) {
            room_.wait(lock, [this] { return claimed_ == count_ || claimed_ < taken_ + slots_.size(); });
            if (claimed_ == count_) {
                return;
            }
            const std::size_t mine = claimed_++;
            Slot& slot = slots_[mine % slots_.size()];
            lock.unlock();
            blocks_.add_up(mine, slot.block);
            lock.lock();
            slot.done = true;
            take_ready();
        }
    }

    void take_ready() {
        const std::size_t before = taken_;
        while (taken_ < claimed_ && slots_[taken_ % slots_.size()].done) {
            Slot& slot = slots_[taken_ % slots_.size()];
            take_(slot.block, taken_);
            slot.done = false;
            ++taken_;
        }
        if (taken_ != before) {
            room_.notify_all();
        }
    }

    const Blocks& blocks_;
    const Take& take_;
    const std::size_t count_;
    std::vector<Slot> slots_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable room_;
    std::size_t claimed_ = 0;
    std::size_t taken_ = 0;
};

} // namespace

void in_order(const Blocks& blocks, unsigned threads, const Take& take) {
    const std::size_t count = blocks.count();
    const std::size_t useful = std::min<std::size_t>(threads, count / blocks_of_thread);
    if (useful <= 1) {
        for (std::size_t b = 0; b < count; ++b) {
            BlockSums block;
            blocks.add_up(b, block);
            take(block, b);
        }
        return;
    }
    BlockTeam(blocks, static_cast<unsigned>(useful), take).run(static_cast<unsigned>(useful));
}

} // namespace plumb::fingerprint
