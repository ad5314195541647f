// SPDX-License-Identifier: Apache-2.0
// The clock of every backend: fit to the host's, placement of scopes, resolution and floor.
#include <algorithm>
#include <cmath>

#include "clock/correlation.hpp"
#include "conformance/suite.hpp"

namespace plumb::conformance {
namespace {

class ClockConformance : public Conformance {};
INSTANTIATE_TEST_SUITE_P(Backends, ClockConformance, testing::ValuesIn(subjects()), subject_name);

std::vector<clock::CorrelationPair> pairs_of(const std::vector<DeviceClockPair>& raw) {
    const double slope = static_cast<double>(raw.back().monotonic_ns - raw.front().monotonic_ns) /
                         static_cast<double>(raw.back().ticks - raw.front().ticks);
    std::vector<clock::CorrelationPair> pairs;
    for (const DeviceClockPair& pair : raw) {
        pairs.push_back(
            {{pair.ticks},
             {pair.monotonic_ns},
             {static_cast<std::int64_t>(std::ceil(static_cast<double>(pair.uncertainty_ticks) * slope / 2.0))}});
    }
    return pairs;
}

TEST_P(ClockConformance, M4_pairs_give_one_line_and_a_scope_is_placed_where_the_host_saw_it) {
    const auto queue = timer();
    std::vector<DeviceClockPair> raw;
    const auto read = [&] {
        for (int i = 0; i < 10; ++i) {
            const auto pair = queue->clock_pair();
            ASSERT_TRUE(pair.ok()) << pair.error().message;
            raw.push_back(*pair);
            subject_->work(100'000);
        }
    };
    read();
    subject_->settle();
    const std::int64_t before = subject_->host_ns();
    const auto token = queue->begin();
    subject_->work(100'000);
    ASSERT_TRUE(token.ok() && queue->end(*token).ok());
    subject_->settle();
    const std::int64_t after = subject_->host_ns();
    const auto span = queue->collect(*token);
    ASSERT_TRUE(span.ok());
    read();

    const std::vector<clock::CorrelationPair> pairs = pairs_of(raw);
    const auto fit = clock::Correlation::fit(pairs);
    ASSERT_TRUE(fit.ok()) << fit.error().message;
    std::int64_t widest = 0;
    for (const clock::CorrelationPair& pair : pairs) {
        widest = std::max(widest, pair.uncertainty.value);
    }
    if (fit->consistent()) {
        EXPECT_LE(fit->residual_ns(), static_cast<double>(widest) + 1.5) << "of one line through every pair";
    }

    const double slack = fit->bound_ns({span->begin_ticks}) + fit->residual_ns() + 1.0;
    EXPECT_GE(static_cast<double>(fit->to_host({span->begin_ticks}).value), static_cast<double>(before) - slack);
    EXPECT_LE(static_cast<double>(fit->to_host({span->end_ticks}).value), static_cast<double>(after) + slack);
    const auto duration = queue->duration(*span);
    ASSERT_TRUE(duration.ok()) << duration.error().message;
    EXPECT_LE(duration->nanoseconds, static_cast<double>(after - before) + slack + duration->uncertainty);
    EXPECT_GE(duration->nanoseconds + duration->uncertainty + slack, 100'000.0) << "the work that was asked for";
}

TEST_P(ClockConformance, clock_pairs_go_forward_on_both_clocks) {
    const auto queue = timer();
    DeviceClockPair last{};
    for (int i = 0; i < 100; ++i) {
        const auto pair = queue->clock_pair();
        ASSERT_TRUE(pair.ok());
        EXPECT_GE(pair->ticks, last.ticks);
        EXPECT_GE(pair->monotonic_ns, last.monotonic_ns);
        last = *pair;
    }
}

TEST_P(ClockConformance, an_empty_scope_reads_the_floor_and_work_reads_more) {
    const auto queue = timer();
    subject_->work(2'000'000); // the rate of the clock becomes known
    subject_->settle();
    const auto floor = queue->floor_ns();
    ASSERT_TRUE(floor.ok()) << floor.error().message;
    EXPECT_GE(*floor, 0.0);
    EXPECT_EQ(queue->in_flight(), 0u) << "the measurement leaves nothing open";

    double shortest = INFINITY;
    for (int i = 0; i < 200; ++i) {
        const auto token = queue->begin();
        ASSERT_TRUE(token.ok() && queue->end(*token).ok());
        subject_->settle();
        const auto span = queue->collect(*token);
        ASSERT_TRUE(span.ok());
        const auto empty = queue->duration(*span);
        ASSERT_TRUE(empty.ok());
        EXPECT_GE(empty->nanoseconds, 0.0);
        shortest = std::min(shortest, empty->nanoseconds - empty->uncertainty);
    }
    const auto token = queue->begin();
    subject_->work(1'000'000);
    ASSERT_TRUE(token.ok() && queue->end(*token).ok());
    subject_->settle();
    const auto span = queue->collect(*token);
    ASSERT_TRUE(span.ok());
    const auto worked = queue->duration(*span);
    ASSERT_TRUE(worked.ok());
    EXPECT_GT(worked->nanoseconds, *floor);
    EXPECT_GT(worked->nanoseconds, shortest);
}

} // namespace
} // namespace plumb::conformance
