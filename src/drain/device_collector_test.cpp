// SPDX-License-Identifier: Apache-2.0
// Device scopes: each gets the times of its own token, the step, layer and work it was submitted under, or is counted.
#include "drain/device_collector.hpp"

#include <gtest/gtest.h>

#include <set>

#include "record/test_recorder.hpp"
#include "recording/reader.hpp"

namespace plumb::drain {
namespace {

using record::TestRecorder;
using record::Words;
using record::words;

constexpr Name norm = Brick::rms_norm;
constexpr std::uint32_t queue_track = 900;

/// Finishes scopes when the test says so.
class HandTimer final : public QueueTimer {
  public:
    [[nodiscard]] Result<DeviceToken> begin() noexcept override {
        if (refuse_begin) {
            return Error{ErrorCode::out_of_memory, "no token is left; collect some"};
        }
        open.insert(++last);
        return DeviceToken{last};
    }
    [[nodiscard]] Status end(DeviceToken token) noexcept override {
        return refuse_end || open.count(token.value) == 0 ? Status(Error{ErrorCode::not_found, "not open"}) : Status();
    }
    [[nodiscard]] Result<DeviceSpan> collect(DeviceToken token) noexcept override {
        const auto found = done.find(token.value);
        if (found == done.end()) {
            return Error{ErrorCode::pending, "not finished"};
        }
        open.erase(token.value);
        return found->second;
    }
    void cancel(DeviceToken token) noexcept override { open.erase(token.value); }
    [[nodiscard]] Status wait(DeviceToken) noexcept override {
        return refuse_wait ? Status(Error{ErrorCode::failed, "the device is gone"}) : Status();
    }
    [[nodiscard]] bool immediate() const noexcept override { return immediately; }
    [[nodiscard]] const char* source() const noexcept override { return "hand"; }
    [[nodiscard]] std::string clock_name() const override { return "hand"; }
    [[nodiscard]] bool clock_is_host() const noexcept override { return false; }
    [[nodiscard]] Result<DeviceClockPair> clock_pair() noexcept override { return DeviceClockPair{1, 2, 3, 4}; }
    [[nodiscard]] Result<Elapsed> duration(const DeviceSpan&) override { return Elapsed{}; }
    [[nodiscard]] Result<double> floor_ns() override { return 0.0; }
    [[nodiscard]] std::vector<Capability> capabilities() const override { return {}; }
    [[nodiscard]] std::size_t in_flight() const noexcept override { return open.size(); }

    std::set<std::uint64_t> open;
    std::map<std::uint64_t, DeviceSpan> done;
    std::uint64_t last = 0;
    bool refuse_begin = false, refuse_end = false, refuse_wait = false, immediately = false;
};

class Collected : public testing::Test {
  protected:
    Collected() {
        writer_ = *recording::Writer::create({}, recording::Metadata{});
        recording::TrackInfo track;
        track.id = queue_track;
        track.kind = recording::TrackKind::device_queue;
        collector_.add(timer_, track);
    }
    /// What the drain does with one round of records; returns the queue's own, in words.
    Words round() {
        for (const auto& [track, records] : recorder_.take_tracks()) {
            collector_.scan({track, 0, records.data(), records.size()});
        }
        EXPECT_TRUE(collector_.collect(*writer_).ok());
        Words list;
        recording::Reader reader = *recording::Reader::from_bytes(writer_->snapshot());
        EXPECT_TRUE(reader
                        .for_each_batch([&](const recording::RecordBatch& batch) {
                            EXPECT_EQ(batch.track, queue_track);
                            for (std::size_t i = 0; i < batch.count; ++i) {
                                list.push_back(words(batch.records[i]));
                            }
                            return true;
                        })
                        .ok());
        return list;
    }

