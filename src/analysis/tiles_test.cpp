// SPDX-License-Identifier: Apache-2.0
// Planted tiles: what is slow is named, its clean twin names nothing.
#include "analysis/tiles.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace plumb::analysis {
namespace {

using recording::TileTotals;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr auto attention = static_cast<std::uint16_t>(Brick::attention);

TileTotals tile(TileLevel level, std::uint64_t row, std::uint64_t col, std::uint64_t ticks_per_call,
                std::uint64_t calls = 100, double bytes = 4096, double flops = 8192) {
    const std::uint64_t total = ticks_per_call * calls;
    return {tile_key(level, attention, row, col),
            calls,
            total,
            total,
            ticks_per_call,
            ticks_per_call,
            bytes * static_cast<double>(calls),
            flops * static_cast<double>(calls)};
}

TileInput input_of(std::vector<TileTotals> tiles) {
    TileInput input;
    input.tiles = std::move(tiles);
    input.names = {{attention, Category::attention, "attention"}};
    input.ns_per_tick = {0.5, {}};
    input.own_cost_ns = {20, {}};
    return input;
}

/// 8 rows and 8 columns of about `ticks` each.
std::vector<TileTotals> grid(TileLevel level, std::uint64_t ticks, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<TileTotals> tiles;
    for (std::uint64_t row = 0; row < 8; ++row) {
        for (std::uint64_t col = 0; col < 8; ++col) {
            tiles.push_back(tile(level, row, col, ticks + random() % (ticks / 20)));
        }
    }
    return tiles;
}

TEST(Tiles, one_slow_tile_is_named_and_the_clean_twin_names_nothing) {
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        for (const TileLevel level : {TileLevel::macro, TileLevel::midi, TileLevel::micro}) {
            auto tiles = grid(level, 1000, seed);
            EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty()) << seed;
            const std::size_t planted = seed % tiles.size();
            tiles[planted] = tile(level, planted / 8, planted % 8, 1600);
            const TileReport report = build_tiles(input_of(tiles), {});
            ASSERT_EQ(report.slow.size(), 1u) << seed;
            const SlowTile& place = report.slow[0];
            EXPECT_EQ(place.row, planted / 8);
            EXPECT_EQ(place.col, planted % 8);
            EXPECT_NEAR(report.slow[0].ratio, 1.6, 0.1);
            EXPECT_TRUE(report.notes.empty());
        }
    }
}

TEST(Tiles, a_tile_at_the_edge_with_less_work_is_not_slow_nor_hides_one) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    tiles[7] = tile(TileLevel::midi, 0, 7, 250, 100, 1024, 2048); // a quarter of the work in a quarter of the time
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
    tiles[7] = tile(TileLevel::midi, 0, 7, 600, 100, 1024, 2048); // faster than the others, for a quarter of the work
    const TileReport report = build_tiles(input_of(tiles), {});
    ASSERT_EQ(report.slow.size(), 1u);
    EXPECT_EQ(report.slow[0].col, 7u);
    EXPECT_EQ(report.maps[0].basis, TileBasis::ns_per_flop);
}

TEST(Tiles, what_a_tile_itself_costs_makes_none_slow) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    tiles[7] = tile(TileLevel::midi, 0, 7, 80, 100, 64, 128); // 15 ticks of work and a stamp
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
    TileInput dear = input_of(tiles);
    dear.own_cost_ns = {{}, "not measured"};
    EXPECT_EQ(build_tiles(dear, {}).slow.size(), 1u) << "then nothing is known of it";
}

TEST(Tiles, a_call_that_was_put_aside_makes_no_tile_slow) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    tiles[9].total += 10'000'000; // the typical total knows nothing of it
    tiles[9].max = 10'001'000;
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
}

TEST(Tiles, what_one_call_alone_made_slow_is_not_slow) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    for (TileTotals& each : tiles) { // six calls
        each.count = 6;
        each.total = each.calm = 6 * each.min;
    }
    tiles[9].max = 10'000'000;
    tiles[9].total = tiles[9].max + 5 * tiles[9].min;
    tiles[9].calm = 4 * tiles[9].min + 5 * tiles[9].min;
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
    tiles[9].total += tiles[9].min * 5; // the others take twice as long too
    tiles[9].calm += tiles[9].min * 5;
    EXPECT_EQ(build_tiles(input_of(tiles), {}).slow.size(), 1u);
}

