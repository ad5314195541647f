// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <set>
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
using resolve::Sample;
using resolve::SampleKind;

json trace_of(PlantedSource& source) {
    std::ostringstream out;
    EXPECT_TRUE(write_as("chrome_trace", source, out).ok());
    return parsed(out.str());
}

std::int64_t nanoseconds(const json& microseconds) {
    return static_cast<std::int64_t>(std::llround(microseconds.get<double>() * 1e3));
}

/// Reads a trace with nothing but the format's rules. Empty: sound; else what is wrong.
std::string lane_problem(const json& trace) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> lanes;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") == "M") {
            continue;
        }
        const std::int64_t begin = nanoseconds(event.at("ts"));
        const std::int64_t duration = event.at("ph") == "X" ? nanoseconds(event.at("dur")) : 0;
        if (begin < 0 || duration < 0) {
            return "negative time: " + event.dump();
        }
        if (event.at("ph") == "X") {
            lanes[{event.at("pid"), event.at("tid")}].emplace_back(begin, -(begin + duration));
        }
    }
    for (auto& [lane, intervals] : lanes) {
        std::sort(intervals.begin(), intervals.end()); // an outer interval before the inner ones that begin with it
        std::vector<std::int64_t> open;
        for (const auto& [begin, negated_end] : intervals) {
            while (!open.empty() && open.back() <= begin) {
                open.pop_back();
            }
            if (!open.empty() && open.back() < -negated_end) {
                return "overlap in lane " + std::to_string(lane.second) + " at " + std::to_string(begin);
            }
            open.push_back(-negated_end);
        }
    }
    return {};
}

std::map<std::string, std::int64_t> sums_of(const json& trace) {
    std::map<std::string, std::int64_t> sums;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") == "X" && event.at("cat") != "step" && event.at("cat") != "layer") {
            sums[event.at("name")] += nanoseconds(event.at("dur"));
        }
    }
    return sums;
}

std::set<std::int64_t> lanes_of(const json& trace, const std::string& name) {
    std::set<std::int64_t> lanes;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") == "X" && event.at("name") == name) {
            lanes.insert(event.at("tid").get<std::int64_t>());
        }
    }
    return lanes;
}

TEST(ChromeTrace, F4_events_carry_their_true_start_and_lanes_never_overlap) {
    PlantedSource source;
    source.add_steps(3, 4);
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    std::size_t at = 0;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "X") {
            continue;
        }
        const Sample& sample = source.samples.at(at++);
        EXPECT_EQ(nanoseconds(event["ts"]), sample.begin_ns - source.origin);
        EXPECT_EQ(nanoseconds(event["dur"]), sample.duration_ns);
    }
    EXPECT_EQ(at, source.samples.size());
}

TEST(ChromeTrace, sums_per_brick_equal_those_of_the_samples) {
    PlantedSource source;
    source.add_steps(50, 4);
    const auto sums = sums_of(trace_of(source));
    EXPECT_EQ(sums, (std::map<std::string, std::int64_t>{{"rms_norm", 200 * 1001}, {"attention", 200 * 1001}}));
}

TEST(ChromeTrace, the_lane_check_finds_what_it_looks_for) {
    PlantedSource source;
    source.add(SampleKind::scope, 1, 0, 100);
    source.add(SampleKind::scope, 1, 50, 100);
    EXPECT_NE(lane_problem(trace_of(source)), "");
    const json negative = parsed(R"({"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":-1,"dur":2,"name":"x"}]})");
    EXPECT_NE(lane_problem(negative), "");
}

TEST(ChromeTrace, spans_lie_in_as_many_lanes_of_their_own_as_they_need) {
    PlantedSource source;
    source.add_steps(1, 2);
    source.add(SampleKind::span, 29, 0, 100);
    source.add(SampleKind::span, 29, 50, 100); // overlaps the first
    source.add(SampleKind::span, 30, 60, 20);  // nested in both
    source.add(SampleKind::span, 30, 300, 10); // clear of all
    source.add(SampleKind::span, 31, 90, 300); // overlaps the first two
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    EXPECT_EQ(lanes_of(trace, "rms_norm"), std::set<std::int64_t>{2});
    EXPECT_EQ(lanes_of(trace, "copy_h2d"), (std::set<std::int64_t>{3, 4}));
    EXPECT_EQ(lanes_of(trace, "copy_d2h"), std::set<std::int64_t>{3});
    EXPECT_EQ(lanes_of(trace, "copy_d2d"), std::set<std::int64_t>{5});
    EXPECT_NE(trace.dump().find("main (99), spans 3"), std::string::npos);
}

