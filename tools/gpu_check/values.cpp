// SPDX-License-Identifier: Apache-2.0
// Whether replays with stamps compute what plain ones do. A graph of two branches, copies and kernels that each depend on the
// order of all before them is replayed thousands of times, with and without stamps as they come, waited for and enqueued one
// behind the other; the host computes the same, and every bit must agree.
#include "plumb/cuda.hpp"
#include "profiled_graph.hpp"
#include "truths/kernels.hpp"

namespace gpu_check {
namespace {

constexpr unsigned kernels_of_a_run = 6;
constexpr std::size_t words = 3; // two branches, and a copy

struct Values {
    std::uint32_t first = 1, second = 2, copied = 3;
    friend bool operator==(const Values&, const Values&) = default;
};

void mix_on_host(std::uint32_t& value, std::uint32_t beside, std::uint32_t key) {
    for (unsigned i = 0; i < kernels_of_a_run; ++i) {
        value = mixed(value, beside, key + i);
    }
}

void replay_on_host(Values& values) {
    mix_on_host(values.first, 0, 10);
    mix_on_host(values.second, 0, 20);
    mix_on_host(values.first, 0, 30);
    mix_on_host(values.first, values.second, 40);
    values.copied = values.first;
    mix_on_host(values.second, values.copied, 50);
}

class Work {
  public:
    explicit Work(Gpu& gpu)
        : gpu_(gpu), other_(make_stream(gpu)), forked_(make_event(gpu)), joined_(make_event(gpu)),
          memory_(allocate(gpu, words * 4)) {
        const Values begin;
        gpu.must(gpu.d.memcpy_htod_async(memory_, &begin, sizeof begin, gpu.stream), "cuMemcpyHtoDAsync");
        gpu.wait();
    }

    void enqueue(plumb::Profiler& profiler) {
        const DevicePointer first = memory_, second = memory_ + 4, copied = memory_ + 8;
        run(profiler, plumb::Brick::qkv_projection, gpu_.stream, first, 0, 10);
        wait(forked_, gpu_.stream, other_);
        run(profiler, plumb::Brick::rope_embedding, other_, second, 0, 20);
        run(profiler, plumb::Brick::rms_norm, gpu_.stream, first, 0, 30);
        wait(joined_, other_, gpu_.stream);
        run(profiler, plumb::Brick::attention, gpu_.stream, first, second, 40);
        {
            PLUMB_BRICK(profiler, plumb::cuda(gpu_.stream), "copy");
            gpu_.must(gpu_.d.memcpy_dtod_async(copied, first, 4, gpu_.stream), "cuMemcpyDtoDAsync");
        }
        run(profiler, plumb::Brick::output_projection, gpu_.stream, second, copied, 50);
    }

    [[nodiscard]] Values values() const {
        const auto read = gpu_.read<std::uint32_t>(memory_, words);
        return {read[0], read[1], read[2]};
    }

  private:
    void run(plumb::Profiler& profiler, plumb::Brick brick, Stream stream, DevicePointer value, DevicePointer other,
             unsigned key) {
        PLUMB_LAYER(profiler, key);
        for (unsigned i = 0; i < kernels_of_a_run; ++i) {
            PLUMB_BRICK(profiler, plumb::cuda(stream), brick);
            gpu_.launch(stream, gpu_.kernel("check_mix"), 1, 1, value, other, key + i);
        }
    }
    void wait(Event event, Stream of, Stream by) {
        gpu_.record(event, of);
        gpu_.must(gpu_.d.stream_wait_event(by, event, 0), "cuStreamWaitEvent");
    }

    Gpu& gpu_;
    OwnedStream other_;
    OwnedEvent forked_, joined_;
    OwnedMemory memory_;
};

/// How many replays agreed before the first one that did not; all of them where `same`.
struct Compared {
    std::uint64_t replays = 0;
    bool same = true;
};

/// `expected`: what the memory holds when all before it went well.
Compared compare(Gpu& gpu, Work& work, ProfiledGraph& graph, Values& expected, std::uint64_t replays, bool pipelined) {
    Compared compared;
    constexpr std::uint64_t at_a_time = 50;
    while (compared.same && compared.replays < replays) {
        for (std::uint64_t i = 0; i < at_a_time; ++i) {
            static_cast<void>(graph.launch());
            if (!pipelined) {
                gpu.wait();
            }
            replay_on_host(expected);
        }
        gpu.wait();
        compared.same = work.values() == expected;
        compared.replays += at_a_time;
    }
    expected = work.values();
    return compared;
}

} // namespace

void run_values(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const std::uint64_t replays = options.tiny ? 150 : 3000; // of each of four kinds
    std::string different;
    for (const char* stamps : {"events", "kernels"}) {
        Work work(gpu);
        const auto profiler =
            profiler_of(options, std::string("values-") + stamps, std::string("graph.every=2,graph.stamps=") + stamps);
        {
            ProfiledGraph graph(gpu, *profiler, 1, [&] { work.enqueue(*profiler); });
            Values expected;
            for (std::uint64_t i = graph.launch_until_timed(5); i > 0; --i) {
                replay_on_host(expected);
            }
            for (const bool pipelined : {false, true}) {
                const Json at = {{"stamps", stamps}, {"pipelined", pipelined}};
                const Compared compared = compare(gpu, work, graph, expected, replays, pipelined);
                results.figure("values.replays", static_cast<double>(compared.replays), "1", at);
                results.figure("values.same", compared.same ? 1 : 0, "1", at);
                different += compared.same ? "" : std::string(different.empty() ? "" : ", ") + stamps;
            }
            for (const plumb::GraphSummary& summary : report_of(*profiler).graphs) {
                results.figure("values.sampled", static_cast<double>(summary.sampled_replays), "1",
                               {{"stamps", stamps}});
                results.text("values.source", summary.source);
            }
        }
        expect(profiler->close().ok(), "the recording could not be closed");
    }
    expect(different.empty(), "replays computed something else than the host (stamps: " + different + ")");
}

} // namespace gpu_check
