// SPDX-License-Identifier: Apache-2.0
// push_…() and pop_scope(): the same records as the objects leave.
#include <gtest/gtest.h>

#include <thread>

#include "record/recorder_testing.hpp"
#include "record/scope_stack.hpp"

namespace plumb::record {
namespace {

TEST(ScopeStack, leaves_the_same_records_as_the_macros) {
    TestRecorder pushed, made;
    pushed.push_step(host, Phase::decode, tokens(2), kv_length(9));
    pushed.push_layer(3);
    pushed.push_scope(host, norm, bytes(8), flops(4));
    pushed.clock.advance(5);
    pushed.pop_scope();
    pushed.push_scope(host, Brick::attention);
    pushed.clock.advance(7);
    for (int i = 0; i < 3; ++i) {
        pushed.pop_scope();
    }
    {
        PLUMB_STEP(made, host, Phase::decode, tokens(2), kv_length(9));
        PLUMB_LAYER(made, 3);
        {
            PLUMB_BRICK(made, host, norm, bytes(8), flops(4));
            made.clock.advance(5);
        }
        PLUMB_BRICK(made, host, Brick::attention);
        made.clock.advance(7);
    }
    EXPECT_EQ(pushed.take(), made.take());
    EXPECT_EQ(pushed.all_drops(), 0u);
}

TEST(ScopeStack, a_pushed_context_is_the_step_and_layer_until_its_pop) {
    TestRecorder pushed, made;
    push_context(pushed, {4, 2});
    pushed.push_scope(host, norm);
    EXPECT_EQ(pushed.context().layer_plus_one, 2u);
    EXPECT_TRUE(pop_scope(pushed));
    EXPECT_TRUE(pop_scope(pushed));
    EXPECT_EQ(pushed.context().step_plus_one, 0u);
    {
        PLUMB_CONTEXT(made, (Context{4, 2}));
        PLUMB_BRICK(made, host, norm);
    }
    EXPECT_EQ(pushed.take(), made.take());
}

TEST(ScopeStack, work_known_late_is_that_of_the_innermost_scope_and_nothing_else_takes_it) {
    TestRecorder pushed, made;
    EXPECT_FALSE(set_pushed_work(pushed, make_work(bytes(1))));
    pushed.push_scope(host, norm, flops(4));
    EXPECT_TRUE(set_pushed_work(pushed, make_work(bytes(8))));
    pushed.push_layer(0);
    EXPECT_FALSE(set_pushed_work(pushed, make_work(bytes(2))));
    EXPECT_TRUE(pop_scope(pushed));
    EXPECT_TRUE(pop_scope(pushed));
    EXPECT_FALSE(pop_scope(pushed));
    pushed.off();
    push_context(pushed, {4, 2});
    EXPECT_TRUE(set_pushed_work(pushed, make_work(bytes(1))));
    EXPECT_TRUE(pop_scope(pushed));
    {
        PLUMB_BRICK(made, host, norm, bytes(8));
        PLUMB_LAYER(made, 0);
    }
    EXPECT_EQ(pushed.take(), made.take());
}

TEST(ScopeStack, mixes_with_objects_and_laps) {
    TestRecorder recorder;
    recorder.push_scope(host, norm);
    {
        PLUMB_BRICK(recorder, host, Brick::attention);
        recorder.clock.advance(2);
    }
    PLUMB_LAP(recorder, host, Brick::rope_embedding);
    recorder.clock.advance(3);
    recorder.pop_scope();
    EXPECT_EQ(recorder.take(), (Words{"scope 9 @1000 +2", "scope 5 @1002 +3 lap", "scope 1 @1000 +5"}));
}

TEST(ScopeStack, a_pop_with_nothing_to_end_is_counted) {
    TestRecorder recorder;
    recorder.pop_scope();
    recorder.push_scope(host, norm);
    recorder.pop_scope();
    recorder.pop_scope();
    EXPECT_EQ(recorder.take().size(), 1u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 2u);
}

TEST(ScopeStack, each_thread_has_its_own) {
    TestRecorder recorder;
    recorder.push_scope(host, norm);
    std::thread([&] { recorder.pop_scope(); }).join();
    recorder.pop_scope();
    EXPECT_EQ(recorder.take(), Words{"scope 1 @1000 +0"});
    EXPECT_EQ(recorder.drops(Drop::bad_token), 1u);
}

// What was pushed while off is on no stack, so its pop must not end what lies below.
TEST(ScopeStack, open_across_a_toggle_is_dropped_and_counted_and_no_pop_ends_another_scope) {
    TestRecorder recorder;
    recorder.push_scope(host, norm); // open across the toggle
    recorder.off();
    recorder.push_scope(host, Brick::attention);
    recorder.on();
    recorder.pop_scope(); // of attention: ends nothing that was recorded
    recorder.push_scope(host, Brick::lm_head);
    recorder.clock.advance(4);
    recorder.pop_scope();
    recorder.pop_scope(); // of norm
    EXPECT_EQ(recorder.take(), Words{"scope 18 @1000 +4"});
    EXPECT_EQ(recorder.drops(Drop::across_toggle), 1u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 2u);
    EXPECT_EQ(recorder.thread()->depth, 0u);
}

TEST(ScopeStack, a_step_open_across_a_toggle_is_open_no_more) {
    TestRecorder recorder;
    recorder.push_step(host, Phase::decode);
    recorder.push_layer(3);
    EXPECT_NE(recorder.context().step_plus_one, 0u);
    recorder.off();
    recorder.on();
    EXPECT_EQ(recorder.context().step_plus_one, 0u) << "before anything else of this thread";
    EXPECT_EQ(recorder.context().layer_plus_one, 0u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 0u);
}

TEST(ScopeStack, deeper_than_its_bound_is_counted_and_stays_paired) {
    TestRecorder recorder;
    for (unsigned i = 0; i < max_depth + 3; ++i) {
        recorder.push_scope(host, norm);
    }
    for (unsigned i = 0; i < max_depth + 3; ++i) {
        recorder.pop_scope();
    }
    EXPECT_EQ(recorder.take().size(), max_depth);
    EXPECT_EQ(recorder.drops(Drop::too_deep), 3u);
    EXPECT_EQ(recorder.drops(Drop::bad_token), 0u);
}

} // namespace
} // namespace plumb::record
