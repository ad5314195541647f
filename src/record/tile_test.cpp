// SPDX-License-Identifier: Apache-2.0
#include "plumb/tile.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

TestOptions with_tiles(std::uint32_t most, bool machine_clock = false) {
    TestOptions options;
    options.tiles = most;
    options.machine_clock = machine_clock;
    return options;
}

using Cells = std::map<TileKey, detail::TileCell::Copy>;

/// All cells of one table that were called.
Cells cells_of(Ring& ring) {
    Cells cells;
    const auto take = [&cells](const detail::TileCell& cell) {
        detail::TileCell::Copy copy;
        ASSERT_TRUE(cell.read(copy));
        if (copy.count != 0) {
            cells[copy.key] = copy;
        }
    };
    if (const detail::TileTable* table = ring.tiles(); table != nullptr) {
        for (std::uint32_t i = 0; i < table->used.load(); ++i) {
            take(table->cells[table->order[i]]);
        }
        for (const detail::TileCell& cell : table->overflow) {
            take(cell);
        }
    }
    return cells;
}

Cells cells_of(TestRecorder& recorder) {
    Cells all;
    for (const auto& ring : recorder.all_rings()) {
        all.merge(cells_of(*ring));
    }
    return all;
}

void tile_of(TestRecorder& recorder, TileLevel level, int row, int col, std::uint64_t ticks) {
    PLUMB_TILE(recorder, level, row, col, bytes(10), flops(20), Brick::attention);
    recorder.clock.advance(ticks);
}

TileKey attention_key(TileLevel level, std::uint64_t row, std::uint64_t col) {
    return tile_key(level, static_cast<std::uint16_t>(Brick::attention), row, col);
}

TEST(Tile, adds_up_calls_by_level_row_and_column) {
    TestRecorder recorder(with_tiles(64));
    tile_of(recorder, TileLevel::macro, 1, 2, 100);
    tile_of(recorder, TileLevel::macro, 1, 2, 300);
    tile_of(recorder, TileLevel::midi, 1, 2, 7);
    tile_of(recorder, TileLevel::macro, 2, 1, 9);
    const Cells cells = cells_of(recorder);
    ASSERT_EQ(cells.size(), 3u);
    const detail::TileCell::Copy& twice = cells.at(attention_key(TileLevel::macro, 1, 2));
    EXPECT_EQ(twice.count, 2u);
    EXPECT_EQ(twice.total, 400u);
    EXPECT_EQ(twice.min, 100u);
    EXPECT_EQ(twice.max, 300u);
    EXPECT_EQ(twice.bytes, 20);
    EXPECT_EQ(twice.flops, 40);
    EXPECT_EQ(cells.at(attention_key(TileLevel::midi, 1, 2)).total, 7u);
    EXPECT_EQ(cells.at(attention_key(TileLevel::macro, 2, 1)).total, 9u);
    EXPECT_TRUE(recorder.take().empty()) << "a tile leaves no record";
}

TEST(Tile, tags_come_in_any_order_and_type_and_what_was_not_said_is_not_known) {
    TestRecorder recorder(with_tiles(64));
    const Name name(std::uint16_t{300});
    {
        PLUMB_TILE(recorder, TileLevel::micro, 0u, std::size_t{1}, flops(2.5F), name, bytes(std::uint8_t{3}));
        PLUMB_TILE(recorder, TileLevel::micro, 0L, short{2}, Brick::lm_head, bytes(4));
        PLUMB_TILE(recorder, TileLevel::micro, 0, 3);
    }
    const Cells cells = cells_of(recorder);
    const auto at = [&cells](std::uint16_t id, std::uint64_t col) {
        return cells.at(tile_key(TileLevel::micro, id, 0, col));
    };
    EXPECT_EQ(at(300, 1).bytes, 3);
    EXPECT_EQ(at(300, 1).flops, 2.5);
    EXPECT_EQ(at(static_cast<std::uint16_t>(Brick::lm_head), 2).bytes, 4);
    EXPECT_TRUE(std::isnan(at(static_cast<std::uint16_t>(Brick::lm_head), 2).flops));
    EXPECT_TRUE(std::isnan(at(0, 3).bytes));
}

