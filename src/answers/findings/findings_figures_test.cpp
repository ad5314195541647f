// SPDX-License-Identifier: Apache-2.0
// The figures of single findings, on tapes of which each is known: what a mend could gain at most and likely, and the count of steps.
#include <gtest/gtest.h>

#include "answers/findings/findings.hpp"
#include "answers/planted_answer_testing.hpp"

namespace plumb {

const answers::Entry& findings_answer();

namespace {

using planted::ms;
using planted::Tape;
using planted::us;
using support::json;

constexpr std::uint32_t host_track = 1, queue_track = 0x80000001, other_queue = 0x80000002;

/// Of that kind, the first; an empty one where there is none.
json finding_of(const Tape& tape, const char* kind) {
    const answers::Said said = answers::said_of(findings_answer(), tape);
    for (const json& one : said.document["runs"][0]["findings"]) {
        if (one["kind"] == kind) {
            return one;
        }
    }
    return {};
}

bool has_text(const json& of, const std::string& words) {
    return of.is_string() && of.get<std::string>().find(words) != std::string::npos;
}

/// The figure of the first row of evidence that holds these words; -1: there is none.
double evidence_of(const json& finding, const std::string& words) {
    for (const json& row : finding["evidence"]) {
        if (has_text(row["what"], words)) {
            return row["value"].get<double>();
        }
    }
    return -1;
}

/// One brick on the CPU.
void work_step(Tape& tape, std::uint64_t number, std::int64_t begin, std::int64_t length, std::uint64_t tokens = 1) {
    tape.cpu_time(host_track, begin, begin);
    tape.step_begin(host_track, number, Phase::decode, begin);
    tape.step_value(host_track, StepValue::decode_tokens, tokens);
    tape.scope(host_track, Brick::attention, begin, begin + length);
    tape.step_end(host_track, Phase::decode, begin, begin + length);
    tape.cpu_time(host_track, begin + length, begin + length);
}

/// The first step takes so long, 107 others 1 ms.
TEST(FindingFigures, the_worse_the_first_step_the_heavier_the_finding) {
    double before = 0;
    for (const std::int64_t first : {100 * ms, 900 * ms, 6'000 * ms}) {
        Tape tape;
        tape.track(host_track);
        tape.metadata_.warmup_steps = 8;
        std::int64_t now = 0;
        for (std::uint64_t i = 0; i < 108; ++i) {
            const std::int64_t length = i == 0 ? first : 1 * ms;
            work_step(tape, i, now, length);
            now += length;
        }
        const json found = finding_of(tape, "slow_warm_up");
        ASSERT_FALSE(found.is_null());
        const double lost = static_cast<double>(first - 1 * ms), all = static_cast<double>(first + 107 * ms);
        EXPECT_NEAR(found["likely_ns"].get<double>(), lost / 108, 1'000);
        EXPECT_NEAR(found["share"].get<double>(), lost / all, 0.001);
        EXPECT_NEAR(found["weight"].get<double>(), lost / all, 0.001);
        EXPECT_GT(found["weight"].get<double>(), before);
        before = found["weight"];
    }
}

/// Steps of 16 tokens take 3 ms, of one token 1 ms; the first of each may take so many times as long.
Tape shrinking_batch(std::int64_t slow) {
    Tape tape;
    tape.track(host_track);
    std::int64_t now = 0;
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t length = (i < 25 ? 3 : 1) * (i == 0 || i == 25 ? slow : 1) * ms;
        work_step(tape, i, now, length, i < 25 ? 16 : 1);
        now += length;
    }
    return tape;
}

TEST(FindingFigures, steps_of_more_tokens_are_no_slow_warm_up) {
    EXPECT_TRUE(finding_of(shrinking_batch(1), "slow_warm_up").is_null());
    const json found = finding_of(shrinking_batch(20), "slow_warm_up");
    EXPECT_EQ(found["claim"],
              "The first step, of those of as many tokens, loses 19.0 ms against the later ones, as long as "
              "19.0 of those.");
    EXPECT_NEAR(found["likely_ns"].get<double>(), 19e6 / 60, 1'000) << "spread over all steps";
}

/// Four threads share each of 8 layers; in layer 3 each takes 200 us, in the others 60.
Tape four_threads(bool side_by_side) {
    Tape tape;
    for (std::uint32_t thread = 1; thread <= 4; ++thread) {
        tape.track(thread, "worker " + std::to_string(thread));
    }
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * 3 * ms;
        std::int64_t end = begin;
        tape.step_begin(1, i, Phase::decode, begin);
        for (std::uint16_t layer = 0; layer < 8; ++layer) {
            const std::int64_t length = (layer == 3 ? 200 : 60) * us;
            const std::int64_t at = end;
            for (std::uint32_t thread = 1; thread <= 4; ++thread) {
                const std::int64_t from = at + (side_by_side ? 0 : (thread - 1) * length);
                tape.context(thread, i, layer);
                tape.scope(thread, Brick::attention, from, from + length);
                tape.context_end(thread);
                end = from + length;
            }
        }
        tape.step_end(1, Phase::decode, begin, begin + 3 * ms);
    }
    return tape;
}

TEST(FindingFigures, an_odd_layer_costs_the_time_that_threads_take_together) {
    const json together = finding_of(four_threads(true), "odd_layer");
    EXPECT_EQ(together["layer"], 3);
    EXPECT_NEAR(together["likely_ns"].get<double>(), 140e3, 100);
    EXPECT_NEAR(together["at_most_ns"].get<double>(), 140e3, 1'000);
    EXPECT_EQ(together["sure"], "likely");
    EXPECT_EQ(evidence_of(together, "side by side in layer 3"), 4);
    const json by_turns = finding_of(four_threads(false), "odd_layer");
    EXPECT_NEAR(by_turns["likely_ns"].get<double>(), 4 * 140e3, 100);
    EXPECT_EQ(by_turns["sure"], "sure");
}

/// Four threads take so long for a brick, each for a fourth of 5.4 MB; memory gives 10 GB/s.
json shared_brick(std::int64_t length) {
    Tape tape;
    Peaks peaks;
    peaks.place = "host";
    peaks.read_gigabytes_per_second = {10.0, {}};
    peaks.f32_teraflops = {0.1, {}};
    tape.peaks(peaks);
    for (std::uint32_t thread = 1; thread <= 4; ++thread) {
        tape.track(thread, "worker " + std::to_string(thread));
        tape.work(thread, Brick::attention, WorkQuantity::bytes, 5.4e6 / 4);
        tape.work(thread, Brick::attention, WorkQuantity::flops, 5.4e6 / 4);
    }
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * 3 * ms;
        tape.step_begin(1, i, Phase::decode, begin);
        for (std::uint32_t thread = 1; thread <= 4; ++thread) {
            tape.context(thread, i);
            tape.scope(thread, Brick::attention, begin, begin + length, flag_work);
            tape.context_end(thread);
        }
        tape.step_end(1, Phase::decode, begin, begin + 3 * ms);
    }
    return finding_of(tape, "far_from_roofline");
}

TEST(FindingFigures, a_brick_that_threads_share_is_held_against_its_roofline_as_a_whole) {
    EXPECT_TRUE(shared_brick(600 * us).is_null()) << "90 % of it";
    const json slow = shared_brick(1'800 * us);
    EXPECT_TRUE(has_text(slow["claim"], "attention reaches 30.0 % of its roofline")) << slow;
    EXPECT_NEAR(slow["at_most_ns"].get<double>(), 1'800e3 - 540e3, 100);
    EXPECT_NEAR(slow["likely_ns"].get<double>(), 1'800e3 - 1'080e3, 100);
    EXPECT_EQ(evidence_of(slow, "calls at once"), 4);
}

/// Two threads that wait for each other without leaving the CPU; each waits for a CPU for 200 of 1000 us, in its turn.
TEST(FindingFigures, threads_that_wait_for_a_cpu_by_turns_may_cost_what_all_of_them_wait) {
    Tape tape;
    const std::uint32_t threads[] = {1, 2};
    tape.track(1, "one");
    tape.track(2, "two");
    const auto sample = [&tape](std::int64_t time, std::int64_t waited) {
        recording::OffCpuSample& made = tape.off_cpu_.emplace_back();
        made.monotonic_ns = time;
        for (const std::uint32_t thread : {1U, 2U}) {
            made.threads.push_back(
                {thread, {static_cast<std::uint64_t>(time - waited) + 1, static_cast<std::uint64_t>(waited), 0}});
        }
    };
    for (std::int64_t i = 0; i < 400; ++i) {
        const std::int64_t begin = i * ms, waited = i * 200 * us;
        if (i % 100 == 0) {
            sample(begin, waited);
        }
        tape.step_begin(1, static_cast<std::uint64_t>(i), Phase::decode, begin);
        for (const std::uint32_t thread : threads) {
            tape.context(thread, static_cast<std::uint64_t>(i));
            tape.cpu_time(thread, begin, begin - waited);
            tape.scope(thread, Brick::attention, begin, begin + 500 * us);
            tape.cpu_time(thread, begin + 500 * us, begin + 500 * us - waited - (thread == 1 ? 200 : 0) * us);
            tape.scope(thread, Brick::up_projection, begin + 500 * us, begin + ms);
            tape.cpu_time(thread, begin + ms, begin + ms - waited - 200 * us);
            tape.context_end(thread);
        }
        tape.step_end(1, Phase::decode, begin, begin + ms);
    }
    sample(400 * ms, 400 * 200 * us);
    const json found = finding_of(tape, "off_cpu");
    EXPECT_NEAR(found["at_most_ns"].get<double>(), 400e3, 1'000) << found;
    EXPECT_NEAR(found["likely_ns"].get<double>(), 200e3, 1'000);
}

/// 4 of 44 steps run without the graph and take 5 ms, the others 1.
TEST(FindingFigures, eager_steps_are_counted_as_many_as_there_are) {
    Tape tape;
    tape.track(host_track);
    tape.device_track({queue_track, recording::TrackKind::device_queue, 1, 0, "stream", "cuda_event", 1});
    recording::GraphInfo& graph = tape.graphs_.emplace_back();
    graph.key = 7;
    graph.captures = graph.instantiations = 1;
    graph.replays = 40;
    std::int64_t now = 0;
    for (std::uint64_t i = 0; i < 44; ++i) {
        const bool eager = i % 11 == 5;
        const std::int64_t length = (eager ? 5 : 1) * ms;
        tape.step_begin(host_track, i, Phase::decode, now);
        if (eager) {
            tape.scope(host_track, Brick::attention, now, now + length);
        } else {
            tape.launch(host_track, 7, 0, queue_track, now + 10 * us, now + 20 * us);
        }
        tape.step_end(host_track, Phase::decode, now, now + length);
        now += length;
    }
    const json found = finding_of(tape, "eager_steps");
    EXPECT_TRUE(has_text(found["claim"], "4 of 44 steps")) << found;
    EXPECT_TRUE(has_text(found["because"], "only 4 steps tell")) << found;
    EXPECT_EQ(found["sure"], "possible") << "likely, and one less";
}

/// Graphs of 8 and 16 rows, which take 500 and 900 us; their rows were written when half of the replays had been.
TEST(FindingFigures, a_row_of_padding_costs_the_same_where_a_run_was_cut_short) {
    Tape tape;
    tape.track(host_track);
    tape.device_track({queue_track, recording::TrackKind::device_queue, 1, 0, "stream", "cuda_event", 1});
    for (const std::uint64_t rows : {8, 16}) {
        recording::GraphInfo& graph = tape.graphs_.emplace_back();
        graph.key = rows;
        graph.captures = graph.instantiations = 1;
        graph.replays = 25;
        graph.plain_span_ns = rows == 8 ? 500e3 : 900e3;
        graph.rows_padded = 25 * rows;
        graph.rows_used = graph.rows_padded * 6 / 10;
    }
    for (std::uint64_t i = 0; i < 100; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * ms;
        tape.step_begin(host_track, i, Phase::decode, begin);
        tape.launch(host_track, i % 2 == 0 ? 8 : 16, 0, queue_track, begin + 10 * us, begin + 20 * us);
        tape.step_end(host_track, Phase::decode, begin, begin + ms);
    }
    EXPECT_NEAR(evidence_of(finding_of(tape, "padding"), "one row more"), 50, 0.01);
}

/// Copies of 200 us there and back, beside a kernel of 790: without one of them, or both, the path is about 100 us shorter.
TEST(FindingFigures, copies_take_what_they_take_and_their_gain_is_that_of_all_together) {
    Tape tape;
    tape.track(host_track);
    for (const std::uint32_t queue : {queue_track, other_queue}) {
        tape.device_track({queue, recording::TrackKind::device_queue, 1, 0, "stream", "cuda_event", 1});
    }
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::int64_t begin = static_cast<std::int64_t>(i) * ms;
        const auto run = [&](Brick brick, std::uint32_t queue, std::int64_t launch, std::int64_t from,
                             std::int64_t to) {
            const Tape::NodeKey key =
                tape.submit_scope(host_track, brick, queue, begin + launch * us, begin + (launch + 1) * us);
            tape.cause(queue, key);
            tape.device_scope(queue, brick, i, -1, begin + from * us, begin + to * us);
        };
        tape.cpu_time(host_track, begin, begin);
        tape.step_begin(host_track, i, Phase::decode, begin);
        run(Brick::attention, other_queue, 1, 10, 800);
        tape.transfer(host_track, 10, 20, 1'000'000, TransferDirection::device_to_host, begin + 4 * us);
        run(Brick::copy_d2h, queue_track, 4, 100, 300);
        tape.transfer(host_track, 20, 10, 1'000'000, TransferDirection::host_to_device, begin + 6 * us);
        run(Brick::copy_h2d, queue_track, 6, 305, 505);
        run(Brick::lm_head, queue_track, 8, 510, 950);
        tape.step_end(host_track, Phase::decode, begin, begin + ms);
        tape.cpu_time(host_track, begin + ms, begin + ms);
    }
    const json found = finding_of(tape, "ping_pong");
    EXPECT_TRUE(has_text(found["claim"], "which takes 400.0 us")) << found;
    EXPECT_NEAR(evidence_of(found, "these copies in step"), 400, 0.01);
    const double gain = 1e3 * evidence_of(found, "its path is shorter");
    EXPECT_GT(gain, 20e3);
    EXPECT_LT(gain, 200e3) << "the kernel beside them is as long";
    EXPECT_DOUBLE_EQ(found["likely_ns"].get<double>(), gain);
}

} // namespace
} // namespace plumb
