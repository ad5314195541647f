// SPDX-License-Identifier: Apache-2.0
// Traces that hold what no tool should write: each is read as far as it goes, and what was wrong is counted.
#include <algorithm>
#include <initializer_list>

#include "import/import_testing.hpp"

namespace plumb::imported {
namespace {

/// A kernel of the planned form, with these texts as numbers.
std::string kernel(const std::string& start, const std::string& duration,
                   const std::string& more = "\"correlation\": 1") {
    return R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": )" + start +
           ", \"dur\": " + duration + R"(, "args": {"device": 0, "stream": 7, )" + more + "}}";
}

struct Imported {
    ImportedRun run;
    ReadBack read;
};

Imported import_text(const std::string& text) {
    const TraceFolder folder;
    save(folder / "trace", text);
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    if (made.empty()) {
        return {};
    }
    return {made[0], read_back(made[0].recording)};
}

std::string events(std::initializer_list<std::string> list) {
    std::string text = "[";
    for (const std::string& event : list) {
        text += (text.size() > 1 ? ",\n" : "") + event;
    }
    return text + "]";
}

TEST(ImportAnomalies, times_at_the_epoch_keep_their_nanoseconds) {
    const Imported made =
        import_text(events({kernel("1712195495505582.988", "1.001"), kernel("1712195495505584.001", "0.003")}));
    ASSERT_EQ(made.read.ops.size(), 2U);
    EXPECT_EQ(made.read.ops[0].end, 1001);
    EXPECT_EQ(made.read.ops[1].begin, 1013);
    EXPECT_EQ(made.read.ops[1].end, 1016);
    EXPECT_EQ(made.read.facts->metadata.start_realtime_ns, 1712195495505582988);
}

TEST(ImportAnomalies, decimals_beyond_the_nanosecond_are_rounded) {
    const Imported made =
        import_text(events({kernel("1712195495505582.988400", "1.0010"), kernel("1712195495505584.0014999", "0.003")}));
    ASSERT_EQ(made.read.ops.size(), 2U);
    EXPECT_EQ(made.read.ops[0].end, 1001);
    EXPECT_EQ(made.read.ops[1].begin, 1013);
}

TEST(ImportAnomalies, an_id_of_0_that_no_call_has_is_none) {
    std::string text = "[";
    for (int i = 0; i < 40; ++i) {
        text += (i == 0 ? "" : ",") + kernel(std::to_string(10 * i), "5", "\"correlation\": 0");
    }
    const Imported made = import_text(text + "]");
    EXPECT_NE(note_with(made.run, "prefill or decode is not in the trace"), "") << "40 launches are no replay";
}

std::string range(const std::string& name, const std::string& start, const std::string& duration) {
    return R"({"ph": "X", "cat": "user_annotation", "name": ")" + name + R"(", "pid": 0, "tid": 100, "ts": )" + start +
           ", \"dur\": " + duration + "}";
}
std::string launch(const std::string& start, const std::string& duration, const std::string& id) {
    return R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 0, "tid": 100, "ts": )" + start +
           ", \"dur\": " + duration + R"(, "args": {"correlation": )" + id + "}}";
}

TEST(ImportAnomalies, steps_that_overlap_are_all_kept) {
    const Imported made = import_text(
        events({range("decode", "0", "101"), launch("10", "200", "1"), kernel("120", "5"),
                range("decode", "100", "100"), launch("110", "5", "2"), kernel("130", "5", "\"correlation\": 2"),
                range("decode", "200", "100"), launch("210", "5", "3"), kernel("220", "5", "\"correlation\": 3")}));
    EXPECT_EQ(made.run.steps, 3U);
    EXPECT_EQ(made.read.steps.size(), 3U);
    ASSERT_EQ(made.read.ops.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(made.read.ops[i].step, i);
    }
}

TEST(ImportAnomalies, negative_and_absurd_durations_are_refused_and_counted) {
    const Imported made = import_text(
        events({kernel("10", "5"), kernel("20", "-5"), kernel("30", "7447190400000000"), kernel("40", "1")}));
    EXPECT_EQ(made.read.ops.size(), 2U);
    EXPECT_EQ(note_with(made.run, "negative"), "1 operation: had a negative duration, left out");
    EXPECT_NE(note_with(made.run, "cannot be"), "");
}

TEST(ImportAnomalies, a_number_too_large_for_a_time_is_not_said_to_be_none) {
    const Imported made = import_text(events({kernel("10", "5"), kernel("20", "1e30")}));
    EXPECT_EQ(note_with(made.run, "left out"), "1 operation: had a time that is no number or beyond 63 bits, left out");
}

TEST(ImportAnomalies, an_operation_a_year_away_is_refused) {
    const Imported made = import_text(events({kernel("10", "5"), kernel("20", "5"), kernel("31536000000000", "5")}));
    EXPECT_EQ(made.read.ops.size(), 2U);
    EXPECT_NE(note_with(made.run, "cannot be"), "");
}

TEST(ImportAnomalies, operations_of_no_time_and_overlaps_are_kept_and_counted) {
    const Imported made = import_text(events({kernel("10", "5"), kernel("14", "5"), kernel("30", "0")}));
    EXPECT_EQ(made.read.ops.size(), 3U);
    EXPECT_NE(note_with(made.run, "took no time"), "");
    EXPECT_NE(note_with(made.run, "began before the one before"), "");
}

TEST(ImportAnomalies, an_end_beyond_what_ran_after_it_is_cut) {
    const Imported made = import_text(events({kernel("10", "3000000"), kernel("20", "5"), kernel("30", "5")}));
    ASSERT_EQ(made.read.ops.size(), 3U);
    EXPECT_EQ(made.read.ops[0].end, 10'000);
    EXPECT_NE(note_with(made.run, "cut at its begin"), "");
}

TEST(ImportAnomalies, an_operation_that_ran_inside_another_cuts_nothing) {
    const Imported made = import_text(events({kernel("10", "20000"), kernel("2010", "1000"), kernel("30010", "5")}));
    ASSERT_EQ(made.read.ops.size(), 3U);
    EXPECT_EQ(made.read.ops[0].end, 20'000'000);
    EXPECT_EQ(note_with(made.run, "same stream"), "1 operation: began before the one before on the same stream ended");
}

TEST(ImportAnomalies, doubles_count_once_and_the_unsorted_are_sorted) {
    const Imported made = import_text(events({kernel("30", "5"), kernel("10", "5"), kernel("30", "5")}));
    EXPECT_EQ(made.read.ops.size(), 2U);
    EXPECT_NE(note_with(made.run, "1 operation: stood there twice, counted once"), "");
    EXPECT_NE(note_with(made.run, "behind a later one"), "");
}

TEST(ImportAnomalies, ids_beyond_63_bits_and_numbers_as_text_are_read) {
    const Imported made =
        import_text(events({kernel("\"10.5\"", "\"5\"", "\"correlation\": 10159970886766084423"), kernel("20", "1")}));
    ASSERT_EQ(made.read.ops.size(), 2U);
    EXPECT_EQ(made.read.ops[0].end, 5000);
    EXPECT_NE(note_with(made.run, "as text"), "");
    EXPECT_NE(note_with(made.run, "63 bits"), "");
}

TEST(ImportAnomalies, whole_microseconds_are_the_floor) {
    const Imported made = import_text(events({kernel("10", "5"), kernel("20", "0")}));
    EXPECT_EQ(made.read.facts->metadata.costs.at(0).second, 1000.0);
    EXPECT_EQ(made.run.notes.at(0), "times are multiples of 1000 ns");
}

TEST(ImportAnomalies, a_quote_too_many_costs_its_own_event_alone) {
    const std::string broken = R"({"ph": "X", "cat": "kernel", "name": "INFO "quoted text", "ts": 12, "dur": 1})";
    const Imported made = import_text(events({kernel("10", "1"), broken, kernel("20", "1"), kernel("30", "1")}));
    EXPECT_EQ(made.read.ops.size(), 3U);
    EXPECT_NE(note_with(made.run, "could not be read"), "");
}

