// SPDX-License-Identifier: Apache-2.0
#include "session/recording_path.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/os.hpp"

namespace plumb::session {
namespace {

class RankVariables : public testing::Test {
  protected:
    RankVariables() { clear(); }
    ~RankVariables() override { clear(); }
    static void clear() {
        for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
            unsetenv(name);
        }
    }
};

TEST_F(RankVariables, pid_host_and_rank_are_put_in) {
    setenv("RANK", "3", 1);
    EXPECT_EQ(expand_path("/x/run-%p-%h-%r.plumb"),
              "/x/run-" + std::to_string(getpid()) + "-" + base::host_name() + "-3.plumb");
}

TEST_F(RankVariables, every_launcher_is_known_and_none_is_rank_zero) {
    EXPECT_EQ(expand_path("/x/%r"), "/x/0");
    EXPECT_EQ(rank_variable(), nullptr);
    for (const char* name : {"SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK"}) {
        setenv(name, "7", 1);
        EXPECT_EQ(expand_path("/x/%r"), "/x/7") << name;
        clear();
    }
}

TEST_F(RankVariables, a_doubled_percent_is_one_and_others_stay) {
    EXPECT_EQ(expand_path("/x/100%%-%q-%"), "/x/100%-%q-%");
}

TEST_F(RankVariables, a_relative_path_starts_at_the_working_folder) {
    EXPECT_EQ(expand_path("a/../run.plumb"), (std::filesystem::current_path() / "run.plumb").string());
}

} // namespace
} // namespace plumb::session
