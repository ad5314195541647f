// SPDX-License-Identifier: Apache-2.0
#include "import/import_testing.hpp"

namespace plumb::imported {
namespace {

std::string name_of(const char* kind, int process, int thread, const std::string& name) {
    return R"({"ph":"M","pid":)" + std::to_string(process) + (thread < 0 ? "" : R"(,"tid":)" + std::to_string(thread)) +
           R"(,"name":")" + kind + R"(","args":{"name":")" + name + "\"}}";
}
std::string ran(int process, int thread, const std::string& name, const char* begin, const char* duration) {
    return R"({"ph":"X","pid":)" + std::to_string(process) + R"(,"tid":)" + std::to_string(thread) + R"(,"ts":)" +
           begin + R"(,"dur":)" + duration + R"(,"name":")" + name + R"(","args":{"hlo_op":"fusion.1"}})";
}

struct Lanes {
    std::vector<std::string> names = {name_of("process_name", 1, -1, "/host:0 /device:GPU:0"),
                                      name_of("thread_name", 1, 13, "Stream #13(Compute,MemcpyD2D)"),
                                      name_of("thread_name", 1, 99, "XLA Ops"),
                                      name_of("process_name", 2, -1, "/host:0 /device:GPU:1"),
                                      name_of("thread_name", 2, 13, "Stream #13"),
                                      name_of("process_name", 700, -1, "/host:CPU"),
                                      name_of("thread_name", 700, 1, "python")};
    std::vector<std::string> events = {
        ran(1, 13, "loop_add_fusion", "10.5", "2.25"), ran(1, 99, "fusion.1", "10.5", "2.25"),
        ran(2, 13, "MemcpyD2H", "11", "0.5"),          ran(700, 1, "PjitFunction(step)", "1", "50"),
        ran(1, 13, "gemm_fusion_dot_1", "14", "3"),    ran(8, 13, "of no process that has a name", "14", "3")};
};

std::string json_of(const std::vector<std::string>& first, const std::vector<std::string>& then) {
    std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (const auto* part : {&first, &then}) {
        for (const std::string& event : *part) {
            text += (text.back() == '[' ? "" : ",\n") + event;
        }
    }
    return text + "]}";
}

void expect_lanes(const std::string& text) {
    const TraceFolder folder;
    save(folder / "trace", text);
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].tool, "chrome");
    const ReadBack read = read_back(made[0].recording);
    ASSERT_EQ(read.ops.size(), 3U);
    EXPECT_EQ(std::tie(read.ops[0].track, read.ops[0].begin, read.ops[0].end), std::tuple("gpu:0 stream 13", 0, 2250));
    EXPECT_EQ(std::tie(read.ops[1].track, read.ops[1].name, read.ops[1].begin, read.ops[1].end),
              std::tuple("gpu:1 stream 13", "copy_d2h", 500, 1000));
    EXPECT_EQ(std::tie(read.ops[2].track, read.ops[2].begin, read.ops[2].end),
              std::tuple("gpu:0 stream 13", 3500, 6500));
}

TEST(DeviceLanes, are_told_by_the_names_of_processes_and_threads) {
    const Lanes lanes;
    expect_lanes(json_of(lanes.names, lanes.events));
}

TEST(DeviceLanes, may_be_named_behind_what_ran_in_them) {
    const Lanes lanes;
    expect_lanes(json_of(lanes.events, lanes.names));
}

TEST(DeviceLanes, of_two_hosts_are_two_recordings) {
    const TraceFolder folder;
    std::vector<std::string> names;
    for (const int process : {1, 2}) {
        names.push_back(
            name_of("process_name", process, -1, "/host:worker" + std::to_string(process) + "/device:GPU:0"));
        names.push_back(name_of("thread_name", process, 13, "Stream #13(Compute)"));
    }
    save(folder / "trace",
         json_of(names, {ran(1, 13, "gemm_fusion", "0", "10000"), ran(2, 13, "loop_add_fusion", "1000", "1000")}));
    const std::vector<ImportedRun> made = import_file(folder / "trace", folder / "run.plumb");
    ASSERT_EQ(made.size(), 2U);
    for (const std::size_t host : {0, 1}) {
        const ReadBack read = read_back(made[host].recording);
        ASSERT_EQ(read.ops.size(), 1U);
        EXPECT_EQ(read.ops[0].track, "gpu:0 stream 13");
        EXPECT_EQ(read.ops[0].end, host == 0 ? 10'000'000 : 1'000'000);
        EXPECT_EQ(read.facts->metadata.pid, 0U) << "no lane tells it";
    }
}

TEST(DeviceLanes, without_names_are_none) {
    const TraceFolder folder;
    save(folder / "trace", json_of({}, Lanes().events));
    ImportOptions options;
    options.out = folder / "run.plumb";
    const auto made = import_traces({folder / "trace"}, options);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("no operation of a device"), std::string::npos);
}

} // namespace
} // namespace plumb::imported