TEST(ImportAnomalies, a_quote_too_many_on_one_long_line_costs_its_own_event_alone) {
    const std::string broken = R"({"ph": "X", "cat": "kernel", "name": "INFO "quoted", "ts": 12, "dur": 1},)";
    const Imported made =
        import_text("[" + kernel("10", "1") + "," + broken + kernel("20", "1") + "," + kernel("30", "1") + "]");
    EXPECT_EQ(made.read.ops.size(), 3U);
}

TEST(ImportAnomalies, an_object_among_the_arguments_hides_none_of_those_behind_it) {
    const std::string nested = R"("x": {"correlation": 9, "y": [{}]}, "correlation": 1)";
    const Imported made = import_text(events({launch("1", "2", "1"), kernel("10", "5", nested)}));
    ASSERT_EQ(made.read.ops.size(), 1U);
    EXPECT_TRUE(made.read.ops[0].launched);
}

TEST(ImportAnomalies, control_characters_and_broken_utf8_in_names_are_mended) {
    std::string odd = kernel("12", "1");
    odd.replace(odd.find("\"k\""), 3, "\"k\x01\xff\"");
    const Imported made = import_text(events({kernel("10", "1"), odd}));
    EXPECT_EQ(made.read.ops.size(), 2U);
    EXPECT_EQ(note_with(made.run, "could not be read"), "");
}

