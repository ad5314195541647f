// SPDX-License-Identifier: Apache-2.0
// Live metrics through a whole profiler: what a scrape says is what `plumb report` says of the same run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/os_sockets.hpp"
#include "metrics/scrape_testing.hpp"
#include "plumb/plumb.hpp"
#include "support/sanitizers.hpp"
#include "support/text_of_file.hpp"

namespace plumb {
namespace {

class MetricsTest : public ::testing::Test {
  protected:
    MetricsTest() {
        char name[] = "/tmp/plumb-metrics-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~MetricsTest() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path() const { return folder_ + "/run.plumb"; }
    Config config(const std::string& keys) {
        Config made = *Config::parse("on,warmup=0,out=" + path() + "," + keys);
        made.diagnostic = [](const char* sentence, void* user) {
            auto& test = *static_cast<MetricsTest*>(user);
            const std::lock_guard<std::mutex> lock(test.mutex_);
            test.said_.emplace_back(sentence);
        };
        made.diagnostic_user = this;
        return made;
    }
    std::vector<std::string> said() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return said_;
    }
    /// The one that port 0 became.
    std::uint16_t port() {
        for (const std::string& sentence : said()) {
            if (const std::size_t at = sentence.find("127.0.0.1:"); at != std::string::npos) {
                return static_cast<std::uint16_t>(std::strtoul(sentence.c_str() + at + 10, nullptr, 10));
            }
        }
        ADD_FAILURE() << "nobody said where metrics are";
        return 0;
    }
    /// Prefill and decode, with a worker in each step.
    static void decode(Profiler& prof, int steps) {
        const Name custom = prof.intern("my_collective", Category::collective);
        for (int step = 0; step < steps; ++step) {
            const Phase phase = step % 5 == 0 ? Phase::prefill : Phase::decode;
            PLUMB_STEP(prof, host, phase, tokens(phase == Phase::prefill ? 7 : 2));
            std::thread worker([&prof, context = prof.context()] {
                PLUMB_CONTEXT(prof, context);
                PLUMB_BRICK(prof, host, Brick::down_projection);
            });
            for (int layer = 0; layer < 3; ++layer) {
                PLUMB_LAYER(prof, layer);
                { PLUMB_BRICK(prof, host, Brick::attention, bytes(4096)); }
                { PLUMB_BRICK(prof, host, custom); }
                PLUMB_LAP(prof, host, Brick::rope_embedding);
            }
            worker.join();
        }
        PLUMB_BRICK(prof, host, Brick::sampling);
    }

    std::string folder_;
    std::mutex mutex_;
    std::vector<std::string> said_;
};

double drops_of(const Report& report) {
    double drops = 0;
    for (const LossRow& loss : report.losses) {
        drops += static_cast<double>(loss.count);
    }
    return drops;
}

TEST_F(MetricsTest, a_scrape_says_what_the_report_of_the_run_says) {
    std::map<std::string, double> found;
    {
        Profiler prof(config("metrics=0"));
        ASSERT_TRUE(prof.status().ok()) << prof.status().error().message;
        decode(prof, 50);
        PLUMB_LAP(prof, host, Brick::lm_head); // outside any scope: dropped
        ASSERT_TRUE(prof.flush(60).ok());
        found = metrics::series_of(metrics::scrape(port()));
    }
    const Result<Report> report = report_recording(path());
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::map<std::string, double> calls, seconds;
    double collectives = 0;
    for (const Row& row : report->bricks) {
        const std::string labels = "{brick=\"" + row.key.name + "\",phase=\"" + phase_word(row.key.phase) +
                                   "\",source=\"" + row.source + "\"}";
        calls["plumb_brick_calls_total" + labels] += static_cast<double>(row.time.count);
        seconds["plumb_brick_seconds_total" + labels] += row.time.total_ns / 1e9;
        collectives += row.key.category == Category::collective ? row.time.total_ns / 1e9 : 0;
    }
    ASSERT_GE(calls.size(), 9u);
    std::size_t bricks = 0;
    for (const auto& [series, value] : found) {
        bricks += series.starts_with("plumb_brick_calls_total") ? 1 : 0;
    }
    EXPECT_EQ(bricks, calls.size());
    for (const auto& [series, value] : calls) {
        EXPECT_EQ(found[series], value) << series;
    }
    for (const auto& [series, value] : seconds) {
        EXPECT_NEAR(found[series], value, value * 1e-3 + 1e-6) << series; // its line is through all clock pairs
    }
    for (const PhaseSummary& phase : report->phases) {
        const std::string label = std::string("{phase=\"") + phase_word(phase.phase) + "\"}";
        EXPECT_EQ(found["plumb_step_seconds_count" + label], static_cast<double>(phase.steps));
        EXPECT_EQ(found["plumb_tokens_total" + label], static_cast<double>(phase.tokens));
        EXPECT_NEAR(found["plumb_step_seconds_sum" + label], phase.span.total_ns / 1e9, phase.span.total_ns / 1e12);
    }
    EXPECT_NEAR(found["plumb_collective_seconds_total"], collectives, collectives * 1e-3 + 1e-6);
    EXPECT_GE(found["plumb_dropped_records_total"], 1);
    EXPECT_EQ(found["plumb_dropped_records_total"], drops_of(*report));
    EXPECT_GT(found["plumb_own_cost_ratio"], 0);
    EXPECT_EQ(found.count("plumb_graph_replays_total"), 0u); // no graph was captured
}

TEST_F(MetricsTest, descriptions_become_labels) {
    Profiler prof(config("metrics=0,redact=on"));
    prof.describe("model", "/models/tiny.gguf");
    prof.describe("tp_rank", "1");
    decode(prof, 1);
    ASSERT_TRUE(prof.flush(60).ok());
    const std::string text = metrics::scrape(port());
    EXPECT_NE(text.find("plumb_tokens_total{model_name=\"tiny.gguf\",tp_rank=\"1\",phase=\"prefill\"} 7\n"),
              std::string::npos)
        << text;
    for (const std::string& secret : {folder_, std::string("/models")}) {
        EXPECT_EQ(text.find(secret), std::string::npos);
    }
}

TEST_F(MetricsTest, where_the_port_is_taken_one_sentence_says_so_and_the_run_goes_on) {
    base::Endpoint endpoint;
    const Result<base::Socket> other = base::listen_on(endpoint);
    ASSERT_TRUE(other.ok());
    {
        Profiler prof(config("metrics=" + base::text_of(endpoint)));
        EXPECT_TRUE(prof.status().ok());
        decode(prof, 5);
        EXPECT_TRUE(prof.close().ok());
    }
    EXPECT_EQ(said(), (std::vector<std::string>{"this run has no live metrics: " + base::text_of(endpoint) +
                                                " is taken by another process; choose another port"}));
    const Result<Report> report = report_recording(path());
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->phases.size(), 2u);
}

TEST_F(MetricsTest, a_file_holds_the_totals_of_the_whole_run_in_the_end) {
    const std::string file = folder_ + "/metrics-%p.prom";
    {
        Profiler prof(config("metrics=" + file));
        decode(prof, 5);
    }
    auto found = metrics::series_of(support::text_of_file(folder_ + "/metrics-" + std::to_string(getpid()) + ".prom"));
    EXPECT_EQ(found["plumb_tokens_total{phase=\"decode\"}"], 8);
    EXPECT_EQ(found["plumb_step_seconds_count{phase=\"prefill\"}"], 1);
    EXPECT_EQ(said(), std::vector<std::string>{});
    std::size_t files = 0; // nothing unfinished beside it
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) {
        ++files;
    }
    EXPECT_EQ(files, 2u);
}

