// SPDX-License-Identifier: Apache-2.0
// From PLUMB_TENSOR to the recording, through a whole profiler.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plumb/plumb.hpp"
#include "recording/reader.hpp"
#include "support/sanitizers.hpp"

namespace plumb {
namespace {

const float values[8] = {1, -2, 3, -4, 5, -6, 7, -8};

Tensor row() { return tensor(values, DType::f32, {1, 8}); }

class CheckedRun : public testing::Test {
  protected:
    CheckedRun() {
        char name[] = "/tmp/plumb-checks-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~CheckedRun() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path() const { return folder_ + "/run.plumb"; }
    Config config(const std::string& keys) {
        Config c = *Config::parse("on,out=" + path() + "," + keys);
        c.diagnostic = [](const char* sentence, void* user) {
            static_cast<std::vector<std::string>*>(user)->emplace_back(sentence);
        };
        c.diagnostic_user = &said_;
        return c;
    }
    static void decode_steps(Profiler& prof, int steps) {
        for (int step = 0; step < steps; ++step) {
            PLUMB_STEP(prof, host, Phase::decode, tokens(1), kv_length(step + 1));
            for (int layer = 0; layer < 2; ++layer) {
                PLUMB_LAYER(prof, layer);
                { PLUMB_BRICK(prof, host, Brick::attention); }
                PLUMB_TENSOR(prof, host, Brick::attention, row());
                PLUMB_TENSOR(prof, host, "my_tensor", row());
            }
        }
    }
    static std::vector<recording::TensorCheck> checks_of(const std::string& path) {
        std::vector<recording::TensorCheck> checks;
        Result<recording::Reader> reader = recording::Reader::open(path);
        EXPECT_TRUE(reader.ok());
        if (reader.ok()) {
            EXPECT_TRUE(reader
                            ->for_each_check([&](recording::TensorCheck&& check) {
                                checks.push_back(std::move(check));
                                return true;
                            })
                            .ok());
        }
        return checks;
    }

    std::string folder_;
    std::vector<std::string> said_;
};

TEST_F(CheckedRun, by_the_key_of_version_0_1_the_same_is_recorded_and_a_sentence_names_the_new_key) {
    std::string settings[2];
    for (const bool old : {false, true}) {
        std::filesystem::remove(path());
        {
            Profiler prof(config(old ? "check=all" : "tensors=all"));
            decode_steps(prof, 1);
        }
        EXPECT_EQ(checks_of(path()).size(), 4u);
        EXPECT_EQ(said_.size(), old ? 1u : 0u);
        settings[old ? 1 : 0] = recording::Reader::open(path())->metadata().comparability.back().second;
    }
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_EQ(said_[0].find("check= is called tensors= now"), 0u);
    EXPECT_EQ(settings[0], settings[1]);
}

TEST_F(CheckedRun, every_check_reaches_the_recording_in_order) {
    Profiler prof(config("tensors=all"));
    decode_steps(prof, 50);
    ASSERT_TRUE(prof.close().ok());
    const auto checks = checks_of(path());
    ASSERT_EQ(checks.size(), 200u);
    for (std::size_t i = 0; i < checks.size(); ++i) {
        EXPECT_EQ(checks[i].order, i);
        EXPECT_EQ(checks[i].position, static_cast<std::int64_t>(i / 4));
        EXPECT_EQ(checks[i].layer_plus_one, i / 2 % 2 + 1);
        EXPECT_EQ(checks[i].fingerprint.sum, -4);
        EXPECT_EQ(checks[i].fingerprint.sketch.size(), default_buckets);
    }
    EXPECT_TRUE(said_.empty());
    const Result<Report> report = report_recording(path());
    ASSERT_TRUE(report.ok());
    EXPECT_NE(std::find(report->description.begin(), report->description.end(),
                        std::pair<std::string, std::string>("checked", "200 tensors, all finite")),
              report->description.end());
}

TEST_F(CheckedRun, a_flush_brings_what_was_checked_before_it) {
    Profiler prof(config("tensors=all"));
    decode_steps(prof, 3);
    ASSERT_TRUE(prof.flush().ok());
    EXPECT_EQ(checks_of(path()).size(), 12u);
}

TEST_F(CheckedRun, what_checking_costs_is_a_row_of_its_own) {
    Profiler prof(config("tensors=all,warmup=0"));
    decode_steps(prof, 20);
    const Result<Report> report = prof.snapshot();
    ASSERT_TRUE(report.ok());
    const auto row = std::find_if(report->bricks.begin(), report->bricks.end(),
                                  [](const Row& r) { return r.key.name == "tensor_check"; });
    ASSERT_NE(row, report->bricks.end());
    EXPECT_EQ(row->time.count, 80u);
}

TEST_F(CheckedRun, off_is_off_and_can_be_on_again) {
    Profiler prof(config("tensors=all"));
    decode_steps(prof, 1);
    prof.disable();
    decode_steps(prof, 1);
    ASSERT_TRUE(prof.enable().ok());
    decode_steps(prof, 1);
    ASSERT_TRUE(prof.close().ok());
    decode_steps(prof, 1);
    EXPECT_EQ(checks_of(path()).size(), 8u);
}

TEST_F(CheckedRun, without_the_key_nothing_is_checked) {
    Profiler prof(config("warmup=0"));
    decode_steps(prof, 2);
    ASSERT_TRUE(prof.close().ok());
    EXPECT_TRUE(checks_of(path()).empty());
}

TEST_F(CheckedRun, several_threads_check_at_once) {
    Profiler prof(config("tensors=all"));
    constexpr int threads = 4;
    constexpr int each = 500;
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
        workers.emplace_back([&prof, t] {
            for (int i = 0; i < each; ++i) {
                PLUMB_TENSOR(prof, host, Brick::attention, row(), sequence(static_cast<std::uint32_t>(t)));
            }
        });
    }
    for (std::thread& worker : workers) {
        worker.join();
    }
    ASSERT_TRUE(prof.close().ok());
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    for (const recording::TensorCheck& check : checks_of(path())) {
        EXPECT_TRUE(seen.emplace(check.sequence, check.occurrence).second);
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(threads * each));
}

TEST_F(CheckedRun, a_NaN_is_said_at_once_with_its_place) {
    Profiler prof(config("tensors=nonfinite"));
    const float bad[2] = {0, std::numeric_limits<float>::quiet_NaN()};
    {
        PLUMB_STEP(prof, host, Phase::decode, tokens(1), kv_length(1));
        PLUMB_LAYER(prof, 1);
        PLUMB_TENSOR_INPUT(prof, host, Brick::attention, row());
        PLUMB_TENSOR(prof, host, Brick::attention, tensor(bad, DType::f32, {1, 2}));
    }
    ASSERT_EQ(said_.size(), 1u);
    EXPECT_NE(said_[0].find("layer 1 brick attention, output, index 1 of 2"), std::string::npos) << said_[0];
    ASSERT_TRUE(prof.close().ok());
    EXPECT_EQ(checks_of(path()).size(), 2u);
}

TEST_F(CheckedRun, the_recording_says_how_many_were_not_finite_whatever_was_kept_of_them) {
    for (const char* spec : {"tensors=all", "tensors=nonfinite"}) {
        std::filesystem::remove(path());
        Profiler prof(config(spec));
        const float bad[2] = {0, std::numeric_limits<float>::quiet_NaN()};
        PLUMB_TENSOR(prof, host, Brick::attention, tensor(bad, DType::f32, {1, 2}));
        ASSERT_TRUE(prof.close().ok());
        const Result<Report> report = report_recording(path());
        ASSERT_TRUE(report.ok());
        EXPECT_NE(std::find(report->description.begin(), report->description.end(),
                            std::pair<std::string, std::string>("nonfinite", "1")),
                  report->description.end())
            << spec;
    }
}

TEST_F(CheckedRun, a_forked_child_checks_into_its_own_recording_or_not_at_all) {
    Config own = config("tensors=all");
    own.out = folder_ + "/run-%p.plumb";
    for (const bool follow : {false, true}) {
        if (follow && sanitized) {
            GTEST_SKIP() << "a forked child that makes a thread may wait for the sanitizer's own locks";
        }
        Config chosen = own;
        chosen.follow_fork = follow;
        Profiler prof(chosen);
        decode_steps(prof, 1);
        const pid_t child = ::fork();
        if (child == 0) {
            decode_steps(prof, 2);
            const bool closed = prof.close().ok();
            ::_exit(closed == follow ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        decode_steps(prof, 1);
        const std::string parent = prof.path();
        ASSERT_TRUE(prof.close().ok());
        EXPECT_EQ(checks_of(parent).size(), 8u);
        const std::string of_child = folder_ + "/run-" + std::to_string(child) + ".plumb";
        EXPECT_EQ(std::filesystem::exists(of_child), follow);
        if (follow) {
            EXPECT_EQ(checks_of(of_child).size(), 8u);
        }
    }
}

} // namespace
} // namespace plumb
