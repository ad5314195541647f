// SPDX-License-Identifier: Apache-2.0
#include "recording/tile_codec.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <random>

#include "recording/files_testing.hpp"
#include "recording/format.hpp"
#include "recording/writer_testing.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

TileTotals tile(TileLevel level, std::uint64_t row, std::uint64_t col, std::uint64_t count = 3) {
    return {tile_key(level, 9, row, col),      count,  100 * count, 90 * count, 80, 100 * count,
            64.0 * static_cast<double>(count), unknown};
}

std::vector<TileTotals> many_tiles(std::size_t count) {
    std::vector<TileTotals> tiles;
    for (std::size_t i = 0; i < count; ++i) {
        tiles.push_back(tile(static_cast<TileLevel>(1 + i % 3), i / 300, i, 1 + i % 7));
    }
    return tiles;
}

bool same_tile(const TileTotals& a, const TileTotals& b) {
    return a.key == b.key && a.count == b.count && a.total == b.total && a.calm == b.calm && a.min == b.min &&
           a.max == b.max && plumb::same(a.bytes, b.bytes) && plumb::same(a.flops, b.flops);
}

void expect_same(std::vector<TileTotals> have, std::vector<TileTotals> expected) {
    std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    ASSERT_EQ(have.size(), expected.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
        ASSERT_TRUE(same_tile(have[i], expected[i])) << "tile " << i;
    }
}

Reader reader_of(const Writer& writer) {
    auto reader = Reader::from_bytes(writer.snapshot());
    EXPECT_TRUE(reader.ok());
    return std::move(*reader);
}

/// A recording with one chunk of tiles made by hand.
Reader reader_of_chunk(const Bytes& payload, std::uint32_t count, std::uint64_t generation = 1) {
    Bytes bytes = *writer_of()->snapshot();
    ChunkHeader header;
    header.type = ChunkType::tiles;
    header.count = count;
    header.first_sequence = generation;
    append_chunk(bytes, header, payload);
    auto reader = Reader::from_bytes(std::make_shared<const Bytes>(std::move(bytes)));
    EXPECT_TRUE(reader.ok());
    return std::move(*reader);
}

TEST(TileCodec, F9_every_field_comes_back_bit_for_bit) {
    std::vector<TileTotals> tiles = many_tiles(500);
    tiles.push_back({tile_key(TileLevel::micro, 0xfffe, tile_place_mask, tile_place_mask), ~std::uint64_t{0},
                     ~std::uint64_t{0}, ~std::uint64_t{0}, tile_min_unknown, ~std::uint64_t{0}, 1e300, 5e-324});
    tiles.push_back({tile_overflow_key(TileLevel::midi), 1, 0, 0, 0, 0, 0, 0});
    const auto writer = writer_of();
    ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
    const Reader reader = reader_of(*writer);
    expect_same(reader.tiles(), tiles);
    EXPECT_TRUE(reader.notes().empty()) << joined_notes(reader);
}

TEST(TileCodec, the_last_totals_of_a_key_count) {
    const auto writer = writer_of();
    const TileTotals first[] = {tile(TileLevel::macro, 0, 0, 2), tile(TileLevel::macro, 0, 1, 2)};
    const TileTotals later = tile(TileLevel::macro, 0, 1, 9);
    ASSERT_TRUE(writer->add_tiles(1, first, 2).ok());
    ASSERT_TRUE(writer->add_tiles(1, &later, 1).ok());
    expect_same(reader_of(*writer).tiles(), {first[0], later});
}

TEST(TileCodec, T8_a_later_generation_takes_the_place_of_all_before_also_when_it_is_empty) {
    const auto writer = writer_of();
    const auto tiles = many_tiles(10);
    ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
    ASSERT_TRUE(writer->add_tiles(2, nullptr, 0).ok());
    EXPECT_TRUE(reader_of(*writer).tiles().empty());
    ASSERT_TRUE(writer->add_tiles(2, tiles.data(), 1).ok());
    expect_same(reader_of(*writer).tiles(), {tiles[0]});
    EXPECT_TRUE(reader_of(*writer).notes().empty());
}

TEST(TileCodec, more_than_one_chunk_holds_are_split) {
    const auto tiles = many_tiles(most_tiles_of_chunk * 2 + 5);
    const auto writer = writer_of();
    ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
    expect_same(reader_of(*writer).tiles(), tiles);
}

