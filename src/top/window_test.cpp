// SPDX-License-Identifier: Apache-2.0
#include "top/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "analysis/report_builder.hpp"
#include "analysis/wall_builder.hpp"
#include "planted/tape.hpp"
#include "plumb/results.hpp"
#include "recording/files_testing.hpp"
#include "top/picture.hpp"

namespace plumb::top {
namespace {

using recording::Follower;

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint32_t main_track = 1, worker_track = 2;
constexpr std::size_t any_number = std::size_t{1} << 30;

/// Ten seconds of decoding: a step every 10 ms, of 9 ms, with attention on the main thread and lm_head beside it on a worker. Records
/// of the main thread are written every 100 ms, those of the worker once a second, half a second off.
class Decoding : public ::testing::Test {
  protected:
    static constexpr std::int64_t steps = 1000;

    struct Batch {
        std::int64_t written_ns;
        recording::RecordBatch records;
    };

    explicit Decoding(std::uint64_t first = 0) : first_number(first) {
        tape.track(main_track, "main");
        tape.track(worker_track, "worker");
        tape.metadata_.warmup_steps = 8;
        for (std::int64_t step = 0; step < steps; ++step) {
            plant(step);
            if (step % 10 == 9) {
                tape.deliver(main_track);
            }
            if (step % 100 == 49) {
                tape.deliver(worker_track);
            }
        }
    }

    void plant(std::int64_t step) {
        const std::int64_t begin = step * 10 * ms;
        const std::uint64_t number = first_number + static_cast<std::uint64_t>(step);
        tape.step_begin(main_track, number, Phase::decode, begin);
        tape.step_value(main_track, StepValue::decode_tokens, 1);
        tape.scope(main_track, Brick::attention, begin + ms, begin + 5 * ms);
        tape.step_end(main_track, Phase::decode, begin, begin + 9 * ms);
        tape.context(worker_track, number);
        tape.scope(worker_track, Brick::lm_head, begin + 2 * ms, begin + 8 * ms);
        tape.context_end(worker_track);
    }

    /// As a process would have written it; `until`: what it had written by then.
    void write(std::int64_t until) {
        std::vector<Batch> batches;
        ASSERT_TRUE(tape.for_each_batch([&](const recording::RecordBatch& batch) {
                            const std::uint64_t a_step = records_a_step.at(batch.track);
                            const auto done = static_cast<std::int64_t>((batch.first_sequence + batch.count) / a_step);
                            batches.push_back({done * 10 * ms, batch});
                            return true;
                        })
                        .ok());
        std::stable_sort(batches.begin(), batches.end(),
                         [](const Batch& a, const Batch& b) { return a.written_ns < b.written_ns; });
        std::int64_t now = 0;
        recording::WriterOptions options;
        options.path = path;
        options.keep_ns = keep_ns;
        options.now_ns = [&now] {
            return now;
        };
        auto writer = recording::Writer::create(options, tape.metadata_);
        ASSERT_TRUE(writer.ok());
        for (const recording::TrackInfo& track : tape.tracks_) {
            ASSERT_TRUE((*writer)->add_track(track).ok());
        }
        for (const recording::ClockPair& pair : tape.clock_pairs_) {
            ASSERT_TRUE((*writer)->add_clock_pair(pair).ok());
        }
        ASSERT_TRUE((*writer)->set_counters({}).ok());
        for (const Batch& batch : batches) {
            now = batch.written_ns;
            if (now <= until) {
                ASSERT_TRUE((*writer)->append(batch.records).ok());
            }
        }
        ASSERT_TRUE((*writer)->close().ok());
    }

    Result<Account> looked(Window& window, double seconds, std::size_t most, bool ended) {
        Result<Follower> follower = Follower::open(path);
        EXPECT_TRUE(follower.ok() && follower->look().ok());
        window.add(follower->take_chunks(), *follower->facts());
        return window.read(*follower, seconds, most, ended);
    }

