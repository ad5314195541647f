// SPDX-License-Identifier: Apache-2.0
#include "drain/tile_ledger.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "record/recorder_testing.hpp"
#include "recording/reader.hpp"

namespace plumb::drain {
namespace {

using record::TestRecorder;
using recording::TileTotals;

/// A recorder, a recording, and the ledger between them: the test is the drain.
class Bench {
  public:
    explicit Bench(std::uint32_t most = 64, bool machine_clock = false) {
        record::TestOptions options;
        options.tiles = most;
        options.machine_clock = machine_clock;
        recorder = std::make_unique<TestRecorder>(options);
        auto made = recording::Writer::create({}, {});
        EXPECT_TRUE(made.ok());
        writer = std::move(*made);
    }

    void round() {
        std::vector<std::shared_ptr<record::Ring>> live;
        for (const auto& ring : recorder->all_rings()) {
            const auto state = static_cast<detail::RingState>(ring->header().state.load(std::memory_order_acquire));
            if (state == detail::RingState::retired) {
                ledger.take_ended(*ring);
                recorder->rings().release(*ring);
            } else if (state == detail::RingState::live) {
                live.push_back(ring);
            }
        }
        EXPECT_TRUE(ledger.write(live, *writer).ok());
    }
    std::vector<TileTotals> tiles() { return recording::Reader::from_bytes(writer->snapshot())->tiles(); }
    void reset() { ledger.start_over(recorder->rings().reset_tiles()); }
    void tile(int row, std::uint64_t ticks = 1) {
        PLUMB_TILE(*recorder, TileLevel::macro, row, 0, bytes(8));
        recorder->clock.advance(ticks);
    }

    std::unique_ptr<TestRecorder> recorder;
    std::unique_ptr<recording::Writer> writer;
    TileLedger ledger;
};

TEST(TileLedger, threads_that_live_and_threads_that_ended_add_up) {
    Bench bench;
    bench.tile(1, 10);
    for (int i = 0; i < 3; ++i) {
        std::thread([&bench] {
            bench.tile(1, 20);
            bench.tile(2, 5);
        }).join();
        bench.round();
    }
    const auto tiles = bench.tiles();
    ASSERT_EQ(tiles.size(), 2u);
    EXPECT_EQ(tiles[0].count, 4u);
    EXPECT_EQ(tiles[0].total, 70u);
    EXPECT_EQ(tiles[0].min, 10u);
    EXPECT_EQ(tiles[0].max, 20u);
    EXPECT_EQ(tiles[0].bytes, 32);
    EXPECT_EQ(tiles[1].count, 3u);
}

TEST(TileLedger, a_round_writes_only_what_grew) {
    Bench bench;
    for (int row = 0; row < 50; ++row) {
        bench.tile(row);
    }
    bench.round();
    const std::uint64_t first = bench.writer->size();
    bench.round();
    EXPECT_EQ(bench.writer->size(), first) << "nothing new";
    bench.tile(7);
    bench.round();
    EXPECT_LE(bench.writer->size(), first + 64 + 68) << "one entry";
    EXPECT_EQ(bench.tiles()[7].count, 2u);
}

TEST(TileLedger, T8_after_a_reset_nothing_of_before_comes_back) {
    Bench bench;
    std::thread([&bench] { bench.tile(1); }).join();
    bench.tile(1);
    bench.round();
    EXPECT_EQ(bench.tiles()[0].count, 2u);
    std::thread([&bench] { bench.tile(2); }).join(); // ended, and not taken over yet
    bench.reset();
    bench.round();
    EXPECT_TRUE(bench.tiles().empty()) << "the file says that all began anew";
    bench.tile(3);
    bench.round();
    ASSERT_EQ(bench.tiles().size(), 1u);
    EXPECT_EQ(tile_row_of(bench.tiles()[0].key), 3u);
    std::thread([&bench] { bench.tile(3); }).join(); // the ring of the ended thread
    bench.round();
    EXPECT_EQ(bench.tiles()[0].count, 2u);
}

TEST(TileLedger, F10_threads_that_go_on_meanwhile_lose_nothing) {
    constexpr int threads = 3;
    constexpr std::uint64_t calls = 20'000;
    Bench bench(64, true);
    std::atomic<int> running{threads};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            for (std::uint64_t i = 0; i < calls; ++i) {
                PLUMB_TILE(*bench.recorder, TileLevel::micro, i % 5, i % 3, flops(2), Brick::attention);
            }
            running.fetch_sub(1);
        });
    }
    std::uint64_t last = 0;
    while (running.load() != 0) {
        bench.round();
        std::uint64_t count = 0;
        for (const TileTotals& tile : bench.tiles()) {
            count += tile.count;
            ASSERT_EQ(tile.flops, 2 * static_cast<double>(tile.count)) << "whole cells only";
        }
        ASSERT_GE(count, last);
        last = count;
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    bench.round();
    std::uint64_t count = 0;
    for (const TileTotals& tile : bench.tiles()) {
        count += tile.count;
    }
    EXPECT_EQ(bench.tiles().size(), 15u);
    EXPECT_EQ(count, threads * calls);
}

TEST(TileLedger, what_could_not_be_written_is_written_later) {
    Bench bench;
    bench.tile(1);
    ASSERT_TRUE(bench.writer->close().ok());
    std::vector<std::shared_ptr<record::Ring>> live = bench.recorder->all_rings();
    EXPECT_FALSE(bench.ledger.write(live, *bench.writer).ok());
    bench.writer = std::move(*recording::Writer::create({}, {}));
    bench.round();
    EXPECT_EQ(bench.tiles().size(), 1u);
}

TEST(TileLedger, a_tile_that_was_kept_apart_stays_so_when_threads_have_more_than_are_kept) {
    constexpr int half = 40000;
    Bench bench(65536);
    bench.tile(0);
    bench.round();
    std::thread([&bench] {
        for (int row = half; row < 2 * half; ++row) {
            bench.tile(row);
            bench.tile(row);
            bench.tile(row);
        }
        bench.round(); // 40,001 tiles, all apart
        std::thread([&bench] {
            for (int row = 2 * half; row < 3 * half; ++row) {
                bench.tile(row);
            }
        }).join();
        bench.round(); // that one ended: its tiles come before those of the threads that live
    }).join();
    bench.round();
    for (int row = 0; row < half; ++row) {
        bench.tile(row); // its table comes before those of the others
    }
    bench.round();
    std::uint64_t calls = 0;
    for (const TileTotals& tile : bench.tiles()) {
        calls += tile.count;
    }
    EXPECT_EQ(calls, 1u + 5u * half) << "each call once";
}

} // namespace
} // namespace plumb::drain
