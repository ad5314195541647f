// SPDX-License-Identifier: Apache-2.0
// Kernels from the Profiler into the recording, and what a plain run of them gives.
#include "session/kernel_registry.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <thread>

#include "answers/path/path.hpp"
#include "plumb/plumb.hpp"
#include "recording/reader.hpp"
#include "support/text_of_file.hpp"

namespace plumb::session {
namespace {

recording::KernelInfo kernel(std::uint64_t hash, const std::string& name, std::uint64_t checksum = 1) {
    return {hash, name, "a.cu", "text", 4, 10, checksum};
}

TEST(KernelRegistry, tells_the_recording_once_and_of_each_kernel_of_a_module) {
    KernelRegistry registry;
    EXPECT_NE(registry.add(kernel(1, "a")).fresh, nullptr);
    EXPECT_EQ(registry.add(kernel(1, "a")).fresh, nullptr);
    EXPECT_NE(registry.add(kernel(1, "b")).fresh, nullptr);
    EXPECT_TRUE(registry.add(kernel(1, "b")).status.ok());
}

TEST(KernelRegistry, a_collision_is_an_error_that_names_both_and_reaches_the_recording) {
    KernelRegistry registry;
    (void)registry.add(kernel(1, "a"));
    const KernelRegistry::Added added = registry.add(kernel(1, "b", 2));
    ASSERT_FALSE(added.status.ok());
    EXPECT_EQ(added.status.error().message.find(
                  "code hash 0000000000000001 stands for a (a.cu) and for b (a.cu), which differ"),
              0u)
        << added.status.error().message;
    EXPECT_NE(added.fresh, nullptr);
}

TEST(KernelRegistry, M7_is_bounded_in_kernels_and_in_source_text) {
    KernelRegistry registry;
    std::size_t source = 0;
    for (std::uint64_t i = 0; i < KernelRegistry::most_kernels; ++i) {
        recording::KernelInfo one = kernel(i, "k");
        one.source.assign(200 << 10, 's');
        const KernelRegistry::Added added = registry.add(std::move(one));
        ASSERT_NE(added.fresh, nullptr);
        source += added.fresh->source.size();
    }
    EXPECT_LE(source, KernelRegistry::most_source_bytes);
    const KernelRegistry::Added beyond = registry.add(kernel(1 << 20, "one more"));
    EXPECT_EQ(beyond.fresh, nullptr);
    EXPECT_EQ(beyond.status.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(beyond.code_hash, std::uint64_t{1} << 20);
}

class LiveGraph : public testing::Test {
  protected:
    std::string path = testing::TempDir() + "plumb_live_" + std::to_string(::getpid()) + "_" +
                       testing::UnitTest::GetInstance()->current_test_info()->name() + ".plumb";
    void TearDown() override { std::remove(path.c_str()); }

    Config config(const std::string& more = "") {
        Config made = *Config::parse("on,warmup=0,out=" + path + more);
        return made;
    }
};

constexpr char ptx[] = ".visible .entry gemm() { ret; }";

/// Two reads beside each other may be one tick of a coarse clock, or go back where the thread changes its core.
Timestamp now_after(Profiler& prof, Timestamp before) {
    Timestamp now = prof.now();
    while (now.ticks <= before.ticks) {
        now = prof.now();
    }
    return now;
}

/// One step of two kernels on two threads, joined, and a copy that comes back.
void run(Profiler& prof, std::uint64_t hash) {
    const Name gemm = prof.intern("gemm"), rope = prof.intern("rope_kernel");
    prof.push_step(host, Phase::decode, tokens(1));
    prof.push_layer(0);
    prof.push_scope(host, Brick::qkv_projection);
    const NodeHandle first = prof.record_kernel(gemm, hash, {8, 4, 2}, {128}, 4096, bytes(1e3), flops(1e3));
    prof.pop_scope();
    const Context context = prof.context();
    NodeHandle second;
    std::thread([&] {
        PLUMB_CONTEXT(prof, context);
        PLUMB_BRICK(prof, host, Brick::rope_embedding);
        second = prof.record_kernel(rope, 0, 1, 32, 0);
    }).join();
    prof.add_dependency(first, second);
    const Timestamp begin = prof.now(), middle = now_after(prof, begin), end = now_after(prof, middle);
    prof.record_transfer(10, 20, 4096, TransferDirection::host_to_device, timed(begin, middle));
    prof.record_transfer(20, 10, 4096, TransferDirection::device_to_host, timed(middle, end));
    prof.record_task(prof.intern("sampler"), 3, 2, 5000);
    for (int i = 0; i < 2; ++i) {
        prof.pop_scope();
    }
}

TEST_F(LiveGraph, recorded_kernels_transfers_and_tasks_are_the_path_of_their_step) {
    {
        Profiler prof(config());
        const Result<std::uint64_t> hash =
            prof.register_kernel(ptx, sizeof ptx - 1, {"gemm", "kernels/gemm.cu", "the source"});
        ASSERT_TRUE(hash.ok());
        EXPECT_EQ(*hash, code_hash(ptx, sizeof ptx - 1));
        run(prof, *hash);
        ASSERT_TRUE(prof.close().ok());
    }
    const Result<PathReport> report = path_recording(path);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->slowest.size(), 2u);
    ASSERT_EQ(report->recorded.size(), 2u);
    EXPECT_EQ(report->recorded[0].name, "gemm");
    EXPECT_EQ(report->recorded[0].file, "kernels/gemm.cu");
    ASSERT_EQ(report->ping_pong.size(), 1u);
    EXPECT_EQ(report->launches, 2u);
    std::size_t tasks = 0;
    for (NodeId id = 0; id < report->graph.size(); ++id) {
        tasks += report->graph.task_of(id) != nullptr ? 1 : 0;
    }
    EXPECT_EQ(tasks, 1u);
    for (const std::string& note : report->notes) {
        EXPECT_EQ(note.find("dependencies"), std::string::npos) << note;
    }
    std::ostringstream lines;
    ASSERT_TRUE(export_recording(path, "jsonl", lines).ok());
    for (const char* part : {R"("kind":"kernel","name":"gemm")", R"("grid":[8,4,2])", R"("kind":"dependency")",
                             R"("direction":"device_to_host")", R"("polls":3)", R"("source":"the source")"}) {
        EXPECT_NE(lines.str().find(part), std::string::npos) << part;
    }
    std::ostringstream trace;
    EXPECT_TRUE(export_recording(path, "chrome_trace", trace).ok())
        << "exporters that do not show nodes leave them out";
}

TEST_F(LiveGraph, a_kernel_registered_before_enable_is_in_the_recording_and_a_collision_is_told_there) {
    {
        Config off = config();
        off.on = false;
        Profiler prof(off);
        ASSERT_TRUE(prof.register_kernel(ptx, 4, {"gemm", "a.cu", ""}).ok());
        const Result<std::uint64_t> again = prof.register_kernel(ptx, 4, {"gemm", "b.cu", ""});
        ASSERT_FALSE(again.ok());
        EXPECT_EQ(again.error().code, ErrorCode::already_exists);
        EXPECT_EQ(prof.register_kernel(nullptr, 4, {}).error().code, ErrorCode::invalid_argument);
        ASSERT_TRUE(prof.enable().ok());
        run(prof, 0);
        ASSERT_TRUE(prof.close().ok());
    }
    const Result<recording::Reader> reader = recording::Reader::open(path);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->kernels().size(), 2u);
    ASSERT_EQ(reader->notes().size(), 1u);
    EXPECT_NE(reader->notes()[0].find("gemm (a.cu) and for gemm (b.cu)"), std::string::npos) << reader->notes()[0];
}

TEST_F(LiveGraph, redacted_neither_folder_nor_source_reaches_the_recording) {
    {
        Profiler prof(config(",redact=on"));
        ASSERT_TRUE(prof.register_kernel(ptx, 4, {"gemm", "private/someone/a.cu", "private/someone"}).ok());
        ASSERT_TRUE(prof.close().ok());
    }
    EXPECT_EQ(support::text_of_file(path).find("someone"), std::string::npos);
    const Result<recording::Reader> reader = recording::Reader::open(path);
    ASSERT_EQ(reader->kernels().size(), 1u);
    EXPECT_EQ(reader->kernels()[0].file, "a.cu");
}

} // namespace
} // namespace plumb::session
