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
}

} // namespace
} // namespace plumb::audit
