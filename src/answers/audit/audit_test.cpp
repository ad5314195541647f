// SPDX-License-Identifier: Apache-2.0
// Planned work as both sides saw it: what the audit says of each brick against what was planted.
#include <gtest/gtest.h>

#include "answers/audit/audit.hpp"
#include "answers/audit/planted_audit_testing.hpp"

namespace plumb::audit {
namespace {

AuditReport audited(planted::Tape ours, planted::Tape trace, const AuditQuestion& question = {}) {
    const Result<AuditReport> report = audit_runs(ours, trace, question);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    return report.ok() ? *report : AuditReport{};
}

const AuditRow& row_of(const AuditReport& report, const std::string& brick) {
    for (const AuditRow& row : report.rows) {
        if (row.brick == brick) {
            return row;
        }
    }
    ADD_FAILURE() << "no row of " << brick;
    static const AuditRow none;
    return none;
}

TEST(Audit, a_planted_error_of_each_brick_is_found_with_clocks_apart_and_drifting) {
    const PlannedWork work = plan_work();
    OurFlaws flaws;
    flaws.longer_ns = {{Brick::attention, 3'000}, {Brick::down_projection, -1'500}};
    TraceFlaws trace;
    trace.drift_ppm = 40;
    const AuditReport report = audited(our_recording(work, flaws), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    EXPECT_EQ(report.verdict, Outcome::pass);
    EXPECT_EQ(report.tool, "kineto");
    const std::map<std::string, double> planted = {
        {"rms_norm", 0}, {"attention", 3'000}, {"down_projection", -1'500}, {"lm_head", 0}};
    for (const auto& [brick, longer] : planted) {
        const AuditRow& row = row_of(report, brick);
        EXPECT_EQ(row.calls, brick == "lm_head" ? 30u : 180u);
        EXPECT_EQ(row.matched, row.calls);
        EXPECT_EQ(row.operations, brick == "attention" ? 360u : row.calls);
        EXPECT_EQ(row.by_launch, 0u);
        ASSERT_TRUE(row.error_ns.value.has_value()) << brick;
        // Ours begins when what ran before ended: a gap of about 1 us.
        EXPECT_NEAR(*row.error_ns.value, longer + 1'000, 60) << brick;
        EXPECT_NEAR(*row.least_error_ns.value, longer + 1'000, 60) << brick;
    }
    EXPECT_NEAR(*row_of(report, "attention").span_ns.value - *row_of(report, "attention").sum_ns.value, 1'000, 60);
    ASSERT_EQ(report.lanes.size(), 1u);
    EXPECT_EQ(report.lanes[0].stream, "gpu:0 stream 7");
    EXPECT_NEAR(*report.lanes[0].drift_ppm.value, -40, 2);
    EXPECT_NEAR(*report.lanes[0].offset_ns.value, -3.6e12, 1e6);
    EXPECT_EQ(report.not_covered, 0u);
    EXPECT_EQ(report.outside, 0u);
    EXPECT_EQ(report.inside, work.kernels.size());
    EXPECT_EQ(*report.uncovered.value, 0);
    EXPECT_NEAR(*report.follows.value, 1, 0.05);
}

TEST(Audit, steps_that_we_misplace_one_by_one_are_found_and_said_so) {
    const PlannedWork work = plan_work(3, 60, 8, 0.06); // kernels of some microseconds
    OurFlaws flaws;
    flaws.misplaced_ns = 20'000;
    flaws.longer_ns = {{Brick::attention, 800}};
    TraceFlaws trace;
    trace.drift_ppm = -30;
    const AuditReport report = audited(our_recording(work, flaws), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    for (const AuditRow& row : report.rows) {
        EXPECT_EQ(row.matched, row.calls) << row.brick;
        EXPECT_NEAR(*row.error_ns.value, row.brick == "attention" ? 1'800 : 1'000, 60) << row.brick;
    }
    EXPECT_GT(*report.lanes[0].placement_ns.value, 15'000);
    EXPECT_LT(*report.lanes[0].placement_ns.value, 30'000);
}

TEST(Audit, what_only_one_side_has_is_counted_there) {
    const PlannedWork work = plan_work();
    OurFlaws ours;
    ours.missing = {4, 40, 400}; // gemm, attention of other steps, …
    TraceFlaws trace;
    trace.missing = {100, 101, 102}; // of 25 a step
    trace.elsewhere = {{"copy_kernel", 6'000 * us, 6'010 * us, 5'900 * us}};
    const AuditReport report = audited(our_recording(work, ours), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    std::uint64_t calls = 0;
    std::uint64_t operations = 0;
    for (const AuditRow& row : report.rows) {
        calls += row.calls;
        operations += row.operations;
    }
    EXPECT_EQ(calls, work.scopes.size() - 3);
    EXPECT_EQ(report.operations, work.kernels.size() - 3 + 1);
    EXPECT_EQ(report.elsewhere, 1u);
    EXPECT_EQ(report.inside, operations);
    EXPECT_EQ(report.inside + report.not_covered + report.elsewhere, report.operations);
    EXPECT_GE(report.not_covered, 3u);
    EXPECT_FALSE(report.leftovers.empty());
    EXPECT_GT(*report.uncovered.value, 0);
    EXPECT_LT(*report.uncovered.value, 0.01);
    EXPECT_LT(row_of(report, "rms_norm").matched + row_of(report, "attention").matched, 360u);
}

TEST(Audit, a_trace_of_a_part_of_the_run_is_held_against_that_part) {
    const PlannedWork work = plan_work(1, 60);
    TraceFlaws trace;
    trace.from = work.kernels[500].begin;
    trace.to = work.kernels[999].end;
    const AuditReport report = audited(our_recording(work), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    EXPECT_EQ(report.operations, 500u);
    EXPECT_EQ(report.inside, 500u);
    EXPECT_GT(report.calls_outside, 0u);
    std::uint64_t calls = 0;
    for (const AuditRow& row : report.rows) {
        calls += row.calls;
    }
    EXPECT_EQ(calls + report.calls_outside, work.scopes.size());
}

TEST(Audit, steps_that_were_not_timed_hold_operations_that_are_no_fault) {
    const PlannedWork work = plan_work(2, 64);
    OurFlaws ours;
    ours.every = 4;
    TraceFlaws trace;
    trace.drift_ppm = 15;
    const AuditReport report = audited(our_recording(work, ours), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    EXPECT_EQ(report.inside, work.kernels.size() / 4);
    EXPECT_EQ(report.outside, work.kernels.size() * 3 / 4);
    EXPECT_EQ(report.not_covered, 0u);
}

TEST(Audit, an_operation_that_no_scope_covers_goes_to_the_scope_that_launched_it) {
    const PlannedWork work = plan_work();
    OurFlaws flaws;
    flaws.longer_ns = {{Brick::attention, -45'000}}; // of some 66 us: the middle of its second kernel is not in it
    const AuditReport report = audited(our_recording(work, flaws), their_trace(work));
    ASSERT_TRUE(report.fits) << report.reason;
    const AuditRow& row = row_of(report, "attention");
    EXPECT_EQ(row.operations, 360u);
    EXPECT_EQ(row.by_launch, 180u);
    EXPECT_NEAR(*row.error_ns.value, -44'000, 60);
    flaws.launches = false;
    const AuditReport blind = audited(our_recording(work, flaws), their_trace(work));
    EXPECT_EQ(row_of(blind, "attention").by_launch, 0u);
    EXPECT_EQ(blind.not_covered, 180u);
    EXPECT_EQ(blind.leftovers.at(0).name, "flash_kernel");
}

TEST(Audit, a_trace_of_other_work_never_fits) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        const planted::Tape ours = our_recording(plan_work(seed));
        // Another run of the same work; other layers; much smaller kernels.
        for (const PlannedWork& other : {plan_work(seed + 100), plan_work(seed + 200, 30, 5),
                                         plan_work(seed, 30, 6, 0.9), plan_work(seed + 300, 90, 6, 0.07)}) {
            const AuditReport report = audited(ours, their_trace(other));
            EXPECT_FALSE(report.fits) << seed;
            EXPECT_EQ(report.verdict, Outcome::unknown);
            EXPECT_TRUE(report.rows.empty());
            EXPECT_FALSE(report.reason.empty());
        }
    }
}

TEST(Audit, the_time_of_day_tells_apart_what_was_made_at_different_times) {
    const PlannedWork work = plan_work();
    OurFlaws ours;
    ours.realtime = 1'800'000'000'000'000'000;
    TraceFlaws trace;
    trace.realtime = ours.realtime - trace.ahead_ns;
    EXPECT_TRUE(audited(our_recording(work, ours), their_trace(work, trace)).fits);
    trace.realtime += 60'000'000'000;
    const AuditReport late = audited(our_recording(work, ours), their_trace(work, trace));
    EXPECT_FALSE(late.fits);
    EXPECT_NE(late.reason.find("the trace begins 60.0 s"), std::string::npos) << late.reason;
    trace.realtime -= 120'000'000'000;
    const AuditReport early = audited(our_recording(work, ours), their_trace(work, trace));
    EXPECT_NE(early.reason.find("the trace ends 60.0 s"), std::string::npos) << early.reason;
}

TEST(Audit, traces_of_another_rank_are_told_apart) {
    const PlannedWork work = plan_work();
    planted::Tape ours = our_recording(work);
    planted::Tape trace = their_trace(work);
    ours.metadata_.rank = "0";
    EXPECT_TRUE(audited(ours, trace).fits);
    trace.metadata_.rank = "1";
    EXPECT_EQ(audited(ours, trace).reason, "the trace is of rank 1, the recording of rank 0");
}

TEST(Audit, where_calls_do_not_vary_only_the_time_of_day_decides) {
    PlannedWork work;
    std::int64_t now = 5'000 * us;
    for (std::uint64_t step = 0; step < 40; ++step) {
        for (const std::int64_t ns : {20 * us, 90 * us, 150 * us, 20 * us, 90 * us, 150 * us, 640 * us}) {
            const Brick brick = ns == 90 * us ? Brick::attention : ns == 640 * us ? Brick::lm_head : Brick::rms_norm;
            work.kernels.push_back({"kernel", now + 1 * us, now + ns, now - 100 * us});
            work.scopes.push_back({brick, step, now, now + ns, now - 101 * us, now - 98 * us});
            now += ns;
        }
        now += 500 * us;
    }
    const AuditReport open = audited(our_recording(work), their_trace(work));
    EXPECT_TRUE(open.fits);
    EXPECT_EQ(open.verdict, Outcome::unknown);
    EXPECT_FALSE(open.follows.value.has_value());
    EXPECT_NEAR(*row_of(open, "attention").error_ns.value, 1'000, 4);
    OurFlaws ours;
    ours.realtime = 1'800'000'000'000'000'000;
    TraceFlaws trace;
    trace.realtime = ours.realtime - trace.ahead_ns;
    EXPECT_EQ(audited(our_recording(work, ours), their_trace(work, trace)).verdict, Outcome::pass);
}

TEST(Audit, a_gate_fails_beyond_what_it_allows) {
    const PlannedWork work = plan_work();
    OurFlaws flaws;
    flaws.longer_ns = {{Brick::attention, 9'000}};
    AuditQuestion question;
    question.max_error = 10;
    EXPECT_EQ(audited(our_recording(work, flaws), their_trace(work), question).verdict, Outcome::fail);
    question.max_error = 40;
    EXPECT_EQ(audited(our_recording(work, flaws), their_trace(work), question).verdict, Outcome::pass);
    question.max_error = -1;
    EXPECT_FALSE(audit_runs(our_recording(work), their_trace(work), question).ok());
}

TEST(Audit, the_worst_is_one_row_and_its_source_is_named) {
    const PlannedWork work = plan_work(1, 60);
    const PlannedWork graph = plan_work(5, 60, 6, 0.5);
    planted::Tape ours = our_recording(work);
    ours.device_track({3, recording::TrackKind::device_queue, 0, 0, "graph 9", "cuda_graph_event"});
    for (const PlannedScope& scope : graph.scopes) {
        ours.device_scope(3, scope.brick, scope.step, -1, scope.begin,
                          scope.end + (scope.brick == Brick::attention ? 9 * us : 0));
    }
    TraceFlaws trace;
    trace.elsewhere = graph.kernels;
    const AuditReport report = audited(ours, their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    EXPECT_EQ(report.worst, "attention");
    EXPECT_EQ(report.worst_source, "cuda_graph_event");
}

TEST(Audit, a_trace_in_whole_microseconds_fits_and_its_tick_is_said) {
    const PlannedWork work = plan_work();
    TraceFlaws trace;
    trace.tick = 1'000;
    const AuditReport report = audited(our_recording(work), their_trace(work, trace));
    ASSERT_TRUE(report.fits) << report.reason;
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("multiples of 1,000 ns"), std::string::npos);
    EXPECT_NEAR(*row_of(report, "attention").error_ns.value, 1'000, 150);
}

TEST(Audit, files_the_wrong_way_round_are_refused) {
    const PlannedWork work = plan_work(1, 3);
    const auto ours = audit_runs(their_trace(work), their_trace(work));
    ASSERT_FALSE(ours.ok());
    EXPECT_NE(ours.error().message.find("was made of a trace"), std::string::npos);
    const auto trace = audit_runs(our_recording(work), our_recording(work));
    ASSERT_FALSE(trace.ok());
    EXPECT_NE(trace.error().message.find("of plumb's own"), std::string::npos);
    planted::Tape host;
    host.track(1);
    host.scope(1, Brick::attention, 0, 1'000);
    EXPECT_FALSE(audit_runs(host, their_trace(work)).ok());
}

} // namespace
} // namespace plumb::audit
