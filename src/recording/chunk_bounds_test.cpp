// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk_bounds.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace plumb::recording {
namespace {

constexpr std::uint16_t decode_phase = static_cast<std::uint16_t>(Phase::decode);

/// Of chunks as they are given, the bounds of each, and what it carries.
class Chunks {
  public:
    struct Seen {
        bool any = false;
        ChunkBounds bounds;
        std::vector<Record> carried;
    };

    Seen add(const std::vector<Record>& records, std::size_t bytes = 1000) {
        return again(records, std::exchange(sequence_, sequence_ + records.size()), bytes);
    }
    Seen again(const std::vector<Record>& records, std::uint64_t sequence, std::size_t bytes = 1000) {
        Bytes to;
        tracker_.append({1, sequence, records.data(), records.size()}, bytes, to);
        Seen seen;
        seen.any = !to.empty();
        if (seen.any) {
            EXPECT_TRUE(read_bounds(to.data(), to.size(), seen.bounds));
            seen.carried = read_carried(to.data(), to.size());
        }
        return seen;
    }

    void end() {
        tracker_.end_track(1);
        sequence_ = 0;
    }

  private:
    BoundsTracker tracker_;
    std::uint64_t sequence_ = 50;
};

Record scope(std::uint64_t begin, std::uint64_t length) { return {begin, pack(RecordKind::scope, 9, length)}; }
Record step_begin(std::uint64_t begin, std::uint64_t step) {
    return {begin, pack(RecordKind::step_begin, decode_phase, step)};
}
Record step_end(std::uint64_t begin, std::uint64_t length) {
    return {begin, pack(RecordKind::step_end, decode_phase, length)};
}
Record work(std::uint16_t name, double value) {
    return {std::bit_cast<std::uint64_t>(value), pack(RecordKind::work, name, 0)};
}

TEST(ChunkBounds, the_first_and_last_step_and_moment_are_those_of_its_records) {
    Chunks chunks;
    auto seen = chunks.add(
        {scope(100, 5), step_begin(110, 7), scope(111, 4), step_end(110, 20), step_begin(140, 4), scope(141, 2)});
    EXPECT_EQ(seen.bounds.first_step_plus_one, 5U);
    EXPECT_EQ(seen.bounds.last_step_plus_one, 8U);
    EXPECT_EQ(seen.bounds.first_ticks, 100U);
    EXPECT_EQ(seen.bounds.last_ticks, 143U);
    EXPECT_EQ(seen.bounds.decode_steps, 1U);
    seen = chunks.add({scope(150, 1)}); // of the step that is still open
    EXPECT_EQ(seen.bounds.first_step_plus_one, 5U);
    EXPECT_EQ(seen.bounds.last_step_plus_one, 5U);
    (void)chunks.add({step_end(140, 60)});
    seen = chunks.add({scope(300, 1)});
    EXPECT_EQ(seen.bounds.last_step_plus_one, 0U);
}

TEST(ChunkBounds, a_long_duration_reaches_as_far_as_the_record_before_says) {
    Chunks chunks;
    const auto seen = chunks.add({{std::uint64_t{1} << 50, pack(RecordKind::long_value, 0)}, scope(10, payload_mask)});
    EXPECT_EQ(seen.bounds.last_ticks, 10 + (std::uint64_t{1} << 50));
}

TEST(ChunkBounds, what_still_applies_is_carried_and_what_ended_is_not) {
    Chunks chunks;
    EXPECT_TRUE(chunks
                    .add({work(3, 1.0),
                          work(3, 2.0),
                          work(4, 5.0),
                          step_begin(10, 7),
                          {12, pack(RecordKind::layer_begin, 2)},
                          {0, pack(RecordKind::context, 0)}})
                    .bounds.entry);
    const auto seen = chunks.add(
        {{0, pack(RecordKind::context_end)}, {12, pack(RecordKind::layer_end, 2, 5)}, step_end(10, 30)}, 100'000);
    EXPECT_FALSE(seen.bounds.entry); // the track has not written 32 times as much yet
    const auto after = chunks.add({scope(50, 1)});
    ASSERT_TRUE(after.bounds.entry);
    ASSERT_EQ(after.carried.size(), 2U);
    EXPECT_EQ(after.carried[0].first, std::bit_cast<std::uint64_t>(2.0));
    EXPECT_EQ(after.carried[1].first, std::bit_cast<std::uint64_t>(5.0));
    (void)chunks.add({step_begin(60, 8), {61, pack(RecordKind::layer_begin, 1)}}, 100'000);
    const auto inside = chunks.add({scope(62, 1)});
    ASSERT_EQ(inside.carried.size(), 4U);
    EXPECT_EQ(payload_of(inside.carried[2]), 8U);
    EXPECT_EQ(id_of(inside.carried[3]), 1U);
}

TEST(ChunkBounds, a_chunk_written_once_more_has_none_and_is_followed_once) {
    Chunks chunks;
    (void)chunks.again({step_begin(10, 7), scope(11, 1)}, 10, 100'000);
    EXPECT_FALSE(chunks.again({step_begin(10, 7), scope(11, 1), scope(13, 1)}, 10).any);
    const auto seen = chunks.again({scope(20, 1)}, 13);
    ASSERT_TRUE(seen.bounds.entry);
    EXPECT_EQ(seen.carried.size(), 1U);
}

TEST(ChunkBounds, what_cannot_be_bounds_is_none) {
    ChunkBounds good;
    good.first_step_plus_one = 3;
    good.last_step_plus_one = 9;
    Bytes bytes;
    append_bounds(bytes, good, {});
    ChunkBounds read;
    EXPECT_TRUE(read_bounds(bytes.data(), bytes.size(), read));
    EXPECT_FALSE(read_bounds(bytes.data(), bytes.size() - 1, read));
    store_le(bytes.data() + 8, std::uint64_t{2});
    EXPECT_FALSE(read_bounds(bytes.data(), bytes.size(), read));
    store_le(bytes.data(), std::uint64_t{0});
    EXPECT_FALSE(read_bounds(bytes.data(), bytes.size(), read));
}

TEST(ChunkBounds, nothing_is_kept_of_a_track_that_ended) {
    Chunks chunks;
    (void)chunks.add({step_begin(10, 7), work(9, 1.0)});
    chunks.end();
    const Chunks::Seen seen = chunks.add({scope(20, 5)});
    ASSERT_TRUE(seen.any);
    EXPECT_TRUE(seen.bounds.entry);
    EXPECT_TRUE(seen.carried.empty());
    EXPECT_EQ(seen.bounds.last_step_plus_one, 0u);
}

} // namespace
} // namespace plumb::recording