/// The flow arrows: id -> (start, end) as (lane, ns).
std::map<std::int64_t, std::array<std::pair<std::int64_t, std::int64_t>, 2>> arrows_of(const json& trace) {
    std::map<std::int64_t, std::array<std::pair<std::int64_t, std::int64_t>, 2>> arrows;
    for (const json& event : trace.at("traceEvents")) {
        if (event["ph"] == "s" || event["ph"] == "f") {
            arrows[event["id"]][event["ph"] == "s" ? 0 : 1] = {event["tid"], nanoseconds(event["ts"])};
        }
    }
    return arrows;
}

const json& event_named(const json& trace, const std::string& name) {
    for (const json& event : trace.at("traceEvents")) {
        if (event["ph"] == "X" && event["name"] == name) {
            return event;
        }
    }
    static const json none;
    ADD_FAILURE() << "no event " << name;
    return none;
}

TEST(ChromeTrace, arrows_lead_from_submission_and_launch_to_what_they_started_on_the_device) {
    PlantedSource source;
    source.add_track(5, recording::TrackKind::device_queue, "stream");
    source.add_track(7, recording::TrackKind::captured_graph, "graph 64", 64);
    source.submit(5, 0, 10, 20).name = 1;
    source.submit(5, 0, 40, 20).name = 2;
    resolve::Submission& plain = source.submit(5, 1, 1000, 20);
    plain.graph = true;
    plain.key = 64;
    plain.number = 0;
    resolve::Submission& launch = source.submit(5, 2, 2000, 20);
    launch.graph = true;
    launch.key = 64;
    launch.flags = launch_instrumented;
    source.add_device(5, 2, 0, 700, 50); // in another order than submitted
    source.began_by(2);
    source.add_device(5, 1, 0, 600, 50);
    source.began_by(1);
    source.add_device(7, 3, 2, 2100, 50);
    source.add_device(7, 4, 2, 2150, 50);
    source.add_device(5, 9, 0, 800, 50); // nobody is known to have submitted it
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    const auto arrows = arrows_of(trace);
    ASSERT_EQ(arrows.size(), 3U) << "a plain replay has no samples to point at";
    for (const auto& [id, arrow] : arrows) {
        EXPECT_LE(arrow[0].second, arrow[1].second);
        EXPECT_NE(arrow[0].first, arrow[1].first);
    }
    const auto leads = [&](const char* from, const char* to) {
        const json& begin = event_named(trace, from);
        const json& end = event_named(trace, to);
        return std::any_of(arrows.begin(), arrows.end(), [&](const auto& entry) {
            return entry.second[0] == std::pair(begin["tid"].get<std::int64_t>(), nanoseconds(begin["ts"])) &&
                   entry.second[1] == std::pair(end["tid"].get<std::int64_t>(), nanoseconds(end["ts"]));
        });
    };
    EXPECT_TRUE(leads("submit rms_norm", "rms_norm"));
    EXPECT_TRUE(leads("submit layer_norm", "layer_norm"));
    EXPECT_EQ(event_named(trace, "qkv_projection")["args"]["graph"], 64);
    EXPECT_EQ(event_named(trace, "launch graph 64")["cat"], "launch");
    EXPECT_NE(trace.dump().find("main (99), submitted to devices"), std::string::npos);
    EXPECT_TRUE(trace["otherData"]["notes"].empty());
}

TEST(ChromeTrace, says_what_the_run_was) {
    PlantedSource source;
    source.add_steps(1, 1);
    source.all_descriptions = {{"model", "tiny-llama"}};
    EXPECT_EQ(trace_of(source)["otherData"]["description"], parsed(R"([{"key":"model","value":"tiny-llama"}])"));
}

TEST(ChromeTrace, an_arrow_that_is_inferred_is_told_once) {
    PlantedSource source;
    source.add_track(5, recording::TrackKind::device_queue, "stream");
    for (const std::uint64_t number : {1, 2}) {
        source.submit(5, 0, static_cast<std::int64_t>(100 * number), 20).name = 1;
    }
    for (const std::uint64_t number : {1, 2}) {
        source.add_device(5, 1, 0, static_cast<std::int64_t>(500 * number), 50);
        source.began_by(number, true);
    }
    EXPECT_EQ(trace_of(source)["otherData"]["notes"], json({resolve::inferred_launches_note}));
}

