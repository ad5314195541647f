// SPDX-License-Identifier: Apache-2.0
#include "recording/decode_ahead.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include "recording/files_testing.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

constexpr ReadOptions alone{true, ReadAhead::never};
constexpr ReadOptions helped{true, ReadAhead::always};

/// Two tracks by turns, in chunks of many sizes.
std::string recording_of(const TemporaryFolder& folder, const std::vector<Record>& records) {
    WriterOptions options;
    options.path = folder.file("run.plumb");
    auto writer = Writer::create(options, {});
    EXPECT_TRUE(writer.ok());
    std::size_t size = 1;
    for (std::size_t at = 0; at < records.size(); at += size, size = size * 7 % 30011 + 1) {
        const std::size_t count = std::min(size, records.size() - at);
        EXPECT_TRUE((*writer)->append({1, at, records.data() + at, count}).ok());
        EXPECT_TRUE((*writer)->append({2, at, records.data() + at, count}).ok());
    }
    EXPECT_TRUE((*writer)->close().ok());
    return options.path;
}

struct Seen {
    std::vector<std::tuple<std::uint32_t, std::uint64_t, std::size_t>> batches; // track, first sequence, count
    std::vector<Record> records;
    std::string notes;
};

Seen read_all(const std::string& path, ReadOptions options) {
    Seen seen;
    auto reader = Reader::open(path, options);
    EXPECT_TRUE(reader.ok());
    const Status read = reader->for_each_batch([&](const RecordBatch& batch) {
        seen.batches.emplace_back(batch.track, batch.first_sequence, batch.count);
        seen.records.insert(seen.records.end(), batch.records, batch.records + batch.count);
        return true;
    });
    EXPECT_TRUE(read.ok());
    seen.notes = joined_notes(*reader);
    return seen;
}

void expect_same(const Seen& a, const Seen& b) {
    EXPECT_EQ(a.batches, b.batches);
    EXPECT_EQ(a.notes, b.notes);
    ASSERT_EQ(a.records.size(), b.records.size());
    EXPECT_TRUE(std::equal(a.records.begin(), a.records.end(), b.records.begin(), same));
}

TEST(DecodeAhead, gives_the_same_batches_in_the_same_order_as_one_thread_alone) {
    const TemporaryFolder folder;
    const std::string path = recording_of(folder, decode_stream(6000));
    const Seen by_one = read_all(path, alone);
    EXPECT_GT(by_one.records.size(), 8 * DecodeAhead::group_records);
    expect_same(by_one, read_all(path, helped));
}

TEST(DecodeAhead, a_chunk_that_changed_after_the_file_was_opened_is_lost_in_the_same_words) {
    const TemporaryFolder folder;
    const std::string path = recording_of(folder, decode_stream(3000));
    const auto read_changed = [&](ReadOptions options) {
        Bytes bytes = read_bytes(path);
        const Bytes before = bytes;
        auto reader = Reader::open(path, options);
        EXPECT_TRUE(reader.ok());
        for (std::size_t at = bytes.size() / 2; at < bytes.size() / 2 + 64; ++at) {
            bytes[at] ^= std::byte{0x5a};
        }
        write_bytes(path, bytes);
        const Content content = content_of(*reader);
        write_bytes(path, before);
        return std::pair(content.count(), joined_notes(*reader));
    };
    const auto by_one = read_changed(alone);
    EXPECT_NE(by_one.second.find("could not be decoded and are lost"), std::string::npos) << by_one.second;
    EXPECT_EQ(by_one, read_changed(helped));
}

TEST(DecodeAhead, a_reader_may_stop_early_and_read_again) {
    const TemporaryFolder folder;
    const std::string path = recording_of(folder, decode_stream(3000));
    auto reader = Reader::open(path, helped);
    ASSERT_TRUE(reader.ok());
    for (int pass = 0; pass < 3; ++pass) {
        int batches = 0;
        ASSERT_TRUE(reader->for_each_batch([&](const RecordBatch&) { return ++batches < 3; }).ok());
        EXPECT_EQ(batches, 3);
    }
    EXPECT_EQ(content_of(*reader).count(), content_of(path, alone).count());
}