    TestRecorder recorder_;
    HandTimer timer_;
    Queue queue_{&timer_, queue_track};
    DeviceCollector collector_;
    std::unique_ptr<recording::Writer> writer_;
};

TEST_F(Collected, a_scope_has_the_devices_times_and_the_place_it_was_submitted_from) {
    {
        PLUMB_STEP(recorder_, queue_, Phase::decode);
        PLUMB_LAYER(recorder_, 4);
        PLUMB_BRICK(recorder_, queue_, norm, bytes(64));
    }
    EXPECT_TRUE(round().empty()) << "not finished: nothing waits, nothing is made up";
    timer_.done[1] = {500, 530, 0};
    EXPECT_EQ(round(),
              (Words{"context step+1=1 layer+1=5", "work 1 bytes=64", "work 1 flops=none", "work 1 elements=none",
                     "work 1 bytes_per_kv=none", "scope 1 @500 +30 work", "context_end"}));
    EXPECT_EQ(collector_.unresolved(), 0u);
}

// Each scope has its own end: one end for all that is pending would make durations cumulative.
TEST_F(Collected, scopes_collected_together_keep_their_own_ends) {
    for (int i = 0; i < 3; ++i) {
        PLUMB_BRICK(recorder_, queue_, norm);
    }
    timer_.done = {{1, {100, 110, 0}}, {2, {110, 125, 0}}, {3, {125, 126, 0}}};
    Words scopes;
    for (const std::string& word : round()) {
        if (word.rfind("scope", 0) == 0) {
            scopes.push_back(word);
        }
    }
    EXPECT_EQ(scopes, (Words{"scope 1 @100 +10", "scope 1 @110 +15", "scope 1 @125 +1"}));
}

TEST_F(Collected, a_span_that_ends_before_it_begins_is_counted_never_clamped) {
    { PLUMB_BRICK(recorder_, queue_, norm); }
    timer_.done[1] = {500, 400, 0};
    EXPECT_TRUE(round().empty());
    EXPECT_EQ(collector_.unresolved(), 1u);
}

TEST_F(Collected, what_never_finishes_is_counted_as_unresolved) {
    { PLUMB_BRICK(recorder_, queue_, norm); }
    { PLUMB_BRICK(recorder_, queue_, norm); }
    timer_.done[1] = {1, 2, 0};
    (void)round();
    EXPECT_EQ(collector_.unresolved(), 1u);
}

TEST_F(Collected, a_refused_scope_is_dropped_and_counted_and_leaks_no_token) {
    timer_.refuse_begin = true;
    { PLUMB_BRICK(recorder_, queue_, norm); }
    {
        PLUMB_BRICK(recorder_, host, norm);
        PLUMB_LAP(recorder_, queue_, norm);
    }
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 2u);
    timer_.refuse_begin = false;
    timer_.refuse_end = true;
    { PLUMB_BRICK(recorder_, queue_, norm); }
    {
        PLUMB_BRICK(recorder_, host, norm);
        PLUMB_LAP(recorder_, queue_, norm);
    }
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 4u);
    EXPECT_EQ(timer_.in_flight(), 0u);
    EXPECT_EQ(collector_.unresolved(), 0u);
}

TEST_F(Collected, immediate_waits_and_a_failed_wait_is_counted_once) {
    timer_.immediately = true;
    timer_.refuse_wait = true;
    { PLUMB_BRICK(recorder_, queue_, norm); }
    EXPECT_TRUE(round().empty());
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 1u);
    EXPECT_EQ(collector_.unresolved(), 0u);
    EXPECT_EQ(timer_.in_flight(), 0u);
}

TEST_F(Collected, open_across_a_toggle_gives_its_token_back) {
    {
        PLUMB_BRICK(recorder_, queue_, norm);
        PLUMB_LAP(recorder_, queue_, norm);
        recorder_.off();
    }
    EXPECT_EQ(timer_.in_flight(), 0u);
    EXPECT_EQ(recorder_.drops(Drop::across_toggle), 2u);
}

TEST_F(Collected, in_a_full_ring_gives_its_token_back) {
    for (int i = 0; i < 5000; ++i) {
        PLUMB_BRICK(recorder_, queue_, norm);
    }
    const std::uint64_t lost = recorder_.drops(Drop::ring_full);
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(timer_.in_flight() + lost, 5000u);
}

TEST_F(Collected, laps_on_a_queue_share_no_token_and_end_with_their_scope) {
    {
        PLUMB_BRICK(recorder_, host, Brick::attention);
        PLUMB_LAP(recorder_, queue_, norm);
        PLUMB_LAP(recorder_, queue_, Brick::rope_embedding);
    }
    timer_.done = {{1, {10, 20, 0}}, {2, {20, 50, 0}}};
    Words scopes;
    for (const std::string& word : round()) {
        if (word.rfind("scope", 0) == 0) {
            scopes.push_back(word);
        }
    }
    EXPECT_EQ(scopes, (Words{"scope 1 @10 +10 lap", "scope 5 @20 +30 lap"}));
    EXPECT_EQ(timer_.in_flight(), 0u);
}

// sync=none: the device is left alone, and the scope shows what the host spent on it.
TEST_F(Collected, with_host_only_stamps_the_timer_is_never_asked) {
    record::TestOptions options;
    options.stamps.host_only = true;
    TestRecorder host_only(options);
    {
        PLUMB_BRICK(host_only, queue_, norm);
        PLUMB_LAP(host_only, queue_, Brick::rope_embedding);
        host_only.clock.advance(3);
        PLUMB_LAP_END(host_only, queue_);
    }
    host_only.record_device(norm, queue_, DeviceToken{1});
    EXPECT_EQ(timer_.last, 0u);
    EXPECT_EQ(host_only.take(), (Words{"scope 5 @1000 +3 lap", "scope 1 @1000 +3"}));
}

TEST_F(Collected, clock_pairs_of_the_queue_are_written_under_its_own_clock) {
    ASSERT_TRUE(collector_.write_clock_pairs(*writer_).ok());
    recording::Reader reader = *recording::Reader::from_bytes(writer_->snapshot());
    ASSERT_EQ(reader.clock_pairs().size(), 1u);
    EXPECT_EQ(reader.clock_pairs()[0].clock, queue_track);
    EXPECT_EQ(reader.clock_pairs()[0].ticks, 1u);
}

} // namespace
} // namespace plumb::drain
