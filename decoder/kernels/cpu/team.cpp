// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/team.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>

#include "decoder/kernels/cpu/openmp.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr unsigned number_shift = 32;
constexpr unsigned next_shift = 16;
constexpr int spins = 1500; // of a pause each: 30 to 70 us, more than the longest gap between two products

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Spins until `value` differs from `old`, then sleeps until it does. Acquire: sees what was written before the change.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, std::atomic<std::uint32_t>* sleepers) {
    for (int i = 0; i < spins; ++i) {
        if (value.load(std::memory_order_acquire) != old) {
            return;
        }
        pause();
    }
    if (sleepers != nullptr) {
        sleepers->fetch_add(1, std::memory_order_seq_cst);
    }
    // Sequentially consistent with the store in run_job(): either the new job is seen here or the sleeper there.
    value.wait(old, std::memory_order_seq_cst);
    if (sleepers != nullptr) {
        sleepers->fetch_sub(1, std::memory_order_relaxed);
    }
}

/// A piece of the share, counted from its first: the next of the owner's, the last of another's; none when all are claimed
/// or the share is of another job.
std::optional<std::size_t> claim(std::atomic<std::uint64_t>& share, std::uint32_t number, bool owner) noexcept {
    std::uint64_t state = share.load(std::memory_order_relaxed);
    for (;;) {
        const auto next = static_cast<std::uint16_t>(state >> next_shift);
        const auto end = static_cast<std::uint16_t>(state);
        if (state >> number_shift != number || next == end) {
            return {};
        }
        const std::uint64_t rest = owner ? state + (std::uint64_t{1} << next_shift) : state - 1;
        // Acquire: sees the job's fields and all that the caller wrote before. Success means that this job is unfinished.
        if (share.compare_exchange_weak(state, rest, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            return owner ? next : end - 1U;
        }
    }
}

} // namespace

int available_cores() noexcept {
    // A set that is too small for the machine is refused: those of the C library end at 1024 CPUs.
    for (std::size_t room = CPU_SETSIZE; room <= std::size_t{1} << 20; room *= 2) {
        cpu_set_t* const set = CPU_ALLOC(room);
        const std::size_t bytes = CPU_ALLOC_SIZE(room);
        const bool told = set != nullptr && ::sched_getaffinity(0, bytes, set) == 0;
        const int cores = told ? CPU_COUNT_S(bytes, set) : 0;
        const bool too_small = set != nullptr && !told && errno == EINVAL;
        CPU_FREE(set);
        if (told) {
            return cores;
        }
        if (!too_small) {
            break;
        }
    }
    const unsigned count = std::thread::hardware_concurrency();
    return count == 0 ? 1 : static_cast<int>(count);
}

Team::Team(int threads) : shares_(static_cast<std::size_t>(std::max(threads, 1))) {
    for (std::size_t thread = 1; thread < shares_.size(); ++thread) {
        workers_.emplace_back([this, thread] { work(thread); });
    }
}

Team::~Team() {
    stop_.store(true, std::memory_order_relaxed);
    number_.fetch_add(1, std::memory_order_seq_cst);
    number_.notify_all();
    for (std::thread& worker : workers_) {
        worker.join();
    }
}

std::size_t Team::first_of_share(std::size_t share) const noexcept { return job_.pieces * share / shares_.size(); }

void Team::run_job(const Job& job) noexcept {
    job_ = job;
    const std::uint32_t number = number_.load(std::memory_order_relaxed) + 1;
    finished_.store(0, std::memory_order_relaxed);
    // Release: who claims a piece sees the job's fields and all that the caller wrote before.
    for (std::size_t share = 0; share < shares_.size(); ++share) {
        shares_[share].state.store(std::uint64_t{number} << number_shift |
                                       (first_of_share(share + 1) - first_of_share(share)),
                                   std::memory_order_release);
    }
    number_.store(number, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) {
        number_.notify_all();
    }
    take_pieces(number, 0);
    std::uint32_t finished = finished_.load(std::memory_order_acquire);
    while (finished != job.pieces) {
        wait_for_change(finished_, finished, nullptr);
        finished = finished_.load(std::memory_order_acquire);
    }
}

/// Its own share first, then what is left of the others'.
void Team::take_pieces(std::uint32_t number, std::size_t thread) noexcept {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        const std::size_t share = (thread + i) % shares_.size();
        while (const std::optional<std::size_t> piece = claim(shares_[share].state, number, share == thread)) {
            const std::size_t pieces = job_.pieces;
            job_.call(job_.data, job_.first + first_of_share(share) + *piece, static_cast<int>(thread));
            // Release: the caller sees what this piece wrote. Only the last one wakes a caller that sleeps.
            if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces) {
                finished_.notify_one();
            }
        }
    }
}

void Team::work(std::size_t thread) noexcept {
    matrix_library_alone();
    std::uint32_t seen = 0;
    for (;;) {
        wait_for_change(number_, seen, &sleepers_);
        seen = number_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed)) {
            return;
        }
        take_pieces(seen, thread);
    }
}

} // namespace plumb::decoder::cpu