TEST(ChromeTrace, F6_kernels_transfers_and_tasks_recorded_one_by_one_are_in_the_trace) {
    PlantedSource source;
    source.add_nodes();
    source.add(SampleKind::scope, 3, 900, 2'500);
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    std::vector<json> found;
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "M" &&
            (event["cat"] == "kernel" || event["cat"] == "transfer" || event["cat"] == "task")) {
            found.push_back(event);
        }
    }
    ASSERT_EQ(found.size(), 5u);
    EXPECT_EQ(found[0]["name"], "gemm<\"a\", b>");
    EXPECT_EQ(found[0]["dur"], 0.5);
    EXPECT_EQ(found[0]["args"], parsed(R"({"phase":"decode","step":7,"layer":3,"code":"0000000000000abc",
        "grid":[64,2,1],"block":[256,1,1],"shared_bytes":4096,"flops":1000000})"));
    EXPECT_NE(found[0]["tid"], found[1]["tid"]) << "they overlap";
    EXPECT_NE(found[0]["tid"], 2) << "the thread's own lane is that of its scopes";
    EXPECT_EQ(found[2]["ph"], "i") << "it was only told";
    EXPECT_EQ(found[2]["tid"], 2);
    EXPECT_EQ(found[2]["args"]["told"], true);
    EXPECT_EQ(found[2]["args"]["sampled"], true);
    EXPECT_EQ(found[3]["name"], "copy_d2h");
    EXPECT_EQ(found[3]["args"]["transferred"], 8192);
    EXPECT_EQ(found[3]["args"]["source"], "000000000000000a");
    EXPECT_FALSE(found[3]["args"].contains("target")) << "it is not known";
    EXPECT_EQ(found[4]["name"], "task");
    EXPECT_EQ(found[4]["args"]["polled_ns"], 900);
    EXPECT_EQ(trace["otherData"]["left_out"], 0);
}

TEST(ChromeTrace, an_arrow_never_leads_back_in_time) {
    PlantedSource source;
    source.add_track(5, recording::TrackKind::device_queue, "stream");
    source.submit(5, 0, 100, 20).name = 1;
    source.add_device(5, 1, 0, 50, 10); // the clocks disagree by 50 ns
    source.began_by(1);
    const auto arrows = arrows_of(trace_of(source));
    ASSERT_EQ(arrows.size(), 1U);
    EXPECT_EQ(arrows.begin()->second[1].second, 0) << "a start without an end draws nothing";
}

TEST(ChromeTrace, an_arrow_whose_submission_is_left_out_has_no_end) {
    PlantedSource source;
    source.add_track(5, recording::TrackKind::device_queue, "stream");
    source.submit(5, 0, -50, 20).name = 1; // before the recording began
    source.add_device(5, 1, 0, 50, 10);
    source.began_by(1);
    const json trace = trace_of(source);
    EXPECT_TRUE(arrows_of(trace).empty());
    EXPECT_EQ(trace["otherData"]["left_out"], 1);
}

TEST(ChromeTrace, branches_of_a_graph_that_overlap_get_lanes_of_their_own) {
    PlantedSource source;
    source.add_track(7, recording::TrackKind::captured_graph, "graph 64", 64);
    source.add_device(7, 3, 0, 0, 100);
    source.add_device(7, 4, 0, 50, 100);
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    EXPECT_EQ(lanes_of(trace, "qkv_projection").size() + lanes_of(trace, "qk_norm").size(), 2U);
    EXPECT_NE(trace.dump().find("graph 64, 2"), std::string::npos);
}

TEST(ChromeTrace, any_number_of_overlapping_spans_is_kept_without_overlap_in_a_lane) {
    PlantedSource source;
    for (std::int64_t index = 0; index < 1000; ++index) {
        source.add(SampleKind::span, 29, index, 2000);
    }
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    std::map<std::string, int> shapes;
    for (const json& event : trace["traceEvents"]) {
        ++shapes[event["ph"]];
    }
    EXPECT_EQ(shapes["X"] + shapes["b"], 1000);
    EXPECT_EQ(shapes["b"], shapes["e"]);
}

