// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/thread_ranges.hpp"

#include <cmath>
#include <gtest/gtest.h>

#include "attach/nvtx/open_starts.hpp"
#include "base/layout.hpp"
#include "plumb/plumb.hpp"

namespace plumb::attach::nvtx {
namespace {

KnownRange brick(Name name, std::int32_t layer = no_layer, RangePayload payload = RangePayload::none) {
    KnownRange known;
    known.bits = pack(RecordKind::scope, name.id);
    known.layer = layer;
    known.payload = payload;
    return known;
}

Attributes with_payload(double value) {
    Attributes made{};
    made.size = sizeof made;
    made.payload_type = static_cast<std::int32_t>(PayloadType::f64);
    made.payload.f64 = value;
    return made;
}

class Ranges : public testing::Test {
  protected:
    [[nodiscard]] Report report() {
        EXPECT_TRUE(profiler_.flush().ok());
        return *profiler_.snapshot();
    }
    [[nodiscard]] static const Row* row(const Report& report, const std::string& brick) {
        for (const Row& found : report.bricks) {
            if (found.key.name == brick) {
                return &found;
            }
        }
        return nullptr;
    }
    [[nodiscard]] static std::uint64_t dropped(const Report& report) {
        std::uint64_t sum = 0;
        for (const LossRow& loss : report.losses) {
            sum += loss.count;
        }
        return sum;
    }

