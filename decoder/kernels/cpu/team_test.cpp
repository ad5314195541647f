// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

namespace plumb::decoder::cpu {
namespace {

TEST(Team, every_piece_is_done_exactly_once) {
    for (const int threads : {1, 2, 5}) {
        Team team(threads);
        ASSERT_EQ(team.size(), threads);
        for (const std::size_t pieces : {0U, 1U, 2U, 3U, 7U, 1000U, 200001U}) {
            std::vector<int> done(pieces); // not atomic: the thread sanitizer sees two threads at one piece
            team.run(pieces, [&](std::size_t piece, int thread) {
                EXPECT_LT(thread, threads);
                ++done[piece];
            });
            for (const int times : done) {
                EXPECT_EQ(times, 1);
            }
        }
    }
}

TEST(Team, many_short_jobs_follow_each_other_without_loss) {
    Team team(3);
    std::vector<std::uint64_t> sums(4);
    for (std::uint64_t job = 0; job < 20000; ++job) {
        team.run(sums.size(), [&, job](std::size_t piece, int) { sums[piece] += job; });
    }
    for (const std::uint64_t sum : sums) {
        EXPECT_EQ(sum, 20000U * 19999U / 2);
    }
}

TEST(Team, a_worker_held_up_in_one_piece_leaves_the_others_to_the_rest) {
    Team team(2);
    std::atomic<int> done{0};
    std::atomic<int> holder{-1};
    // Whoever takes piece 0 waits until all the others are done: only the other thread can do them.
    team.run(50, [&](std::size_t piece, int thread) {
        if (piece == 0) {
            holder = thread;
            while (done != 49) {
                std::this_thread::yield();
            }
        } else {
            EXPECT_NE(thread, holder);
            ++done;
        }
    });
    EXPECT_EQ(done, 49);
}

TEST(Team, each_takes_its_share_from_the_front_and_the_rest_of_anothers_from_the_back) {
    constexpr std::size_t pieces = 1001, middle = 500;
    for (const int held : {0, 1}) {
        Team team(2);
        std::atomic<bool> begun{false};
        std::atomic<std::size_t> done{0};
        std::vector<std::size_t> taken;
        // One waits in its first piece until the other has done all the rest.
        team.run(pieces, [&](std::size_t piece, int thread) {
            if (thread == held) {
                EXPECT_EQ(piece, held == 0 ? 0 : middle);
                begun = true;
                while (done != pieces - 1) {
                    std::this_thread::yield();
                }
                return;
            }
            while (!begun) {
                std::this_thread::yield();
            }
            taken.push_back(piece);
            ++done;
        });
        std::vector<std::size_t> expected;
        for (std::size_t piece = held == 0 ? middle : 0; piece < (held == 0 ? pieces : middle); ++piece) {
            expected.push_back(piece);
        }
        for (std::size_t piece = held == 0 ? middle : pieces; --piece > (held == 0 ? 0 : middle);) {
            expected.push_back(piece);
        }
        EXPECT_EQ(taken, expected);
    }
}

TEST(Team, what_the_caller_wrote_is_seen_by_workers_and_what_they_wrote_by_the_caller) {
    Team team(2);
    std::vector<std::size_t> in(64), out(64);
    for (std::size_t round = 1; round < 2000; ++round) {
        for (std::size_t i = 0; i < in.size(); ++i) {
            in[i] = round * i;
        }
        team.run(in.size(), [&](std::size_t piece, int) { out[piece] = in[piece] + 1; });
        for (std::size_t i = 0; i < out.size(); ++i) {
            ASSERT_EQ(out[i], round * i + 1);
        }
    }
}

TEST(Team, a_team_without_a_job_goes_away) {
    for (int i = 0; i < 50; ++i) {
        std::make_unique<Team>(3).reset();
    }
}

} // namespace
} // namespace plumb::decoder::cpu
