// SPDX-License-Identifier: Apache-2.0
// A host that sleeps until the device is ready: the path must go through the device, and agree with the wall account.
#include <gtest/gtest.h>

#include "analysis/path_testing.hpp"
#include "analysis/planted_wall_testing.hpp"

namespace plumb::analysis::path_test {
namespace {

using planted::us;

PathReport path_of_engine(WallEngine& engine) {
    PathOptions options;
    options.step = 1;
    return path_of(engine.source, options);
}

std::int64_t path_ns(const PathReport& report, bool device) {
    double sum = 0;
    for (const PathRow& row : report.rows) {
        sum += row.device == device ? row.path_ns : 0;
    }
    return static_cast<std::int64_t>(sum);
}

/// In a submit scope the host gives the device work of 850 us and reads its result, asleep; `stamped`: the kernel's samples of
/// CPU time lie at its borders, else only at those of the step.
void blocking_read(WallEngine& engine, std::int64_t t, bool stamped, bool asleep) {
    engine.scope(WallEngine::tokenize, t, t + 20 * us);
    if (stamped && asleep) {
        engine.off_cpu(t + 40 * us, t + 900 * us);
    }
    engine.command(Brick::lm_head, t + 20 * us, t + 910 * us, t + 50 * us, t + 900 * us);
    engine.scope(WallEngine::prepare, t + 910 * us, t + 1'000 * us);
    if (!stamped && asleep) {
        engine.slept(860 * us);
    }
}

PathReport blocked(bool stamped, bool asleep) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(4, [&](std::int64_t t) { blocking_read(engine, t, stamped, asleep); });
    return path_of_engine(engine);
}

TEST(PathWaits, T10_a_blocking_read_inside_a_submit_scope_is_the_device_on_the_path_and_no_work_of_the_host) {
    for (const bool stamped : {true, false}) {
        const PathReport report = blocked(stamped, true);
        EXPECT_EQ(path_ns(report, true), 850 * us) << stamped;
        std::int64_t host = 0;
        for (NodeId id = 0; id < report.graph.size(); ++id) {
            if (!report.graph[id].device && !report.graph[id].container) {
                host += report.graph[id].duration_ns;
            }
        }
        EXPECT_LE(host, 150 * us) << "20 before, 20 or 30 to submit, 10 to wake up, 90 behind";
        EXPECT_LE(report.analysis.length_ns, 1'000 * us);
        EXPECT_GE(report.analysis.length_ns, 980 * us) << "less the delay of the launch";
        EXPECT_TRUE(noted(report, "the host slept until a device had ended")) << stamped;
    }
}

TEST(PathWaits, a_host_that_works_all_through_its_submission_is_work_of_the_host) {
    const PathReport report = blocked(true, false);
    EXPECT_EQ(report.analysis.length_ns, 1'000 * us);
    EXPECT_FALSE(noted(report, "slept"));
    std::int64_t submitted = 0;
    for (const PathRow& row : report.rows) {
        if (row.name == "rest of a submission") {
            submitted += static_cast<std::int64_t>(row.total_ns);
        }
    }
    EXPECT_EQ(submitted, 860 * us);
}

TEST(PathWaits, the_host_works_on_the_path_no_longer_than_wall_says_it_did) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(4, [&](std::int64_t t) { blocking_read(engine, t, true, true); });
    WallOptions options;
    options.step = 1;
    const WallPhase wall = engine.decode(options);
    const PathReport path = path_of_engine(engine);
    EXPECT_LE(static_cast<double>(path_ns(path, false)), value_of(wall.lanes[0].busy_ns));
    EXPECT_EQ(static_cast<double>(path_ns(path, true)), value_of(wall.lanes[1].busy_ns));
    EXPECT_EQ(value_of(wall.lanes[1].host_waits_ns), 850e3) << "the host never ran while the device did";
}

TEST(PathWaits, a_wait_inside_a_plain_scope_parts_it_and_what_follows_comes_after_the_device) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(4, [&](std::int64_t t) {
        engine.command(Brick::lm_head, t, t + 20 * us, t + 30 * us, t + 700 * us);
        engine.off_cpu(t + 100 * us, t + 700 * us);
        engine.scope(WallEngine::tokenize, t + 20 * us, t + 800 * us);
        engine.scope(WallEngine::prepare, t + 800 * us, t + 1'000 * us);
    });
    const PathReport report = path_of_engine(engine);
    std::vector<std::string> names;
    for (const NodeId id : report.analysis.path) {
        names.push_back(report.graph.name_of(id));
    }
    EXPECT_EQ(names, (std::vector<std::string>{"submit lm_head", "lm_head", "tokenize", "prepare"}));
    EXPECT_EQ(report.analysis.length_ns, (20 + 670 + 100 + 200) * us);
    std::int64_t tokenize = 0;
    for (const PathRow& row : report.rows) {
        tokenize += row.name == "tokenize" ? static_cast<std::int64_t>(row.total_ns) : 0;
    }
    EXPECT_EQ(tokenize, 180 * us);
}

TEST(PathWaits, sleep_while_nothing_ended_on_a_device_was_for_another_reason_and_stays_the_hosts) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(4, [&](std::int64_t t) {
        engine.command(Brick::lm_head, t, t + 20 * us, t + 30 * us, t + 100 * us);
        engine.off_cpu(t + 300 * us, t + 700 * us);
        engine.scope(WallEngine::tokenize, t + 20 * us, t + 1'000 * us);
    });
    const PathReport report = path_of_engine(engine);
    EXPECT_EQ(report.analysis.length_ns, 1'000 * us);
    EXPECT_EQ(path_ns(report, true), 0);
}

TEST(PathWaits, a_wake_up_that_seems_to_come_a_little_before_the_commands_end_is_still_caused_by_it) {
    WallEngine engine;
    engine.add_queue();
    engine.steps(4, [&](std::int64_t t) {
        engine.off_cpu(t + 40 * us, t + 896 * us);
        engine.command(Brick::lm_head, t + 20 * us, t + 896 * us, t + 50 * us, t + 900 * us);
    });
    const PathReport report = path_of_engine(engine);
    EXPECT_EQ(path_ns(report, true), 850 * us);
}

/// Each step hands 600 us of work to another thread, and waits: asleep from 110 to 710 us, or spinning.
PathReport with_worker(bool asleep) {
    constexpr std::uint32_t other = 2;
    WallEngine engine;
    engine.source.track(other, "worker");
    std::int64_t worked = 0;
    engine.steps(4, [&](std::int64_t t) {
        engine.source.cpu_time(other, t + 105 * us, worked);
        engine.source.context(other, engine.step);
        engine.source.scope(other, Brick::up_projection, t + 105 * us, t + 705 * us);
        engine.source.context_end(other);
        worked += 600 * us;
        engine.source.cpu_time(other, t + 705 * us, worked);
        engine.scope(WallEngine::tokenize, t, t + 100 * us);
        if (asleep) {
            engine.off_cpu(t + 110 * us, t + 710 * us);
        }
        engine.scope(WallEngine::prepare, t + 720 * us, t + 1'000 * us);
    });
    return path_of_engine(engine);
}

const PathRow& row_of(const PathReport& report, const std::string& name) {
    const auto found =
        std::find_if(report.rows.begin(), report.rows.end(), [&](const PathRow& row) { return row.name == name; });
    EXPECT_NE(found, report.rows.end()) << name;
    return *found;
}

TEST(PathWaits, a_step_that_sleeps_until_another_thread_has_ended_goes_through_that_thread) {
    const PathReport report = with_worker(true);
    const PathRow& worker = row_of(report, "up_projection");
    EXPECT_EQ(worker.on_path, 1u);
    EXPECT_EQ(worker.slack_ns, 0);
    EXPECT_EQ(worker.gain_ns.value, 590.0 * us) << "then 10 us of the step's own thread are left";
    EXPECT_EQ(row_of(report, "tokenize").gain_ns.value, 100.0 * us) << "the other thread began after it";
    EXPECT_GE(report.analysis.length_ns, 980 * us);
    EXPECT_LE(row_of(report, "unattributed").path_ns, 20.0 * us);
    EXPECT_TRUE(noted(report, "us the step's thread slept until another thread had ended something"));
    EXPECT_FALSE(noted(report, "Nothing says what waited"));
}

TEST(PathWaits, where_nothing_says_what_waited_for_a_thread_its_gain_is_not_known) {
    const PathReport report = with_worker(false);
    const PathRow& worker = row_of(report, "up_projection");
    EXPECT_EQ(worker.on_path, 0u);
    EXPECT_FALSE(worker.gain_ns.value);
    EXPECT_EQ(worker.gain_ns.reason, "nothing says what waited for its thread");
    EXPECT_TRUE(noted(report, "Nothing says what waited for these threads"));
    EXPECT_TRUE(noted(report, "worker"));
}

} // namespace
} // namespace plumb::analysis::path_test
