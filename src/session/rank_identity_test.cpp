// SPDX-License-Identifier: Apache-2.0
#include "session/rank_identity.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace plumb::session {
namespace {

class RankVariables : public testing::Test {
  protected:
    RankVariables() { clear(); }
    ~RankVariables() override { clear(); }
    static void clear() {
        for (const char* name : {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",
                                 "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
            unsetenv(name);
        }
    }
};

TEST_F(RankVariables, every_launcher_is_known_and_none_is_no_rank) {
    EXPECT_EQ(rank_identity().rank, "");
    EXPECT_EQ(rank_identity().world, 0U);
    const char* launchers[][2] = {{"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                                  {"SLURM_PROCID", "SLURM_NTASKS"},
                                  {"PMI_RANK", "PMI_SIZE"},
                                  {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  {"RANK", "WORLD_SIZE"}};
    for (const auto& [rank, world] : launchers) {
        setenv(rank, "7", 1);
        setenv(world, "8", 1);
        EXPECT_EQ(rank_identity().rank, "7") << rank;
        EXPECT_EQ(rank_identity().world, 8U) << rank;
        clear();
    }
}

TEST_F(RankVariables, F8_a_local_rank_is_no_rank_where_the_launcher_says_both) {
    setenv("LOCAL_RANK", "1", 1);
    setenv("LOCAL_WORLD_SIZE", "8", 1);
    setenv("RANK", "9", 1);
    setenv("WORLD_SIZE", "16", 1);
    EXPECT_EQ(rank_identity().rank, "9") << "each host has a local rank 1";
    EXPECT_EQ(rank_identity().world, 16U);
}

TEST_F(RankVariables, rank_and_world_are_of_one_launcher) {
    setenv("RANK", "1", 1);
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_NTASKS", "1", 1);
    EXPECT_EQ(rank_identity().rank, "1");
    EXPECT_EQ(rank_identity().world, 0U) << "the batch script's own task says nothing of torchrun's ranks";
}

TEST_F(RankVariables, the_spec_wins_over_the_launcher_part_by_part) {
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "8", 1);
    const RankIdentity found = rank_identity("5+tp=1/4+pp=1/2");
    EXPECT_EQ(found.rank, "5");
    EXPECT_EQ(found.world, 8U);
    ASSERT_EQ(found.groups.size(), 2U);
    EXPECT_EQ(found.groups[0], (recording::RankGroup{"tp", 1, 4, {}}));
    EXPECT_EQ(found.groups[1], (recording::RankGroup{"pp", 1, 2, {}}));
    EXPECT_EQ(rank_identity("tp=1/4").rank, "1");
}

TEST(RankSpec, what_is_no_rank_is_refused) {
    EXPECT_TRUE(parse_rank("0").has_value());
    EXPECT_TRUE(parse_rank("0/1").has_value());
    for (const char* bad : {"", "x", "-1", "8/8", "3/", "3+", "+3", "tp=", "tp=1", "tp=4/4", "=1/4", "3/8/9", "3 ",
                            "tp=1/4/2", "99999999999"}) {
        EXPECT_FALSE(parse_rank(bad).has_value()) << bad;
    }
}

} // namespace
} // namespace plumb::session