TEST(ImportAnomalies, a_file_that_was_cut_gives_what_it_holds) {
    const std::string whole = as_kineto(plan({}));
    const std::size_t all = import_text(whole).read.ops.size();
    for (const int percent : {95, 70}) {
        const Imported made = import_text(whole.substr(0, whole.size() * static_cast<std::size_t>(percent) / 100));
        EXPECT_GT(made.read.ops.size(), 0U);
        EXPECT_LT(made.read.ops.size(), all);
        EXPECT_NE(note_with(made.run, "ends before"), "");
    }
}

TEST(ImportAnomalies, a_packed_file_that_was_cut_gives_what_it_holds) {
    const TraceFolder folder;
    PlannedRun run;
    run.steps = 200;
    save_packed(folder / "trace", as_kineto(plan(run)));
    std::filesystem::resize_file(folder / "trace", std::filesystem::file_size(folder / "trace") * 9 / 10);
    const ImportedRun made = import_file(folder / "trace", folder / "run.plumb").at(0);
    EXPECT_GT(made.operations, 100U);
    EXPECT_NE(note_with(made, "ends before"), "");
}

TEST(ImportAnomalies, operations_without_launch_lie_outside_of_steps) {
    PlannedTrace planned = plan([] {
        PlannedRun run;
        run.graph = false;
        run.annotated = true;
        return run;
    }());
    planned.calls.erase(planned.calls.begin(), planned.calls.begin() + 5);
    const Imported made = import_text(as_kineto(planned));
    EXPECT_EQ(note_with(made.run, "no launch"), "5 operations: had no launch in the trace");
    EXPECT_EQ(note_with(made.run, "no step"), "5 operations belong to no step");
}

/// As a tool that was told to trace the calls of copies alone.
TEST(ImportAnomalies, one_copy_with_its_call_throws_no_kernel_out_of_its_step) {
    for (const std::string format : {"kineto", "nsys", "rpd", "rocprofv3"}) {
        for (const bool graph : {false, true}) {
            PlannedRun run;
            run.graph = graph && format != "rpd"; // where a launch is a row of its own
            PlannedTrace planned = plan(run);
            planned.calls.clear();
            PlannedOp copy = planned.ops.back();
            copy.kind = DeviceOpKind::memcpy;
            copy.name = "Memcpy HtoD";
            copy.stream += 1;
            copy.start = planned.ops.back().end + 1000;
            copy.end = copy.start + 1000;
            copy.correlation = 9999;
            planned.ops.push_back(copy);
            planned.calls.push_back({.name = "cudaMemcpyAsync",
                                     .start = copy.start - 900,
                                     .end = copy.start - 500,
                                     .correlation = copy.correlation});
            const TraceFolder folder;
            save_as(format, planned, folder / "trace");
            std::uint64_t in_steps = 0;
            for (const ImportedRun& made : import_file(folder / "trace", folder / "run.plumb")) {
                EXPECT_EQ(note_with(made, "no step"), "") << format;
                EXPECT_EQ(made.steps, run.graph ? 3U : 1U) << format;
                for (const ReadBack::Op& op : read_back(made.recording).ops) {
                    in_steps += op.step != resolve::no_step ? 1 : 0;
                }
            }
            EXPECT_EQ(in_steps, planned.ops.size()) << format;
        }
    }
}