TEST(DecodeAhead, an_empty_recording_is_read) {
    const TemporaryFolder folder;
    const Seen seen = read_all(recording_of(folder, {}), helped);
    EXPECT_TRUE(seen.batches.empty());
}

std::vector<RecordPlace> places_of(std::size_t count, std::uint32_t records) {
    RecordPlace place;
    place.count = records;
    return std::vector<RecordPlace>(count, place);
}

TEST(DecodeAhead, never_runs_further_ahead_than_its_groups) {
    const auto places = places_of(200, DecodeAhead::group_records);
    std::atomic<std::size_t> decoded{0};
    DecodeAhead ahead(places, {[&](const RecordPlace&, Record*) {
                          ++decoded;
                          return true;
                      }});
    for (std::size_t taken = 1; taken <= places.size(); ++taken) {
        ASSERT_NE(ahead.next(), nullptr);
        // The one taken now is a group, too, until the next is asked for.
        const std::size_t most = std::min(places.size(), taken - 1 + DecodeAhead::groups);
        while (decoded < most) {
            std::this_thread::yield();
        }
        for (int i = 0; i < 50; ++i) {
            std::this_thread::yield(); // a thread that did not wait would go on here
        }
        ASSERT_EQ(decoded, most);
    }
    EXPECT_EQ(ahead.next(), nullptr);
}

TEST(DecodeAhead, small_chunks_are_handed_over_together) {
    const auto places = places_of(5000, 10);
    std::atomic<std::size_t> decoded{0};
    DecodeAhead ahead(places, {[&](const RecordPlace&, Record*) {
                          return ++decoded % 3 != 0;
                      }});
    std::size_t chunks = 0;
    while (const DecodeAhead::Chunk* chunk = ahead.next()) {
        EXPECT_EQ(chunk->place, &places[chunks]);
        EXPECT_EQ(chunk->readable, ++chunks % 3 != 0);
        EXPECT_GE(decoded, std::min(places.size(), ((chunks - 1) / 1639 + 1) * 1639)); // 1639 * 10 > 16384
    }
    EXPECT_EQ(chunks, places.size());
}

TEST(DecodeAhead, groups_of_several_decoders_come_in_the_order_of_the_places) {
    const auto places = places_of(37, DecodeAhead::group_records / 2);
    std::atomic<std::size_t> of_first{0}, of_second{0};
    const auto counted = [](std::atomic<std::size_t>& by) {
        return [&by](const RecordPlace&, Record*) {
            ++by;
            return true;
        };
    };
    DecodeAhead ahead(places, {counted(of_first), counted(of_second)});
    for (const RecordPlace& place : places) {
        const DecodeAhead::Chunk* const chunk = ahead.next();
        ASSERT_NE(chunk, nullptr);
        EXPECT_EQ(chunk->place, &place);
    }
    EXPECT_EQ(ahead.next(), nullptr);
    EXPECT_EQ(ahead.next(), nullptr);
    EXPECT_EQ(of_first, 19u); // groups of two places, 19 of them; the last has one
    EXPECT_EQ(of_second, 18u);
}

TEST(DecodeAhead, a_failure_on_the_other_thread_reaches_the_one_that_reads) {
    const auto places = places_of(5, DecodeAhead::group_records);
    std::size_t decoded = 0;
    DecodeAhead ahead(places, {[&](const RecordPlace&, Record*) -> bool {
                          if (++decoded == 3) {
                              throw std::bad_alloc();
                          }
                          return true;
                      }});
    EXPECT_NE(ahead.next(), nullptr);
    EXPECT_NE(ahead.next(), nullptr);
    EXPECT_THROW((void)ahead.next(), std::bad_alloc);
}

} // namespace
} // namespace plumb::recording
