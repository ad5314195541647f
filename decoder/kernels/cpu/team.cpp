// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/team.hpp"

#include <sched.h>

#include <cerrno>
#include <cstddef>

#include "decoder/kernels/cpu/openmp.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr unsigned job_shift = 32;
constexpr std::uint64_t closed = 0xffffffff; // a piece that no job has
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
        if (value.load(std::memory_order_acquire) != old)
            return;
        pause();
    }
    if (sleepers != nullptr)
        sleepers->fetch_add(1, std::memory_order_seq_cst);
    // Sequentially consistent with the store in start(): either the new job is seen here or the sleeper there.
    value.wait(old, std::memory_order_seq_cst);
    if (sleepers != nullptr)
        sleepers->fetch_sub(1, std::memory_order_relaxed);
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
        if (told)
            return cores;
        if (!too_small)
            break;
    }
    const unsigned count = std::thread::hardware_concurrency();
    return count == 0 ? 1 : static_cast<int>(count);
}

Team::Team(int threads) {
    for (int thread = 1; thread < threads; ++thread)
        workers_.emplace_back([this, thread] { work(thread); });
}

Team::~Team() {
    stop_.store(true, std::memory_order_relaxed);
    job_.fetch_add(1, std::memory_order_seq_cst);
    job_.notify_all();
    for (std::thread& worker : workers_)
        worker.join();
}

void Team::start(std::size_t pieces, Call call, void* data) noexcept {
    const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
    ticket_.store(std::uint64_t{job} << job_shift | closed, std::memory_order_relaxed);
    // Release: a late worker that sees one of these fields also sees the closed ticket, and its claim fails.
    call_.store(call, std::memory_order_release);
    data_.store(data, std::memory_order_release);
    pieces_.store(static_cast<std::uint32_t>(pieces), std::memory_order_release);
    finished_.store(0, std::memory_order_relaxed);
    // Release: who claims a piece sees the job's fields and all that the caller wrote before.
    ticket_.store(std::uint64_t{job} << job_shift, std::memory_order_release);
    job_.store(job, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
        job_.notify_all();
    take_pieces(job, 0);
    std::uint32_t finished = finished_.load(std::memory_order_acquire);
    while (finished != pieces) {
        wait_for_change(finished_, finished, nullptr);
        finished = finished_.load(std::memory_order_acquire);
    }
}

void Team::take_pieces(std::uint32_t job, int thread) noexcept {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
        const auto piece = static_cast<std::uint32_t>(ticket);
        const Call call = call_.load(std::memory_order_acquire);
        void* const data = data_.load(std::memory_order_acquire);
        const std::uint32_t pieces = pieces_.load(std::memory_order_acquire);
        if (ticket >> job_shift != job || piece >= pieces)
            return;
        // Success means that this job was unfinished all the time, hence that the fields are its own (invariant 2).
        if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        call(data, piece, thread);
        // Release: the caller sees what this piece wrote. Only the last one wakes a caller that sleeps.
        if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces)
            finished_.notify_one();
        ticket = ticket_.load(std::memory_order_acquire);
    }
}

void Team::work(int thread) noexcept {
    matrix_library_alone();
    std::uint32_t seen = 0;
    for (;;) {
        wait_for_change(job_, seen, &sleepers_);
        seen = job_.load(std::memory_order_acquire);
        if (stop_.load(std::memory_order_relaxed))
            return;
        take_pieces(seen, thread);
    }
}

} // namespace plumb::decoder::cpu
