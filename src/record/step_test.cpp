// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

TEST(Step, appears_when_it_begins_with_what_it_declares_and_is_closed_by_its_end) {
    TestRecorder recorder;
    {
        PLUMB_STEP(recorder, host, Phase::decode, kv_length(17), tokens(4), sequences(2));
        EXPECT_EQ(recorder.take(),
                  (Words{"step_begin phase=2 #0 @1000", "step_value 2=4", "step_value 3=2", "step_value 4=17"}));
        recorder.clock.advance(9);
    }
    { PLUMB_STEP(recorder, host, Phase::prefill, tokens(64)); }
    EXPECT_EQ(recorder.take(), (Words{"step_end phase=2 @1000 +9", "step_begin phase=1 #1 @1009", "step_value 1=64",
                                      "step_end phase=1 @1009 +0"}))
        << "tokens of a prefill step are prefill tokens, and no id is used twice";
}

TEST(Step, a_mixed_step_declares_both_kinds_of_tokens) {
    TestRecorder recorder;
    { PLUMB_STEP(recorder, host, Phase::mixed, prefill_tokens(7), decode_tokens(3)); }
    EXPECT_EQ(recorder.take(),
              (Words{"step_begin phase=3 #0 @1000", "step_value 1=7", "step_value 2=3", "step_end phase=3 @1000 +0"}));
}

TEST(Step, is_told_how_long_its_kernels_ran_while_it_is_open) {
    TestRecorder recorder;
    PLUMB_STEP_KERNELS(recorder, 1U, 2U);
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        PLUMB_STEP_KERNELS(recorder, 700U, 900U);
        PLUMB_STEP_KERNELS(recorder, 700U, std::uint64_t{1} << 32); // more than a record can say
        PLUMB_STEP_KERNELS(recorder, std::uint64_t{1} << 32, 900U);
        PLUMB_STEP_KERNELS(recorder, 901U, 900U); // they cannot run for longer than it took
        recorder.off();
        PLUMB_STEP_KERNELS(recorder, 1U, 2U);
        recorder.on();
    }
    EXPECT_EQ(recorder.take(),
              (Words{"step_begin phase=2 #0 @1000", "step_value 5=700", "step_value 6=900", "mark 2"}));
}

TEST(Step, samples_cpu_time_where_a_gap_lies_before_it_or_the_last_sample_is_old) {
    TestRecorder recorder;
    { PLUMB_STEP(recorder, host, Phase::decode); }
    EXPECT_EQ(recorder.take(true).front(), "cpu_time @1000 0") << "the beginning of this thread's account";
    recorder.clock.advance(long_ticks - 1);
    { PLUMB_STEP(recorder, host, Phase::decode); }
    const std::string soon = std::to_string(1000 + long_ticks - 1);
    EXPECT_EQ(recorder.take(true), (Words{"step_begin phase=2 #1 @" + soon, "step_end phase=2 @" + soon + " +0"}))
        << "steps shorter than a sample is worth share one";
    recorder.clock.advance(long_ticks);
    { PLUMB_STEP(recorder, host, Phase::decode); }
    const std::string late = std::to_string(1000 + 2 * long_ticks - 1);
    EXPECT_EQ(recorder.take(true).front(), "cpu_time @" + late + " 0") << "after a gap";
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        recorder.clock.advance(2 * sample_ticks);
    }
    EXPECT_EQ(recorder.take(true).back(),
              "cpu_time @" + std::to_string(1000 + 2 * long_ticks + 2 * sample_ticks - 1) + " 0")
        << "the last sample is old";
}

TEST(Step, open_across_a_toggle_is_marked_as_cut_and_counted) {
    TestRecorder recorder;
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        {
            PLUMB_LAYER(recorder, 1);
            recorder.off();
            recorder.clock.advance(5);
        }
        recorder.on();
    }
    EXPECT_EQ(recorder.take(), (Words{"step_begin phase=2 #0 @1000", "layer_begin 1 @1000", "mark 3", "mark 2"}));
    EXPECT_EQ(recorder.drops(Drop::across_toggle), 2u);
    { PLUMB_STEP(recorder, host, Phase::decode); }
    EXPECT_EQ(recorder.take().size(), 2u);
}

TEST(Step, whose_clock_goes_back_is_marked_as_cut_and_counted) {
    TestRecorder recorder;
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        PLUMB_LAYER(recorder, 1);
        recorder.clock.set(1);
    }
    EXPECT_EQ(recorder.take(), (Words{"step_begin phase=2 #0 @1000", "layer_begin 1 @1000", "mark 3", "mark 2"}));
    EXPECT_EQ(recorder.drops(Drop::negative_span), 2u);
}

TEST(Step, context_carries_step_and_layer_to_another_thread) {
    TestRecorder recorder;
    PLUMB_STEP(recorder, host, Phase::decode);
    PLUMB_LAYER(recorder, 7);
    const Context context = recorder.context();
    (void)recorder.take();
    std::thread([&] {
        PLUMB_CONTEXT(recorder, context);
        EXPECT_EQ(recorder.context().step_plus_one, context.step_plus_one);
        PLUMB_BRICK(recorder, host, Brick::rms_norm);
    }).join();
    EXPECT_EQ(recorder.take(), (Words{"context step+1=1 layer+1=8", "scope 1 @1000 +0", "context_end"}));
}

