// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/export.hpp"
#include "export/planted_source.hpp"
#include "plumb/layout.hpp"

namespace {

using nlohmann::json;
using namespace plumb;
using namespace plumb::exporting;
using resolve::SampleKind;

std::vector<json> lines_of(PlantedSource& source) {
    std::stringstream out;
    EXPECT_TRUE(jsonl(source, out).ok());
    std::vector<json> lines;
    for (std::string line; std::getline(out, line);) {
        lines.push_back(json::parse(line));
    }
    return lines;
}

TEST(Jsonl, one_header_line_then_one_sample_per_line) {
    PlantedSource source;
    source.run.config = "on";
    source.run.costs = {{"scope", 17.5}};
    source.run.comparability = {{"cpu", "x"}};
    source.all_notes = {"cut short"};
    source.add_steps(5, 3);
    const auto lines = lines_of(source);
    ASSERT_EQ(lines.size(), 1 + source.samples.size());
    EXPECT_EQ(lines[0]["schema"], "plumb.samples/1");
    EXPECT_EQ(lines[0]["tracks"][0]["name"], "main");
    EXPECT_EQ(lines[0]["costs"][0]["ns"], 17.5);
    EXPECT_EQ(lines[0]["comparability"][0]["key"], "cpu");
    EXPECT_EQ(lines[0]["notes"][0], "cut short");
    EXPECT_EQ(lines[0]["pid"], 4711);
}

TEST(Jsonl, a_line_holds_everything_known_and_nothing_that_is_not) {
    PlantedSource source;
    source.add_steps(1, 1);
    source.samples[0].bytes = 123.5;
    const auto lines = lines_of(source);
    EXPECT_EQ(lines[1], json::parse(R"({"kind":"scope","name":"rms_norm","category":"norm","phase":"decode","step":0,
        "layer":0,"track":1,"begin_ns":1000000007,"duration_ns":1001,"self_ns":1001,"leaf":true,"warmup":false,
        "bytes":123.5})"));
    EXPECT_FALSE(lines.back().contains("name")) << "a step has none";
    EXPECT_FALSE(lines.back().contains("layer"));
    EXPECT_EQ(lines.back()["kind"], "step");
}

TEST(Jsonl, F10_launches_and_scopes_of_a_graph_carry_its_key_and_marks) {
    PlantedSource source;
    source.add_track(7, recording::TrackKind::captured_graph, "graph", 0xfffffffffffffff0);
    recording::GraphInfo row;
    row.key = 0xfffffffffffffff0;
    row.replays = 12;
    source.all_graphs = {row};
    resolve::Submission& launch = source.submit(5, 3, 40, 20);
    launch.graph = true;
    launch.key = 0xfffffffffffffff0;
    launch.flags = launch_unread;
    source.submit(5, 3, 80, 20).name = 3;
    source.add_device(7, 3, 3, 100, 50).left_out = true;
    const auto lines = lines_of(source);
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines[0]["tracks"][1]["graph"].get<std::uint64_t>(), 0xfffffffffffffff0);
    EXPECT_EQ(lines[0]["graphs"][0]["replays"], 12);
    EXPECT_EQ(lines[1],
              json::parse(R"({"kind":"launch","graph":18446744073709551600,"phase":"decode","step":3,"track":1,
        "queue":5,"begin_ns":1000000040,"duration_ns":20,"warmup":false,"unread":true})"));
    EXPECT_EQ(lines[2]["kind"], "submit");
    EXPECT_EQ(lines[2]["name"], "qkv_projection");
    EXPECT_EQ(lines[3]["graph"].get<std::uint64_t>(), 0xfffffffffffffff0);
    EXPECT_EQ(lines[3]["sampled"], true);
    EXPECT_FALSE(lines[3].contains("launch_wait"));
}

TEST(Jsonl, T8_hostile_names_stay_on_their_line) {
    PlantedSource source;
    source.all_names = {{300, Category::moe, "a\"}\n{\xff"}};
    source.run.host = "h\n\"";
    source.add(SampleKind::scope, 300, 0, 1);
    const auto lines = lines_of(source);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0]["host"], "h\n\"");
    EXPECT_EQ(lines[1]["name"], "a\"}\n{\xEF\xBF\xBD");
}

TEST(Jsonl, an_output_that_refuses_data_is_an_error) {
    PlantedSource source;
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(jsonl(source, out).ok());
}

} // namespace
