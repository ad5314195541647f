// SPDX-License-Identifier: Apache-2.0
// Planned traces through every format, into a recording and back.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

#include "import/import_testing.hpp"

namespace plumb::imported {
namespace {

// ---- plans through every format

struct PlanCase {
    std::string name;
    PlannedRun run;
    std::string format;
    KinetoForm form = {};
};
std::ostream& operator<<(std::ostream& out, const PlanCase& of) { return out << of.name; }

std::vector<PlanCase> plan_cases() {
    std::vector<PlanCase> all;
    PlannedRun eager;
    eager.graph = false;
    eager.annotated = true;
    PlannedRun prefill = eager;
    prefill.prefill = true;
    PlannedRun moe;
    moe.layers = 3;
    moe.moe_layers = 9;
    PlannedRun annotated;
    annotated.annotated = true;
    PlannedRun side;
    side.side_stream = true;
    PlannedRun whole;
    whole.unit_ns = 1000;
    PlannedRun overlaps;
    overlaps.overlaps = true;
    PlannedRun ahead;
    ahead.ahead = true;
    PlannedRun eager_ahead = eager;
    eager_ahead.ahead = true;
    PlannedRun batches;
    batches.layers = 12;
    batches.two_batches = true;
    PlannedRun moe_batches = batches;
    moe_batches.layers = 0;
    moe_batches.moe_layers = 12;
    const std::pair<const char*, PlannedRun> runs[] = {{"graph", {}},
                                                       {"eager", eager},
                                                       {"prefill", prefill},
                                                       {"moe", moe},
                                                       {"annotated", annotated},
                                                       {"side", side},
                                                       {"overlaps", overlaps},
                                                       {"ahead", ahead},
                                                       {"eager_ahead", eager_ahead},
                                                       {"batches", batches},
                                                       {"moe_batches", moe_batches}};
    for (const auto& [name, run] : runs) {
        for (const char* format : {"kineto", "nsys", "rpd", "rocprofv3"}) {
            if (std::string(format) == "rocprofv3" && run.annotated) {
                continue; // it holds no ranges
            }
            all.push_back({std::string(name) + "_" + format, run, format});
        }
    }
    KinetoForm form;
    form.pretty = false;
    all.push_back({"compact", {}, "kineto", form});
    form.absolute = true;
    all.push_back({"absolute", {}, "kineto", form});
    form.bare_array = true;
    all.push_back({"bare_array", {}, "kineto", form});
    form = {};
    form.wrapped = true;
    all.push_back({"wrapped", {}, "kineto", form});
    form.text_numbers = true;
    all.push_back({"text_numbers", {}, "kineto", form});
    form = {};
    form.old = true;
    all.push_back({"of_2021", side, "kineto", form});
    form = {};
    form.odd = true;
    all.push_back({"odd", {}, "kineto", form});
    form = {};
    form.whole_us = true;
    all.push_back({"whole_us", whole, "kineto", form});
    all.push_back({"packed", {}, "kineto.gz"});
    return all;
}

class ImportPlans : public testing::TestWithParam<PlanCase> {};

TEST_P(ImportPlans, come_back_with_every_name_step_and_time) {
    const TraceFolder folder;
    const PlannedTrace planned = plan(GetParam().run);
    save_as(GetParam().format, planned, folder / "trace", GetParam().form);
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].recording, folder / "run.plumb");
    EXPECT_EQ(made[0].operations, planned.ops.size());
    const ReadBack read = read_back(made[0].recording);
    expect_plan(read, planned, 4711);
    ASSERT_EQ(read.steps.size(), static_cast<std::size_t>(planned.steps));
    for (const resolve::ResolvedStep& step : read.steps) {
        EXPECT_EQ(step.phase, GetParam().run.prefill ? Phase::prefill : Phase::decode);
        if (GetParam().run.annotated) {
            EXPECT_EQ(step.sequences, GetParam().run.prefill ? 2U : 8U);
            EXPECT_EQ(step.prefill_tokens, GetParam().run.prefill ? 64U : 0U);
        }
    }
    EXPECT_EQ(read.facts->metadata.costs.at(0).second, static_cast<double>(GetParam().run.unit_ns));
    EXPECT_EQ(note_with(made[0], "could not be read"), "");
    EXPECT_EQ(note_with(made[0], "no launch"), "");
    EXPECT_EQ(note_with(made[0], "no step"), "");
}

