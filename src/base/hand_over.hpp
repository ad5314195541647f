// SPDX-License-Identifier: Apache-2.0
// What one thread makes, another takes: groups, a bounded number of them ahead, in their order.
// Owned by the thread that takes. What is made is made on a thread of its own, which uses nothing the owner uses meanwhile.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/os.hpp"

namespace plumb::base {

/// `groups`: made and not yet given back at most, the one being taken among them. They are used again, as they were left.
template <class Group, std::size_t groups>
class HandOver {
  public:
    using Make = std::function<void(HandOver&)>;

    /// `make` runs on the other thread: it fills what room() gives and calls filled(), until it returns.
    /// Throws what std::thread throws.
    explicit HandOver(Make make) : make_(std::move(make)), thread_(start_quiet_thread([this] { run(); })) {}
    /// Stops early where not everything was taken.
    ~HandOver() {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;

    /// For `make`: the group to fill next; waits until one is free. Null: nobody takes any more, return.
    [[nodiscard]] Group* room() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || filled_ - taken_ < groups; });
        return stop_ ? nullptr : &ring_[filled_ % groups];
    }
    /// For `make`: what room() gave is ready.
    void filled() {
        {
            const std::lock_guard lock(mutex_);
            ++filled_;
        }
        changed_.notify_all();
    }

    /// For the owner: the next group, its own until the next call; null after the last. Throws what `make` threw.
    [[nodiscard]] Group* next() {
        std::unique_lock lock(mutex_);
        taken_ += holding_ ? 1 : 0;
        holding_ = false;
        changed_.notify_all();
        changed_.wait(lock, [this] { return done_ || taken_ < filled_; });
        if (taken_ == filled_) {
            if (failure_ != nullptr) {
                std::rethrow_exception(failure_);
            }
            return nullptr;
        }
        holding_ = true;
        return &ring_[taken_ % groups];
    }

  private:
    void run() {
        std::exception_ptr failure;
        try {
            make_(*this);
        } catch (...) {
            failure = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
            failure_ = failure;
        }
        changed_.notify_all();
    }

    Make make_;
    std::array<Group, groups> ring_;
    std::mutex mutex_; // of what follows
    std::condition_variable changed_;
    std::size_t filled_ = 0; // groups ever
    std::size_t taken_ = 0;
    bool holding_ = false; // a group is being taken
    bool done_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_; // last: it uses all of the above
};

} // namespace plumb::base
