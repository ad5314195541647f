// SPDX-License-Identifier: Apache-2.0
// PLUMB_OP: what it records, what it hands over, and when.
#include <gtest/gtest.h>

#include "plumb/op.hpp"
#include "record/recorder_testing.hpp"
#include "record/tensor_sink.hpp"

namespace plumb::record {
namespace {

/// Notes what it is handed, between the clock's ticks.
struct Sink final : TensorSink {
    explicit Sink(const HandClock& of) : clock(of) {}
    void take(const TensorCall& call) noexcept override {
        seen.push_back(std::string(call.role == TensorRole::input ? "in " : "out ") + std::to_string(call.name.id) +
                       " " + std::to_string(call.tensor->count()) + " @" + std::to_string(clock.now_ticks()) +
                       (call.tags.logits ? " logits" : "") +
                       (call.tags.position >= 0 ? " position " + std::to_string(call.tags.position) : ""));
    }
    const HandClock& clock;
    Words seen;
};

struct Op : testing::Test {
    TestRecorder recorder;
    Sink sink{recorder.clock};
    float values[4] = {};
    int made = 0; // tensors described
    Tensor row(std::size_t count) {
        ++made;
        return tensor(values, DType::f32, {1, count});
    }
    void look_at_tensors() {
        recorder.off();
        RecorderAccess::connect_tensors(recorder, &sink);
        recorder.on();
    }
    ~Op() override { RecorderAccess::connect_tensors(recorder, nullptr); }
};

TEST_F(Op, inputs_are_handed_over_before_the_block_and_outputs_after_it_in_their_order) {
    look_at_tensors();
    PLUMB_OP(recorder, host, Brick::attention, out(row(3), logits), in(row(1)), bytes(64), out(row(4)),
             in(row(2), position(7))) {
        recorder.clock.advance(5);
        EXPECT_EQ(sink.seen, (Words{"in 9 1 @1000", "in 9 2 @1000 position 7"}));
    }
    EXPECT_EQ(sink.seen, (Words{"in 9 1 @1000", "in 9 2 @1000 position 7", "out 9 3 @1005 logits", "out 9 4 @1005"}));
    EXPECT_EQ(recorder.take().back(), "scope 9 @1000 +5 work");
}

TEST_F(Op, what_is_recorded_is_what_a_brick_records) {
    PLUMB_OP(recorder, host, Brick::attention, in(row(1)), out(row(2))) { recorder.clock.advance(5); }
    EXPECT_EQ(recorder.take(), (Words{"scope 9 @1000 +5"}));
    { PLUMB_BRICK(recorder, host, Brick::attention, bytes(64), flops(2)); }
    const Words brick = recorder.take();
    { PLUMB_BRICK(recorder, host, Brick::rms_norm); }
    recorder.take();
    PLUMB_OP(recorder, host, Brick::attention, flops(2), in(row(1)), bytes(64)) {}
    EXPECT_EQ(recorder.take(), (Words{brick.back()})) << "the same work is not written again";
    EXPECT_EQ(sink.seen, Words{});
}

TEST_F(Op, a_collective_says_its_group_and_sequence_as_a_brick_does) {
    { PLUMB_BRICK(recorder, host, Brick::all_reduce, group(Brick::attention), sequence(3)); }
    const Words brick = recorder.take();
    EXPECT_EQ(brick.size(), 2u);
    PLUMB_OP(recorder, host, Brick::all_reduce, in(row(1)), group(Brick::attention), out(row(2)), sequence(3)) {}
    EXPECT_EQ(recorder.take(), brick);
}

TEST_F(Op, the_block_runs_once_and_its_arguments_are_not_evaluated_while_it_is_off) {
    recorder.off();
    int runs = 0;
    PLUMB_OP(recorder, host, "off of op_test", in(row(1)), out(row(2))) { ++runs; }
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(made, 0);
    EXPECT_EQ(recorder.take(), Words{});
}

int left_early(Op& op, TestRecorder& recorder) {
    for (int turn = 0; turn < 5; ++turn) {
        PLUMB_OP(recorder, host, Brick::rms_norm, out(op.row(static_cast<std::size_t>(turn) + 1))) {
            if (turn == 0) {
                continue;
            }
            if (turn == 1) {
                break;
            }
        }
        return -1;
    }
    PLUMB_OP(recorder, host, Brick::attention, out(op.row(4))) { return 1; }
    return -1;
}

TEST_F(Op, a_block_may_be_left_by_continue_break_and_return) {
    look_at_tensors();
    EXPECT_EQ(left_early(*this, recorder), 1);
    EXPECT_EQ(recorder.take(), (Words{"scope 1 @1000 +0", "scope 1 @1000 +0", "scope 9 @1000 +0"}));
    EXPECT_EQ(sink.seen, (Words{"out 1 1 @1000", "out 1 2 @1000", "out 9 4 @1000"}));
}

TEST_F(Op, operations_nest) {
    look_at_tensors();
    PLUMB_OP(recorder, host, Brick::attention, out(row(1))) {
        PLUMB_OP(recorder, host, Brick::rms_norm, out(row(2))) { recorder.clock.advance(1); }
    }
    EXPECT_EQ(sink.seen, (Words{"out 1 2 @1001", "out 9 1 @1001"}));
}

} // namespace
} // namespace plumb::record