TEST(ImportAnomalies, an_operation_whose_call_is_lost_is_of_the_step_around_it) {
    PlannedRun run;
    run.graph = false;
    run.annotated = true;
    PlannedTrace planned = plan(run);
    const auto last_of_step_0 =
        std::find_if(planned.ops.begin(), planned.ops.end(), [](const PlannedOp& op) { return op.step == 1; }) - 1;
    const std::uint64_t inside = (last_of_step_0 + 5)->correlation, between = last_of_step_0->correlation;
    std::erase_if(planned.calls,
                  [&](const PlannedCall& call) { return call.correlation == inside || call.correlation == between; });
    const Imported made = import_text(as_kineto(planned));
    EXPECT_EQ(note_with(made.run, "no launch"), "2 operations: had no launch in the trace");
    EXPECT_EQ(note_with(made.run, "no step"), "1 operation belongs to no step");
    ASSERT_EQ(made.read.ops.size(), planned.ops.size());
    const auto at = static_cast<std::size_t>(last_of_step_0 - planned.ops.begin());
    EXPECT_EQ(made.read.ops[at].step, resolve::no_step);
    EXPECT_EQ(made.read.ops[at + 5].step, 1U);
}

/// As where a tool links those of one device alone: half of them have launches.
TEST(ImportAnomalies, operations_of_a_stream_without_launches_are_of_the_step_around_them) {
    PlannedRun run;
    run.graph = false;
    PlannedTrace planned = plan(run);
    const std::size_t launched = planned.ops.size();
    for (std::size_t i = 0; i < launched; ++i) {
        PlannedOp other = planned.ops[i];
        other.device = 1;
        other.start += 1;
        other.correlation = 100'000 + i;
        planned.ops.push_back(other);
    }
    const Imported made = import_text(as_kineto(planned));
    EXPECT_EQ(made.run.steps, 1U);
    EXPECT_EQ(note_with(made.run, "no launch"), std::to_string(launched) + " operations: had no launch in the trace");
    EXPECT_EQ(note_with(made.run, "no step"), "");
}

/// What begins before the first operation with a launch may have been launched before the trace, be it most of what there is.
TEST(ImportAnomalies, a_step_that_was_launched_before_the_trace_may_be_most_of_it) {
    PlannedRun run;
    run.graph = false;
    run.annotated = true;
    PlannedTrace planned = plan(run);
    const std::int64_t last = planned.ranges.back().start;
    std::erase_if(planned.calls, [last](const PlannedCall& call) { return call.start < last; });
    std::erase_if(planned.ranges, [last](const PlannedRange& range) { return range.start < last; });
    const Imported made = import_text(as_kineto(planned));
    EXPECT_EQ(made.run.steps, 1U);
    const auto outside =
        std::count_if(planned.ops.begin(), planned.ops.end(), [](const PlannedOp& op) { return op.step < 2; });
    EXPECT_GT(2 * static_cast<std::size_t>(outside), planned.ops.size());
    EXPECT_EQ(note_with(made.run, "no step"), std::to_string(outside) + " operations belong to no step");
}

TEST(ImportAnomalies, replays_without_any_host_side_are_steps_by_the_times_of_the_device) {
    PlannedTrace planned = plan({});
    planned.calls.clear();
    const Imported made = import_text(as_kineto(planned));
    expect_plan(made.read, planned, 4711);
    EXPECT_EQ(made.read.steps.size(), 3U);
}

TEST(ImportAnomalies, a_replay_that_was_launched_before_the_trace_is_no_step) {
    PlannedTrace planned = plan({});
    planned.calls.erase(planned.calls.begin());
    const Imported made = import_text(as_kineto(planned));
    EXPECT_EQ(made.read.steps.size(), 2U);
    EXPECT_EQ(note_with(made.run, "before the trace"), "1 step began before the trace: left out");
}

TEST(ImportAnomalies, abutting_operations_say_that_gaps_are_not_known) {
    PlannedTrace planned = plan({});
    for (std::size_t i = 1; i < planned.ops.size(); ++i) {
        if (planned.ops[i].step == planned.ops[i - 1].step) {
            planned.ops[i].start = planned.ops[i - 1].end;
        }
    }
    EXPECT_NE(note_with(import_text(as_kineto(planned)).run, "gaps between operations are not in this trace"), "");
}

} // namespace
} // namespace plumb::imported
