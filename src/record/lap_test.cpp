// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

// Well-known bricks by id: norm 1, rope_embedding 5, attention 9, activation 14.
constexpr Name rope = Brick::rope_embedding;

TEST(Lap, ends_where_the_next_begins_and_with_its_scope) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        recorder.clock.advance(1);
        PLUMB_LAP(recorder, host, norm);
        recorder.clock.advance(2);
        PLUMB_LAP(recorder, host, rope);
        recorder.clock.advance(4);
    }
    EXPECT_EQ(recorder.take(), (Words{"scope 1 @1001 +2 lap", "scope 5 @1003 +4 lap", "scope 9 @1000 +7"}));
}

TEST(Lap, is_ended_by_lap_end_and_what_follows_belongs_to_nobody) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        PLUMB_LAP(recorder, host, norm);
        recorder.clock.advance(2);
        PLUMB_LAP_END(recorder, host);
        recorder.clock.advance(4);
        PLUMB_LAP_END(recorder, host);
    }
    EXPECT_EQ(recorder.take(), (Words{"scope 1 @1000 +2 lap", "scope 9 @1000 +6"}));
    EXPECT_EQ(recorder.all_drops(), 0u);
}

TEST(Lap, without_an_open_scope_is_refused_and_counted) {
    TestRecorder recorder;
    PLUMB_LAP(recorder, host, norm);
    recorder.clock.advance(2);
    PLUMB_LAP(recorder, host, rope);
    PLUMB_LAP_END(recorder, host);
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::lap_outside_scope), 2u);
}

TEST(Lap, of_a_nested_scope_does_not_disturb_the_outer_one) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        PLUMB_LAP(recorder, host, norm);
        recorder.clock.advance(1);
        {
            PLUMB_BRICK(recorder, host, Brick::activation);
            PLUMB_LAP(recorder, host, rope);
            recorder.clock.advance(2);
        }
        recorder.clock.advance(4);
    }
    EXPECT_EQ(recorder.take(),
              (Words{"scope 5 @1001 +2 lap", "scope 14 @1001 +2", "scope 1 @1000 +7 lap", "scope 9 @1000 +7"}));
}

TEST(Lap, belongs_to_steps_and_layers_too) {
    TestRecorder recorder;
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        PLUMB_LAP(recorder, host, norm);
        recorder.clock.advance(1);
        {
            PLUMB_LAYER(recorder, 3);
            PLUMB_LAP(recorder, host, rope);
            recorder.clock.advance(2);
        }
    }
    EXPECT_EQ(recorder.take(), (Words{"step_begin phase=2 #0 @1000", "layer_begin 3 @1001", "scope 5 @1001 +2 lap",
                                      "layer_end 3 @1001 +2", "scope 1 @1000 +3 lap", "step_end phase=2 @1000 +3"}));
}

TEST(Lap, has_its_own_work) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        PLUMB_LAP(recorder, host, norm, bytes(8));
        PLUMB_LAP(recorder, host, norm);
        PLUMB_LAP(recorder, host, norm, bytes(8));
    }
    EXPECT_EQ(recorder.take(), (Words{"work 1 bytes=8", "work 1 flops=none", "work 1 elements=none",
                                      "work 1 bytes_per_kv=none", "scope 1 @1000 +0 lap work", "scope 1 @1000 +0 lap",
                                      "scope 1 @1000 +0 lap work", "scope 9 @1000 +0"}));
}

TEST(Lap, open_across_a_toggle_is_dropped_and_counted) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        PLUMB_LAP(recorder, host, norm);
        recorder.off();
        PLUMB_LAP(recorder, host, rope);
        recorder.on();
        recorder.clock.advance(5);
        PLUMB_LAP(recorder, host, rope); // ends the first one, which is worth nothing
        recorder.clock.advance(3);
        PLUMB_LAP_END(recorder, host);
    }
    EXPECT_EQ(recorder.take(), Words{"scope 5 @1005 +3 lap"});
    EXPECT_EQ(recorder.drops(Drop::across_toggle), 2u) << "the lap and its scope";
}

TEST(Lap, longer_than_40_bits_is_written_in_full) {
    TestRecorder recorder;
    {
        PLUMB_BRICK(recorder, host, attention);
        PLUMB_LAP(recorder, host, norm);
        recorder.clock.advance(payload_mask + 5);
    }
    const auto all = recorder.take();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0], "long " + std::to_string(payload_mask + 5));
    EXPECT_EQ(all[1], "scope 1 @1000 +" + std::to_string(payload_mask) + " lap");
}

TEST(Lap, on_the_machines_clock_neighbours_share_their_border) {
    TestRecorder recorder(TestOptions{true, 64 * 1024, "", {}});
    {
        PLUMB_BRICK(recorder, host, attention);
        for (int i = 0; i < 100; ++i) {
            PLUMB_LAP(recorder, host, i % 2 == 0 ? norm : rope, bytes(i % 2));
        }
    }
    std::vector<Record> laps;
    for (const auto& [track, all] : recorder.take_tracks()) {
        for (const Record& record : all) {
            if (kind_of(record) == RecordKind::scope && (record.second & flag_lap) != 0) {
                laps.push_back(record);
            }
        }
    }
    ASSERT_EQ(laps.size(), 100u);
    for (std::size_t i = 1; i < laps.size(); ++i) {
        EXPECT_EQ(id_of(laps[i]), i % 2 == 0 ? norm.id : rope.id);
        EXPECT_GE(laps[i].first, laps[i - 1].first + payload_of(laps[i - 1]));
    }
    EXPECT_EQ(recorder.all_drops(), 0u);
}

} // namespace
} // namespace plumb::record
