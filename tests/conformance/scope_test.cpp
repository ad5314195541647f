// SPDX-License-Identifier: Apache-2.0
// Scopes of every backend: their order, nesting, concurrency, number, and the memory they need.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "conformance/suite.hpp"
#include "support/sanitizers.hpp"

namespace plumb::conformance {
namespace {

class ScopeConformance : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ScopeConformance, testing::ValuesIn(subjects()), subject_name);

TEST_P(ScopeConformance, scopes_one_after_another_are_timed_in_that_order) {
    const auto queue = timer();
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 100; ++i) {
        const auto token = queue->begin();
        ASSERT_TRUE(token.ok());
        subject_->work(1'000);
        ASSERT_TRUE(queue->end(*token).ok());
        tokens.push_back(*token);
    }
    subject_->settle();
    std::uint64_t last_end = 0;
    for (const DeviceToken token : tokens) {
        const auto span = queue->collect(token);
        ASSERT_TRUE(span.ok()) << span.error().message;
        EXPECT_LE(last_end, span->begin_ticks);
        EXPECT_LT(span->begin_ticks, span->end_ticks) << "work takes time";
        last_end = span->end_ticks;
    }
}

TEST_P(ScopeConformance, a_child_lies_inside_its_parent_and_siblings_do_not_overlap) {
    const auto queue = timer();
    const auto parent = queue->begin();
    std::vector<DeviceToken> children;
    for (int i = 0; i < 3; ++i) {
        const auto child = queue->begin();
        ASSERT_TRUE(child.ok());
        subject_->work(2'000);
        ASSERT_TRUE(queue->end(*child).ok());
        children.push_back(*child);
    }
    ASSERT_TRUE(parent.ok() && queue->end(*parent).ok());
    subject_->settle();
    const auto outer = queue->collect(*parent);
    ASSERT_TRUE(outer.ok());
    std::uint64_t last_end = outer->begin_ticks;
    for (const DeviceToken child : children) {
        const auto inner = queue->collect(child);
        ASSERT_TRUE(inner.ok());
        EXPECT_LE(last_end, inner->begin_ticks);
        last_end = inner->end_ticks;
    }
    EXPECT_LE(last_end, outer->end_ticks);
}

constexpr std::int64_t much_ns = 20'000'000, little_ns = 500'000;

TEST_P(ScopeConformance, F2_a_deferred_scope_does_not_wait_for_its_work) {
    const auto queue = timer();
    const auto host_time = [&](bool scoped) {
        std::int64_t shortest = INT64_MAX;
        for (int round = 0; round < 5; ++round) { // a cpu may be taken away from us
            const std::int64_t before = subject_->host_ns();
            const auto token = scoped ? queue->begin() : Result<DeviceToken>(DeviceToken{});
            subject_->work(much_ns); // the cpu does it here and now, a device is told
            EXPECT_TRUE(token.ok() && (!scoped || queue->end(*token).ok()));
            shortest = std::min(shortest, subject_->host_ns() - before);
            subject_->settle();
            EXPECT_TRUE(!scoped || queue->collect(*token).ok());
        }
        return shortest;
    };
    const std::int64_t plain = host_time(false);
    EXPECT_LT(host_time(true), plain + much_ns / 2);
}

/// Of a scope around little work: with much of it enqueued before, or after it and before anybody asks.
std::int64_t shortest_scope(Subject& subject, QueueTimer& queue, std::int64_t before_ns, std::int64_t after_ns) {
    double shortest = 1e18;
    for (int round = 0; round < 5; ++round) { // a cpu may be taken away from us
        subject.work(before_ns);
        const auto token = queue.begin();
        subject.work(little_ns);
        EXPECT_TRUE(token.ok() && queue.end(*token).ok());
        subject.work(after_ns);
        subject.settle();
        const auto span = queue.collect(*token);
        EXPECT_TRUE(span.ok());
        const auto length = span ? queue.duration(*span) : Result<Elapsed>(span.error());
        EXPECT_TRUE(length.ok());
        shortest = std::min(shortest, length ? length->nanoseconds : 0.0);
    }
    return static_cast<std::int64_t>(shortest);
}

TEST_P(ScopeConformance, T1_a_scope_ends_with_its_work_however_late_it_is_collected) {
    const auto queue = timer();
    subject_->work(much_ns); // the rate of the clock becomes known
    subject_->settle();
    const std::int64_t alone = shortest_scope(*subject_, *queue, 0, 0);
    EXPECT_GE(alone, little_ns / 2);
    EXPECT_LT(shortest_scope(*subject_, *queue, 0, much_ns), alone + much_ns / 4);
}

TEST_P(ScopeConformance, T2_a_scope_begins_behind_the_work_that_was_enqueued_before_it) {
    const auto queue = timer();
    subject_->work(much_ns);
    subject_->settle();
    const std::int64_t alone = shortest_scope(*subject_, *queue, 0, 0);
    EXPECT_LT(shortest_scope(*subject_, *queue, much_ns, 0), alone + much_ns / 4);
}

TEST_P(ScopeConformance, eight_threads_record_while_another_collects_and_no_scope_is_lost_or_seen_twice) {
    constexpr int threads = 8;
    constexpr std::uint64_t each = 2'000;
    TimerOptions options;
    options.max_in_flight = 64; // small: begin() meets the bound again and again
    const auto queue = timer(options);
    std::mutex mutex;
    std::vector<DeviceToken> ended;
    std::atomic<int> wrong{0};
    std::vector<std::thread> recorders;
    for (int t = 0; t < threads; ++t) {
        recorders.emplace_back([&] {
            for (std::uint64_t done = 0; done < each;) {
                const auto token = queue->begin();
                if (!token) {
                    wrong += token.error().code != ErrorCode::out_of_memory;
                    std::this_thread::yield();
                    continue;
                }
                wrong += !queue->end(*token).ok();
                const std::lock_guard lock(mutex);
                ended.push_back(*token);
                ++done;
            }
        });
    }
    std::vector<std::uint64_t> collected;
    while (collected.size() < threads * each) {
        std::vector<DeviceToken> batch;
        {
            const std::lock_guard lock(mutex);
            batch.swap(ended);
        }
        for (const DeviceToken token : batch) {
            const auto span = queue->collect(token);
            if (!span && span.error().code == ErrorCode::pending) {
                const std::lock_guard lock(mutex);
                ended.push_back(token); // the device is not there yet
                continue;
            }
            if (span) {
                wrong += span->begin_ticks > span->end_ticks;
            } else {
                ++wrong;
            }
            collected.push_back(token.value);
        }
        if (batch.empty()) {
            std::this_thread::yield();
        }
    }
    for (std::thread& recorder : recorders) {
        recorder.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(queue->in_flight(), 0u);
    std::sort(collected.begin(), collected.end());
    EXPECT_EQ(std::adjacent_find(collected.begin(), collected.end()), collected.end()) << "a token was given twice";
}

TEST_P(ScopeConformance, a_million_scopes_need_no_more_memory_than_a_thousand) {
    const auto queue = timer();
    std::size_t held = 0;
    std::vector<DeviceToken> tokens(1'000);
    for (std::uint64_t batch = 0; batch < draws(1'000); ++batch) {
        for (DeviceToken& token : tokens) {
            const auto begun = queue->begin();
            ASSERT_TRUE(begun.ok()) << begun.error().message;
            token = *begun;
            ASSERT_TRUE(queue->end(token).ok());
        }
        subject_->settle();
        for (const DeviceToken token : tokens) {
            ASSERT_TRUE(queue->collect(token).ok());
        }
        ASSERT_EQ(queue->in_flight(), 0u);
        if (batch == 0) {
            held = subject_->resources();
        }
        ASSERT_EQ(subject_->resources(), held);
    }
}

TEST_P(ScopeConformance, the_bound_on_scopes_in_flight_is_kept_and_lifted_by_collecting) {
    TimerOptions options;
    options.max_in_flight = 4;
    const auto queue = timer(options);
    std::vector<DeviceToken> tokens;
    for (int i = 0; i < 4; ++i) {
        const auto token = queue->begin();
        ASSERT_TRUE(token.ok());
        ASSERT_TRUE(queue->end(*token).ok());
        tokens.push_back(*token);
    }
    const auto refused = queue->begin();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(queue->in_flight(), 4u);
    subject_->settle();
    ASSERT_TRUE(queue->collect(tokens.front()).ok());
    EXPECT_TRUE(queue->begin().ok());
}

} // namespace
} // namespace plumb::conformance