TEST(Tile, T14_bytes_are_what_the_caller_gave_whatever_an_element_is) {
    TestRecorder recorder(with_tiles(64));
    for (const double given : {64.0, 2.0, 0.0}) { // bf16 pairs, one int8 block, nothing: never 4 an element
        PLUMB_TILE(recorder, TileLevel::macro, 0, 0, bytes(given), flops(100));
    }
    const detail::TileCell::Copy cell = cells_of(recorder).at(tile_key(TileLevel::macro, 0, 0, 0));
    EXPECT_EQ(cell.bytes, 66);
    EXPECT_EQ(cell.flops, 300);
    { PLUMB_TILE(recorder, TileLevel::macro, 0, 0, flops(100)); }
    EXPECT_TRUE(std::isnan(cells_of(recorder).at(tile_key(TileLevel::macro, 0, 0, 0)).bytes)) << "one call did not say";
}

TEST(Tile, T14_row_and_column_are_kept) {
    TestRecorder recorder(with_tiles(256));
    for (int row = 0; row < 8; ++row) {
        for (int col = 0; col < 16; ++col) {
            tile_of(recorder, TileLevel::micro, row, col, static_cast<std::uint64_t>(1 + row * 16 + col));
        }
    }
    const Cells cells = cells_of(recorder);
    ASSERT_EQ(cells.size(), 128u);
    for (const auto& [key, cell] : cells) {
        EXPECT_EQ(cell.total, 1 + tile_row_of(key) * 16 + tile_col_of(key));
    }
}

TEST(Tile, a_key_holds_the_largest_row_and_column_and_nothing_beyond) {
    const std::uint64_t most = tile_place_mask;
    const TileKey key = tile_key(TileLevel::micro, 0xfffe, most, most);
    EXPECT_EQ(tile_level_of(key), TileLevel::micro);
    EXPECT_EQ(tile_name_of(key), 0xfffe);
    EXPECT_EQ(tile_row_of(key), most);
    EXPECT_EQ(tile_col_of(key), most);
    EXPECT_EQ(tile_key(TileLevel::midi, 5, most + 1, 0), tile_overflow_key(TileLevel::midi));
    EXPECT_EQ(tile_key(TileLevel::midi, 5, 0, static_cast<std::uint64_t>(-1)), tile_overflow_key(TileLevel::midi));
}

TEST(Tile, is_switched_on_apart_from_scopes) {
    TestRecorder recorder(with_tiles(0));
    {
        PLUMB_BRICK(recorder, host, Brick::attention);
        tile_of(recorder, TileLevel::macro, 0, 0, 5);
    }
    EXPECT_EQ(recorder.take().size(), 1u) << "the scope";
    EXPECT_TRUE(cells_of(recorder).empty());
    EXPECT_EQ(recorder.all_rings().front()->tiles(), nullptr) << "no memory for what is off";
}

TEST(Tile, arguments_are_not_evaluated_while_off) {
    TestRecorder recorder(with_tiles(0));
    int evaluated = 0;
    const auto count = [&evaluated] {
        return ++evaluated;
    };
    { PLUMB_TILE(recorder, TileLevel::macro, count(), count(), bytes(count())); }
    EXPECT_EQ(evaluated, 0);
}

TEST(Tile, M3_tiles_beyond_the_map_are_counted_together_and_none_is_lost) {
    TestRecorder recorder(with_tiles(16));
    for (int i = 0; i < 100; ++i) {
        tile_of(recorder, TileLevel::micro, i, 0, 2);
        tile_of(recorder, TileLevel::macro, i, 0, 3);
    }
    tile_of(recorder, TileLevel::midi, -1, 0, 5); // no row
    const Cells cells = cells_of(recorder);
    EXPECT_EQ(cells.size(), 16u + 3u);
    std::uint64_t count = 0;
    std::uint64_t total = 0;
    for (const auto& [key, cell] : cells) {
        count += cell.count;
        total += cell.total;
    }
    EXPECT_EQ(count, 201u);
    EXPECT_EQ(total, 505u);
    EXPECT_EQ(cells.at(tile_overflow_key(TileLevel::micro)).count, 92u);
    EXPECT_EQ(cells.at(tile_overflow_key(TileLevel::micro)).bytes, 920);
    EXPECT_EQ(cells.at(tile_overflow_key(TileLevel::midi)).count, 1u);
}

