// SPDX-License-Identifier: Apache-2.0
// Scopes inside command buffers: on a device in virtual time.
#include "backends/vulkan/command_timer.hpp"

#include <vector>

#include "backends/vulkan/bench_testing.hpp"
#include "record/queue_registry.hpp"

namespace plumb::backends::vulkan {
namespace {

class CommandTimerTest : public VulkanBench {};

ScopeLabel label_of_brick(const Recorder& recorder, Brick brick, std::uint16_t layer_plus_one = 0) {
    ScopeLabel label;
    label.recorder = &recorder;
    label.name = Name(brick).id;
    label.layer_plus_one = layer_plus_one;
    return label;
}

TEST_F(CommandTimerTest, F2_scopes_in_a_command_buffer_read_their_dispatches_and_nothing_waits) {
    timer();
    CommandTimer& here = record();
    std::vector<DeviceToken> tokens;
    for (int i = 1; i <= 40; ++i) {
        tokens.push_back(scope(here, 1'000 * i));
    }
    EXPECT_EQ(timer_->collect(tokens.front()).error().code, ErrorCode::pending) << "not submitted yet";
    submit();
    EXPECT_EQ(timer_->collect(tokens.back()).error().code, ErrorCode::pending) << "not finished yet";
    vvk::catch_up();
    for (int i = 1; i <= 40; ++i) {
        EXPECT_NEAR(length_ns(tokens[static_cast<std::size_t>(i - 1)]), 1'000 * i, 2);
    }
    EXPECT_EQ(vvk::waits(), 0u);
    EXPECT_EQ(timer_->in_flight(), 0u);
}

TEST_F(CommandTimerTest, M5_one_reset_is_recorded_for_many_stamps_and_never_one_between_two_scopes_of_a_block) {
    timer();
    CommandTimer& here = record();
    for (int i = 0; i < 10; ++i) {
        scope(here, 1'000);
    }
    EXPECT_EQ(vvk::recorded(commands_, "reset"), 1u);
    EXPECT_EQ(vvk::recorded(commands_, "stamp"), 29u) << "two a scope, and one more where it has a neighbour";
    submit();
    vvk::catch_up();
}

TEST_F(CommandTimerTest, F1_after_close_what_never_ran_is_refused_and_holds_back_nothing_that_did) {
    timer();
    const DeviceToken never = scope(record(), 1'000);
    const vvk::CommandBuffer other = vvk::new_commands();
    vvk::begin(other);
    CommandTimer* const here = timer_->record(other, VulkanUse::once);
    const auto ran = here->begin();
    ASSERT_TRUE(ran.ok());
    vvk::dispatch(other, 2'000);
    ASSERT_TRUE(here->end(*ran).ok());
    vvk::end(other);
    vvk::submit(other);
    vvk::catch_up();
    EXPECT_EQ(timer_->collect(never).error().code, ErrorCode::pending);
    timer_->close();
    EXPECT_EQ(timer_->collect(never).error().code, ErrorCode::unavailable) << "whoever waits in order must go on";
    EXPECT_NEAR(length_ns(*ran), 2'000, 2);
    EXPECT_EQ(timer_->in_flight(), 0u);
}

TEST_F(CommandTimerTest, a_scope_that_ends_in_another_command_buffer_is_read_where_it_began) {
    timer();
    CommandTimer& first = record();
    for (int i = 0; i < 20; ++i) { // more stamps than the other buffer has
        timer_->cancel(scope(first, 100));
    }
    vvk::barrier(commands_);
    const auto token = first.begin();
    ASSERT_TRUE(token.ok());
    vvk::dispatch(commands_, 3'000);
    submit();
    CommandTimer& second = record();
    vvk::barrier(commands_);
    ASSERT_TRUE(second.end(*token).ok());
    submit();
    vvk::catch_up();
    const auto span = timer_->collect(*token);
    ASSERT_TRUE(span.ok()) << span.error().message;
    EXPECT_EQ(span->flags, 0u);
    EXPECT_GE(span->end_ticks - span->begin_ticks, 3'000u);
}

TEST_F(CommandTimerTest, a_scope_cannot_end_in_a_command_buffer_that_runs_again) {
    timer();
    const auto token = record().begin();
    ASSERT_TRUE(token.ok());
    CommandTimer& again = record(VulkanUse::again);
    EXPECT_EQ(again.end(*token).error().code, ErrorCode::not_found);
    timer_->cancel(*token);
    EXPECT_EQ(timer_->in_flight(), 0u);
}

TEST_F(CommandTimerTest, laps_share_the_stamp_at_their_border) {
    timer();
    CommandTimer& here = record();
    const auto first = here.begin_labelled({});
    ASSERT_TRUE(first.ok());
    vvk::dispatch(commands_, 3'000);
    const auto second = here.lap(*first, nullptr, {});
    ASSERT_TRUE(second.ok());
    vvk::dispatch(commands_, 5'000);
    ASSERT_TRUE(here.end(*second).ok());
    EXPECT_EQ(vvk::recorded(commands_, "stamp"), 3u);
    submit();
    vvk::catch_up();
    const auto one = timer_->collect(*first);
    const auto two = timer_->collect(*second);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ(one->end_ticks, two->begin_ticks);
}

TEST_F(CommandTimerTest, neighbours_without_a_barrier_between_them_are_flagged_and_others_are_not) {
    timer();
    CommandTimer& here = record();
    const DeviceToken first = scope(here, 10'000);
    const auto beside = here.begin(); // no barrier: it runs next to the first
    ASSERT_TRUE(beside.ok());
    vvk::dispatch(commands_, 15'000);
    ASSERT_TRUE(here.end(*beside).ok());
    const DeviceToken behind = scope(here, 10'000);
    submit();
    vvk::catch_up();
    const auto a = timer_->collect(first);
    const auto b = timer_->collect(*beside);
    const auto c = timer_->collect(behind);
    ASSERT_TRUE(a.ok() && b.ok() && c.ok());
    EXPECT_EQ(a->flags, 0u);
    EXPECT_EQ(b->flags, span_cut_by_neighbour);
    EXPECT_EQ(b->end_ticks - b->begin_ticks, 5'000u) << "only what it took longer than its neighbour";
    EXPECT_EQ(c->flags, 0u);
}

TEST_F(CommandTimerTest, a_child_lies_inside_its_parent_and_is_no_neighbour_of_it) {
    timer();
    CommandTimer& here = record();
    const auto parent = here.begin();
    const DeviceToken child = scope(here, 4'000);
    ASSERT_TRUE(parent.ok() && here.end(*parent).ok());
    submit();
    vvk::catch_up();
    const auto inner = timer_->collect(child);
    const auto outer = timer_->collect(*parent);
    ASSERT_TRUE(inner.ok() && outer.ok());
    EXPECT_LE(outer->begin_ticks, inner->begin_ticks);
    EXPECT_GE(outer->end_ticks, inner->end_ticks);
    EXPECT_EQ(inner->flags | outer->flags, 0u);
}

TEST_F(CommandTimerTest, queries_go_round_and_an_old_stamp_is_never_taken_for_a_new_one) {
    timer();
    for (int round = 0; round < 500; ++round) { // far more stamps than the pool holds
        CommandTimer& here = round % 2 == 0 ? record() : record(VulkanUse::once, commands_);
        const DeviceToken token = scope(here, 1'000 + round);
        ASSERT_EQ(timer_->collect(token).error().code, ErrorCode::pending) << round;
        submit();
        vvk::catch_up();
        ASSERT_NEAR(length_ns(token), 1'000 + round, 2) << round;
    }
}

TEST_F(CommandTimerTest, command_buffers_that_never_run_are_given_up_by_recording_them_anew_or_by_forgetting_them) {
    timer();
    const DeviceToken never = scope(record(), 1'000);
    record(VulkanUse::once, commands_);
    EXPECT_EQ(timer_->collect(never).error().code, ErrorCode::failed) << "and not pending for ever";
    const DeviceToken forgotten = scope(record(), 1'000);
    timer_->forget(commands_);
    EXPECT_EQ(timer_->collect(forgotten).error().code, ErrorCode::failed);
    EXPECT_EQ(timer_->in_flight(), 0u);
    for (int i = 0; i < 10'000; ++i) { // their queries come back
        const DeviceToken token = scope(record(), 1'000);
        timer_->forget(commands_);
        timer_->cancel(token);
    }
}

TEST_F(CommandTimerTest, command_buffers_without_a_stamp_keep_no_other_from_being_timed) {
    timer();
    ScopeLabel untimed;
    untimed.timed = false;
    const DeviceToken kept = scope(record(), 1'000); // not collected: neither it nor its place goes
    submit();
    for (int step = 0; step < 10'000; ++step) {
        CommandBuffer const commands = vvk::new_commands();
        vvk::begin(commands);
        CommandTimer* const here = timer_->record(commands, VulkanUse::once);
        ASSERT_NE(here, nullptr) << "step " << step;
        const auto token = here->begin_labelled(untimed);
        ASSERT_TRUE(token.ok() && here->end_labelled(*token, nullptr).ok());
        vvk::end(commands);
        vvk::submit(commands);
    }
    const DeviceToken last = scope(record(), 2'000);
    submit();
    vvk::catch_up();
    EXPECT_NEAR(length_ns(kept), 1'000, 2);
    EXPECT_NEAR(length_ns(last), 2'000, 2);
}

TEST_F(CommandTimerTest, M3_what_finds_no_room_is_refused_and_not_cut_off_silently) {
    timer();
    CommandTimer& here = record();
    std::vector<DeviceToken> tokens;
    Result<DeviceToken> token = here.begin();
    while (token) {
        ASSERT_TRUE(here.end(*token).ok());
        tokens.push_back(*token);
        token = here.begin();
    }
    EXPECT_EQ(token.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(tokens.size(), 256u) << "max_in_flight";
    submit();
    vvk::catch_up();
    for (const DeviceToken one : tokens) {
        EXPECT_TRUE(timer_->collect(one).ok());
    }
    EXPECT_TRUE(record().begin().ok());
}

TEST_F(CommandTimerTest, M3_command_buffers_for_which_no_query_is_left_are_refused_and_disturb_no_other) {
    timer();
    std::vector<DeviceToken> tokens;
    std::vector<CommandBuffer> recorded;
    for (int i = 0; i < 200; ++i) {
        CommandTimer& here = record();
        const auto token = here.begin();
        if (!token) {
            EXPECT_EQ(token.error().code, ErrorCode::out_of_memory);
            EXPECT_NE(token.error().message.find("forget()"), std::string::npos);
            break;
        }
        vvk::dispatch(commands_, 1'000 + i);
        ASSERT_TRUE(here.end(*token).ok());
        vvk::end(commands_);
        tokens.push_back(*token);
        recorded.push_back(commands_);
    }
    ASSERT_LT(tokens.size(), 200u);
    for (const CommandBuffer commands : recorded) {
        vvk::submit(commands);
        vvk::catch_up();
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_NEAR(length_ns(tokens[i]), 1'000.0 + static_cast<double>(i), 2);
    }
    EXPECT_TRUE(record().begin().ok()) << "all came back";
}

TEST_F(CommandTimerTest, each_call_fails_once_at_each_use_and_scopes_of_command_buffers_leave_nothing_behind) {
    for (const char* call : {"vkCreateQueryPool", "vkCreateCommandPool", "vkGetQueryPoolResults", "vkWaitForFences",
                             "vkQueueSubmit", "vkGetCalibratedTimestampsEXT"}) {
        for (unsigned use = 1;; ++use) {
            SCOPED_TRACE(std::string(call) + ", use " + std::to_string(use));
            vvk::reset();
            vvk::fail(call, use);
            int errors = 0;
            {
                auto made = VulkanQueueTimer::create(vvk::handles(), [] {
                    TimerOptions options;
                    options.host_clock = &vvk::host_clock();
                    options.max_in_flight = 64;
                    return options;
                }());
                errors += made ? 0 : 1;
                for (int i = 0; made && i < 3; ++i) {
                    commands_ = vvk::new_commands();
                    vvk::begin(commands_);
                    CommandTimer& here = *(*made)->record(commands_, VulkanUse::once);
                    const auto token = here.begin();
                    vvk::dispatch(commands_, 1'000);
                    const bool ended = token && here.end(*token).ok();
                    errors += ended ? 0 : 1;
                    submit();
                    vvk::catch_up();
                    const auto span = ended ? (*made)->collect(*token) : Result<DeviceSpan>(Error{});
                    errors += span ? 0 : 1;
                    if (span) {
                        EXPECT_EQ(span->end_ticks - span->begin_ticks, 1'000u);
                    }
                }
            }
            EXPECT_EQ(vvk::alive(), 0u);
            EXPECT_EQ(vvk::violations(), 0u);
            if (!vvk::has_failed()) {
                break;
            }
            EXPECT_TRUE(errors > 0 || use > 3) << "closing asks once more, and needs no answer";
            ASSERT_LT(use, 1'000u);
        }
    }
}

// --- Command buffers that run again and again ---

class Resubmission : public CommandTimerTest {
  protected:
    Resubmission() {
        timer();
        track_ = record::register_queue(*timer_, "vulkan");
        CommandTimer& here = record(VulkanUse::again);
        scope(here, 3'000, label_of_brick(recorder_, Brick::rms_norm, 1));
        scope(here, 9'000, label_of_brick(recorder_, Brick::attention, 2));
        vvk::end(commands_);
    }
    Status run() {
        const Status told = timer_->submitting(recorder_, commands_, track_);
        vvk::submit(commands_);
        return told;
    }
    /// Tokens that have come into the recording since the last call.
    std::vector<DeviceToken> tokens() {
        std::vector<DeviceToken> list;
        for (const auto& [track, records] : recorder_.take_tracks()) {
            for (const Record& one : records) {
                if (kind_of(one) == RecordKind::device_scope) {
                    list.push_back(DeviceToken{one.first});
                }
            }
        }
        return list;
    }

    plumb::record::TestRecorder recorder_;
    std::uint32_t track_ = 0;
};

TEST_F(Resubmission, M2_each_run_of_a_command_buffer_gives_its_own_scopes) {
    std::uint64_t last = 0;
    for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(run().ok());
        const std::vector<DeviceToken> scopes = tokens();
        ASSERT_EQ(scopes.size(), 2u);
        ASSERT_EQ(timer_->collect(scopes[0]).error().code, ErrorCode::pending) << "the run before is not this one";
        vvk::catch_up();
        const auto norm = timer_->collect(scopes[0]);
        const auto attention = timer_->collect(scopes[1]);
        ASSERT_TRUE(norm.ok() && attention.ok());
        EXPECT_EQ(norm->end_ticks - norm->begin_ticks, 3'000u);
        EXPECT_EQ(attention->end_ticks - attention->begin_ticks, 9'000u);
        EXPECT_GT(norm->begin_ticks, last);
        last = attention->end_ticks;
    }
    EXPECT_EQ(timer_->unread(), 0u);
}

TEST_F(Resubmission, M2_what_nobody_collected_is_read_before_the_next_run_overwrites_it) {
    std::vector<DeviceToken> all;
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(run().ok());
        for (const DeviceToken token : tokens()) {
            all.push_back(token);
        }
        vvk::catch_up();
    }
    ASSERT_EQ(all.size(), 40u);
    std::uint64_t last = 0;
    for (const DeviceToken token : all) {
        const auto span = timer_->collect(token);
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_GE(span->begin_ticks, last);
        last = span->end_ticks;
    }
}

TEST_F(Resubmission, M2_runs_that_overlap_are_unread_and_counted_until_it_is_recorded_anew) {
    ASSERT_TRUE(run().ok());
    const std::vector<DeviceToken> first = tokens();
    EXPECT_EQ(run().error().code, ErrorCode::pending) << "the first run is still in flight";
    EXPECT_TRUE(tokens().empty());
    EXPECT_EQ(timer_->unread(), 4u) << "two scopes of either run";
    vvk::catch_up();
    for (const DeviceToken token : first) {
        EXPECT_EQ(timer_->collect(token).error().code, ErrorCode::failed);
    }
    EXPECT_FALSE(run().ok());
    vvk::catch_up();
    CommandTimer& here = record(VulkanUse::again, commands_);
    scope(here, 5'000, label_of_brick(recorder_, Brick::attention));
    vvk::end(commands_);
    ASSERT_TRUE(run().ok());
    vvk::catch_up();
    const std::vector<DeviceToken> anew = tokens();
    ASSERT_EQ(anew.size(), 1u);
    EXPECT_NEAR(length_ns(anew[0]), 5'000, 2);
}

TEST_F(Resubmission, scopes_come_in_the_step_that_submits_and_in_the_layer_they_were_recorded_in_with_their_work) {
    CommandTimer& here = record(VulkanUse::again, commands_);
    const Work work = make_work(bytes(64));
    const auto token = here.begin_labelled(label_of_brick(recorder_, Brick::attention, 6));
    ASSERT_TRUE(token.ok());
    EXPECT_NE(token->value & token_noted, 0u);
    ASSERT_TRUE(here.end_labelled(*token, &work).ok());
    vvk::end(commands_);
    static_cast<void>(recorder_.take());
    {
        const Step step(recorder_, recorder_.mode(), host, Phase::decode);
        ASSERT_TRUE(run().ok());
    }
    vvk::catch_up();
    std::string all;
    for (const std::string& line : recorder_.take()) {
        all += line + "\n";
    }
    EXPECT_NE(all.find("step_begin"), std::string::npos) << all;
    EXPECT_NE(all.find("context step+1=1 layer+1=6"), std::string::npos) << all;
    EXPECT_NE(all.find("bytes=64"), std::string::npos) << all;
    EXPECT_NE(all.find("device_scope"), std::string::npos) << all;
}

TEST_F(Resubmission, a_scope_of_a_recording_that_was_given_up_stamps_nothing_in_the_next_one) {
    const auto stale = record(VulkanUse::again, commands_).begin_labelled(label_of_brick(recorder_, Brick::rms_norm));
    ASSERT_TRUE(stale.ok());
    timer_->forget(commands_);
    CommandTimer& here = record(VulkanUse::again, commands_);
    const auto open = here.begin_labelled(label_of_brick(recorder_, Brick::attention));
    ASSERT_TRUE(open.ok());
    const std::size_t stamps = vvk::recorded(commands_, "stamp");
    EXPECT_EQ(here.end_labelled(*stale, nullptr).error().code, ErrorCode::not_found);
    EXPECT_EQ(vvk::recorded(commands_, "stamp"), stamps);
    ASSERT_TRUE(here.end_labelled(*open, nullptr).ok());
    vvk::end(commands_);
}

TEST_F(Resubmission, a_run_of_a_step_that_is_not_timed_leaves_no_scopes_and_does_not_disturb_the_next) {
    recorder_.off();
    ASSERT_TRUE(run().ok());
    vvk::catch_up();
    recorder_.on();
    EXPECT_TRUE(tokens().empty());
    ASSERT_TRUE(run().ok());
    const std::vector<DeviceToken> scopes = tokens();
    ASSERT_EQ(scopes.size(), 2u);
    EXPECT_EQ(timer_->collect(scopes[0]).error().code, ErrorCode::pending);
    vvk::catch_up();
    EXPECT_NEAR(length_ns(scopes[0]), 3'000, 2);
}

TEST_F(Resubmission, a_command_buffer_that_was_recorded_for_once_and_runs_twice_is_an_error) {
    record(VulkanUse::once);
    submit();
    EXPECT_TRUE(timer_->submitting(recorder_, commands_, track_).ok());
    EXPECT_EQ(timer_->submitting(recorder_, commands_, track_).error().code, ErrorCode::invalid_argument);
}

} // namespace
} // namespace plumb::backends::vulkan