INSTANTIATE_TEST_SUITE_P(Import, ImportPlans, testing::ValuesIn(plan_cases()),
                         [](const testing::TestParamInfo<PlanCase>& of) { return of.param.name; });

TEST(Import, eager_operations_know_their_launches) {
    const TraceFolder folder;
    PlannedRun run;
    run.graph = false;
    run.annotated = true;
    save(folder / "trace", as_kineto(plan(run)));
    const ReadBack read = read_back(import_file(folder / "trace", folder / "run.plumb").at(0).recording);
    EXPECT_TRUE(std::all_of(read.ops.begin(), read.ops.end(), [](const ReadBack::Op& op) { return op.launched; }));
}

TEST(Import, facts_of_machine_and_run_are_kept) {
    const TraceFolder folder;
    const PlannedTrace planned = plan({});
    save(folder / "trace.json", as_kineto(planned));
    const ReadBack read = read_back(import_file(folder / "trace.json", folder / "run.plumb").at(0).recording);
    const recording::Metadata& metadata = read.facts->metadata;
    EXPECT_EQ(metadata.rank, "3");
    EXPECT_EQ(metadata.start_realtime_ns, planned.base_ns + planned.calls.front().start);
    EXPECT_NE(std::find(metadata.comparability.begin(), metadata.comparability.end(),
                        std::pair<std::string, std::string>("gpu", "Planned GPU")),
              metadata.comparability.end());
    for (const recording::TrackInfo& track : read.facts->tracks) {
        EXPECT_EQ(track.source, "imported:kineto");
    }
}

TEST(Import, processes_become_recordings_of_their_own_though_they_share_ids) {
    const TraceFolder folder;
    PlannedRun run;
    run.processes = 2;
    const PlannedTrace planned = plan(run);
    save_nsys(planned, folder / "trace");
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(made[1].recording, folder / "run-1.plumb");
    expect_plan(read_back(made[0].recording), planned, 4711);
    expect_plan(read_back(made[1].recording), planned, 4712);
    EXPECT_NE(note_with(made[0], "another process"), "");
}

std::string gaps_of(const ImportedRun& run) {
    const ReadBack read = read_back(run.recording);
    for (const auto& [key, value] : read.facts->metadata.comparability) {
        if (key == "gaps") {
            return value;
        }
    }
    return {};
}

TEST(Import, what_is_wrong_with_one_process_is_not_said_of_another) {
    PlannedRun run;
    run.processes = 2;
    PlannedTrace planned = plan(run);
    std::vector<PlannedOp*> others;
    for (PlannedOp& op : planned.ops) {
        if (op.process == 4712) {
            others.push_back(&op);
        }
    }
    for (std::size_t i = 1; i < others.size(); ++i) { // they abut, but for two that overlap
        others[i]->start = others[i - 1]->step == others[i]->step ? others[i - 1]->end : others[i]->start;
    }
    others[2]->start -= 100;
    others[5]->start -= 100;
    others.back()->start = others.back()->end;
    const std::uint64_t lost = others.front()->correlation;
    const auto in_lost =
        std::count_if(others.begin(), others.end(), [lost](const PlannedOp* op) { return op->correlation == lost; });
    std::erase_if(planned.calls,
                  [lost](const PlannedCall& call) { return call.process == 4712 && call.correlation == lost; });
    const TraceFolder folder;
    save_nsys(planned, folder / "trace");
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 2U);
    for (const char* word : {"no launch", "no step", "same stream", "took no time", "gaps", "before the trace"}) {
        EXPECT_EQ(note_with(made[0], word), "");
        EXPECT_NE(note_with(made[1], word), "") << word;
    }
    EXPECT_EQ(note_with(made[1], "no step"), std::to_string(in_lost) + " operations belong to no step");
    EXPECT_EQ(note_with(made[1], "same stream"), "2 operations: began before the one before on the same stream ended");
    EXPECT_EQ(gaps_of(made[0]), "between operations");
    EXPECT_EQ(gaps_of(made[1]), "inside of durations");
    EXPECT_EQ(made[1].operations, others.size());
}

TEST(Import, a_phase_that_is_not_known_in_one_process_is_not_said_of_another) {
    PlannedRun run;
    run.processes = 2;
    PlannedTrace planned = plan(run);
    std::erase_if(planned.calls, [](const PlannedCall& call) { return call.process == 4712; });
    std::uint64_t id = 1'000'000;
    for (PlannedOp& op : planned.ops) {
        op.correlation = op.process == 4712 ? ++id : op.correlation;
    }
    const TraceFolder folder;
    save_nsys(planned, folder / "trace");
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(note_with(made[0], "--phase"), "");
    EXPECT_NE(note_with(made[1], "--phase"), "");
}

