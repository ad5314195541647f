// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <limits>
#include <sstream>

#include "base/layout.hpp"
#include "export/export.hpp"
#include "export/planted_source_testing.hpp"
#include "support/json_schema.hpp"

namespace {

using nlohmann::json;
using plumb::support::parsed;
using namespace plumb;
using namespace plumb::exporting;
using resolve::SampleKind;

std::vector<json> lines_of(PlantedSource& source) {
    std::stringstream out;
    EXPECT_TRUE(write_as("jsonl", source, out).ok());
    std::vector<json> lines;
    for (std::string line; std::getline(out, line);) {
        lines.push_back(parsed(line));
    }
    EXPECT_EQ(support::schema_problems(PLUMB_TEST_SOURCE_DIR, "plumb.samples.1.json", lines), "");
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

TEST(Jsonl, the_header_says_what_the_run_was_and_what_plumb_compare_wants_equal) {
    PlantedSource source;
    source.run.comparability = {{"cpu", "x"}};
    source.all_descriptions = {{"model", "tiny-llama"}, {"note 1", "by hand"}};
    const json header = lines_of(source)[0];
    EXPECT_EQ(header["description"],
              parsed(R"([{"key":"model","value":"tiny-llama"},{"key":"note 1","value":"by hand"}])"));
    EXPECT_EQ(header["comparability"], parsed(R"([{"key":"cpu","value":"x"},{"key":"model","value":"tiny-llama"}])"));
}

TEST(Jsonl, a_line_holds_everything_known_and_nothing_that_is_not) {
    PlantedSource source;
    source.add_steps(1, 1);
    source.samples[0].bytes = 123.5;
    const auto lines = lines_of(source);
    EXPECT_EQ(lines[1], parsed(R"({"kind":"scope","name":"rms_norm","category":"norm","phase":"decode","step":0,
        "layer":0,"track":1,"begin_ns":1000000007,"duration_ns":1001,"self_ns":1001,"leaf":true,"warmup":false,
        "bytes":123.5})"));
    EXPECT_FALSE(lines.back().contains("name")) << "a step has none";
    source.samples[0].queue_delay_ns = 2500;
    const json delayed = lines_of(source)[1];
    EXPECT_EQ(delayed["queue_delay_ns"], 2500);
    EXPECT_FALSE(delayed.contains("submit_delay_ns"));
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
    EXPECT_EQ(lines[1], parsed(R"({"kind":"launch","graph":18446744073709551600,"phase":"decode","step":3,"track":1,
        "queue":5,"begin_ns":1000000040,"duration_ns":20,"warmup":false,"unread":true})"));
    EXPECT_EQ(lines[2]["kind"], "submit");
    EXPECT_EQ(lines[2]["name"], "qkv_projection");
    EXPECT_EQ(lines[3]["graph"].get<std::uint64_t>(), 0xfffffffffffffff0);
    EXPECT_EQ(lines[3]["sampled"], true);
    EXPECT_FALSE(lines[3].contains("launch_wait"));
}

TEST(Jsonl, checks_of_tensors_follow_the_samples_one_line_each) {
    PlantedSource source;
    source.add_steps(1, 1);
    recording::TensorCheck check;
    check.order = 7;
    check.step_plus_one = 4;
    check.layer_plus_one = 3;
    check.name = Name(Brick::rms_norm).id;
    check.phase = Phase::decode;
    check.position = 12;
    check.track = 1;
    check.dtype = DType::bf16;
    check.shape = {1, 64};
    check.fingerprint.count = 64;
    check.fingerprint.min = -1.5;
    check.fingerprint.max = 0.25;
    check.fingerprint.largest = 9;
    check.fingerprint.hash = 0xfedcba9876543210;
    check.fingerprint.sum = 0.1;
    check.fingerprint.sum_of_squares = 3;
    check.fingerprint.sketch = {0.5, -0.125};
    check.argmax = 5;
    check.margin = 0.75;
    source.all_checks.push_back(check);
    recording::TensorCheck odd;
    odd.name = 4000;
    odd.role = TensorRole::input;
    odd.level = recording::CheckLevel::nonfinite;
    odd.in_graph = true;
    odd.graph_key = 64;
    odd.replay = 3;
    odd.first_index = 32;
    odd.fingerprint.nans = 1;
    odd.fingerprint.first_nonfinite = 5;
    odd.fingerprint.max = std::numeric_limits<double>::infinity();
    source.all_checks.push_back(odd);
    const auto lines = lines_of(source);
    ASSERT_EQ(lines.size(), 1 + source.samples.size() + 2);
    EXPECT_EQ(lines[lines.size() - 2],
              parsed(R"({"kind":"check","name":"rms_norm","category":"norm","role":"output","phase":"decode","step":3,
        "layer":2,"occurrence":0,"sequence":0,"position":12,"order":7,"track":1,"level":"all","dtype":"bf16","shape":[1,64],
        "count":64,"nans":0,"positive_infs":0,"negative_infs":0,"min":-1.5,"max":0.25,"hash":"fedcba9876543210","largest":9,
        "sum":0.1,"sum_of_squares":3,"sketch":[0.5,-0.125],"argmax":5,"margin":0.75})"));
    EXPECT_EQ(lines.back(), parsed(R"({"kind":"check","name":"name 4000","category":"other","role":"input",
        "phase":"none","occurrence":0,"sequence":0,"order":0,"track":0,"graph":64,"replay":3,"level":"nonfinite",
        "dtype":"f32","first_index":32,"count":0,"nans":1,"positive_infs":0,"negative_infs":0,"first_nonfinite":5})"))
        << "what is not known, or no number, has no field";
}

TEST(Jsonl, F6_kernels_transfers_and_tasks_recorded_one_by_one_have_lines) {
    PlantedSource source;
    source.add_nodes();
    source.dependencies.push_back({{1, 1}, {1, 4}, 7});
    recording::KernelInfo kernel;
    kernel.code_hash = 0xabc;
    kernel.name = "gemm";
    kernel.source = "void gemm();";
    source.all_kernels = {kernel, {}};
    const auto lines = lines_of(source);
    ASSERT_EQ(lines.size(), 7U);
    EXPECT_EQ(lines[0]["kernels"][0]["source"], "void gemm();");
    EXPECT_FALSE(lines[0]["kernels"][1].contains("source"));
    EXPECT_EQ(lines[1], parsed(R"({"kind":"kernel","name":"gemm<\"a\", b>","phase":"decode","step":7,"layer":3,
        "track":1,"sequence":1,"begin_ns":1000001000,"duration_ns":500,"warmup":false,"code":"0000000000000abc",
        "grid":[64,2,1],"block":[256,1,1],"shared_bytes":4096,"flops":1000000})"));
    EXPECT_FALSE(lines[2].contains("grid"));
    EXPECT_EQ(lines[3], parsed(R"({"kind":"kernel","name":"gemm<\"a\", b>","phase":"decode","step":7,"track":1,
        "sequence":3,"told_ns":1000002000,"warmup":false,"sampled":true,"grid":[1,1,1],"block":[1,1,1],
        "shared_bytes":0})"));
    EXPECT_EQ(lines[4], parsed(R"({"kind":"transfer","phase":"decode","step":7,"track":1,"sequence":4,
        "begin_ns":1000003000,"duration_ns":40,"warmup":false,"direction":"device_to_host",
        "source":"000000000000000a","transferred":8192})"));
    EXPECT_EQ(lines[5], parsed(R"({"kind":"task","phase":"decode","step":7,"track":1,"sequence":5,
        "told_ns":1000004000,"warmup":false,"polls":5,"yields":2,"polled_ns":900})"));
    EXPECT_EQ(lines[6], parsed(R"({"kind":"dependency","from_track":1,"from_sequence":1,"track":1,"sequence":4})"));
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
    EXPECT_FALSE(write_as("jsonl", source, out).ok());
}

} // namespace
