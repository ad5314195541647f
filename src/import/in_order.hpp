// SPDX-License-Identifier: Apache-2.0
// Batches of work for every core, with results taken in the order in which the batches were given: read(batch) runs on any thread,
// take(result) on one at a time. Owned by who gives; give() and finish() on its thread. At most `ahead` batches wait.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/os.hpp"

namespace plumb::imported {

template <class Batch, class Made>
class InOrder {
  public:
    InOrder(std::function<Made(Batch&)> read, std::function<void(Made&)> take, unsigned threads)
        : read_(std::move(read)), take_(std::move(take)), ahead_(2 * std::size_t{threads}) {
        for (unsigned i = 0; i < threads; ++i) {
            threads_.push_back(base::start_quiet_thread([this] { work(); }));
        }
    }
    InOrder(const InOrder&) = delete;
    InOrder& operator=(const InOrder&) = delete;
    ~InOrder() { finish(); }

    void give(Batch batch) {
        std::unique_lock<std::mutex> lock(mutex_);
        room_.wait(lock, [this] { return waiting_.size() < ahead_; });
        waiting_.emplace_back(given_++, std::move(batch));
        work_.notify_one();
    }

    /// All that was given is taken afterwards.
    void finish() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ended_ = true;
            work_.notify_all();
        }
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }

  private:
    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            work_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            auto [number, batch] = std::move(waiting_.front());
            waiting_.pop_front();
            room_.notify_one();
            lock.unlock();
            Made made = read_(batch);
            lock.lock();
            turn_.wait(lock, [this, number = number] { return taken_ == number; });
            lock.unlock(); // nobody else's turn comes before taken_ moves on
            take_(made);
            lock.lock();
            ++taken_;
            turn_.notify_all();
        }
    }

    std::function<Made(Batch&)> read_;
    std::function<void(Made&)> take_;
    std::size_t ahead_;
    std::mutex mutex_; // guards all below but threads_
    std::condition_variable work_, room_, turn_;
    std::deque<std::pair<std::uint64_t, Batch>> waiting_;
    std::uint64_t given_ = 0;
    std::uint64_t taken_ = 0;
    bool ended_ = false;
    std::vector<std::thread> threads_;
};

} // namespace plumb::imported