TEST(TileCodec, M7_a_reader_holds_so_many_tiles_and_says_how_many_it_left_out) {
    auto tiles = many_tiles(most_tiles + 10);
    tiles.push_back({tile_overflow_key(TileLevel::macro), 1, 5, 5, 5, 5, 0, 0});
    const auto writer = writer_of();
    ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
    const Reader reader = reader_of(*writer);
    EXPECT_EQ(reader.tiles().size(), most_tiles + 1);
    EXPECT_NE(joined_notes(reader).find("10 totals of tiles beyond the first 65536"), std::string::npos);
}

TEST(TileCodec, M7_a_map_that_is_full_adds_up_the_rest_by_level) {
    TileMap map;
    for (const TileTotals& one : many_tiles(most_tiles)) {
        map.add(one);
    }
    map.add(tile(TileLevel::midi, 1, 4'000'000, 3));
    map.add(tile(TileLevel::midi, 2, 4'000'000, 4));
    EXPECT_EQ(map.size(), most_tiles + 1);
    const TileTotals* rest = map.find(tile_overflow_key(TileLevel::midi));
    ASSERT_NE(rest, nullptr);
    EXPECT_EQ(rest->count, 7u);
    EXPECT_EQ(rest->total, 700u);
}

TEST(TileCodec, totals_of_threads_add_up_without_wrapping) {
    TileMap map;
    TileTotals a = tile(TileLevel::macro, 0, 0, 2);
    a.min = 5;
    TileTotals b = tile(TileLevel::macro, 0, 0, 3);
    b.flops = 6;
    b.max = 1000;
    map.add(a);
    map.add(b);
    const TileTotals* sum = map.find(a.key);
    EXPECT_EQ(sum->count, 5u);
    EXPECT_EQ(sum->total, 500u);
    EXPECT_EQ(sum->min, 5u);
    EXPECT_EQ(sum->max, 1000u);
    EXPECT_EQ(sum->bytes, 320);
    EXPECT_TRUE(std::isnan(sum->flops)) << "one thread did not say";
    a.count = a.total = ~std::uint64_t{0};
    map.add(a);
    EXPECT_EQ(sum->count, ~std::uint64_t{0});
}

TEST(TileCodec, F7_no_room_leaves_nothing_and_the_same_totals_can_come_again) {
    TemporaryFolder folder;
    bool full = false;
    WriterOptions options;
    options.path = folder.file("run.plumb");
    options.write = [&full](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
        if (full) {
            errno = ENOSPC;
            return -1;
        }
        return pwrite(file, data, size, static_cast<off_t>(offset));
    };
    const auto writer = writer_of(options);
    const auto tiles = many_tiles(100);
    full = true;
    EXPECT_EQ(writer->add_tiles(1, tiles.data(), tiles.size()).error().code, ErrorCode::no_space);
    full = false;
    ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
    ASSERT_TRUE(writer->close().ok());
    EXPECT_FALSE(writer->add_tiles(1, tiles.data(), 1).ok()) << "closed";
    const auto reader = Reader::open(options.path);
    expect_same(reader->tiles(), tiles);
}

TEST(TileCodec, M7_repeated_totals_do_not_outgrow_a_bounded_recording) {
    WriterOptions options;
    options.max_bytes = std::uint64_t{1} << 20;
    const auto writer = writer_of(options);
    auto tiles = many_tiles(300);
    for (std::uint64_t round = 1; round <= 2000; ++round) { // 38 MB of totals
        for (TileTotals& one : tiles) {
            one.count += 1;
            one.total += 1;
        }
        ASSERT_TRUE(writer->add_tiles(1, tiles.data(), tiles.size()).ok());
        ASSERT_LE(writer->size(), options.max_bytes + options.max_bytes / 2);
    }
    expect_same(reader_of(*writer).tiles(), tiles);
    ASSERT_TRUE(writer->add_tiles(2, tiles.data(), 1).ok());
    const auto records = decode_stream(4000);
    ASSERT_TRUE(append_all(*writer, 1, records).ok());
    expect_same(reader_of(*writer).tiles(), {tiles[0]});
}

