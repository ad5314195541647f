// SPDX-License-Identifier: Apache-2.0
#include "answers/rendered_testing.hpp"
#include "answers/report/report.hpp"
#include "answers/report/sample_report_testing.hpp"

namespace plumb::answers {
namespace {

std::string problem_of(const json& report) {
    return support::schema_problems(PLUMB_TEST_SOURCE_DIR, "plumb.report.2.json", {report});
}

TEST(JsonReport, output_is_valid_under_the_schema_and_every_key_of_it_is_documented) {
    expect_valid<Report>(PLUMB_TEST_SOURCE_DIR,
                         {{}, healthy_report(), crowded_report(), device_report(), peaks_report()});
}

TEST(JsonReport, the_schema_check_rejects_what_is_wrong) {
    const json good = parsed(render_json(crowded_report()));
    const auto problem_after = [&good](const char* pointer, const json& value) {
        json bad = good;
        bad[json::json_pointer(pointer)] = value;
        return problem_of(bad);
    };
    EXPECT_NE(problem_after("/schema", "plumb.report/1"), "");
    EXPECT_NE(problem_after("/bricks/0/time/p50_ns", nullptr), "");
    EXPECT_NE(problem_after("/bricks/0/time/p50_ns", json::object({{"missing", "x"}})), "");
    EXPECT_NE(problem_after("/phases/0/steps", "1"), "");
    EXPECT_NE(problem_after("/losses/0/extra", 1), "");
    json bad = good;
    bad["phases"][0].erase("wall");
    EXPECT_NE(problem_of(bad), "");
}

TEST(JsonReport, F1_an_absent_figure_carries_its_reason) {
    const json report = parsed(render_json(healthy_report()));
    EXPECT_EQ(report["phases"][0]["period"]["p90_ns"]["absent"], "too few samples (n = 1, p90 needs 100)");
    EXPECT_EQ(report["bricks"][0]["gigabytes_per_second"]["absent"], "no work was given");
    EXPECT_EQ(report["bricks"][1]["gigabytes_per_second"], 29.85);
}

TEST(JsonReport, F10_the_graph_key_arrives_whole) {
    const json report = parsed(render_json(device_report()));
    EXPECT_EQ(report["graph_bricks"][0]["graph"].get<std::uint64_t>(), 0xffffffffffffffff);
    EXPECT_EQ(report["graphs"][0]["graph"].get<std::uint64_t>(), 0xffffffffffffffff);
    EXPECT_EQ(report["tracks"][0]["graph"].get<std::uint64_t>(), 0xffffffffffffffff);
    EXPECT_EQ(report["bricks"][0]["device"]["basis"], "replays");
    EXPECT_EQ(report["bricks"][1]["device"]["sites_timed"], 12);
    EXPECT_EQ(report["bricks"][2]["device"]["launch_wait"], 3);
    EXPECT_EQ(report["phases"][0]["sampled_steps"], 17);
    EXPECT_EQ(report["phases"][0]["device"]["in_graph_busy_at_most_per_step_ns"], 40.5e6);
}

TEST(JsonReport, a_report_of_a_cpu_alone_holds_nothing_of_devices) {
    const std::string text = render_json(crowded_report());
    for (const char* word : {"\"graph", "\"basis", "sampled", "\"device\": {"}) {
        EXPECT_EQ(text.find(word), std::string::npos) << word;
    }
}

TEST(JsonReport, values_arrive_unrounded) {
    const json report = parsed(render_json(crowded_report()));
    EXPECT_EQ(report["phases"][1]["wall"]["coverage"].get<double>(), 47.71 / 47.92);
    EXPECT_EQ(report["bricks"][2]["time"]["p90_ns"].get<double>(), 412 * 1.05e3);
    EXPECT_EQ(report["brick_layers"][1]["layer"], 1);
    EXPECT_EQ(report["description"][0]["value"], "qwen2.5-0.5b bf16");
    EXPECT_EQ(report["sync_mode"], "deferred");
}

TEST(JsonReport, M3_dropped_records_are_listed) {
    const json report = parsed(render_json(crowded_report()));
    ASSERT_EQ(report["losses"].size(), 2U);
    EXPECT_EQ(report["losses"][0], json({{"reason", "ring full"}, {"count", 12345}}));
    EXPECT_EQ(report["unresolved"], 7);
}

TEST(JsonReport, T8_hostile_names_stay_inside_their_strings) {
    Report report = crowded_report();
    const std::string evil = "a\"},{\n\t\\\x01 \xC3\xA9 \xff";
    report.bricks[0].key.name = evil;
    report.tracks[0].name = evil;
    report.labels[0].label = evil;
    report.losses[0].reason = evil;
    report.notes = {evil};
    report.description[0] = {evil, evil};
    report.phases[0].wall.coverage = missing(evil.c_str());
    json document = parsed(render_json(report)); // not const: a section that is missing reads as null
    const std::string replaced = "a\"},{\n\t\\\x01 \xC3\xA9 \xEF\xBF\xBD";
    EXPECT_EQ(document["bricks"][0]["name"], replaced);
    EXPECT_EQ(document["tracks"][0]["name"], replaced);
    EXPECT_EQ(document["labels"][0]["label"], replaced);
    EXPECT_EQ(document["losses"][0]["reason"], replaced);
    EXPECT_EQ(document["notes"][0], replaced);
    EXPECT_EQ(document["description"][0]["key"], replaced);
    EXPECT_EQ(document["phases"][0]["wall"]["coverage"]["absent"], replaced);
    EXPECT_EQ(problem_of(document), "");
}

} // namespace
} // namespace plumb::answers
