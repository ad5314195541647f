// SPDX-License-Identifier: Apache-2.0
// The ledger of captured graphs: who gets which account, and when an account is handed to the recording.
#include "cudagraph/graph_ledger.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace plumb::cudagraph {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

std::vector<recording::GraphInfo> collected(GraphLedger& ledger, std::int64_t now_ns, bool all = false) {
    std::vector<recording::GraphInfo> infos;
    ledger.collect(infos, now_ns, all);
    return infos;
}

TEST(GraphLedger, a_key_has_one_account_for_all_who_ask) {
    GraphLedger ledger(1);
    const std::shared_ptr<GraphAccount> first = ledger.account(7);
    EXPECT_TRUE(first->recorded());
    EXPECT_EQ(ledger.account(7), first);
    const std::shared_ptr<GraphAccount> beyond = ledger.account(8);
    EXPECT_FALSE(beyond->recorded());
    EXPECT_EQ(ledger.account(8), beyond);
    beyond->count_launch(100);
    EXPECT_TRUE(collected(ledger, 0, true).empty()) << "nothing happened to the first, and the second is not recorded";
    EXPECT_EQ(beyond->row().replays, 1u);
}

TEST(GraphLedger, accounts_beyond_the_bound_end_with_those_who_hold_them) {
    GraphLedger ledger(0);
    std::weak_ptr<GraphAccount> gone;
    for (std::uint64_t key = 0; key < 10'000; ++key) {
        const std::shared_ptr<GraphAccount> account = ledger.account(key);
        EXPECT_TRUE(gone.expired());
        gone = account;
    }
    const std::shared_ptr<GraphAccount> held = ledger.account(1);
    held->count_eager("prefill");
    for (std::uint64_t key = 2; key < 10'000; ++key) {
        (void)ledger.account(key);
    }
    EXPECT_EQ(ledger.account(1), held);
    EXPECT_EQ(ledger.account(1)->row().eager_steps, (std::vector<CudaGraphRow::Count>{{"prefill", 1}}));
}

TEST(GraphLedger, changes_in_kind_are_handed_over_at_once_and_counts_once_a_second) {
    GraphLedger ledger(8);
    const std::shared_ptr<GraphAccount> account = ledger.account(7);
    account->count_eager("prefill");
    EXPECT_EQ(collected(ledger, 10).size(), 1u) << "the first of all";
    EXPECT_TRUE(collected(ledger, 10 + 2 * second_ns).empty()) << "nothing is new";
    account->count_launch(500);
    EXPECT_EQ(collected(ledger, 10 + 3 * second_ns).size(), 1u);
    account->count_launch(500);
    EXPECT_TRUE(collected(ledger, 11 + 3 * second_ns).empty());
    (void)account->captured();
    EXPECT_EQ(collected(ledger, 12 + 3 * second_ns).size(), 1u);
    account->count_launch(500);
    const std::vector<recording::GraphInfo> all = collected(ledger, 13 + 3 * second_ns, true);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].replays, 3u);
    EXPECT_EQ(all[0].launch_ns, 1500);
}

TEST(GraphLedger, F1_no_reader_sees_a_replay_without_its_time) {
    GraphLedger ledger(8);
    const std::shared_ptr<GraphAccount> account = ledger.account(7);
    constexpr std::uint64_t launches = 20'000;
    std::thread launching([&] {
        for (std::uint64_t i = 0; i < launches; ++i) {
            account->count_launch(10);
        }
    });
    for (std::uint64_t seen = 0; seen < launches && !HasFailure();) {
        const CudaGraphRow row = account->row();
        seen = row.replays;
        EXPECT_EQ(row.launch_ns.value.has_value(), seen != 0);
        EXPECT_GE(row.launch_ns.value.value_or(0), 10 * static_cast<double>(seen));
    }
    launching.join();
}

TEST(GraphLedger, what_belongs_to_a_graph_that_was_replaced_is_dropped) {
    GraphLedger ledger(8);
    const std::shared_ptr<GraphAccount> account = ledger.account(7);
    const std::uint64_t first = account->captured();
    account->measure_of(first, [](recording::GraphInfo& info) { info.plain_span_ns = 1; });
    const std::uint64_t second_capture = account->captured();
    account->measure_of(first, [](recording::GraphInfo& info) { info.plain_span_ns = 2; });
    EXPECT_TRUE(std::isnan(collected(ledger, 0, true).at(0).plain_span_ns));
    account->measure_of(second_capture, [](recording::GraphInfo& info) { info.plain_span_ns = 3; });
    EXPECT_EQ(collected(ledger, 0, true).at(0).plain_span_ns, 3);
}

} // namespace
} // namespace plumb::cudagraph
