// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "recording/files_testing.hpp"
#include "recording/format.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

struct Original {
    std::vector<Record> records = decode_stream(6);
    Bytes bytes;
    std::vector<std::size_t> starts; // of chunks
    std::vector<ChunkHeader> headers;

    Original() {
        auto writer = Writer::create({}, full_metadata());
        EXPECT_TRUE((*writer)->add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc"}).ok());
        EXPECT_TRUE(append_all(**writer, 1, records, 60).ok());
        EXPECT_TRUE((*writer)->close().ok());
        bytes = *(*writer)->snapshot();
        for (std::size_t at = preamble_size; at < bytes.size();) {
            ChunkHeader header;
            if (!read_chunk_header(bytes.data() + at, header)) {
                ADD_FAILURE() << "a fresh recording does not parse";
                return;
            }
            starts.push_back(at);
            headers.push_back(header);
            at += chunk_header_size + header.payload_size;
        }
    }

    [[nodiscard]] std::size_t end_of(std::size_t i) const {
        return starts[i] + chunk_header_size + headers[i].payload_size;
    }
    /// Records in chunks that lie wholly within the first `size` bytes.
    [[nodiscard]] std::size_t records_within(std::size_t size) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < starts.size(); ++i) {
            count += end_of(i) <= size && headers[i].type == ChunkType::records ? headers[i].count : 0;
        }
        return count;
    }
};

Result<Reader> reader_of_bytes(Bytes bytes) {
    return Reader::from_bytes(std::make_shared<const Bytes>(std::move(bytes)));
}

/// Every record that came back is one of the original, in its place.
void expect_subset(const Content& content, const Original& original) {
    for (const auto& [track, records] : content.records) {
        ASSERT_EQ(track, 1u);
        for (std::size_t i = 0; i < records.size(); ++i) {
            const std::uint64_t sequence = content.sequences.at(1)[i];
            ASSERT_LT(sequence, original.records.size());
            ASSERT_TRUE(same(records[i], original.records[sequence]));
        }
    }
}

TEST(Damage, a_file_cut_at_any_byte_keeps_every_whole_chunk_and_says_what_is_missing) {
    const Original original;
    for (std::size_t size = preamble_size; size < original.bytes.size(); ++size) {
        auto reader =
            reader_of_bytes(Bytes(original.bytes.begin(), original.bytes.begin() + static_cast<std::ptrdiff_t>(size)));
        ASSERT_TRUE(reader.ok()) << size;
        const Content content = content_of(*reader);
        ASSERT_EQ(content.count(), original.records_within(size)) << size;
        expect_subset(content, original);
        const bool at_chunk = std::find(original.starts.begin(), original.starts.end(), size) != original.starts.end();
        ASSERT_EQ(joined_notes(*reader).find("unfinished chunk") == std::string::npos, at_chunk) << size;
        ASSERT_FALSE(reader->closed());
    }
}

TEST(Damage, less_than_a_preamble_is_no_recording) {
    const Original original;
    for (std::size_t size = 0; size < preamble_size; ++size) {
        auto reader =
            reader_of_bytes(Bytes(original.bytes.begin(), original.bytes.begin() + static_cast<std::ptrdiff_t>(size)));
        ASSERT_FALSE(reader.ok());
        EXPECT_EQ(reader.error().code, ErrorCode::corrupt);
    }
}

TEST(Damage, a_flipped_bit_anywhere_costs_one_chunk_and_is_stated) {
    const Original original;
    for (std::size_t at = 0; at < original.bytes.size(); ++at) {
        Bytes bytes = original.bytes;
        bytes[at] ^= std::byte{static_cast<unsigned char>(1u << (at % 8))};
        auto reader = reader_of_bytes(bytes);
        ASSERT_TRUE(reader.ok()) << at;
        const Content content = content_of(*reader);
        expect_subset(content, original);
        ASSERT_FALSE(reader->notes().empty()) << at;
        std::size_t hit = 0;
        for (std::size_t i = 0; i < original.starts.size(); ++i) {
            if (at >= original.starts[i] && at < original.end_of(i) && original.headers[i].type == ChunkType::records) {
                hit = original.headers[i].count;
            }
        }
        ASSERT_EQ(content.count(), original.records.size() - hit) << at;
        if (hit != 0) {
            const std::string lost =
                std::to_string(hit) + " of " + std::to_string(original.records.size()) + " records are lost";
            ASSERT_NE(joined_notes(*reader).find(lost), std::string::npos) << joined_notes(*reader);
        }
    }
}

TEST(Damage, a_gap_in_a_track_is_named_with_its_size) {
    const Original original;
    Bytes bytes = original.bytes;
    bytes[original.starts[3] + chunk_header_size] ^= std::byte{1}; // the second chunk of records
    auto reader = reader_of_bytes(bytes);
    ASSERT_TRUE(reader.ok());
    EXPECT_NE(joined_notes(*reader).find("track 1 (main) misses 60 records"), std::string::npos)
        << joined_notes(*reader);
}

