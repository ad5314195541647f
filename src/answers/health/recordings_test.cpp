// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <unistd.h>

#include "answers/health/health.hpp"
#include "numerics/planted_checks_testing.hpp"
#include "planted/tape.hpp"

namespace {

using namespace plumb;
using namespace plumb::numerics;

/// A recording with what a session says of its checks; removed at the end.
class Recorded {
  public:
    Recorded(const char* name, const PlantedRun& run, const char* checked, const char* nonfinite)
        : path_((std::filesystem::temp_directory_path() /
                 ("plumb_numerics_" + std::to_string(getpid()) + name + ".plumb"))
                    .string()) {
        planted::Tape tape;
        tape.descriptions_ = {{"checked", "tensors are looked at for NaN and Inf"}};
        if (checked != nullptr) {
            tape.descriptions_.emplace_back("checked", checked);
        }
        if (nonfinite != nullptr) {
            tape.descriptions_.emplace_back("nonfinite", nonfinite);
        }
        if (!run.checks.empty()) {
            tape.checks_ = {run.checks};
        }
        EXPECT_TRUE(tape.save(path_).ok());
    }
    ~Recorded() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

bool noted(const HealthReport& report, const std::string& part) {
    return std::any_of(report.notes.begin(), report.notes.end(),
                       [&part](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(HealthRecording, T16_a_run_that_counted_nan_is_not_finite_though_its_entries_are_gone) {
    const Recorded run("gone", PlantedRun(), "10 tensors, 3 with NaN or Inf", "3");
    const Result<HealthReport> report = health_recording(run.path());
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->finite());
    EXPECT_EQ(report->nonfinite, 3u);
    EXPECT_TRUE(noted(*report, "of which its recording holds 0"));
}

TEST(HealthRecording, T16_a_count_of_the_twin_is_read_too_and_one_of_zero_is_finite) {
    const PlantedRun checks = PlantedModel{}.recorded();
    const Recorded sound("sound", checks, "150 tensors, all finite", "0");
    const Recorded lost("lost", checks, "150 tensors, 1 with NaN or Inf", "1");
    const Result<HealthReport> finite = health_recording(sound.path(), sound.path());
    ASSERT_TRUE(finite.ok());
    EXPECT_TRUE(finite->finite());
    const Result<HealthReport> report = health_recording(sound.path(), lost.path());
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->twin_nonfinite, 1u);
    EXPECT_FALSE(report->finite());
}

TEST(HealthRecording, T16_a_run_that_did_not_end_looked_and_is_said_to_have_no_counts) {
    const Recorded killed("killed", PlantedRun(), nullptr, nullptr);
    const Result<HealthReport> report = health_recording(killed.path());
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->finite());
    EXPECT_TRUE(noted(*report, "has not ended, or was killed"));
}

TEST(HealthRecording, T8_a_count_that_is_no_number_says_nothing_and_one_too_large_is_not_finite) {
    const Recorded word("word", PlantedRun(), "10 tensors, all finite", "many");
    ASSERT_TRUE(health_recording(word.path()).ok());
    EXPECT_TRUE(health_recording(word.path())->finite());
    const Recorded large("large", PlantedRun(), "10 tensors, all finite", "99999999999999999999999");
    ASSERT_TRUE(health_recording(large.path()).ok());
    EXPECT_FALSE(health_recording(large.path())->finite());
}

} // namespace
