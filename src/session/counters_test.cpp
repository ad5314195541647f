// SPDX-License-Identifier: Apache-2.0
// Processor counters and notes by the user, through a whole profiler; the reader is a stand-in that knows the truth.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/processor_counters.hpp"
#include "plumb/plumb.hpp"

namespace plumb {
namespace {

class StandIn final : public base::CounterReader {
  public:
    base::CounterTotals read() override {
        reads.insert(reads.end(), std::this_thread::get_id());
        if (!allowed) {
            return {{}, "the system does not allow it"};
        }
        return {{{"cycles", 1000 * work},
                 {"instructions", 3000 * work},
                 {"cache_references", 8 * work},
                 {"cache_misses", 2 * work}},
                ""};
    }
    std::atomic<std::uint64_t> work = 1;
    bool allowed = true;
    std::vector<std::thread::id> reads;
};

class CountersTest : public ::testing::Test {
  protected:
    void TearDown() override { std::filesystem::remove(path_); }
    Config config(const char* keys) {
        Config made = *Config::parse("on,out=" + path_ + keys);
        made.counter_reader = &reader_;
        return made;
    }
    static void step(Profiler& prof) {
        PLUMB_STEP(prof, host, Phase::decode, tokens(1));
        PLUMB_BRICK(prof, host, Brick::lm_head, bytes(64), flops(64));
    }
    std::string path_ = ::testing::TempDir() + "counters-" + std::to_string(getpid()) + ".plumb";
    StandIn reader_;
};

TEST_F(CountersTest, T7_cache_misses_are_what_the_counters_said) {
    {
        Profiler prof(config(",counters=on"));
        step(prof);
        reader_.work = 7;
    }
    const Result<Report> report = report_recording(path_);
    ASSERT_TRUE(report.ok());
    ASSERT_TRUE(report->counters);
    EXPECT_DOUBLE_EQ(*report->counters->cycles.value, 7000);
    EXPECT_DOUBLE_EQ(*report->counters->instructions_per_cycle.value, 3);
    EXPECT_DOUBLE_EQ(*report->counters->cache_miss_share.value, 0.25);
}

TEST_F(CountersTest, no_recording_thread_ever_reads_them) {
    {
        Profiler prof(config(",counters=on"));
        for (int i = 0; i < 100; ++i) {
            step(prof);
        }
    }
    ASSERT_FALSE(reader_.reads.empty());
    for (const std::thread::id reader : reader_.reads) {
        EXPECT_NE(reader, std::this_thread::get_id());
    }
}

TEST_F(CountersTest, a_reset_clears_them_like_all_totals) {
    Profiler prof(config(",counters=on"));
    step(prof);
    reader_.work = 5;
    ASSERT_TRUE(prof.snapshot().ok());
    prof.reset();
    reader_.work = 9;
    step(prof);
    const Result<Report> report = prof.snapshot();
    ASSERT_TRUE(report.ok() && report->counters);
    EXPECT_DOUBLE_EQ(*report->counters->cycles.value, 4000);
}

TEST_F(CountersTest, T12_counters_that_are_not_allowed_or_not_asked_for_are_absent) {
    reader_.allowed = false;
    {
        Profiler prof(config(",counters=on"));
        step(prof);
    }
    const Result<Report> refused = report_recording(path_);
    ASSERT_TRUE(refused.ok() && refused->counters);
    EXPECT_EQ(refused->counters->instructions_per_cycle.reason, "the system does not allow it");
    std::filesystem::remove(path_);
    reader_.reads.clear();
    {
        Profiler prof(config(""));
        step(prof);
    }
    const Result<Report> silent = report_recording(path_);
    ASSERT_TRUE(silent.ok());
    EXPECT_FALSE(silent->counters);
    EXPECT_TRUE(reader_.reads.empty());
}

TEST_F(CountersTest, the_counters_of_this_machine_are_read_or_absent_with_a_reason) {
    const auto reader = base::open_processor_counters();
    const base::CounterTotals first = reader->read();
    EXPECT_EQ(first.totals.size() < 4, !first.reason.empty());
    const base::CounterTotals second = reader->read();
    for (std::size_t i = 0; i < std::min(first.totals.size(), second.totals.size()); ++i) {
        EXPECT_LE(first.totals[i].second, second.totals[i].second) << first.totals[i].first;
    }
}

TEST_F(CountersTest, T7_a_counter_that_some_threads_refuse_is_absent_and_not_a_part_of_its_total) {
    const int next = ::dup(STDERR_FILENO);
    ASSERT_GE(next, 0);
    ::close(next);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    std::mutex held;
    std::unique_lock<std::mutex> lock(held);
    std::thread other([&] { const std::lock_guard<std::mutex> wait(held); });
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(next) + 7; // the list of threads, four counters of one, two of the other
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    const base::CounterTotals totals = base::open_processor_counters()->read();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    lock.unlock();
    other.join();
    EXPECT_LE(totals.totals.size(), 2U);
    EXPECT_FALSE(totals.reason.empty());
}

TEST_F(CountersTest, T7_notes_by_the_user_are_kept_apart_in_the_order_given) {
    {
        Profiler prof(config(""));
        prof.note("zero-copy weights");
        step(prof);
        prof.note("L2 hit rate is 99 %");
    }
    const Result<Report> report = report_recording(path_);
    ASSERT_TRUE(report.ok());
    const std::string text = render_text(*report);
    const std::size_t first = text.find("note by the user  zero-copy weights\n");
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_NE(text.find("note by the user  L2 hit rate is 99 %\n", first), std::string::npos) << text;
}

} // namespace
} // namespace plumb