TEST_F(MetricsTest, a_file_that_cannot_be_written_is_said_once_and_the_run_goes_on) {
    const std::string file = folder_ + "/nowhere/metrics.prom";
    {
        Profiler prof(config("metrics=" + file));
        decode(prof, 5);
        EXPECT_TRUE(prof.close().ok());
    }
    EXPECT_EQ(said(), (std::vector<std::string>{"metrics cannot be written to " + file +
                                                "; see that its folder is there, has room, and may be written to"}));
}

TEST_F(MetricsTest, a_forked_child_keeps_no_port) {
    int hold[2], closed[2];
    ASSERT_EQ(pipe(hold), 0);
    ASSERT_EQ(pipe(closed), 0);
    pid_t child = -1;
    std::uint16_t taken = 0;
    {
        Profiler prof(config("metrics=0"));
        taken = port();
        decode(prof, 1);
        child = fork();
        if (child == 0) {
            close(hold[1]);
            char byte = 0;
            (void)!write(closed[1], &byte, 1);
            (void)!read(hold[0], &byte, 1); // until the parent has looked
            _exit(0);
        }
        char byte = 0;
        ASSERT_EQ(read(closed[0], &byte, 1), 1);
        ASSERT_TRUE(prof.flush(60).ok());
        EXPECT_NE(metrics::scrape(taken), ""); // the parent goes on
    }
    base::Endpoint endpoint{"127.0.0.1", taken};
    const Result<base::Socket> again = base::listen_on(endpoint);
    EXPECT_TRUE(again.ok()) << again.error().message;
    for (const int end : {hold[0], hold[1], closed[0], closed[1]}) {
        close(end);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(MetricsTest, a_child_with_a_recording_of_its_own_says_that_its_parent_has_the_port) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer's locks do not survive the fork of a threaded process";
    }
    base::Endpoint endpoint;
    {
        const Result<base::Socket> free = base::listen_on(endpoint);
        ASSERT_TRUE(free.ok());
    }
    Config made = config("fork=own,metrics=" + base::text_of(endpoint) + ",out=" + folder_ + "/run-%p.plumb");
    Profiler prof(made);
    ASSERT_EQ(said(), std::vector<std::string>{});
    const pid_t child = fork();
    if (child == 0) {
        decode(prof, 2);
        const bool told = said_.size() == 1 && said_[0].find("is taken by another process") != std::string::npos;
        _exit(told && prof.close().ok() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(MetricsTest, a_value_that_is_neither_address_nor_file_is_an_error_of_the_spec) {
    for (const char* value : {"metrics=", "metrics=on", "metrics=/tmp/metrics.txt", "metrics=localhost"}) {
        EXPECT_FALSE(Config::parse(value).ok()) << value;
    }
    for (const char* value : {"metrics=9464", "metrics=127.0.0.1:946%r", "metrics=[::1]:0", "metrics=run-%r.prom"}) {
        const Result<Config> parsed = Config::parse(value);
        ASSERT_TRUE(parsed.ok()) << value;
        EXPECT_EQ(Config::parse(parsed->spec())->metrics, parsed->metrics);
    }
}

} // namespace
} // namespace plumb