TEST(Tiles, a_single_call_or_a_handful_of_tiles_is_no_ground_to_call_one_slow) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    tiles[9] = tile(TileLevel::midi, 1, 1, 5000, 1);
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
    tiles.assign({tile(TileLevel::midi, 0, 0, 10), tile(TileLevel::midi, 0, 1, 10), tile(TileLevel::midi, 0, 2, 10),
                  tile(TileLevel::midi, 0, 3, 100)});
    EXPECT_TRUE(build_tiles(input_of(tiles), {}).slow.empty());
}

TEST(Tiles, many_slow_ones_are_a_second_kind_and_said_so) {
    auto tiles = grid(TileLevel::midi, 1000, 1);
    for (std::size_t i = 0; i < 24; ++i) {
        tiles[i] = tile(TileLevel::midi, i / 8, i % 8, 2000);
    }
    const TileReport report = build_tiles(input_of(tiles), {});
    EXPECT_TRUE(report.slow.empty());
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("24 of 64 midi tiles of attention"), std::string::npos) << report.notes[0];
}

TEST(Tiles, T14_intensity_is_flops_over_the_bytes_that_were_given) {
    // 2 bytes an element here: with 4 assumed the intensity would be half.
    const TileReport report = build_tiles(input_of({tile(TileLevel::macro, 0, 0, 2000, 10, 2.0 * 512, 2.0 * 512)}), {});
    const TileFigures& all = report.maps[0].all;
    EXPECT_EQ(all.calls, 10u);
    EXPECT_DOUBLE_EQ(*all.total_ns.value, 10'000);
    EXPECT_DOUBLE_EQ(*all.mean_ns.value, 1000);
    EXPECT_DOUBLE_EQ(*all.bytes.value, 10 * 1024);
    EXPECT_DOUBLE_EQ(*all.intensity.value, 1);
    EXPECT_DOUBLE_EQ(*all.bytes_per_s.value, 1.024e9);
    EXPECT_DOUBLE_EQ(*all.flops_per_s.value, 1.024e9);
}

TEST(Tiles, T14_the_map_keeps_every_row_and_column) {
    const TileReport report = build_tiles(input_of(grid(TileLevel::macro, 1000, 1)), {});
    ASSERT_EQ(report.maps.size(), 1u);
    const TileMapReport& map = report.maps[0];
    EXPECT_EQ(map.rows, 8u);
    EXPECT_EQ(map.cols, 8u);
    ASSERT_EQ(map.places.size(), 64u);
    for (std::size_t i = 0; i < map.places.size(); ++i) {
        EXPECT_EQ(map.places[i].row, i / 8);
        EXPECT_EQ(map.places[i].col, i % 8);
    }
    EXPECT_EQ(map.all.calls, 6400u);
}

TEST(Tiles, T14_bytes_that_nobody_gave_are_absent_with_a_reason) {
    const TileReport report = build_tiles(
        input_of({tile(TileLevel::macro, 0, 0, 1000, 10, unknown, unknown),
                  tile(TileLevel::midi, 0, 0, 1000, 10, 64, unknown), tile(TileLevel::micro, 0, 0, 1000, 10, 0, 64)}),
        {});
    EXPECT_EQ(report.maps[0].all.bytes.reason, "not every call said how many bytes");
    EXPECT_EQ(report.maps[0].all.flops_per_s.reason, "not every call said how many flops");
    EXPECT_FALSE(report.maps[1].all.intensity.value);
    EXPECT_TRUE(report.maps[1].all.bytes_per_s.value);
    EXPECT_EQ(report.maps[2].all.intensity.reason, "no bytes were moved");
    EXPECT_EQ(report.maps[0].basis, TileBasis::ns_per_call);
    EXPECT_EQ(report.maps[1].basis, TileBasis::ns_per_byte);
}

TEST(Tiles, F1_without_a_clock_there_are_counts_and_no_times) {
    TileInput input = input_of(grid(TileLevel::macro, 1000, 1));
    input.ns_per_tick = {{}, "no clock"};
    const TileReport report = build_tiles(input, {});
    EXPECT_EQ(report.maps[0].all.calls, 6400u);
    EXPECT_EQ(report.maps[0].all.mean_ns.reason, "no clock");
    EXPECT_EQ(report.maps[0].all.flops_per_s.reason, "no clock");
    EXPECT_EQ(report.maps[0].median.reason, "no clock");
    EXPECT_TRUE(report.slow.empty());
    EXPECT_TRUE(report.maps[0].all.intensity.value) << "that needs no clock";
}

TEST(Tiles, F1_calls_of_no_time_have_no_rate) {
    const TileReport report = build_tiles(input_of({tile(TileLevel::micro, 0, 0, 0)}), {});
    EXPECT_FALSE(report.maps[0].all.flops_per_s.value);
    TileTotals slow = tile(TileLevel::micro, 0, 1, std::uint64_t{1} << 40);
    slow.min = tile_min_unknown;
    EXPECT_FALSE(build_tiles(input_of({slow}), {}).maps[0].all.min_ns.value);
}

TEST(Tiles, share_of_peak_is_of_the_roofline_of_the_tiles_level) {
    // 512 ns a call: 16 GFLOP/s at 2 flops a byte.
    TileInput input = input_of({tile(TileLevel::macro, 0, 0, 1024), tile(TileLevel::micro, 0, 0, 1024)});
    EXPECT_EQ(build_tiles(input, {}).maps[0].all.of_peak.reason, no_peaks);
    const TileOptions options;
    input.peaks.flops_per_s = {64e9, {}};
    input.peaks.bytes_per_s[0] = {16e9, {}}; // roof of macro: 2 x 16
    input.peaks.bytes_per_s[2] = {1e12, {}}; // of micro: the arithmetic
    const TileReport report = build_tiles(input, options);
    EXPECT_DOUBLE_EQ(*report.maps[0].all.of_peak.value, 0.5);
    EXPECT_DOUBLE_EQ(*report.maps[1].all.of_peak.value, 0.25);
    input.peaks.bytes_per_s[0] = {0, {}};
    EXPECT_EQ(build_tiles(input, options).maps[0].all.of_peak.reason, "the peak that was measured is none");
    TileInput copies = input_of({tile(TileLevel::macro, 0, 0, 1024, 10, 4096, 0)});
    copies.peaks.bytes_per_s[0] = {16e9, {}};
    EXPECT_DOUBLE_EQ(*build_tiles(copies, options).maps[0].all.of_peak.value, 0.5) << "bytes alone";
}

TEST(Tiles, only_the_level_asked_for_is_shown) {
    auto tiles = grid(TileLevel::macro, 1000, 1);
    const auto micro = grid(TileLevel::micro, 100, 1);
    tiles.insert(tiles.end(), micro.begin(), micro.end());
    EXPECT_EQ(build_tiles(input_of(tiles), {}).maps.size(), 2u);
    TileOptions options;
    options.level = TileLevel::micro;
    const TileReport report = build_tiles(input_of(tiles), options);
    ASSERT_EQ(report.maps.size(), 1u);
    EXPECT_EQ(report.maps[0].level, TileLevel::micro);
    EXPECT_TRUE(report.notes.empty());
}

TEST(Tiles, a_level_without_tiles_is_said_to_have_none) {
    TileOptions options;
    options.level = TileLevel::micro;
    const TileReport report = build_tiles(input_of(grid(TileLevel::macro, 1000, 1)), options);
    EXPECT_EQ(report.notes, std::vector<std::string>{"No micro tile was recorded; there are tiles of other levels."});
}

TEST(Tiles, M3_tiles_not_kept_apart_are_counted_and_said) {
    TileTotals rest = tile(TileLevel::midi, 0, 0, 1000, 7);
    rest.key = tile_overflow_key(TileLevel::midi);
    const TileReport report = build_tiles(input_of({tile(TileLevel::midi, 0, 0, 1000), rest}), {});
    ASSERT_EQ(report.overflow.size(), 1u);
    EXPECT_EQ(report.overflow[0].level, TileLevel::midi);
    EXPECT_EQ(report.overflow[0].figures.calls, 7u);
    ASSERT_EQ(report.maps.size(), 1u);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].find("7 calls of midi tiles are not in the maps"), 0u) << report.notes[0];
    EXPECT_NE(report.notes[0].find("all threads together more than the 65536 of a recording"), std::string::npos);
}

TEST(Tiles, a_run_without_tiles_says_how_to_keep_them) {
    TileInput input = input_of({});
    EXPECT_NE(build_tiles(input, {}).notes.at(0).find("No tile was recorded"), std::string::npos);
    input.kept = false;
    EXPECT_NE(build_tiles(input, {}).notes.at(0).find("tiles=on"), std::string::npos);
}

TEST(Tiles, a_name_that_the_recording_lost_is_told_by_its_number) {
    TileInput input = input_of({tile(TileLevel::macro, 0, 0, 5)});
    input.names.clear();
    EXPECT_EQ(build_tiles(input, {}).maps[0].name, "name 9");
    input.tiles[0].key = tile_key(TileLevel::macro, 0, 0, 0);
    EXPECT_EQ(build_tiles(input, {}).maps[0].name, "");
}

} // namespace
} // namespace plumb::analysis
