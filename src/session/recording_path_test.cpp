// SPDX-License-Identifier: Apache-2.0
#include "session/recording_path.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/os.hpp"

namespace plumb::session {
namespace {

TEST(RecordingPath, pid_host_and_rank_are_put_in) {
    EXPECT_EQ(expand_path("/x/run-%p-%h-%r.plumb", "3"),
              "/x/run-" + std::to_string(getpid()) + "-" + base::host_name() + "-3.plumb");
}

TEST(RecordingPath, no_rank_is_rank_zero) { EXPECT_EQ(expand_path("/x/%r"), "/x/0"); }

TEST(RecordingPath, a_doubled_percent_is_one_and_others_stay) {
    EXPECT_EQ(expand_path("/x/100%%-%q-%"), "/x/100%-%q-%");
}

TEST(RecordingPath, a_relative_path_starts_at_the_working_folder) {
    EXPECT_EQ(expand_path("a/../run.plumb"), (std::filesystem::current_path() / "run.plumb").string());
}

} // namespace
} // namespace plumb::session
