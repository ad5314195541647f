// SPDX-License-Identifier: Apache-2.0
#include "import/import_testing.hpp"
#include "import/trace.hpp"

namespace plumb::imported {
namespace {

constexpr int steps_of_callers = 6;
constexpr int launches_in_step = 5;
constexpr int kernel_behind_call_us = 20;

/// What the profiler writes of one rank. Ranks number their calls alike.
std::string rank_as_kineto(int rank, int begin_us, int devices = 1) {
    std::string text;
    const auto event = [&text](const std::string& category, const std::string& name, int process, int begin,
                               int duration, const std::string& args) {
        text += (text.empty() ? "" : ",\n") + std::string(R"({"ph":"X","cat":")") + category + R"(","name":")" + name +
                R"(","pid":)" + std::to_string(process) + R"(,"tid":1,"ts":)" + std::to_string(begin) + R"(,"dur":)" +
                std::to_string(duration) + R"(,"args":{)" + args + "}}";
    };
    for (int step = 0; step < steps_of_callers; ++step) {
        const int begin = 1000 * (step + 1) + begin_us;
        event("user_annotation", "decode", 100 * (rank + 1), begin, 400, "");
        for (int launch = 0; launch < launches_in_step; ++launch) {
            const std::string id = R"("correlation":)" + std::to_string(10 * step + launch + 1);
            const int device = rank + launch % devices;
            event("cuda_runtime", "cudaLaunchKernel", 100 * (rank + 1), begin + 10 * launch, 5, id);
            event("kernel", "rms_norm_kernel", device, begin + 10 * launch + kernel_behind_call_us, 8 + rank,
                  R"("stream":7,"device":)" + std::to_string(device) + "," + id);
        }
    }
    return text;
}

std::vector<ImportedRun> import_events(const TraceFolder& folder, const std::string& events) {
    save(folder / "trace",
         R"({"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[)" + events + "]}");
    return import_file(folder / "trace", folder / "run.plumb");
}

TEST(Callers, of_several_processes_are_a_recording_each_with_launches_of_its_own) {
    for (const bool swapped : {false, true}) {
        const TraceFolder folder;
        const std::string first = rank_as_kineto(0, 0), second = rank_as_kineto(1, 300);
        const std::vector<ImportedRun> made =
            import_events(folder, swapped ? second + "," + first : first + "," + second);
        ASSERT_EQ(made.size(), 2U);
        for (const int rank : {0, 1}) {
            const ReadBack read = read_back(made[static_cast<std::size_t>(rank)].recording);
            EXPECT_EQ(read.facts->metadata.pid, 100U * (static_cast<unsigned>(rank) + 1));
            EXPECT_EQ(read.facts->metadata.rank, "") << "the file tells that of one of them";
            EXPECT_EQ(read.steps.size(), 6U);
            ASSERT_EQ(read.ops.size(), 30U);
            for (const ReadBack::Op& op : read.ops) {
                EXPECT_EQ(op.track, rank == 0 ? "gpu:0 stream 7" : "gpu:1 stream 7");
                ASSERT_TRUE(op.launched);
                EXPECT_EQ(op.begin - op.launch, 1000 * kernel_behind_call_us);
            }
        }
    }
}

TEST(Callers, that_may_each_have_launched_all_leave_no_launches_and_a_sentence) {
    const TraceFolder folder;
    const std::vector<ImportedRun> made = import_events(folder, rank_as_kineto(0, 0) + "," + rank_as_kineto(1, 50));
    ASSERT_EQ(made.size(), 1U);
    EXPECT_NE(note_with(made[0], "several processes").find("not known"), std::string::npos);
    const ReadBack read = read_back(made[0].recording);
    EXPECT_EQ(read.ops.size(), 60U);
    EXPECT_TRUE(std::none_of(read.ops.begin(), read.ops.end(), [](const ReadBack::Op& op) { return op.launched; }));
}

TEST(Callers, of_one_process_with_two_devices_are_one_recording) {
    const TraceFolder folder;
    const std::vector<ImportedRun> made = import_events(folder, rank_as_kineto(0, 0, 2));
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(note_with(made[0], "several processes"), "");
    const ReadBack read = read_back(made[0].recording);
    EXPECT_EQ(read.facts->metadata.rank, "0");
    EXPECT_EQ(read.ops.size(), 30U);
    EXPECT_TRUE(std::all_of(read.ops.begin(), read.ops.end(), [](const ReadBack::Op& op) { return op.launched; }));
}

TEST(Callers, of_another_process_are_no_gap_between_launches) {
    TraceBuilder builder;
    const std::uint32_t name = builder.intern("name");
    constexpr std::uint64_t launches = 3;
    for (std::uint64_t i = 0; i < launches; ++i) {
        HostOp call;
        call.start_ns = static_cast<std::int64_t>(100 * i);
        call.end_ns = call.start_ns + 5;
        call.correlation = 10 - i; // not in the order of calls
        call.name = name;
        DeviceOp op;
        op.start_ns = call.end_ns;
        op.end_ns = op.start_ns + 5;
        op.correlation = call.correlation;
        op.name = name;
        builder.add(op, 0, 7, 1);
        builder.add(call, 1, 1);
        call.start_ns += 50;
        call.end_ns += 50;
        builder.add(call, 1, 2);
    }
    const Trace trace = builder.finish();
    ASSERT_EQ(trace.ops.size(), launches);
    for (std::uint32_t i = 0; i < launches; ++i) {
        EXPECT_EQ(trace.launch_number(i), i + 1U);
    }
}

} // namespace
} // namespace plumb::imported
