// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu backend: a caller and its workers deal the pieces of a job among themselves, one at a time, so
// that a worker the system has put aside holds nobody up: the others take its pieces.
// Owned by the backend; one thread at a time calls run(). Workers spin for some 50 us after a job, then sleep.
//
// Invariants:
// 1. ticket_ holds the job's number and the next piece; a piece is claimed by adding one to it, never of another job.
// 2. The job's fields are written only while no piece of the job before is unfinished and the ticket is closed.
// 3. run() returns when finished_ equals the number of pieces.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace plumb::decoder::cpu {

/// Cores this process may run on.
[[nodiscard]] int available_cores() noexcept;

class Team {
  public:
    /// The caller is the first of `threads`.
    explicit Team(int threads);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team();

    [[nodiscard]] int size() const noexcept { return static_cast<int>(workers_.size()) + 1; }

    /// f(piece, thread) for every piece below `pieces`, which is less than 2^31; by the caller alone if there is but one.
    template <class F>
    void run(std::size_t pieces, F&& f) noexcept {
        if (pieces <= 1 || workers_.empty()) {
            for (std::size_t piece = 0; piece < pieces; ++piece)
                f(piece, 0);
            return;
        }
        start(
            pieces, [](void* data, std::size_t piece, int thread) { (*static_cast<F*>(data))(piece, thread); }, &f);
    }

  private:
    using Call = void (*)(void* data, std::size_t piece, int thread);

    void start(std::size_t pieces, Call call, void* data) noexcept;
    void take_pieces(std::uint32_t job, int thread) noexcept;
    void work(int thread) noexcept;

    alignas(64) std::atomic<std::uint64_t> ticket_{0};
    alignas(64) std::atomic<std::uint32_t> finished_{0};
    // Written by run() between jobs; atomic because a late worker may look at them, and then drops what it saw.
    alignas(64) std::atomic<Call> call_{nullptr};
    std::atomic<void*> data_{nullptr};
    std::atomic<std::uint32_t> pieces_{0};
    alignas(64) std::atomic<std::uint32_t> job_{0}; // workers wait for it to change
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> workers_;
};

} // namespace plumb::decoder::cpu