TEST(Tile, nested_tiles_each_have_their_own_time) {
    TestRecorder recorder(with_tiles(64));
    {
        PLUMB_TILE(recorder, TileLevel::macro, 0, 0);
        recorder.clock.advance(1);
        for (int i = 0; i < 3; ++i) {
            PLUMB_TILE(recorder, TileLevel::micro, 0, i);
            recorder.clock.advance(10);
        }
    }
    const Cells cells = cells_of(recorder);
    EXPECT_EQ(cells.at(tile_key(TileLevel::macro, 0, 0, 0)).total, 31u);
    EXPECT_EQ(cells.at(tile_key(TileLevel::micro, 0, 0, 2)).total, 10u);
}

TEST(Tile, a_call_that_was_put_aside_hardly_moves_the_typical_time) {
    TestRecorder recorder(with_tiles(64));
    for (int i = 0; i < 1000; ++i) {
        tile_of(recorder, TileLevel::macro, 0, 0, i == 500 ? 1'000'000 : 100);
    }
    const detail::TileCell::Copy cell = cells_of(recorder).at(attention_key(TileLevel::macro, 0, 0));
    EXPECT_EQ(cell.total, 999u * 100 + 1'000'000);
    EXPECT_EQ(cell.calm, 999u * 100 + 404);
    EXPECT_EQ(cell.max, 1'000'000u);
}

TEST(Tile, a_first_call_that_was_put_aside_is_taken_as_four_times_the_second) {
    TestRecorder recorder(with_tiles(64));
    for (int i = 0; i < 1000; ++i) {
        tile_of(recorder, TileLevel::macro, 0, 0, i == 0 ? 1'000'000 : 100);
    }
    const detail::TileCell::Copy cell = cells_of(recorder).at(attention_key(TileLevel::macro, 0, 0));
    EXPECT_EQ(cell.total, 999u * 100 + 1'000'000);
    EXPECT_EQ(cell.calm, 999u * 100 + 404);
}

TEST(Tile, neither_calls_of_no_time_nor_very_long_ones_lead_the_typical_time_astray) {
    TestRecorder recorder(with_tiles(64));
    for (int i = 0; i < 2000; ++i) {
        tile_of(recorder, TileLevel::macro, 0, 0, i < 3 ? 0 : 100);
        tile_of(recorder, TileLevel::macro, 1, 0, std::uint64_t{1} << 34);
    }
    const Cells cells = cells_of(recorder);
    const detail::TileCell::Copy& quick = cells.at(attention_key(TileLevel::macro, 0, 0));
    EXPECT_GT(quick.calm, 1900u * 100);
    EXPECT_LE(quick.calm, quick.total);
    const detail::TileCell::Copy& slow = cells.at(attention_key(TileLevel::macro, 1, 0));
    EXPECT_EQ(slow.calm, slow.total);
}

TEST(Tile, F1_a_shortest_call_too_long_to_be_kept_is_not_told_as_a_shorter_one) {
    TestRecorder recorder(with_tiles(64));
    tile_of(recorder, TileLevel::macro, 0, 0, std::uint64_t{1} << 40);
    const detail::TileCell::Copy cell = cells_of(recorder).at(attention_key(TileLevel::macro, 0, 0));
    EXPECT_EQ(cell.min, tile_min_unknown);
    EXPECT_EQ(cell.max, std::uint64_t{1} << 40);
}

TEST(Tile, open_across_a_toggle_or_with_time_going_back_it_is_dropped_and_counted) {
    TestRecorder recorder(with_tiles(64));
    {
        PLUMB_TILE(recorder, TileLevel::macro, 0, 0);
        recorder.off();
        recorder.on();
    }
    {
        PLUMB_TILE(recorder, TileLevel::macro, 0, 0);
        recorder.clock.set(1);
    }
    EXPECT_TRUE(cells_of(recorder).empty());
    EXPECT_EQ(recorder.drops(Drop::across_toggle), 1u);
    EXPECT_EQ(recorder.drops(Drop::negative_span), 1u);
}

