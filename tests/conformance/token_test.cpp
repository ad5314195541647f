// SPDX-License-Identifier: Apache-2.0
// Tokens that are unknown, stale, double or early, capabilities, and what a backend says of itself.
#include <random>

#include "conformance/suite.hpp"

namespace plumb::conformance {
namespace {

class TokenConformance : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, TokenConformance, testing::ValuesIn(subjects()), subject_name);

TEST_P(TokenConformance, tokens_that_were_never_given_are_refused) {
    const auto queue = timer();
    const auto open = queue->begin();
    ASSERT_TRUE(open.ok());
    std::mt19937_64 random(11);
    for (int i = 0; i < 20'000; ++i) {
        // Half of them differ from a real token by one bit.
        const DeviceToken token{i % 2 == 0 ? random() : open->value ^ std::uint64_t{1} << (i / 2 % 64)};
        if (token.value == open->value) {
            continue;
        }
        ASSERT_EQ(queue->collect(token).error().code, ErrorCode::not_found);
        ASSERT_EQ(queue->end(token).error().code, ErrorCode::not_found);
        queue->cancel(token);
    }
    EXPECT_EQ(queue->in_flight(), 1u);
    EXPECT_TRUE(queue->end(*open).ok());
}

TEST_P(TokenConformance, no_token_is_zero_or_all_ones) {
    const auto queue = timer();
    for (int i = 0; i < 100; ++i) {
        const auto token = queue->begin();
        ASSERT_TRUE(token.ok());
        EXPECT_NE(token->value, 0u);
        EXPECT_NE(token->value, ~std::uint64_t{0});
    }
}

TEST_P(TokenConformance, a_token_is_ended_once_and_collected_once) {
    const auto queue = timer();
    const auto token = queue->begin();
    ASSERT_TRUE(token.ok());
    EXPECT_EQ(queue->collect(*token).error().code, ErrorCode::pending) << "still open, and still valid afterwards";
    ASSERT_TRUE(queue->end(*token).ok());
    EXPECT_EQ(queue->end(*token).error().code, ErrorCode::not_found);
    subject_->settle();
    ASSERT_TRUE(queue->collect(*token).ok());
    EXPECT_EQ(queue->collect(*token).error().code, ErrorCode::not_found);
    EXPECT_EQ(queue->end(*token).error().code, ErrorCode::not_found);
}

TEST_P(TokenConformance, a_stale_token_does_not_touch_the_scope_that_took_its_place) {
    const auto queue = timer();
    const auto old = queue->begin();
    ASSERT_TRUE(old.ok());
    ASSERT_TRUE(queue->end(*old).ok());
    subject_->settle();
    ASSERT_TRUE(queue->collect(*old).ok());
    const auto fresh = queue->begin();
    ASSERT_TRUE(fresh.ok());
    EXPECT_EQ(queue->end(*old).error().code, ErrorCode::not_found);
    queue->cancel(*old);
    EXPECT_EQ(queue->in_flight(), 1u);
    EXPECT_TRUE(queue->end(*fresh).ok());
    subject_->settle();
    EXPECT_TRUE(queue->collect(*fresh).ok());
}

TEST_P(TokenConformance, cancelled_tokens_are_spent_whether_open_or_ended) {
    const auto queue = timer();
    const auto open = queue->begin();
    const auto ended = queue->begin();
    ASSERT_TRUE(open.ok() && ended.ok());
    ASSERT_TRUE(queue->end(*ended).ok());
    queue->cancel(*open);
    queue->cancel(*ended);
    queue->cancel(*ended);
    EXPECT_EQ(queue->in_flight(), 0u);
    subject_->settle();
    EXPECT_EQ(queue->collect(*ended).error().code, ErrorCode::not_found);
}

TEST_P(TokenConformance, an_immediate_timer_waits_and_then_has_the_time_at_once) {
    TimerOptions options;
    options.immediate = true;
    const auto queue = timer(options);
    EXPECT_TRUE(queue->immediate());
    const auto token = queue->begin();
    ASSERT_TRUE(token.ok());
    subject_->work(50'000);
    ASSERT_TRUE(queue->end(*token).ok());
    ASSERT_TRUE(queue->wait(*token).ok());
    EXPECT_TRUE(queue->collect(*token).ok());
}

TEST_P(TokenConformance, M8_what_is_unsupported_has_a_reason_and_every_capability_a_name) {
    const std::vector<Capability> capabilities = timer()->capabilities();
    EXPECT_FALSE(capabilities.empty());
    for (const Capability& capability : capabilities) {
        EXPECT_FALSE(capability.name.empty());
        EXPECT_NE(capability.supported, !capability.reason.empty()) << capability.name;
    }
}

TEST_P(TokenConformance, source_and_clock_have_names) {
    const auto queue = timer();
    EXPECT_STRNE(queue->source(), "");
    EXPECT_NE(queue->clock_name(), "");
}

TEST(Backends, each_one_enumerates_devices_or_says_in_a_sentence_what_to_do) {
    for (Backend* backend : all_backends()) {
        const auto devices = backend->enumerate();
        if (devices) {
            EXPECT_FALSE(devices->empty()) << backend->name();
            for (const plumb::Device& device : *devices) {
                EXPECT_FALSE(device.name.empty()) << backend->name();
            }
        } else {
            EXPECT_EQ(devices.error().code, ErrorCode::unavailable) << backend->name();
            EXPECT_NE(devices.error().message.find(';'), std::string::npos) << devices.error().message;
        }
        const auto beyond = backend->make_queue_timer(1'000'000, nullptr, {});
        ASSERT_FALSE(beyond.ok()) << backend->name() << " has no millionth device";
        EXPECT_FALSE(beyond.error().message.empty());
    }
}

} // namespace
} // namespace plumb::conformance
