// SPDX-License-Identifier: Apache-2.0
// A run that is eight times as long takes hardly more memory to read, whatever reads it: counted, not timed.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <streambuf>

#include "answers/check/check.hpp"
#include "answers/path/path.hpp"
#include "numerics/diverge.hpp"
#include "planted/planted_run.hpp"
#include "plumb/answer.hpp"
#include "support/allocation_count.hpp"
#include "support/sanitizers.hpp"

namespace plumb::planted {
namespace {

// A step is remembered for its place in time (80 bytes) and, where something is counted per step, a few bytes more; its
// scopes, 26 of 16 bytes and more here, must not be.
constexpr std::size_t most_bytes_per_step = 200;
constexpr std::size_t slack = std::size_t{1} << 20; // pieces and rows, whatever the length
// Samples that a thread resolves ahead, and records that two decode, of the long runs alone: the short ones are not worth it.
constexpr std::size_t resolved_ahead = std::size_t{7} << 20;
constexpr std::uint64_t short_run = 4000, long_run = 8 * short_run;

void write_run(const std::string& path, std::uint64_t steps, std::uint64_t id) {
    Tape tape;
    tape.metadata_.recording_id[0] = id;
    tape.track(1);
    std::int64_t t = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
        t = plant_step(tape, step, Phase::decode, t);
        if (step % 128 == 0) {
            tape.deliver(1);
        }
    }
    ASSERT_TRUE(tape.save(path).ok());
}

class Nowhere : public std::streambuf {
    std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
    int overflow(int c) override { return c; }
};

using Read = std::function<bool(const std::string& run, const std::string& other)>;

bool to_nowhere(const char* format, const std::string& run) {
    Nowhere nowhere;
    std::ostream out(&nowhere);
    return export_recording(run, format, out).ok();
}

const std::vector<std::pair<const char*, Read>>& readers() {
    static const auto list = [] {
        Invariants invariants;
        invariants.calls = {*parse_expected_calls("lm_head=1/step")};
        invariants.coverage = 0.9;
        invariants.node_check = true;
        return std::vector<std::pair<const char*, Read>>{
            {"report",
             [](const auto& run, const auto&) {
                 return report_recording(run).ok();
             }},
            {"layers",
             [](const auto& run, const auto&) {
                 return ask("layers", {run}).ok();
             }},
            {"budget",
             [](const auto& run, const auto&) {
                 return ask("budget", {run}, {{"ms/token", "1"}}).ok();
             }},
            {"check",
             [=](const auto& run, const auto&) {
                 return check_recordings({run}, invariants).ok();
             }},
            {"path",
             [](const auto& run, const auto&) {
                 return path_recording(run).ok();
             }},
            {"replays",
             [](const auto& run, const auto&) {
                 return ask("replays", {run}).ok();
             }},
            {"trace",
             [](const auto& run, const auto&) {
                 return to_nowhere("chrome_trace", run);
             }},
            {"export jsonl",
             [](const auto& run, const auto&) {
                 return to_nowhere("jsonl", run);
             }},
            {"export csv",
             [](const auto& run, const auto&) {
                 return to_nowhere("csv", run);
             }},
            {"diverge",
             [](const auto& run, const auto& other) {
                 (void)diverge_recordings(run, other); // no checks to compare: an answer, too
                 return true;
             }},
        };
    }();
    return list;
}

std::size_t peak_of(const Read& read, const std::string& run, const std::string& other) {
    const std::size_t before = start_peak();
    EXPECT_TRUE(read(run, other));
    return peak() - before;
}

class LongRun : public testing::Test {
  protected:
    LongRun() {
        write_run(little_.path(), short_run, 1);
        write_run(little_again_.path(), short_run, 2);
        write_run(much_.path(), long_run, 3);
        write_run(much_again_.path(), long_run, 4);
    }
    TemporaryFile little_{"little"}, little_again_{"little_again"}, much_{"much"}, much_again_{"much_again"};
};

TEST_F(LongRun, M7_takes_no_more_memory_than_its_steps_to_remember) {
    for (const auto& [name, read] : readers()) {
        const std::size_t little = peak_of(read, little_.path(), little_again_.path());
        const std::size_t much = peak_of(read, much_.path(), much_again_.path());
        EXPECT_LE(much, little + slack + resolved_ahead + most_bytes_per_step * (long_run - short_run)) << name;
    }
}

/// A step of one scope: nothing but steps grows with it.
void write_short_steps(const std::string& path, std::uint64_t steps) {
    Tape tape;
    tape.track(1);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * us;
        tape.step_begin(1, step, Phase::decode, t);
        tape.step_value(1, StepValue::kv_length, step % 4096);
        tape.scope(1, Brick::attention, t, t + us / 2);
        tape.step_end(1, Phase::decode, t, t + us);
        if (step % 1024 == 0) {
            tape.deliver(1);
        }
    }
    ASSERT_TRUE(tape.save(path).ok());
}

// Exports need of a step only what its samples inherit: 4 bytes. 4 million steps stay within 64 MiB by that.
TEST(ManySteps, M7_exports_remember_a_few_bytes_of_each_step) {
    if (sanitized) {
        GTEST_SKIP() << "a sanitizer's allocator rounds small blocks up: a few bytes of each step are not seen";
    }
    constexpr std::uint64_t few = 100'000, many = 7 * few;
    constexpr std::size_t most = 6;                          // with what a deque and the list of chunks add
    constexpr std::size_t read_ahead = std::size_t{4} << 20; // of both, more or less as threads run
    TemporaryFile little("few_steps"), much("many_steps");
    write_short_steps(little.path(), few);
    write_short_steps(much.path(), many);
    for (const auto& [name, read] : readers()) {
        const std::string what = name;
        if (what != "trace" && what.rfind("export", 0) != 0) {
            continue;
        }
        const std::size_t of_few = peak_of(read, little.path(), little.path());
        const std::size_t of_many = peak_of(read, much.path(), much.path());
        EXPECT_LE(of_many, of_few + read_ahead + resolved_ahead + slack + most * (many - few)) << name;
    }
}

// Of each side a comparison remembers one number per row and chosen step, of at most 4096 of them, and the steps.
TEST_F(LongRun, a_comparison_looks_at_a_bounded_number_of_steps) {
    const Read compare = [](const std::string& run, const std::string& other) {
        return ask("compare", {run, other}).ok();
    };
    const std::size_t little = peak_of(compare, little_.path(), little_again_.path());
    const std::size_t much = peak_of(compare, much_.path(), much_again_.path());
    EXPECT_LE(much, little + slack + resolved_ahead + most_bytes_per_step * (long_run - short_run));
}

} // namespace
} // namespace plumb::planted