TEST(Tile, T8_a_reset_empties_every_cell_with_the_threads_next_tile) {
    TestRecorder recorder(with_tiles(16));
    for (int i = 0; i < 40; ++i) { // the overflow too
        tile_of(recorder, TileLevel::macro, i, 0, 50);
    }
    detail::TileTable& table = *recorder.all_rings().front()->tiles();
    const std::uint32_t generation = recorder.rings().reset_tiles();
    EXPECT_NE(table.generation.load(), generation) << "nobody may read it as the new one";
    tile_of(recorder, TileLevel::macro, 39, 0, 7);
    EXPECT_EQ(table.generation.load(), generation);
    const Cells cells = cells_of(recorder);
    ASSERT_EQ(cells.size(), 1u);
    const detail::TileCell::Copy& cell = cells.at(attention_key(TileLevel::macro, 39, 0));
    EXPECT_EQ(cell.count, 1u);
    EXPECT_EQ(cell.total, 7u);
    EXPECT_EQ(cell.calm, 7u);
    EXPECT_EQ(cell.min, 7u);
    EXPECT_EQ(cell.max, 7u);
    EXPECT_EQ(cell.bytes, 10);
    EXPECT_EQ(cell.flops, 20);
}

TEST(Tile, a_table_asks_for_no_memory_after_a_threads_first_tile) {
    TestRecorder recorder(with_tiles(1024));
    tile_of(recorder, TileLevel::macro, 0, 0, 1);
    const detail::TileTable* table = recorder.all_rings().front()->tiles();
    for (int i = 0; i < 5000; ++i) {
        tile_of(recorder, TileLevel::macro, i, i, 1);
    }
    EXPECT_EQ(recorder.all_rings().front()->tiles(), table);
    EXPECT_EQ(table->used.load(), 1024u);
}

TEST(Tile, each_thread_has_a_table_of_its_own_and_the_next_thread_of_a_ring_an_empty_one) {
    TestRecorder recorder(with_tiles(64));
    for (int i = 0; i < 3; ++i) {
        std::thread([&recorder] { tile_of(recorder, TileLevel::macro, 0, 0, 4); }).join();
        ASSERT_EQ(recorder.all_rings().size(), 1u);
        EXPECT_EQ(cells_of(recorder).at(attention_key(TileLevel::macro, 0, 0)).count, 1u);
        recorder.take(); // frees the ring
    }
}

// The reader has nothing to hold on to but the two counts of a cell.
TEST(Tile, F10_a_cell_read_while_its_thread_adds_to_it_is_whole_or_refused) {
    TestRecorder recorder(with_tiles(64, true));
    std::atomic<bool> stop{false};
    std::atomic<Ring*> ring{nullptr};
    std::thread writer([&] {
        detail::TileTable* table = nullptr;
        {
            PLUMB_TILE(recorder, TileLevel::macro, 0, 1);
            table = recorder.thread()->tiles;
        }
        ring.store(recorder.all_rings().front().get());
        const TileKey key = tile_key(TileLevel::macro, 0, 0, 0);
        while (!stop.load(std::memory_order_relaxed)) {
            table->add(key, 3, 5, 7);
        }
    });
    yield_until([&ring] { return ring.load() != nullptr; });
    const detail::TileTable* table = ring.load()->tiles();
    yield_until([table] { return table->used.load(std::memory_order_acquire) == 2; });
    const detail::TileCell& cell = table->cells[table->order[1]];
    std::uint64_t whole = 0;
    std::uint64_t last = 0;
    while (whole < 20'000) {
        detail::TileCell::Copy copy;
        if (!cell.read(copy) || copy.count == 0) {
            continue;
        }
        ++whole;
        ASSERT_EQ(copy.total, 3 * copy.count);
        ASSERT_EQ(copy.calm, 3 * copy.count);
        ASSERT_EQ(copy.bytes, 5 * static_cast<double>(copy.count));
        ASSERT_EQ(copy.flops, 7 * static_cast<double>(copy.count));
        ASSERT_GE(copy.count, last);
        last = copy.count;
    }
    stop.store(true);
    writer.join();
}

} // namespace
} // namespace plumb::record