TEST(Step, context_is_that_of_the_innermost_and_returns_to_the_outer) {
    TestRecorder recorder;
    EXPECT_EQ(recorder.context().step_plus_one, 0u);
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        EXPECT_EQ(recorder.context().step_plus_one, 1u);
        EXPECT_EQ(recorder.context().layer_plus_one, 0u);
        {
            PLUMB_LAYER(recorder, 2);
            EXPECT_EQ(recorder.context().layer_plus_one, 3u);
            {
                PLUMB_CONTEXT(recorder, Context{});
                EXPECT_EQ(recorder.context().step_plus_one, 0u);
            }
            EXPECT_EQ(recorder.context().layer_plus_one, 3u);
        }
        EXPECT_EQ(recorder.context().layer_plus_one, 0u);
    }
    EXPECT_EQ(recorder.context().step_plus_one, 0u);
}

TEST(Step, too_deep_is_dropped_and_counted) {
    TestRecorder recorder;
    std::vector<std::unique_ptr<Layer>> open;
    for (unsigned i = 0; i < max_depth + 2; ++i) {
        open.push_back(std::make_unique<Layer>(recorder, recorder.mode(), i));
    }
    open.clear();
    EXPECT_EQ(recorder.drops(Drop::too_deep), 2u);
    EXPECT_EQ(recorder.thread()->depth, 0u);
    EXPECT_EQ(recorder.take().size(), 2 * max_depth);
}

TEST(Step, a_layer_whose_index_no_record_can_hold_is_none_and_counted) {
    TestRecorder recorder;
    { PLUMB_LAYER(recorder, 65534); }
    { PLUMB_LAYER(recorder, 65535); }
    { PLUMB_LAYER(recorder, 65536); }
    { PLUMB_LAYER(recorder, -1); }
    {
        PLUMB_LAYER(recorder, 3);
        PLUMB_LAYER(recorder, std::uint64_t{1} << 32);
        EXPECT_EQ(recorder.context().layer_plus_one, 4u);
    }
    EXPECT_EQ(recorder.drops(Drop::layer_beyond), 4u);
    EXPECT_EQ(recorder.thread()->depth, 0u);
    EXPECT_EQ(recorder.take().size(), 4u);
}

// A ring that is full inside a step must not leave the step open for ever: all later records would belong to it.
TEST(Step, in_a_full_ring_finds_room_for_its_end) {
    TestRecorder recorder(TestOptions{false, 4096, "", {}});
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        {
            PLUMB_LAYER(recorder, 5);
            PLUMB_CONTEXT(recorder, Context{});
            for (int i = 0; i < 1000; ++i) {
                PLUMB_BRICK(recorder, host, Brick::rms_norm);
            }
            recorder.clock.advance(payload_mask + 1);
        }
    }
    const auto all = recorder.take();
    ASSERT_GE(all.size(), 5u);
    const std::vector<std::string> end(all.end() - 5, all.end());
    EXPECT_EQ(end[0], "context_end");
    EXPECT_EQ(end[1].rfind("long ", 0), 0u);
    EXPECT_EQ(end[2].rfind("layer_end 5", 0), 0u);
    EXPECT_EQ(end[3].rfind("long ", 0), 0u);
    EXPECT_EQ(end[4].rfind("step_end", 0), 0u);
    EXPECT_GT(recorder.drops(Drop::ring_full), 0u);
}

TEST(Step, that_finds_no_room_to_begin_has_no_end_either) {
    TestRecorder recorder(TestOptions{false, 4096, "", {}});
    for (int i = 0; i < 1000; ++i) {
        PLUMB_BRICK(recorder, host, Brick::rms_norm);
    }
    const std::uint64_t before = recorder.drops(Drop::ring_full);
    {
        PLUMB_STEP(recorder, host, Phase::decode);
        PLUMB_LAYER(recorder, 1);
        PLUMB_CONTEXT(recorder, Context{});
        (void)recorder.take(); // room again, too late for the beginnings
    }
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_GE(recorder.drops(Drop::ring_full), before + 3);
}

TEST(Step, any_number_of_open_layers_in_a_full_ring_all_find_their_ends) {
    TestRecorder recorder(TestOptions{false, 1024, "", {}}); // 64 records
    std::vector<std::unique_ptr<Layer>> open;
    for (unsigned i = 0; i < max_depth; ++i) {
        open.push_back(std::make_unique<Layer>(recorder, recorder.mode(), i));
        { PLUMB_BRICK(recorder, host, Brick::rms_norm); }
    }
    while (!open.empty()) {
        open.pop_back();
    }
    int begun = 0;
    int ended = 0;
    for (const std::string& word : recorder.take()) {
        begun += word.rfind("layer_begin", 0) == 0 ? 1 : 0;
        ended += word.rfind("layer_end", 0) == 0 ? 1 : 0;
    }
    EXPECT_GT(begun, 0);
    EXPECT_EQ(begun, ended);
    EXPECT_EQ(recorder.thread()->reserved, 0u);
}

} // namespace
} // namespace plumb::record
