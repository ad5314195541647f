// SPDX-License-Identifier: Apache-2.0
// Steps of a planted engine with a device, lane by lane.
#include "answers/timeline/timeline.hpp"

#include "analysis/planted_wall_testing.hpp"
#include <gtest/gtest.h>

#include "answers/planted_answer_testing.hpp"

namespace plumb {

const answers::Entry& timeline_answer();

namespace {

using analysis::WallEngine;
using nlohmann::json;
using planted::us;

/// Each step launches attention, which runs from 100 us to 400 us of it; in step 4 to 700 us.
WallEngine slow_engine() {
    WallEngine made;
    made.tells_launches = true;
    made.add_queue();
    int number = 0;
    made.steps(8, [&](std::int64_t t) {
        made.source.layer_begin(WallEngine::host, 2, t + 10 * us);
        made.command(Brick::attention, t + 20 * us, t + 30 * us, t + 100 * us, t + (number == 4 ? 700 : 400) * us);
        made.source.layer_end(WallEngine::host, 2, t + 10 * us, t + 50 * us);
        ++number;
    });
    return made;
}

struct Span {
    std::string name, lane;
    std::int64_t begin_ns, length_ns;
};

std::vector<Span> spans_of(const json& step) {
    std::vector<Span> spans;
    const json& of = step["spans"];
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < of["names"].size(); ++i) {
        begin += of["begins_ns"][i].get<std::int64_t>();
        spans.push_back({step["names"][of["names"][i].get<std::size_t>()],
                         step["lanes"][of["lanes"][i].get<std::size_t>()]["name"], begin,
                         of["durations_ns"][i].get<std::int64_t>()});
    }
    return spans;
}

TEST(Timeline, a_step_has_its_lanes_spans_arrows_and_path) {
    const auto [document, text] = answers::said_of(timeline_answer(), slow_engine().source, {{"step", "4"}});
    ASSERT_EQ(document["steps"].size(), 1);
    const json& step = document["steps"][0];
    EXPECT_EQ(step["choice"], "asked");
    const std::vector<Span> spans = spans_of(step);
    std::size_t device = spans.size();
    for (std::size_t i = 0; i < spans.size(); ++i) {
        device = spans[i].lane == "stream 0" ? i : device;
    }
    ASSERT_LT(device, spans.size());
    EXPECT_EQ(spans[device].name, "attention");
    EXPECT_EQ(spans[device].begin_ns, 100 * us);
    EXPECT_EQ(spans[device].length_ns, 600 * us);
    bool launched = false;
    for (std::size_t i = 0; i < step["to"].size(); ++i) {
        const Span& from = spans[step["from"][i].get<std::size_t>()];
        launched = launched || (step["to"][i] == device && from.lane != "stream 0" && from.begin_ns == 20 * us);
    }
    EXPECT_TRUE(launched) << step.dump();
    EXPECT_NE(std::find(step["path"].begin(), step["path"].end(), json(device)), step["path"].end());
    EXPECT_EQ(step["lanes"][1]["busy_ns"], 600 * us);
    EXPECT_EQ(step["left_out"], 0);
    EXPECT_NE(text.find("60.0 %"), std::string::npos) << text;
}

TEST(Timeline, without_a_number_it_is_the_median_step_and_the_slowest) {
    WallEngine made;
    int number = 0;
    made.steps(9, [&](std::int64_t) { ++number; });
    made.source.step_begin(1, 100, Phase::decode, 20'000 * us);
    made.source.step_end(1, Phase::decode, 20'000 * us, 24'000 * us);
    const auto [document, text] = answers::said_of(timeline_answer(), made.source);
    ASSERT_EQ(document["steps"].size(), 2);
    EXPECT_EQ(document["steps"][0]["choice"], "median");
    EXPECT_NE(document["steps"][0]["step"], 100);
    EXPECT_EQ(document["steps"][1]["choice"], "slowest");
    EXPECT_EQ(document["steps"][1]["step"], 100);
}

TEST(Timeline, so_many_of_the_slowest_of_each_phase_by_their_periods) {
    WallEngine made;
    made.steps(12, [](std::int64_t) {});
    std::int64_t t = 20'000 * us;
    const auto step = [&](std::uint64_t number, Phase phase, std::int64_t length) {
        made.source.step_begin(1, number, phase, t);
        made.source.step_end(1, phase, t, t + length * us);
        t += length * us;
    };
    step(100, Phase::decode, 4000); // its period also holds the gap before it
    step(101, Phase::decode, 6000);
    step(102, Phase::prefill, 9000);
    step(103, Phase::decode, 5000);
    const auto [document, text] = answers::said_of(timeline_answer(), made.source, {{"slowest", "2"}});
    std::vector<std::uint64_t> numbers;
    for (const json& one : document["steps"]) {
        numbers.push_back(one["step"]);
        EXPECT_EQ(one["choice"], numbers.size() == 1 ? "median" : "slowest");
    }
    ASSERT_EQ(numbers.size(), 4);
    EXPECT_EQ((std::vector<std::uint64_t>{numbers.begin() + 1, numbers.end()}),
              (std::vector<std::uint64_t>{100, 101, 102}));
}

TEST(Timeline, what_passed_before_a_step_is_named_and_so_is_its_place_among_the_slowest) {
    WallEngine made;
    std::int64_t last = 0;
    made.steps(12, [&](std::int64_t t) { last = t + 1000 * us; });
    const auto step = [&](std::uint64_t number, std::int64_t wait, std::int64_t length) {
        made.source.step_begin(1, number, Phase::decode, last + wait * us);
        made.source.step_end(1, Phase::decode, last + wait * us, last + (wait + length) * us);
        last += (wait + length) * us;
    };
    step(100, 4500, 600);
    step(101, 0, 2500);
    const auto [document, text] = answers::said_of(timeline_answer(), made.source, {{"slowest", "2"}});
    const json& slowest = document["steps"][1];
    EXPECT_EQ(slowest["step"], 100);
    EXPECT_EQ(slowest["place"], 1);
    EXPECT_EQ(slowest["period_ns"], 5100 * us);
    EXPECT_EQ(slowest["before_ns"], 4500 * us);
    EXPECT_EQ(slowest["span_ns"], 600 * us);
    EXPECT_EQ(document["steps"][0]["place"], 0);
    EXPECT_EQ(document["steps"][2]["place"], 2);
    EXPECT_NE(text.find(", the median by length\n"), std::string::npos) << text;
    EXPECT_NE(text.find("step 100, decode, the slowest by period\nperiod 5.100 ms, 4.500 ms of it before the step "
                        "began; length 0.600 ms, critical path 0.600 ms\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("step 101, decode, number 2 of the slowest by period\nperiod 2.500 ms, 0.000 ms of it"),
              std::string::npos)
        << text;
}

TEST(Timeline, what_one_step_does_not_need_of_the_room_the_others_have) {
    EXPECT_EQ(shares_of_timelines({90'000, 90'000}), (std::vector<std::size_t>{20'000, 20'000}));
    EXPECT_EQ(shares_of_timelines({90'000, 1000, 90'000, 5000}),
              (std::vector<std::size_t>{17'000, 10'000, 17'000, 13'000}));
    EXPECT_EQ(shares_of_timelines({90'000, 90'000, 90'000, 90'000}), std::vector<std::size_t>(4, 10'000));
}

TEST(Timeline, what_is_beyond_its_room_is_counted) {
    PathReport path;
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("a");
    for (int i = 0; i < 10; ++i) {
        node.begin_ns = i * 100;
        node.duration_ns = 10 + i;
        builder.add(node);
    }
    path.graph = *builder.build();
    path.analysis = path.graph.analyse();
    path.tracks = {"main"};
    const TimelineStep step = timeline_of(path, TimelineChoice::asked, 4);
    EXPECT_EQ(step.left_out, 6);
    EXPECT_EQ(step.spans.durations_ns, (std::vector<std::int64_t>{16, 17, 18, 19}));
    EXPECT_EQ(step.spans.begins_ns, (std::vector<std::int64_t>{0, 100, 100, 100}));
}

TEST(Timeline, how_busy_a_lane_is_counts_what_is_left_out) {
    PathReport path;
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("a");
    node.duration_ns = 100;
    for (const std::int64_t begin : {0, 100, 200, 250, 300, 400, 600, 700}) { // nothing from 500 to 600
        node.begin_ns = 5000 + begin;
        builder.add(node);
    }
    path.graph = *builder.build();
    path.analysis = path.graph.analyse();
    path.tracks = {"main"};
    path.span_ns = 800;
    const TimelineStep step = timeline_of(path, TimelineChoice::asked, 2);
    ASSERT_EQ(step.lanes.size(), 1U);
    EXPECT_EQ(step.lanes[0].spans, 8U);
    EXPECT_EQ(step.lanes[0].busy_ns, 700);
    const std::string text = page::text_of(page_of(TimelineReport{{step}}, {false, 75}), false); // 40 columns of 20 ns
    EXPECT_NE(text.find("87.5 %  " + std::string(25, '#') + "     " + std::string(10, '#') + '\n'), std::string::npos)
        << text;
}

} // namespace
} // namespace plumb