/// What is refused before its process is known is said in each recording, as of them all.
TEST(Import, what_is_refused_of_no_known_process_is_said_of_the_whole_trace) {
    PlannedRun run;
    run.processes = 2;
    const TraceFolder folder;
    save_nsys(plan(run), folder / "trace");
    change_database(folder / "trace", {"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = NULL WHERE rowid = 5",
                                       "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start - 1 WHERE rowid = 9"});
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 2U);
    for (const ImportedRun& of : made) {
        EXPECT_EQ(note_with(of, "no begin"), "1 operation of the whole trace: had no begin, left out");
    }
    EXPECT_EQ(note_with(made[0], "negative"), "1 operation: had a negative duration, left out");
    EXPECT_EQ(note_with(made[1], "negative"), "");
}

TEST(Import, streams_of_two_contexts_that_share_a_number_are_two) {
    const TraceFolder folder;
    PlannedTrace planned;
    for (const auto& [begin, end] : {std::pair{1'000, 10'001'000}, {2'001'000, 3'001'000}}) {
        PlannedOp& op = planned.ops.emplace_back();
        op.name = "k";
        op.start = begin;
        op.end = end;
    }
    save_nsys(planned, folder / "trace");
    change_database(folder / "trace", {"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN contextId INTEGER",
                                       "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET contextId = (start > 1000) + 1"});
    const ImportedRun made = import_file(folder / "trace", folder / "run.plumb").at(0);
    const ReadBack read = read_back(made.recording);
    ASSERT_EQ(read.ops.size(), 2U);
    EXPECT_EQ(std::tie(read.ops[0].track, read.ops[0].end), std::tuple("gpu:0 stream 7", 10'000'000));
    EXPECT_EQ(std::tie(read.ops[1].track, read.ops[1].end), std::tuple("gpu:0 stream 7 (2)", 3'000'000));
    EXPECT_EQ(note_with(made, "same stream"), "");
}

TEST(Import, several_files_and_folders_become_numbered_recordings) {
    const TraceFolder folder;
    std::filesystem::create_directory(folder / "ranks");
    save(folder / "ranks/rank0.json", as_kineto(plan({})));
    save(folder / "ranks/rank1.json", as_kineto(plan({})));
    ImportOptions options;
    options.out = folder / "run.plumb";
    const auto made = import_traces({folder / "ranks"}, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->size(), 2U);
    EXPECT_EQ((*made)[0].recording, folder / "run-0.plumb");
    EXPECT_EQ((*made)[1].recording, folder / "run-1.plumb");
}

TEST(Import, files_of_a_folder_are_numbered_as_a_reader_counts) {
    const TraceFolder folder;
    std::filesystem::create_directory(folder / "ranks");
    for (const char* rank : {"0", "2", "10"}) {
        save(folder / "ranks/rank" + rank + ".json", as_kineto(plan({})));
    }
    ImportOptions options;
    options.out = folder / "run.plumb";
    const auto made = import_traces({folder / "ranks"}, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->size(), 3U);
    EXPECT_EQ((*made)[1].trace, folder / "ranks/rank2.json");
    EXPECT_EQ((*made)[1].recording, folder / "run-1.plumb");
    EXPECT_EQ((*made)[2].trace, folder / "ranks/rank10.json");
}

TEST(Import, what_is_no_trace_in_a_folder_is_skipped_with_a_sentence) {
    const TraceFolder folder;
    std::filesystem::create_directory(folder / "ranks");
    save(folder / "ranks/README.md", "# Traces of one step\n");
    save(folder / "ranks/config.json", R"({"num_hidden_layers": 12})");
    save(folder / "ranks/empty", "");
    ImportOptions options;
    options.out = folder / "run.plumb";
    std::vector<std::string> skipped;
    options.skipped = &skipped;
    const auto none = import_traces({folder / "ranks"}, options);
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("the folder holds no trace: " + (folder / "ranks/README.md")),
              std::string::npos)
        << none.error().message;
    save(folder / "ranks/rank0.json", as_kineto(plan({})));
    save(folder / "ranks/rank1.json", as_kineto(plan({})));
    const auto made = import_traces({folder / "ranks"}, options);
    ASSERT_TRUE(made.ok()) << made.error().message;
    ASSERT_EQ(made->size(), 2U);
    EXPECT_EQ((*made)[1].recording, folder / "run-1.plumb");
    ASSERT_EQ(skipped.size(), 3U);
    EXPECT_EQ(skipped[0].rfind((folder / "ranks/README.md") + " is no trace that plumb knows", 0), 0U) << skipped[0];
    EXPECT_EQ(skipped[1], (folder / "ranks/config.json") + " holds no operation of a device");
    EXPECT_FALSE(import_traces({folder / "ranks/rank0.json", folder / "ranks/README.md"}, options).ok())
        << "that one was named";
}

TEST(Import, a_capture_that_has_nothing_to_do_with_the_trace_is_one_sentence) {
    const TraceFolder folder;
    const PlannedTrace planned = plan({});
    save(folder / "trace", as_kineto(planned));
    ImportOptions options;
    options.out = folder / "run.plumb";
    options.captures = {folder / "trace"};
    const auto no_capture = import_traces({folder / "trace"}, options);
    ASSERT_FALSE(no_capture.ok());
    EXPECT_NE(no_capture.error().message.find("holds no capture of a graph"), std::string::npos);
    PlannedTrace other;
    for (const char* call : {"cudaStreamBeginCapture", "cudaLaunchKernel", "cudaStreamEndCapture"}) {
        const auto at = static_cast<std::int64_t>(10'000 * (other.calls.size() + 1));
        other.calls.push_back({call, at, at + 2000, 100, 4711, other.calls.size() + 1});
    }
    save(folder / "capture", as_kineto(other));
    options.captures = {folder / "capture"};
    const auto other_model = import_traces({folder / "trace"}, options);
    ASSERT_FALSE(other_model.ok());
    EXPECT_EQ(other_model.error().message.find("no replay of the trace holds the kernels of a capture in " +
                                               (folder / "capture")),
              0U)
        << other_model.error().message;
    EXPECT_FALSE(std::filesystem::exists(folder / "run.plumb"));
}

TEST(Import, the_same_trace_gives_the_same_recording) {
    const TraceFolder folder;
    save(folder / "trace", as_kineto(plan({})));
    import_file(folder / "trace", folder / "a.plumb");
    import_file(folder / "trace", folder / "b.plumb");
    const ReadBack a = read_back(folder / "a.plumb");
    const ReadBack b = read_back(folder / "b.plumb");
    EXPECT_EQ(a.facts->metadata.recording_id[0], b.facts->metadata.recording_id[0]);
    EXPECT_EQ(content_of(folder / "a.plumb").size(), content_of(folder / "b.plumb").size());
}

TEST(Import, phase_and_tokens_can_be_said) {
    const TraceFolder folder;
    PlannedRun run;
    run.graph = false;
    save(folder / "trace", as_kineto(plan(run)));
    ImportOptions options;
    EXPECT_NE(note_with(import_file(folder / "trace", folder / "a.plumb").at(0), "--phase"), "");
    options.phase = Phase::prefill;
    options.tokens = 512;
    const ImportedRun made = import_file(folder / "trace", folder / "b.plumb", options).at(0);
    EXPECT_EQ(note_with(made, "--phase"), "");
    const ReadBack read = read_back(made.recording);
    ASSERT_EQ(read.steps.size(), 1U);
    EXPECT_EQ(read.steps[0].phase, Phase::prefill);
    EXPECT_EQ(read.steps[0].prefill_tokens, 512U);
}

/// What is read of a step whose range is called so.
resolve::ResolvedStep step_called(const std::string& name, const ImportOptions& options = {}) {
    const TraceFolder folder;
    PlannedRun run;
    run.graph = false;
    run.annotated = true;
    PlannedTrace trace = plan(run);
    for (PlannedRange& range : trace.ranges) {
        range.name = name;
    }
    save(folder / "trace", as_kineto(trace));
    return read_back(import_file(folder / "trace", folder / "a.plumb", options).at(0).recording).steps.at(0);
}

TEST(Import, the_name_of_a_step_says_sequences_and_tokens_of_either_phase) {
    for (const char* name : {"execute_context_2(512)_generation_17(34)", "execute_546_context_2(512)_generation_17(34)",
                             "execute_546_context_2(sq512sk900)_generation_17(34)"}) {
        SCOPED_TRACE(name);
        const auto mixed = step_called(name);
        EXPECT_EQ(mixed.phase, Phase::mixed);
        EXPECT_EQ(mixed.prefill_tokens, 512U);
        EXPECT_EQ(mixed.decode_tokens, 34U);
        EXPECT_EQ(mixed.sequences, 19U);
    }
    const auto prefill = step_called("execute_context_1(64)_generation_0(0)");
    EXPECT_EQ(prefill.phase, Phase::prefill);
    EXPECT_EQ(prefill.prefill_tokens, 64U);
    EXPECT_EQ(prefill.decode_tokens, 0U);
    EXPECT_EQ(step_called("execute_8192_context_9(…)_generation_37(…)").prefill_tokens, 8192U - 37U);
}

TEST(Import, what_the_name_of_a_step_says_is_not_overruled) {
    ImportOptions options;
    options.phase = Phase::prefill;
    options.tokens = 64;
    const auto decode = step_called("step[DECODE bs=32]", options);
    EXPECT_EQ(decode.phase, Phase::decode);
    EXPECT_EQ(decode.decode_tokens, 32U);
    EXPECT_EQ(decode.prefill_tokens, 0U);
    const auto silent = step_called("execute_new_1_cached_3", options);
    EXPECT_EQ(silent.phase, Phase::prefill);
    EXPECT_EQ(silent.prefill_tokens, 64U);
}

/// Elements of rocprofv3: each a process with a kernel of 10 ms on queue 1, and a copy in it on HIP stream 1.
std::string rocprof_process(int pid, const std::string& name, const std::string& more_of_kernel = {}) {
    return R"({"metadata": {"pid": )" + std::to_string(pid) +
           R"(}, "agents": [{"id": {"handle": 9}, "type": 2}], "kernel_symbols": [{"kernel_id": 1, "kernel_name": ")" +
           name + R"("}], "buffer_records": {"kernel_dispatch": [{"correlation_id": {"internal": 1}, )" +
           R"("start_timestamp": 1000, "end_timestamp": 10001000, "dispatch_info": {"agent_id": {"handle": 9}, )" +
           R"("queue_id": {"handle": 1}, "kernel_id": 1})" + more_of_kernel +
           R"(}], "memory_copy": [{"correlation_id": {"internal": 2}, "start_timestamp": 2001000, )" +
           R"("end_timestamp": 3001000, "operation": 2, "dst_agent_id": {"handle": 9}, "stream_id": {"handle": 1}}]}})";
}

TEST(Import, queues_of_kernels_and_streams_of_copies_that_share_a_number_are_two) {
    for (const auto& [stream, kernels, copies] :
         {std::tuple("", "gpu:0 stream 1", "gpu:0 stream 1 (2)"),
          std::tuple(R"(, "stream_id": {"handle": 0})", "gpu:0 stream 1", "gpu:0 stream 1 (2)"),
          std::tuple(R"(, "stream_id": {"handle": 2})", "gpu:0 stream 2", "gpu:0 stream 1")}) {
        SCOPED_TRACE(stream);
        const TraceFolder folder;
        save(folder / "trace", "{\"rocprofiler-sdk-tool\": [" + rocprof_process(7, "k", stream) + "]}");
        const ImportedRun made = import_file(folder / "trace", folder / "run.plumb").at(0);
        const ReadBack read = read_back(made.recording);
        ASSERT_EQ(read.ops.size(), 2U);
        EXPECT_EQ(std::tie(read.ops[0].track, read.ops[0].end), std::tuple(kernels, 10'000'000));
        EXPECT_EQ(std::tie(read.ops[1].track, read.ops[1].end), std::tuple(copies, 3'000'000));
        EXPECT_EQ(note_with(made, "same stream"), "");
    }
}

TEST(Import, processes_of_one_file_of_rocprofv3_keep_their_own_kernels) {
    const TraceFolder folder;
    save(folder / "trace", "{\"rocprofiler-sdk-tool\": [" + rocprof_process(7, "gemm_of_the_first") + ", " +
                               rocprof_process(8, "gemm_of_the_second") + "]}");
    ImportOptions own_names;
    own_names.evidence = {"annotation"};
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb", own_names);
    ASSERT_EQ(made.size(), 2U);
    for (const std::size_t process : {0, 1}) {
        const ReadBack read = read_back(made[process].recording);
        EXPECT_EQ(read.facts->metadata.pid, 7 + process);
        ASSERT_EQ(read.ops.size(), 2U);
        EXPECT_EQ(read.ops[0].name, process == 0 ? "gemm_of_the_first" : "gemm_of_the_second");
        EXPECT_EQ(read.ops[0].end, 10'000'000);
    }
}

// ---- public traces: PLUMB_TRACES names their folder

class PublicTraces : public testing::Test {
  protected:
    void SetUp() override {
        const char* folder = std::getenv("PLUMB_TRACES");
        if (folder == nullptr || !std::filesystem::is_directory(folder)) {
            GTEST_SKIP() << "PLUMB_TRACES names no folder of public traces";
        }
        traces_ = folder;
    }
    std::vector<ImportedRun> import(const std::string& name) { return import_file(traces_ / name, out_ / "run.plumb"); }

    std::filesystem::path traces_;
    TraceFolder out_;
};

TEST_F(PublicTraces, a_replay_of_a_hip_graph_keeps_its_decimals) {
    const std::vector<ImportedRun> made = import("qwen3_8b_mi300x_sglang/decode.json.gz");
    const ReadBack read = read_back(made.at(0).recording);
    // Of the replay itself: 544 of 558 operations, the others are launched one by one.
    ASSERT_EQ(read.ops.size(), 558U);
    std::int64_t sum = 0;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = 0;
    std::size_t count = 0;
    std::map<std::int64_t, std::size_t> of_launch;
    for (const ReadBack::Op& op : read.ops) {
        ++of_launch[op.launch];
    }
    for (const ReadBack::Op& op : read.ops) {
        if (of_launch[op.launch] > 1) {
            sum += op.end - op.begin;
            first = std::min(first, op.begin);
            last = std::max(last, op.end);
            ++count;
        }
    }
    EXPECT_EQ(count, 544U);
    EXPECT_EQ(sum, 9'656'404);
    EXPECT_EQ(last - first, 9'930'636);
    EXPECT_NE(note_with(made.at(0), "98.6 %"), "");
}

TEST_F(PublicTraces, kernels_of_both_processes_of_nsys_are_counted_apart) {
    const auto kernels = [this](const std::string& name) {
        std::vector<std::pair<std::size_t, std::int64_t>> all;
        ImportOptions own_names; // what a name or a place says of a kernel, it may say of a fill
        own_names.evidence = {"annotation"};
        for (const ImportedRun& run : import_file(traces_ / name, out_ / "run.plumb", own_names)) {
            std::size_t count = 0;
            std::int64_t sum = 0;
            for (const ReadBack::Op& op : read_back(run.recording).ops) {
                if (!op.name.starts_with("copy_") && op.name != "fill") {
                    ++count;
                    sum += op.end - op.begin;
                }
            }
            all.emplace_back(count, sum);
        }
        std::sort(all.begin(), all.end());
        return all;
    };
    using All = std::vector<std::pair<std::size_t, std::int64_t>>;
    EXPECT_EQ(kernels("nsys_h100/wan_dit_before.sqlite.gz"), (All{{1993, 270'875'926}, {2017, 264'324'724}}));
    EXPECT_EQ(kernels("nsys_h100/wan_dit_after.sqlite.gz"), (All{{1793, 237'473'368}, {1794, 251'362'038}}));
}

TEST_F(PublicTraces, a_window_begins_within_a_step) {
    const ImportedRun made = import("qwen1.5_0.5b/h100.json.gz").at(0);
    EXPECT_EQ(made.operations, 1707U);
    EXPECT_EQ(note_with(made, "no launch"), "509 operations: had no launch in the trace");
}

TEST_F(PublicTraces, rpd_gives_prefills_and_replays) {
    const ImportedRun made = import("mixtral_8x7b_mi300x_tp8/rank0.rpd.gz").at(0);
    const ReadBack read = read_back(made.recording);
    ASSERT_EQ(read.steps.size(), 8U);
    EXPECT_EQ(std::count_if(read.steps.begin(), read.steps.end(),
                            [](const auto& step) { return step.phase == Phase::decode; }),
              4);
}

TEST_F(PublicTraces, every_one_is_read) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(traces_)) {
        if (entry.path().extension() != ".gz") {
            continue;
        }
        for (const ImportedRun& run : import(std::filesystem::relative(entry.path(), traces_))) {
            EXPECT_GT(run.operations, 0U) << entry.path();
            EXPECT_EQ(read_back(run.recording).ops.size(), run.operations) << entry.path();
        }
    }
}

} // namespace
} // namespace plumb::imported