TEST(Damage, a_piece_missing_in_the_middle_costs_only_the_chunks_it_touches) {
    const Original original;
    for (std::size_t length : {1u, 17u, 64u, 100u}) {
        Bytes bytes = original.bytes;
        const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(original.starts[3] + 70);
        bytes.erase(from, from + static_cast<std::ptrdiff_t>(length));
        auto reader = reader_of_bytes(bytes);
        ASSERT_TRUE(reader.ok());
        const Content content = content_of(*reader);
        expect_subset(content, original);
        EXPECT_GE(content.count() + 120, original.records.size()) << length;
    }
}

/// Fixes both checksums of the chunk at `at`, as a hostile writer would.
void repair(Bytes& bytes, std::size_t at) {
    const std::size_t size = load_le<std::uint32_t>(bytes.data() + at + 24);
    if (at + chunk_header_size + size <= bytes.size()) {
        store_le(bytes.data() + at + 48, checksum(bytes.data() + at + chunk_header_size, size));
    }
    store_le(bytes.data() + at + 56, checksum(bytes.data() + at, 56));
}

TEST(Damage, lies_with_right_checksums_are_refused_or_read_within_bounds) {
    const Original original;
    std::mt19937_64 random(3);
    for (std::size_t i = 0; i < original.starts.size(); ++i) {
        const std::size_t size = original.end_of(i) - original.starts[i];
        for (std::size_t offset = 0; offset < size; ++offset) {
            Bytes bytes = original.bytes;
            bytes[original.starts[i] + offset] = static_cast<std::byte>(random() & 0xff);
            repair(bytes, original.starts[i]);
            auto reader = reader_of_bytes(bytes);
            ASSERT_TRUE(reader.ok());
            const Content content = content_of(*reader);
            // A lie about a count may cost or add at most one chunk's worth; nothing else may change.
            ASSERT_LE(content.count(), original.records.size() + max_chunk_records);
        }
    }
}

TEST(Damage, a_payload_that_no_writer_writes_is_counted_as_lost) {
    const Original original;
    Bytes bytes = original.bytes;
    bytes[original.starts[3] + chunk_header_size + 8] = std::byte{200}; // planes of the first column
    repair(bytes, original.starts[3]);
    auto reader = reader_of_bytes(bytes);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(content_of(*reader).count(), original.records.size() - 60);
    EXPECT_NE(joined_notes(*reader).find("60 records could not be decoded"), std::string::npos)
        << joined_notes(*reader);
}

TEST(Damage, a_newer_version_is_refused_by_name) {
    Bytes bytes;
    Preamble preamble;
    preamble.version = format_version + 1;
    append_preamble(bytes, preamble);
    auto reader = reader_of_bytes(bytes);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().code, ErrorCode::unsupported);
    EXPECT_NE(reader.error().message.find("use a newer plumb"), std::string::npos);
}

TEST(Damage, a_kind_of_chunk_from_a_later_version_is_skipped_and_counted) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    Bytes bytes = *(*writer)->snapshot();
    ChunkHeader header;
    header.type = static_cast<ChunkType>(999);
    append_chunk(bytes, header, Bytes(10));
    auto reader = reader_of_bytes(bytes);
    ASSERT_TRUE(reader.ok());
    EXPECT_NE(joined_notes(*reader).find("1 chunks are of kinds"), std::string::npos) << joined_notes(*reader);
}

TEST(Damage, the_same_records_twice_are_used_once) {
    const Original original;
    Bytes bytes = original.bytes;
    const auto begin = original.bytes.begin() + static_cast<std::ptrdiff_t>(original.starts[2]);
    bytes.insert(bytes.end(), begin, original.bytes.begin() + static_cast<std::ptrdiff_t>(original.end_of(4)));
    auto reader = reader_of_bytes(bytes);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(content_of(*reader).count(), original.records.size());
    EXPECT_NE(joined_notes(*reader).find("180 records were there twice"), std::string::npos) << joined_notes(*reader);
}

TEST(Damage, a_file_made_to_waste_time_is_read_in_linear_time) {
    // Headers that hold, each claiming a large payload that does not: a naive resynchronisation hashes all of it each time.
    Bytes bytes;
    append_preamble(bytes, {});
    std::byte header_bytes[chunk_header_size];
    ChunkHeader header;
    header.type = ChunkType::records;
    header.count = 1;
    header.payload_size = static_cast<std::uint32_t>(max_chunk_payload - 8); // so that none ends where one begins
    store_chunk_header(header_bytes, header);
    while (bytes.size() < (std::size_t{8} << 20)) {
        append_bytes(bytes, header_bytes, sizeof header_bytes);
    }
    auto reader = reader_of_bytes(bytes);
    // 130,000 headers of 2 MiB each would be 270 GB to hash: this test would not end.
    ASSERT_TRUE(reader.ok() || reader.error().code == ErrorCode::corrupt);
}

} // namespace
} // namespace plumb::recording
