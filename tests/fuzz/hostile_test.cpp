// SPDX-License-Identifier: Apache-2.0
// 10,000 mutated recordings and rings through the readers, half of them with checksums made to hold: no crash, and memory and
// work within bounds. The same on every machine: the mutations are seeded.
#include <gtest/gtest.h>
#include <zstd.h>

#include "mutate.hpp"
#include "recording/check_codec.hpp"
#include "recording/format.hpp"
#include "recording/metadata_codec.hpp"
#include "recording/reader.hpp"
#include "recording/writer.hpp"
#include "support/allocation_count.hpp"

namespace plumb::fuzz {
namespace {

/// What `read` allocated at most, above what was held before.
template <class Read>
std::size_t peak_of(Read&& read) {
    const std::size_t before = start_peak();
    read();
    return peak() - before;
}

constexpr std::size_t free_memory = std::size_t{64} << 20;

TEST(Hostile, ten_thousand_mutated_recordings_are_read_within_bounds) {
    const auto seeds = recording_seeds();
    std::mt19937_64 random(2024);
    std::uint64_t used = 0;
    for (int round = 0; round < 10'000; ++round) {
        Bytes bytes = seeds[static_cast<std::size_t>(round) % seeds.size()];
        mutate(bytes, random);
        if (round % 2 == 0) {
            repair_checksums(bytes.data(), bytes.size());
        }
        const std::size_t size = bytes.size();
        const std::size_t most = peak_of([&] { used += read_recording(std::move(bytes)); });
        ASSERT_LE(most, free_memory + 4 * size) << "round " << round;
    }
    EXPECT_NE(used, 0u);
}

TEST(Hostile, ten_thousand_mutated_rings_are_read_within_bounds) {
    const auto seeds = ring_seeds();
    std::mt19937_64 random(2025);
    std::uint64_t used = 0;
    for (int round = 0; round < 10'000; ++round) {
        Bytes bytes = seeds[static_cast<std::size_t>(round) % seeds.size()];
        mutate(bytes, random);
        const std::size_t most = peak_of([&] { used += read_ring(bytes.data(), bytes.size()); });
        ASSERT_LE(most, free_memory + 4 * bytes.size()) << "round " << round;
    }
    EXPECT_NE(used, 0u);
}

TEST(Hostile, a_small_file_cannot_unfold_into_a_flood_of_records) {
    // The densest chunk that a reader accepts, again and again: constant columns and padding.
    using namespace recording;
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    const std::vector<Record> records(max_chunk_records);
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_TRUE((*writer)->append({1, i * max_chunk_records, records.data(), records.size()}).ok());
    }
    const auto bytes = (*writer)->snapshot();
    auto reader = Reader::from_bytes(bytes);
    ASSERT_TRUE(reader.ok());
    std::uint64_t count = 0;
    const std::size_t most = peak_of([&] {
        ASSERT_TRUE(reader
                        ->for_each_batch([&](const RecordBatch& batch) {
                            count += batch.count;
                            return true;
                        })
                        .ok());
    });
    EXPECT_EQ(count, 64 * max_chunk_records);
    EXPECT_LE(count, min_payload_share * bytes->size());
    EXPECT_LE(most, std::size_t{8} << 20) << "one chunk at a time";
}

TEST(Hostile, a_small_file_cannot_unfold_into_a_flood_of_checks) {
    // The shortest entries there are, folded as far as a reader follows.
    using namespace recording;
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    Bytes bytes = *(*writer)->snapshot();
    Bytes entries;
    std::uint32_t in_chunk = 0;
    for (; entries.size() + 48 <= max_chunk_payload; ++in_chunk) {
        append_le(entries, std::uint32_t{44});
        FieldWriter(entries).text(1, std::string(38, '\0'));
    }
    Bytes folded;
    append_le(folded, static_cast<std::uint32_t>(entries.size()));
    std::vector<std::byte> frame(ZSTD_compressBound(entries.size()));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), entries.data(), entries.size(), 1));
    append_bytes(folded, frame.data(), frame.size());
    // As much beside it as the ratio asks for, in a frame that decompressors skip.
    const std::size_t beside = entries.size() / check_unfolding + 1 - folded.size();
    append_le(folded, std::uint32_t{0x184d2a50});
    append_le(folded, static_cast<std::uint32_t>(beside));
    folded.resize(folded.size() + beside);
    ChunkHeader header;
    header.type = ChunkType::checks;
    header.codec = Codec::zstd;
    header.count = in_chunk;
    constexpr std::uint64_t chunks = 8;
    for (std::uint64_t i = 0; i < chunks; ++i) {
        header.first_sequence = i * in_chunk;
        append_chunk(bytes, header, folded);
    }
    const auto shared = std::make_shared<const Bytes>(std::move(bytes));
    auto reader = Reader::from_bytes(shared);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->checks_count(), chunks * in_chunk);
    std::uint64_t count = 0;
    const std::size_t most = peak_of([&] {
        ASSERT_TRUE(reader
                        ->for_each_check([&count](TensorCheck&&) {
                            ++count;
                            return true;
                        })
                        .ok());
    });
    EXPECT_EQ(count, chunks * in_chunk);
    EXPECT_LE(count * 48, check_unfolding * shared->size());
    EXPECT_LE(most, std::size_t{8} << 20) << "one chunk at a time";
}

TEST(Hostile, ids_and_keys_without_end_are_held_within_bounds) {
    using namespace recording;
    auto writer = Writer::create({}, {});
    ASSERT_TRUE(writer.ok());
    Bytes bytes = *(*writer)->snapshot();
    // The densest entries there are: nothing but an id, or a key of a few letters.
    std::uint64_t id = 0;
    for (int chunk = 0; chunk < 12; ++chunk) {
        Bytes tracks;
        Bytes keys;
        while (keys.size() + 64 < max_chunk_payload) {
            append_le(tracks, std::uint32_t{14});
            FieldWriter(tracks).number(1, ++id);
            append_entry(Description{std::to_string(id), ""}, keys);
        }
        ChunkHeader header;
        header.type = ChunkType::tracks;
        append_chunk(bytes, header, tracks);
        header.type = ChunkType::descriptions;
        append_chunk(bytes, header, keys);
    }
    const auto shared = std::make_shared<const Bytes>(std::move(bytes));
    const std::size_t most = peak_of([&] {
        auto reader = Reader::from_bytes(shared);
        ASSERT_TRUE(reader.ok());
        EXPECT_GT(reader->tracks().size(), 100'000u);
        EXPECT_GT(reader->descriptions().size(), 10'000u);
    });
    EXPECT_LE(most, free_memory) << shared->size();
}

} // namespace
} // namespace plumb::fuzz
