// SPDX-License-Identifier: Apache-2.0
// Which of a vendor's queues has which Queue of ours: behind plumb::cuda(), plumb::opencl(), … One per backend, never
// destroyed, since threads may record while the process exits. Thread rule: any thread; looking one up takes a short lock
// that is shared between readers. Bounded.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "backends/absent_timer.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "record/queue_registry.hpp"

namespace plumb::backends {

/// How a backend speaks of itself; literals.
struct QueueWords {
    const char* backend; // "cuda"
    const char* source;  // "cuda_event"
    const char* queues;  // "CUDA streams"
    const char* reuse;   // "reuse streams"
};

template <class Key>
class QueueDirectory {
  public:
    static constexpr std::size_t most_queues = 1'024; // engines that make a queue per request end here, not in swap
    static constexpr std::size_t most_reasons = 64;   // why there is none

    explicit QueueDirectory(const QueueWords& words) : words_(words) {}

    /// The queue of a key, made at its first use: `make()` gives Result<unique_ptr<some QueueTimer>>, and
    /// `name(timer, number)` what it is called. Nobody who looks a known queue up waits for a timer that is made.
    template <class Make, class Name>
    Queue find(const Key& key, Make make, Name name) {
        {
            const std::shared_lock lock(mutex_);
            if (const auto found = queues_.find(key); found != queues_.end()) {
                return found->second;
            }
            if (crowded_.timer != nullptr) {
                return crowded_;
            }
        }
        auto made = make();
        const std::unique_lock lock(mutex_);
        if (const auto found = queues_.find(key); found != queues_.end()) {
            return found->second; // another thread was first
        }
        if (!made && asks_again(made.error().code)) {
            return passing(made.error());
        }
        if (queues_.size() >= most_queues) {
            return absent(crowded_,
                          {ErrorCode::out_of_memory, "more than " + std::to_string(most_queues) + " " + words_.queues +
                                                         " were timed in this process; " + words_.reuse});
        }
        if (!made) {
            Queue never{};
            return queues_.emplace(key, absent(never, made.error())).first->second;
        }
        std::string called = name(**made, queues_.size() + 1);
        return queues_.emplace(key, registered(std::move(*made), std::move(called))).first->second;
    }

    /// Where there is no driver at all.
    Queue none(const Error& why) {
        const std::unique_lock lock(mutex_);
        return absent(none_, why);
    }

  private:
    /// Errors that say nothing of a later attempt: no context yet, a busy device, no memory left; and a handle that is
    /// nobody's now may be given out later.
    static bool asks_again(ErrorCode code) {
        return code == ErrorCode::unavailable || code == ErrorCode::pending || code == ErrorCode::out_of_memory ||
               code == ErrorCode::invalid_argument;
    }
    /// By what is wrong, so that no queue is told the reason of another.
    Queue passing(const Error& why) {
        const auto key = [](const Error& error) {
            return std::pair(error.code, error.message);
        };
        const Error told = passing_.size() < most_reasons || passing_.count(key(why)) != 0
                               ? why
                               : Error{why.code, std::string("queues of ") + words_.backend +
                                                     " failed for too many reasons to tell this one; ask again later"};
        return absent(passing_[key(told)], told);
    }
    static Queue registered(std::unique_ptr<QueueTimer> timer, std::string name) {
        QueueTimer& lasting = *timer.release(); // the registry's timers live as long as the process
        return Queue{&lasting, record::register_queue(lasting, std::move(name))};
    }
    Queue absent(Queue& kept, const Error& why) {
        if (kept.timer == nullptr) {
            const std::string backend = words_.backend;
            kept = registered(std::make_unique<AbsentTimer>(why, words_.source, backend + ":absent"),
                              backend + " (not timed)");
        }
        return kept;
    }

    QueueWords words_;
    std::shared_mutex mutex_;
    std::map<Key, Queue> queues_;
    Queue none_{};
    std::map<std::pair<ErrorCode, std::string>, Queue> passing_; // where asking again may help
    Queue crowded_{};
};

} // namespace plumb::backends