TEST(TileCodec, what_no_writer_writes_is_skipped_and_said) {
    const TileTotals good = tile(TileLevel::macro, 1, 1);
    const auto payload_of = [](const std::vector<TileTotals>& tiles) {
        Bytes payload;
        encode_tiles(tiles.data(), tiles.size(), payload);
        return payload;
    };
    const auto with = [&good](auto&& change) {
        TileTotals bad = good;
        change(bad);
        return bad;
    };
    for (const TileTotals& bad :
         {with([](TileTotals& t) { t.key &= ~std::uint64_t{0} >> 2; }), with([](TileTotals& t) { t.count = 0; }),
          with([](TileTotals& t) { t.min = t.max + 1; }), with([](TileTotals& t) { t.max = t.total + 1; }),
          with([](TileTotals& t) { t.calm = t.total + 1; })}) {
        const Reader reader = reader_of_chunk(payload_of({bad, good}), 2);
        expect_same(reader.tiles(), {good});
        EXPECT_NE(joined_notes(reader).find("what no writer writes"), std::string::npos);
    }
    for (const double work : {-1.0, std::numeric_limits<double>::infinity()}) {
        TileTotals odd = good;
        odd.bytes = work;
        const Reader reader = reader_of_chunk(payload_of({odd}), 1);
        ASSERT_EQ(reader.tiles().size(), 1u);
        EXPECT_TRUE(std::isnan(reader.tiles()[0].bytes)) << "not known";
    }
}

TEST(TileCodec, a_chunk_whose_sizes_disagree_is_skipped) {
    const TileTotals good = tile(TileLevel::macro, 1, 1);
    Bytes payload;
    encode_tiles(&good, 1, payload);
    for (const std::uint32_t count : {0u, 2u, 0xffffffffu}) {
        EXPECT_TRUE(reader_of_chunk(payload, count).tiles().empty());
    }
    for (const std::uint32_t step : {0u, 1u, 63u, 65u, 0xffffffffu}) {
        Bytes other = payload;
        store_le(other.data(), step);
        EXPECT_TRUE(reader_of_chunk(other, 1).tiles().empty());
    }
    for (std::size_t size = 0; size < payload.size(); ++size) {
        const Bytes cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_TRUE(reader_of_chunk(cut, 1).tiles().empty()) << size;
    }
}

TEST(TileCodec, entries_of_a_later_version_may_be_longer) {
    const TileTotals good = tile(TileLevel::macro, 1, 1);
    Bytes payload;
    encode_tiles(&good, 1, payload);
    store_le(payload.data(), std::uint32_t{72});
    payload.resize(payload.size() + 8);
    expect_same(reader_of_chunk(payload, 1).tiles(), {good});
}

TEST(TileCodec, any_bytes_at_all_are_read_within_bounds) {
    std::mt19937_64 random(7);
    std::size_t taken = 0;
    for (int round = 0; round < 20'000; ++round) {
        Bytes payload(4 + random() % 400);
        for (std::byte& byte : payload) {
            byte = static_cast<std::byte>(random());
        }
        store_le(payload.data(), static_cast<std::uint32_t>(round % 2 == 0 ? 64 : random() % 130));
        const std::size_t before = taken;
        (void)decode_tiles(payload.data(), payload.size(), static_cast<std::uint32_t>((payload.size() - 4) / 64),
                           [&taken](const TileTotals& t) {
                               ++taken;
                               EXPECT_LE(t.min, t.max);
                               EXPECT_FALSE(t.bytes < 0);
                           });
        ASSERT_LE(taken - before, payload.size() / 64);
    }
}

TEST(TileCodec, a_damaged_chunk_costs_its_own_totals_only) {
    const auto writer = writer_of();
    const TileTotals a = tile(TileLevel::macro, 0, 0, 2);
    const TileTotals b = tile(TileLevel::macro, 0, 1, 2);
    ASSERT_TRUE(writer->add_tiles(1, &a, 1).ok());
    const std::uint64_t at = writer->size() - 10;
    ASSERT_TRUE(writer->add_tiles(1, &b, 1).ok());
    Bytes bytes = *writer->snapshot();
    bytes[at] ^= std::byte{1};
    const auto reader = Reader::from_bytes(std::make_shared<const Bytes>(std::move(bytes)));
    expect_same(reader->tiles(), {b});
    EXPECT_NE(joined_notes(*reader).find("damaged"), std::string::npos);
}

} // namespace
} // namespace plumb::recording
