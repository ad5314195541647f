// SPDX-License-Identifier: Apache-2.0
#include "record/thread_registry.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "record/name_registry.hpp"
#include "record/ring_set.hpp"

namespace plumb {
inline namespace v1 {
__thread detail::ThreadSlot detail::thread_slot_table[detail::thread_slots] PLUMB_TLS_MODEL;
} // namespace v1

namespace record {
namespace {

using ThreadRings = std::vector<std::shared_ptr<Ring>>;

__thread ThreadRings* thread_rings PLUMB_TLS_MODEL;
__thread bool thread_ending PLUMB_TLS_MODEL;

struct ThreadRegistry {
    std::mutex mutex;
    std::vector<ForkListener*> listeners;
    pthread_key_t key{};
};

ThreadRegistry& thread_registry();

void end_thread(void* value) {
    thread_ending = true;
    for (detail::ThreadSlot& slot : detail::thread_slot_table) {
        slot = detail::ThreadSlot{};
    }
    auto* rings = static_cast<ThreadRings*>(value);
    for (const auto& ring : *rings) {
        for (; ring->pen().depth != 0; --ring->pen().depth) {
            ring->pen().drop(detail::Drop::thread_exit);
        }
        // Release: the drain that sees "retired" sees every record of this thread.
        ring->header().state.store(static_cast<std::uint32_t>(detail::RingState::retired), std::memory_order_release);
    }
    delete rings;
    thread_rings = nullptr;
}

void before_fork() {
    thread_registry().mutex.lock();
    for (ForkListener* listener : thread_registry().listeners) {
        listener->before_fork();
    }
    lock_names(); // last: a drain takes it while it holds what its listener waits for
}

void after_fork_in_parent() {
    unlock_names();
    for (ForkListener* listener : thread_registry().listeners) {
        listener->in_parent();
    }
    thread_registry().mutex.unlock();
}

void after_fork_in_child() {
    // The child's copy of this thread must not write into the parent's rings.
    for (detail::ThreadSlot& slot : detail::thread_slot_table) {
        slot = detail::ThreadSlot{};
    }
    thread_rings = nullptr; // leaked on purpose: its rings are the parent's
    pthread_setspecific(thread_registry().key, nullptr);
    unlock_names();
    for (ForkListener* listener : thread_registry().listeners) {
        listener->in_child();
    }
    thread_registry().mutex.unlock();
}

// Never destroyed: threads may end during static destruction.
ThreadRegistry& thread_registry() {
    static ThreadRegistry* instance = [] {
        auto* r = new ThreadRegistry;
        pthread_key_create(&r->key, end_thread);
        pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
        return r;
    }();
    return *instance;
}

} // namespace

void add_fork_listener(ForkListener& listener) {
    ThreadRegistry& r = thread_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    r.listeners.push_back(&listener);
}

void remove_fork_listener(ForkListener& listener) {
    ThreadRegistry& r = thread_registry();
    const std::lock_guard<std::mutex> lock(r.mutex);
    r.listeners.erase(std::remove(r.listeners.begin(), r.listeners.end(), &listener), r.listeners.end());
}

void remember_ring(const std::shared_ptr<Ring>& ring) {
    if (thread_rings == nullptr) {
        thread_rings = new ThreadRings;
        pthread_setspecific(thread_registry().key, thread_rings);
    }
    // A ring nobody else holds belonged to a profiler that is gone.
    thread_rings->erase(std::remove_if(thread_rings->begin(), thread_rings->end(),
                                       [](const auto& held) { return held.use_count() == 1; }),
                        thread_rings->end());
    thread_rings->push_back(ring);
}

Ring* find_ring(std::uint64_t generation) noexcept {
    if (thread_rings != nullptr) {
        for (const auto& ring : *thread_rings) {
            if (ring->pen().generation == generation) {
                return ring.get();
            }
        }
    }
    return nullptr;
}

bool thread_is_ending() noexcept { return thread_ending; }

std::uint64_t new_generation() noexcept {
    static std::atomic<std::uint64_t> next{1};
    return next.fetch_add(1, std::memory_order_relaxed);
}

} // namespace record
} // namespace plumb