    const std::uint64_t first_number;
    std::map<std::uint32_t, std::uint64_t> records_a_step = {{main_track, 4}, {worker_track, 3}};
    recording::testing::TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    planted::Tape tape;
    std::int64_t keep_ns = 0;
};

const Row& row_of(const Report& report, const std::string& name) {
    for (const Row& row : report.bricks) {
        if (row.key.name == name && row.key.phase == Phase::decode) {
            return row;
        }
    }
    ADD_FAILURE() << "no row " << name;
    static const Row none;
    return none;
}

TEST_F(Decoding, a_window_over_all_of_an_ended_run_says_what_report_and_wall_say) {
    ASSERT_NO_FATAL_FAILURE(write(20'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 60, any_number, true);
    ASSERT_TRUE(account.ok());
    EXPECT_EQ(account->seconds, std::nullopt);
    const Result<recording::RecordedRun> run = recording::open_run(path);
    ASSERT_TRUE(run.ok());
    const Result<Report> report = analysis::build_report(*run, {});
    const Result<WallReport> wall = analysis::build_wall(*run, {});
    ASSERT_TRUE(report.ok() && wall.ok());
    EXPECT_EQ(render_json(account->report), render_json(*report));
    ASSERT_EQ(account->wall.phases.size(), 1u);
    EXPECT_EQ(account->wall.phases[0].lanes[0].idle.total.value, wall->phases[0].lanes[0].idle.total.value);
    EXPECT_EQ(report->phases[0].steps, 992u);
}

TEST_F(Decoding, F5_a_window_holds_whole_steps_with_the_work_of_threads_that_write_late) {
    for (const std::int64_t until : {6'000 * ms, 6'050 * ms, 10'000 * ms}) {
        ASSERT_NO_FATAL_FAILURE(write(until));
        Window window;
        const Result<Account> account = looked(window, 2, any_number, false);
        ASSERT_TRUE(account.ok());
        EXPECT_EQ(account->seconds, 2);
        ASSERT_EQ(account->report.phases.size(), 1u);
        const PhaseSummary& phase = account->report.phases[0];
        EXPECT_NEAR(static_cast<double>(phase.steps), 200, 1) << until;
        EXPECT_EQ(phase.warmup_steps, 0u);
        EXPECT_NEAR(*phase.tokens_per_second.value, 100, 0.2);
        // Less the gap before the first of them: the end of the step before it is not of this time.
        EXPECT_EQ(phase.wall.period_ns,
                  static_cast<double>(phase.steps) * 10.0 * ms - (phase.steps == 200 ? 1.0 * ms : 0))
            << until;
        for (const char* name : {"attention", "lm_head"}) {
            EXPECT_EQ(row_of(account->report, name).calls_per_step, 1) << name << until;
        }
        EXPECT_NEAR(*row_of(account->report, "lm_head").wall_share.value, 0.6, 0.002);
    }
}

// The same span, asked of the same readers by hand: totals reset where the window begins, the run cut where it ends.
TEST_F(Decoding, a_window_is_what_a_reset_at_its_begin_would_have_left) {
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 1, any_number, false);
    ASSERT_TRUE(account.ok());
    // Written last at 10 s: it ends at 8.8 s, and begins at 7.8 s: before step 780 of 5 records, and 3 on the worker.
    recording::RecordedRun run = tape;
    const recording::BatchStream whole = run.for_each_batch;
    run.for_each_batch = [&](const std::function<bool(const recording::RecordBatch&)>& take) {
        return whole([&](recording::RecordBatch batch) {
            const std::uint64_t end = 880 * (batch.track == main_track ? 4u : 3u);
            if (batch.first_sequence >= end) {
                return true;
            }
            batch.count = std::min<std::size_t>(batch.count, end - batch.first_sequence);
            return take(batch);
        });
    };
    ReportOptions options;
    options.recording_warmup = false;
    options.warmup_steps = 0;
    const Result<Report> report =
        analysis::build_report(run, options, {{main_track, 780 * 4}, {worker_track, 780 * 3 + 1}});
    ASSERT_TRUE(report.ok());
    const PhaseSummary& shown = account->report.phases.at(0);
    const PhaseSummary& known = report->phases.at(0);
    EXPECT_EQ(shown.steps, known.steps);
    EXPECT_EQ(shown.wall.period_ns, known.wall.period_ns);
    EXPECT_EQ(shown.wall.idle_ns, known.wall.idle_ns);
    EXPECT_EQ(shown.tokens_per_second.value, known.tokens_per_second.value);
    for (const char* name : {"attention", "lm_head"}) {
        const Row& row = row_of(*report, name);
        const Row& seen = row_of(account->report, name);
        EXPECT_EQ(seen.time.total_ns, row.time.total_ns) << name;
        EXPECT_EQ(seen.wall_share.value, row.wall_share.value) << name;
        EXPECT_EQ(seen.time.p50_ns.value, row.time.p50_ns.value) << name;
    }
}

TEST_F(Decoding, a_window_of_more_records_than_a_look_may_take_is_shorter) {
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 5, 3000, false);
    ASSERT_TRUE(account.ok());
    EXPECT_LT(*account->seconds, 4);
    EXPECT_LE(account->records, 3000u);
    EXPECT_NEAR(static_cast<double>(account->report.phases.at(0).steps), 100 * *account->seconds, 2);
}

TEST_F(Decoding, F4_what_reaches_to_the_begin_of_the_run_keeps_warm_up_apart_and_a_later_window_has_none) {
    tape.metadata_.warmup_steps = 40; // more than lie between what is read and where a window begins
    ASSERT_NO_FATAL_FAILURE(write(4'000 * ms));
    for (const double seconds : {60.0, 1.0}) {
        Window window;
        const Result<Account> account = looked(window, seconds, any_number, false);
        ASSERT_TRUE(account.ok());
        EXPECT_EQ(account->seconds, seconds == 60 ? std::nullopt : std::optional(seconds));
        EXPECT_EQ(account->report.phases.at(0).warmup_steps, seconds == 60 ? 40u : 0u);
        EXPECT_EQ(account->report.phases[0].steps, seconds == 60 ? 240u : 100u);
    }
}

TEST_F(Decoding, where_the_beginning_was_removed_a_window_begins_with_what_is_whole) {
    tape.metadata_.warmup_steps = 40;
    keep_ns = 3'000 * ms;
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 60, any_number, false);
    ASSERT_TRUE(account.ok() && account->seconds);
    EXPECT_TRUE(account->removed);
    EXPECT_GE(*account->seconds, 1.7); // 3 s without the last 1.2, and from the first chunk on
    EXPECT_LE(*account->seconds, 3.3);
    const PhaseSummary& phase = account->report.phases.at(0);
    EXPECT_NEAR(static_cast<double>(phase.steps), 100 * *account->seconds, 2);
    EXPECT_EQ(phase.warmup_steps, 0u);
    EXPECT_EQ(row_of(account->report, "lm_head").calls_per_step, 1);
    Window again;
    const Result<Account> shorter = looked(again, 1, any_number, false);
    ASSERT_TRUE(shorter.ok());
    EXPECT_EQ(shorter->seconds, 1);
    EXPECT_FALSE(shorter->removed);
}

TEST_F(Decoding, what_was_removed_between_two_looks_is_in_no_window) {
    keep_ns = 1'000 * ms;
    ASSERT_NO_FATAL_FAILURE(write(5'000 * ms));
    Window window;
    ASSERT_TRUE(looked(window, 60, any_number, false).ok());
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    const Result<Account> account = looked(window, 60, any_number, false);
    ASSERT_TRUE(account.ok() && account->seconds);
    EXPECT_LE(*account->seconds, 0.4);
    EXPECT_TRUE(account->removed);
    keep_ns = 500 * ms;
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window late;
    const Result<Account> nothing = looked(late, 60, any_number, false);
    ASSERT_TRUE(nothing.ok());
    EXPECT_EQ(nothing->seconds, 0);
    EXPECT_TRUE(nothing->removed);
    EXPECT_EQ(main_phase(nothing->report), nullptr);
}

class DecodingForMonths : public Decoding {
  protected:
    DecodingForMonths() : Decoding(100'000'000) {}
};

TEST_F(DecodingForMonths, a_step_has_any_number) {
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 2, any_number, false);
    ASSERT_TRUE(account.ok());
    EXPECT_NEAR(static_cast<double>(account->report.phases.at(0).steps), 200, 1);
    EXPECT_EQ(row_of(account->report, "lm_head").calls_per_step, 1);
    EXPECT_TRUE(account->no_wall.empty()) << account->no_wall;
}

/// Beside it a device that works 6 ms of each step, of which is known a second later.
class DecodingOnADevice : public Decoding {
  protected:
    static constexpr std::uint32_t queue = 0x80000001;

    DecodingOnADevice() {
        tape = planted::Tape();
        tape.track(main_track, "main");
        tape.device_track({queue, recording::TrackKind::device_queue, 1, 0, "stream", "cuda_event", 1});
        records_a_step = {{main_track, 7}, {queue, 4}};
        for (std::int64_t step = 0; step < steps; ++step) {
            const std::int64_t t = step * 10 * ms;
            const auto number = static_cast<std::uint64_t>(step);
            tape.cpu_time(main_track, t, t);
            tape.step_begin(main_track, number, Phase::decode, t);
            const auto submission = tape.submit_scope(main_track, Brick::attention, queue, t + ms, t + 2 * ms);
            tape.step_value(main_track, StepValue::decode_tokens, 1);
            tape.step_end(main_track, Phase::decode, t, t + 9 * ms);
            tape.cpu_time(main_track, t + 9 * ms, t + 9 * ms);
            tape.cause(queue, submission);
            tape.device_scope(queue, Brick::attention, number, -1, t + 3 * ms, t + 9 * ms);
            if (step % 10 == 9) {
                tape.deliver(main_track);
            }
            if (step % 100 == 49) {
                tape.deliver(queue);
            }
        }
    }
};

TEST_F(DecodingOnADevice, a_window_has_its_lane_as_the_whole_run_has) {
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    Window window;
    const Result<Account> account = looked(window, 2, any_number, false);
    ASSERT_TRUE(account.ok());
    const Result<recording::RecordedRun> run = recording::open_run(path);
    ASSERT_TRUE(run.ok());
    const Result<WallReport> wall = analysis::build_wall(*run, {});
    ASSERT_TRUE(wall.ok());
    ASSERT_EQ(account->wall.phases.at(0).lanes.size(), 2u);
    EXPECT_NEAR(static_cast<double>(account->report.phases.at(0).steps), 200, 1);
    const WallLane& shown = account->wall.phases[0].lanes[1];
    const WallLane& known = wall->phases.at(0).lanes.at(1);
    EXPECT_TRUE(shown.device);
    for (const auto part : {&WallIdle::total, &WallIdle::exposed_launch, &WallIdle::host_work, &WallIdle::unknown}) {
        ASSERT_TRUE((shown.idle.*part).value && (known.idle.*part).value);
        EXPECT_NEAR(*(shown.idle.*part).value / shown.period_ns, *(known.idle.*part).value / known.period_ns, 0.002);
    }
    EXPECT_NEAR(*shown.idle.total.value / shown.period_ns, 0.4, 0.002);
    EXPECT_NEAR(*row_of(account->report, "attention").wall_share.value, 0.6, 0.002);
}

TEST_F(Decoding, looks_at_a_growing_file_decode_each_chunk_of_the_window) {
    ASSERT_NO_FATAL_FAILURE(write(10'000 * ms));
    const recording::Bytes bytes = recording::testing::read_bytes(path);
    recording::testing::write_bytes(path, {bytes.begin(), bytes.begin() + 200});
    Result<Follower> follower = Follower::open(path);
    ASSERT_TRUE(follower.ok());
    Window window;
    Result<Account> last = Error{};
    for (std::size_t at = 200; at <= bytes.size(); at += std::max<std::size_t>(1, bytes.size() / 37)) {
        recording::testing::write_bytes(path, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)});
        ASSERT_TRUE(follower->look().ok());
        window.add(follower->take_chunks(), *follower->facts());
        last = window.read(*follower, 2, any_number, false);
        ASSERT_TRUE(last.ok());
    }
    recording::testing::write_bytes(path, bytes);
    ASSERT_TRUE(follower->look().ok());
    window.add(follower->take_chunks(), *follower->facts());
    last = window.read(*follower, 2, any_number, false);
    Window fresh;
    const Result<Account> once = looked(fresh, 2, any_number, false);
    ASSERT_TRUE(last.ok() && once.ok());
    EXPECT_EQ(render_json(last->report), render_json(once->report));
}

} // namespace
} // namespace plumb::top
