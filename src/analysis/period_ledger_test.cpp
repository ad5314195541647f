// SPDX-License-Identifier: Apache-2.0
// What the ledger hands to an observer. Sums are tested where they are used (wall_clock_test.cpp).
#include "analysis/period_ledger.hpp"

#include <gtest/gtest.h>

#include "resolve/losses.hpp"

namespace plumb::analysis {
namespace {

/// Steps of 100 ns, one behind the other.
resolve::StepTable steps_of(std::uint64_t count) {
    resolve::Steps found;
    for (std::uint64_t i = 0; i < count; ++i) {
        resolve::ResolvedStep step;
        step.id = i;
        step.begin_ns = static_cast<std::int64_t>(i) * 100;
        step.end_ns = step.host_end_ns = step.begin_ns + 100;
        found.push_back(step);
    }
    resolve::Losses losses;
    return resolve::StepTable::build(std::move(found), {}, {}, 0, {}, resolve::DeviceEnds(1), losses);
}

class Listener final : public PeriodObserver {
  public:
    void begin(const resolve::StepTable&, const resolve::TrackTable&, PeriodLedger&) override {}
    void consume(const resolve::ResolvedBatch&) override {}
    void settled(std::size_t, const WallSums&, std::vector<Detail>& details, bool is_complete) override {
        sizes.push_back(details.size());
        first.push_back(details.empty() ? Interval{} : details.front().interval);
        complete.push_back(is_complete);
        details.clear();
    }
    void end() override {}

    std::vector<std::size_t> sizes;
    std::vector<Interval> first;
    std::vector<bool> complete;
};

TEST(PeriodLedger, an_observer_gets_every_interval_clipped_to_each_period) {
    const resolve::StepTable steps = steps_of(3);
    Listener listener;
    PeriodLedger ledger(steps, [](std::size_t, const WallSums&) {});
    ledger.observe(&listener);
    std::size_t hint = 0;
    Detail detail;
    detail.kind = Detail::Kind::piece;
    detail.interval = {50, 250};
    ledger.add_detail(detail, hint);
    ledger.add(PeriodLedger::What::brick, {10, 20}, hint, 7);
    ledger.settle_all();
    EXPECT_EQ(listener.sizes, (std::vector<std::size_t>{2, 1, 1}));
    EXPECT_EQ(listener.first[1].begin, 100);
    EXPECT_EQ(listener.first[1].end, 200);
    EXPECT_EQ(listener.first[2].end, 250);
    EXPECT_EQ(listener.complete, (std::vector<bool>{true, true, true}));
}

TEST(PeriodLedger, details_without_room_make_their_period_incomplete_and_no_other) {
    const resolve::StepTable steps = steps_of(2);
    Listener listener;
    PeriodLedger ledger(steps, [](std::size_t, const WallSums&) {});
    ledger.observe(&listener);
    std::size_t hint = 0;
    Detail detail;
    detail.interval = {0, 10};
    for (std::size_t i = 0; i < PeriodLedger::max_details; ++i) {
        ledger.add_detail(detail, hint);
    }
    detail.interval = {110, 120};
    ledger.add_detail(detail, hint);
    ledger.settle_all();
    EXPECT_EQ(listener.complete, (std::vector<bool>{true, false}));
    EXPECT_EQ(ledger.left_out(), 0u) << "the sums miss nothing";
}

} // namespace
} // namespace plumb::analysis
