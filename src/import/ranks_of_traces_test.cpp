// SPDX-License-Identifier: Apache-2.0
// Real traces of eight ranks each, on one clock: who was late, and how long collectives waited. PLUMB_TRACES names the folder that holds them;
// nothing of it lies in this repository. The figures are those of a study of the same files by another program.
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "answers/ranks/ranks.hpp"
#include "import/folder_testing.hpp"
#include "import/import.hpp"

namespace plumb::imported {
namespace {

class RanksOfTraces : public testing::Test {
  protected:
    void SetUp() override {
        if (std::getenv("PLUMB_TRACES") == nullptr) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
        }
    }
    RanksReport ranks_of(const std::string& name, const RanksOptions& options = {}) {
        ImportOptions import;
        import.out = folder_ / "r.plumb";
        const auto made = import_traces({(std::filesystem::path(std::getenv("PLUMB_TRACES")) / name).string()}, import);
        EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
        const Result<RanksReport> report = read_ranks({folder_ / ""}, options);
        EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
        return report.ok() ? *report : RanksReport{};
    }
    static const CollectiveRow& row_of(const RanksReport& report, const std::string& brick) {
        for (const CollectiveRow& row : report.groups) {
            if (row.brick == brick) {
                return row;
            }
        }
        ADD_FAILURE() << brick << " is not there";
        static const CollectiveRow none;
        return none;
    }

  private:
    TraceFolder folder_;
};

TEST_F(RanksOfTraces, of_megatron_ranks_0_and_6_are_last_most_often_and_bound_by_their_hosts) {
    const RanksReport report = ranks_of("megatron_a100_tp8");
    ASSERT_EQ(report.ranks.size(), 8U);
    EXPECT_EQ(report.world, 8U);
    EXPECT_EQ(row_of(report, "all_reduce").collectives, 84U);
    EXPECT_EQ(report.ranks[0].last_likely, 32U);
    EXPECT_EQ(report.ranks[6].last_likely, 28U);
    for (const RankRow& row : report.ranks) {
        EXPECT_EQ(row.rank == 0 || row.rank == 6, *row.busy_share.value < 0.7) << row.rank;
        EXPECT_LE(row.last, row.last_likely);
        EXPECT_GE(row.last_at_most, row.last_likely);
    }
    ASSERT_EQ(report.late.size(), 2U);
    EXPECT_EQ(report.late[0].rank, 0U);
    EXPECT_EQ(report.late[1].rank, 6U);
    EXPECT_TRUE(report.late[0].host_bound && report.late[1].host_bound);
    EXPECT_EQ(row_of(report, "all_reduce").verdict, WaitVerdict::arrival);
}

TEST_F(RanksOfTraces, of_mixtral_ends_of_all_reduces_agree_to_1_5_us) {
    const RanksReport report = ranks_of("mixtral_8x7b_mi300x_tp8");
    ASSERT_EQ(report.ranks.size(), 8U);
    const CollectiveRow& row = row_of(report, "all_reduce");
    EXPECT_EQ(row.collectives, 512U);
    EXPECT_NEAR(*row.end_spread_ns.value, 1.5e3, 100);
    EXPECT_NEAR(*row.begin_spread_ns.value, 6.3e3, 100);
    EXPECT_TRUE(report.contradictions.empty());
}

TEST_F(RanksOfTraces, of_deepseek_a_part_of_moe_combine_is_waiting) {
    // Their clocks are those of one machine. Without that only causality is left, which allows a wide range.
    const RanksReport alone = ranks_of("deepseek_v3_h200_ep8/base");
    const CollectiveRow& wide = row_of(alone, "moe_combine");
    EXPECT_EQ(wide.collectives, 58U);
    EXPECT_EQ(wide.verdict, WaitVerdict::inconclusive);
}

TEST_F(RanksOfTraces, of_deepseek_a_quarter_of_moe_combine_is_waiting_where_the_wall_clocks_agree) {
    const RanksReport report = ranks_of("deepseek_v3_h200_ep8/base", {{"all=0+-5"}});
    const CollectiveRow& row = row_of(report, "moe_combine");
    EXPECT_GT(row.least_share, 0.24);
    EXPECT_LT(row.most_share, 0.27);
    EXPECT_EQ(row.verdict, WaitVerdict::transfer);
}

} // namespace
} // namespace plumb::imported