    KnownRange norm_ = brick(Brick::rms_norm);
    KnownRange attention_ = brick(Brick::attention);
    KnownRange layer_ = [] {
        KnownRange known;
        known.kind = RangeKind::layer;
        known.layer = 3;
        return known;
    }();
    KnownRange step_ = [] {
        KnownRange known;
        known.kind = RangeKind::step;
        known.phase = Phase::decode;
        known.step.decode_tokens = 1;
        return known;
    }();
    Profiler profiler_{Config::parse("on,out=none,warmup=0")};
    ThreadRanges ranges_{profiler_};
};

TEST_F(Ranges, a_range_is_a_scope_in_the_step_and_layer_around_it) {
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(ranges_.push(0, step_, nullptr), 0);
        EXPECT_EQ(ranges_.push(0, layer_, nullptr), 1);
        EXPECT_EQ(ranges_.push(0, norm_, nullptr), 2);
        EXPECT_EQ(ranges_.pop(0), 2);
        EXPECT_EQ(ranges_.pop(0), 1);
        EXPECT_EQ(ranges_.pop(0), 0);
    }
    const Report found = report();
    ASSERT_EQ(found.phases.size(), 1U);
    EXPECT_EQ(found.phases[0].phase, Phase::decode);
    EXPECT_EQ(found.phases[0].steps, 12U);
    const Row* norm = row(found, "rms_norm");
    ASSERT_NE(norm, nullptr);
    EXPECT_EQ(norm->calls_per_step, 1);
    EXPECT_EQ(profiler_.context().step_plus_one, 0U);
    EXPECT_EQ(profiler_.context().layer_plus_one, 0U);
    EXPECT_EQ(ranges_.counts().ranges, 36U);
    EXPECT_EQ(ranges_.counts().never_ended, 0U);
}

TEST_F(Ranges, a_brick_of_a_layer_that_is_not_open_opens_it) {
    const KnownRange known = brick(Brick::down_projection, 5);
    (void)ranges_.push(0, known, nullptr);
    EXPECT_EQ(profiler_.context().layer_plus_one, 6U);
    (void)ranges_.push(0, known, nullptr);
    EXPECT_EQ(profiler_.context().layer_plus_one, 6U);
    (void)ranges_.pop(0);
    EXPECT_EQ(profiler_.context().layer_plus_one, 6U);
    (void)ranges_.pop(0);
    EXPECT_EQ(profiler_.context().layer_plus_one, 0U);
}

TEST_F(Ranges, a_step_inside_a_step_is_a_part_of_it) {
    (void)ranges_.push(0, step_, nullptr);
    const Context outer = profiler_.context();
    (void)ranges_.push(0, step_, nullptr);
    EXPECT_EQ(profiler_.context().step_plus_one, outer.step_plus_one);
    (void)ranges_.pop(0);
    EXPECT_EQ(profiler_.context().step_plus_one, outer.step_plus_one);
    (void)ranges_.pop(0);
    EXPECT_EQ(profiler_.context().step_plus_one, 0U);
    EXPECT_EQ(report().phases.at(0).steps, 1U);
}

TEST_F(Ranges, each_domain_has_its_own_nesting) {
    EXPECT_EQ(ranges_.push(1, norm_, nullptr), 0);
    EXPECT_EQ(ranges_.push(2, attention_, nullptr), 0);
    EXPECT_EQ(ranges_.push(1, norm_, nullptr), 1);
    EXPECT_EQ(ranges_.pop(2), 0) << "its own, although another began later";
    EXPECT_EQ(ranges_.pop(1), 1);
    EXPECT_EQ(ranges_.pop(1), 0);
    EXPECT_EQ(ranges_.pop(1), no_level);
    const Report found = report();
    EXPECT_EQ(row(found, "rms_norm")->time.count, 2U);
    EXPECT_EQ(row(found, "attention")->time.count, 1U);
    EXPECT_EQ(ranges_.counts().never_begun, 1U);
    EXPECT_EQ(ranges_.counts().never_ended, 0U);
}

TEST_F(Ranges, a_step_that_ends_before_what_began_in_it_ends_the_layers_in_it_first) {
    (void)ranges_.push(1, step_, nullptr);
    (void)ranges_.push(2, layer_, nullptr);
    (void)ranges_.push(2, norm_, nullptr);
    EXPECT_EQ(ranges_.pop(1), 0);
    EXPECT_EQ(profiler_.context().step_plus_one, 0U);
    EXPECT_EQ(profiler_.context().layer_plus_one, 0U);
    EXPECT_EQ(ranges_.pop(2), 1);
    EXPECT_EQ(ranges_.pop(2), 0);
    const Report found = report();
    EXPECT_EQ(found.phases.at(0).steps, 1U);
    EXPECT_EQ(row(found, "rms_norm")->time.count, 1U);
}

TEST_F(Ranges, M3_a_thread_that_only_pushes_keeps_its_newest_right_and_counts_the_others) {
    constexpr std::uint64_t lone = 1'000'000;
    for (std::uint64_t i = 0; i < lone; ++i) {
        (void)ranges_.push(0, attention_, nullptr);
    }
    (void)ranges_.push(0, norm_, nullptr);
    EXPECT_GE(ranges_.pop(0), 0);
    EXPECT_EQ(ranges_.counts().ranges, lone + 1);
    EXPECT_EQ(ranges_.counts().never_ended, lone);
    const Report found = report();
    EXPECT_EQ(row(found, "rms_norm")->time.count, 1U);
    EXPECT_EQ(row(found, "attention"), nullptr) << "nothing is known of how long they took";
}

TEST_F(Ranges, a_million_pops_too_many_end_nothing_and_are_counted) {
    for (int i = 0; i < 1'000'000; ++i) {
        EXPECT_EQ(ranges_.pop(0), no_level);
    }
    EXPECT_EQ(ranges_.counts().never_begun, 1'000'000U);
    EXPECT_EQ(ranges_.counts().ranges, 0U);
    EXPECT_TRUE(report().bricks.empty());
}

TEST_F(Ranges, a_step_that_is_given_up_for_newer_ones_is_ended) {
    (void)ranges_.push(0, step_, nullptr);
    for (unsigned i = 0; i < ThreadRanges::most_open; ++i) {
        (void)ranges_.push(0, norm_, nullptr);
    }
    EXPECT_EQ(profiler_.context().step_plus_one, 0U);
    for (unsigned i = 0; i < ThreadRanges::most_open; ++i) {
        EXPECT_GE(ranges_.pop(0), 0);
    }
    EXPECT_EQ(ranges_.pop(0), no_level);
    EXPECT_EQ(row(report(), "rms_norm")->time.count, ThreadRanges::most_open);
}

TEST_F(Ranges, the_payload_means_what_the_rule_says) {
    const KnownRange known = brick(Brick::kv_append, no_layer, RangePayload::bytes);
    const Attributes attributes = with_payload(4096);
    (void)ranges_.push(0, known, &attributes);
    (void)ranges_.pop(0);
    (void)ranges_.push(0, norm_, &attributes); // of which no rule says what its payload is
    (void)ranges_.pop(0);
    const Attributes impossible = with_payload(-1);
    (void)ranges_.push(0, brick(Brick::sampling, no_layer, RangePayload::flops), &impossible);
    (void)ranges_.pop(0);
    const Report found = report();
    EXPECT_TRUE(row(found, "kv_append")->bytes_per_call.value.has_value());
    EXPECT_EQ(*row(found, "kv_append")->bytes_per_call.value, 4096);
    EXPECT_FALSE(row(found, "rms_norm")->bytes_per_call.value.has_value());
    EXPECT_FALSE(row(found, "sampling")->flops_per_call.value.has_value());
}

TEST_F(Ranges, a_payload_may_be_the_layer_or_what_a_step_holds) {
    KnownRange layer;
    layer.kind = RangeKind::layer;
    layer.payload = RangePayload::layer;
    Attributes attributes = with_payload(9);
    (void)ranges_.push(0, layer, &attributes);
    EXPECT_EQ(profiler_.context().layer_plus_one, 10U);
    (void)ranges_.pop(0);
    attributes.payload.f64 = 1e9;
    (void)ranges_.push(0, layer, &attributes);
    EXPECT_EQ(profiler_.context().layer_plus_one, 0U) << "no layer has that number";
    (void)ranges_.pop(0);
    KnownRange step = step_;
    step.payload = RangePayload::decode;
    attributes.payload.f64 = 17;
    (void)ranges_.push(0, step, &attributes);
    (void)ranges_.pop(0);
    EXPECT_EQ(report().phases.at(0).tokens, 17U);
}

TEST_F(Ranges, every_type_of_payload_is_read) {
    Attributes attributes{};
    EXPECT_TRUE(std::isnan(payload_of(nullptr)));
    EXPECT_TRUE(std::isnan(payload_of(&attributes)));
    const auto as = [&attributes](PayloadType type) {
        attributes.payload_type = static_cast<std::int32_t>(type);
        return payload_of(&attributes);
    };
    attributes.payload.u64 = 7;
    EXPECT_EQ(as(PayloadType::u64), 7);
    attributes.payload.i64 = -7;
    EXPECT_EQ(as(PayloadType::i64), -7);
    attributes.payload.f64 = 0.5;
    EXPECT_EQ(as(PayloadType::f64), 0.5);
    attributes.payload.u32 = 8;
    EXPECT_EQ(as(PayloadType::u32), 8);
    attributes.payload.i32 = -8;
    EXPECT_EQ(as(PayloadType::i32), -8);
    attributes.payload.f32 = 0.25F;
    EXPECT_EQ(as(PayloadType::f32), 0.25);
    EXPECT_TRUE(std::isnan(as(static_cast<PayloadType>(0x7FBD0009)))) << "one of a later NVTX";
}

TEST_F(Ranges, nothing_is_recorded_while_recording_is_off_and_what_is_open_across_it_is_dropped) {
    (void)ranges_.push(0, norm_, nullptr);
    profiler_.disable();
    EXPECT_EQ(ranges_.push(0, attention_, nullptr), no_level);
    EXPECT_EQ(ranges_.pop(0), no_level);
    ASSERT_TRUE(profiler_.enable().ok());
    EXPECT_EQ(ranges_.pop(0), 0);
    const Report found = report();
    EXPECT_TRUE(found.bricks.empty());
    EXPECT_EQ(dropped(found), 1U);
}

TEST_F(Ranges, a_started_range_ends_once_and_only_under_its_number) {
    OpenStarts starts;
    const std::uint64_t first = starts.start(profiler_, Brick::attention, make_work(bytes(64)));
    const std::uint64_t second = starts.start(profiler_, Brick::sampling, make_work());
    EXPECT_NE(first, second);
    starts.end(profiler_, first);
    starts.end(profiler_, first);
    starts.end(profiler_, 0);
    starts.end(profiler_, ~std::uint64_t{0});
    const std::uint64_t third = starts.start(profiler_, Brick::attention, make_work());
    EXPECT_NE(third, first) << "its place is used again, its number is not";
    starts.end(profiler_, second);
    const Report found = report();
    EXPECT_EQ(row(found, "attention")->time.count, 1U);
    EXPECT_EQ(row(found, "sampling")->time.count, 1U);
    EXPECT_EQ(starts.counts().open, 1U);
    EXPECT_EQ(starts.counts().never_started, 3U);
    EXPECT_EQ(starts.counts().started, 3U);
}

TEST_F(Ranges, ranges_that_are_started_and_never_ended_are_bounded_and_counted) {
    OpenStarts starts;
    for (int i = 0; i < 1'000'000; ++i) {
        EXPECT_NE(starts.start(profiler_, Brick::attention, make_work()), 0U);
    }
    EXPECT_EQ(starts.counts().open, OpenStarts::most_open);
    EXPECT_EQ(starts.counts().refused, 1'000'000U - OpenStarts::most_open);
    starts.end(profiler_, starts.start(profiler_, Brick::attention, make_work()));
    EXPECT_EQ(starts.counts().never_started, 0U) << "it had begun, and was refused";
    EXPECT_EQ(starts.counts().open, OpenStarts::most_open);
}

} // namespace
} // namespace plumb::attach::nvtx
