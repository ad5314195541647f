// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu backend: a caller and its workers deal the pieces of a job among themselves. Each has a share of
// neighbouring pieces and takes them from the front, one at a time: what it reads is one long line, which the processor's
// prefetcher follows (pieces of 128 KiB dealt in turn are read at 0.82 to 0.90 of that, of 64 KiB at 0.75 to 0.81). Who is
// done takes pieces from the back of others' shares, so that a worker the system has put aside holds nobody up.
// Owned by the backend; one thread at a time calls run(). Workers spin for some 50 us after a job, then sleep.
//
// Invariants:
// 1. A share holds the job's number, the next piece and the end; a piece is claimed by changing it, never of another job.
// 2. The job's fields are written only while no piece of the job before is unfinished, and read only by who has a piece.
// 3. run() returns when finished_ equals the number of pieces.
#pragma once

#include <algorithm>
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

    /// f(piece, thread) for every piece below `pieces`; by the caller alone if there is but one.
    template <class F>
    void run(std::size_t pieces, F&& f) noexcept {
        if (pieces <= 1 || workers_.empty()) {
            for (std::size_t piece = 0; piece < pieces; ++piece) {
                f(piece, 0);
            }
            return;
        }
        const Call call = [](void* data, std::size_t piece, int thread) {
            (*static_cast<F*>(data))(piece, thread);
        };
        const std::size_t most = shares_.size() * largest_share;
        for (std::size_t first = 0; first < pieces; first += most) {
            run_job({call, &f, first, std::min(most, pieces - first)});
        }
    }

  private:
    using Call = void (*)(void* data, std::size_t piece, int thread);

    struct Job {
        Call call = nullptr;
        void* data = nullptr;
        std::size_t first = 0, pieces = 0;
    };
    /// Job's number << 32 | next piece << 16 | end, counted from the first of the share.
    struct alignas(64) Share {
        std::atomic<std::uint64_t> state{0};
    };
    static constexpr std::size_t largest_share = 0xffff;

    void run_job(const Job& job) noexcept;
    [[nodiscard]] std::size_t first_of_share(std::size_t share) const noexcept;
    void take_pieces(std::uint32_t number, std::size_t thread) noexcept;
    void work(std::size_t thread) noexcept;

    std::vector<Share> shares_; // of the caller, then of each worker
    Job job_;
    alignas(64) std::atomic<std::uint32_t> finished_{0};
    alignas(64) std::atomic<std::uint32_t> number_{0}; // of the job; workers wait for it to change
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<bool> stop_{false};
    std::vector<std::thread> workers_;
};

} // namespace plumb::decoder::cpu
