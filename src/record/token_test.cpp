// SPDX-License-Identifier: Apache-2.0
// Tokens, spans and labels: what lies outside a thread's nesting.
#include <gtest/gtest.h>

#include <thread>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

TEST(Token, ended_on_its_own_thread_is_a_span) {
    TestRecorder recorder;
    Token token = recorder.begin(norm, bytes(8));
    recorder.clock.advance(6);
    recorder.end(token);
    const auto all = recorder.take();
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[0], "work 1 bytes=8");
    EXPECT_EQ(all[4], "span 1 @1000 +6 work");
}

TEST(Token, ended_on_another_thread_tells_where_it_began) {
    TestRecorder recorder;
    Token token = recorder.begin(norm);
    const std::uint32_t track = recorder.thread()->track;
    std::thread([&] { recorder.end(token); }).join();
    EXPECT_EQ(recorder.take(), (Words{"origin " + std::to_string(track), "span 1 @1000 +0"}));
}

TEST(Token, and_a_span_sample_cpu_time_where_the_last_sample_is_old) {
    TestRecorder recorder;
    recorder.clock.set(2 * sample_ticks);
    recorder.record_span(norm, Timestamp{10}, Timestamp{30});
    recorder.record_span(norm, Timestamp{30}, Timestamp{50});
    const std::string at = std::to_string(2 * sample_ticks);
    EXPECT_EQ(recorder.take(true), (Words{"span 1 @10 +20", "cpu_time @" + at + " 0", "span 1 @30 +20"}));
    Token token = recorder.begin(norm);
    recorder.clock.advance(sample_ticks);
    recorder.end(token);
    const Words ended = recorder.take(true);
    ASSERT_EQ(ended.size(), 2u);
    EXPECT_EQ(ended[1], "cpu_time @" + std::to_string(3 * sample_ticks) + " 0");
}

TEST(Token, ended_twice_is_refused_and_counted) {
    TestRecorder recorder;
    Token token = recorder.begin(norm);
    recorder.end(token);
    recorder.end(token);
    Token never;
    recorder.end(never);
    EXPECT_EQ(recorder.take(), Words{"span 1 @1000 +0"});
    EXPECT_EQ(recorder.drops(Drop::bad_token), 2u);
}

TEST(Token, open_across_a_toggle_is_dropped_and_counted) {
    TestRecorder recorder;
    Token token = recorder.begin(norm);
    recorder.off();
    Token begun_off = recorder.begin(norm);
    Token never_on = recorder.begin(norm);
    recorder.end(never_on);
    recorder.on();
    recorder.end(token);
    recorder.end(begun_off);
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::across_toggle), 2u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 0u);
}

TEST(Token, whose_clock_went_back_is_dropped_and_counted) {
    TestRecorder recorder;
    Token token = recorder.begin(norm);
    recorder.clock.set(1);
    recorder.end(token);
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::negative_span), 1u);
}

// An origin alone would be taken for the next span's.
TEST(Token, in_a_ring_with_one_free_slot_leaves_no_origin_behind) {
    TestRecorder recorder(TestOptions{false, 1024, "", {}}); // 64 records
    for (std::uint64_t filled = 0; filled < 64; ++filled) {
        Token token = recorder.begin(norm);
        token.track = 77; // as if begun elsewhere
        recorder.end(token);
    }
    const auto all = recorder.take();
    ASSERT_FALSE(all.empty());
    for (std::size_t i = 0; i < all.size(); i += 2) {
        EXPECT_EQ(all[i], "origin 77");
        ASSERT_LT(i + 1, all.size());
        EXPECT_EQ(all[i + 1], "span 1 @1000 +0");
    }
    EXPECT_GT(recorder.drops(Drop::ring_full), 0u);
}

TEST(Span, timed_elsewhere_is_kept_as_given) {
    TestRecorder recorder;
    recorder.record_span(norm, Timestamp{10}, Timestamp{30});
    recorder.record_span(norm, Timestamp{30}, Timestamp{30});
    EXPECT_EQ(recorder.take(), (Words{"span 1 @10 +20", "span 1 @30 +0"}));
}

TEST(Span, that_ends_before_it_begins_is_refused_and_counted) {
    TestRecorder recorder;
    recorder.record_span(norm, Timestamp{30}, Timestamp{10});
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::negative_span), 1u);
}

TEST(Span, does_not_belong_to_the_nesting_of_its_thread) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, Brick::attention);
        PLUMB_LAP(recorder, host, Brick::rope_embedding);
        recorder.record_span(norm, Timestamp{1}, Timestamp{2});
        Token token = recorder.begin(norm);
        recorder.end(token);
    }
    EXPECT_EQ(recorder.take(), (Words{"span 1 @1 +1", "span 1 @1000 +0", "scope 5 @1000 +0 lap", "scope 9 @1000 +0"}));
}

TEST(Label, is_one_record_with_its_nanoseconds) {
    TestRecorder recorder;
    recorder.record(norm, 123456789);
    recorder.record(norm, ~std::uint64_t{0});
    EXPECT_EQ(recorder.take(), (Words{"label 1=123456789", "label 1=18446744073709551615"}));
}

} // namespace
} // namespace plumb::record