TEST(ChromeTrace, steps_layers_and_bricks_nest_and_say_where_they_belong) {
    PlantedSource source;
    source.add_steps(2, 1);
    source.samples[0].bytes = 4096;
    source.samples[0].flops = 0.5;
    source.samples[0].warmup = true;
    source.samples[0].queue_delay_ns = 2500;
    const json events = trace_of(source)["traceEvents"];
    const auto find = [&events](const std::string& name) {
        return *std::find_if(events.begin(), events.end(), [&](const json& event) { return event["name"] == name; });
    };
    EXPECT_EQ(find("rms_norm")["args"], parsed(R"({"phase":"decode","step":0,"layer":0,"warmup":true,
                                                        "queue_delay_us":2.5,
                                                        "bytes":4096,"flops":0.5})"));
    EXPECT_EQ(find("rms_norm")["cat"], "norm");
    EXPECT_EQ(find("layer 0")["args"], parsed(R"({"phase":"decode","step":0,"layer":0})"));
    EXPECT_EQ(find("step 1")["args"], parsed(R"({"phase":"decode","step":1})"));
    EXPECT_EQ(find("process_name")["args"]["name"], "plumb on box");
    EXPECT_EQ(find("thread_name")["args"]["name"], "main (99)");
}

TEST(ChromeTrace, whole_nanoseconds_survive_days_after_the_origin) {
    PlantedSource source;
    source.add(SampleKind::scope, 1, 345'600'123'456'789, 1);
    std::ostringstream out;
    ASSERT_TRUE(write_as("chrome_trace", source, out).ok());
    EXPECT_NE(out.str().find(R"("ts":345600123456.789,"dur":0.001)"), std::string::npos) << out.str();
}

TEST(ChromeTrace, M4_a_negative_time_is_left_out_and_counted_never_clamped) {
    PlantedSource source;
    source.add(SampleKind::scope, 1, 10, -5);
    source.add(SampleKind::scope, 1, -10, 5);
    source.add(SampleKind::scope, 1, 20, 5);
    const json trace = trace_of(source);
    EXPECT_EQ(lane_problem(trace), "");
    EXPECT_EQ(sums_of(trace)["rms_norm"], 5);
    EXPECT_EQ(trace["otherData"]["left_out"], 2);
}

TEST(ChromeTrace, T8_hostile_names_are_escaped_and_the_trace_is_complete) {
    PlantedSource source;
    const std::string evil = "a\"},{\n\t\\\x01 \xC3\xA9 \xff";
    const std::string shown = "a\"},{\n\t\\\x01 \xC3\xA9 \xEF\xBF\xBD";
    source.all_names = {{300, Category::moe, evil}};
    source.all_tracks[0].name = evil;
    source.all_notes = {evil};
    source.add(SampleKind::scope, 300, 0, 1);
    source.add(SampleKind::span, 300, 0, 1);
    source.add(SampleKind::scope, 4000, 2, 1); // a name that the recording does not explain
    const json trace = trace_of(source);
    EXPECT_EQ(lanes_of(trace, shown), (std::set<std::int64_t>{2, 3}));
    EXPECT_EQ(lanes_of(trace, "name 4000"), std::set<std::int64_t>{2});
    EXPECT_EQ(trace["otherData"]["notes"][0], shown);
    EXPECT_EQ(trace["traceEvents"][1]["args"]["name"], shown + " (99)");
}

TEST(ChromeTrace, a_name_of_any_length_is_written_whole) {
    PlantedSource source;
    source.all_names = {{300, Category::other, std::string(300'000, 'x')}};
    source.add(SampleKind::scope, 300, 0, 1);
    EXPECT_EQ(sums_of(trace_of(source)).begin()->first.size(), 300'000U);
}

TEST(ChromeTrace, an_output_that_refuses_data_is_an_error) {
    PlantedSource source;
    source.add_steps(10, 2);
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    const Status status = write_as("chrome_trace", source, out);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::no_space);
}

TEST(ChromeTrace, a_recording_that_cannot_be_read_to_its_end_gives_a_valid_trace_and_the_error) {
    PlantedSource source;
    source.add_steps(1, 1);
    source.end = Error{ErrorCode::corrupt, "chunk 3 is damaged"};
    std::ostringstream out;
    EXPECT_EQ(write_as("chrome_trace", source, out).error().code, ErrorCode::corrupt);
    EXPECT_EQ(parsed(out.str())["otherData"]["notes"][0], "cut short: chunk 3 is damaged");
}

TEST(ChromeTrace, an_empty_recording_is_a_valid_trace) {
    PlantedSource source;
    source.all_tracks.clear();
    EXPECT_EQ(trace_of(source)["traceEvents"].size(), 1U) << "only the name of the process";
}

} // namespace
