// SPDX-License-Identifier: Apache-2.0
// How much of the time that a real OpenCL device is busy lies in bricks: every command of the run is seen by its own event,
// inside scopes and outside.
#include <algorithm>

#include "decoder/kernels/opencl/api.hpp"
#include "decoder/kernels/opencl/opencl_backend.hpp"
#include "decoder/sampling/random.hpp"
#include "decoder/test_support.hpp"
#include "plumb/backend.hpp"
#include "plumb/plumb.hpp"

// PoCL and its compiler keep what they made until the process ends, which is not ours to report.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libclang\n"; }

namespace plumb::decoder {
namespace {

struct Interval {
    std::uint64_t begin = 0, end = 0; // device ticks
};

/// Sorted, without overlap.
std::vector<Interval> union_of(std::vector<Interval> all) {
    std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    std::vector<Interval> out;
    for (const Interval& next : all) {
        if (out.empty() || next.begin > out.back().end) {
            out.push_back(next);
        } else {
            out.back().end = std::max(out.back().end, next.end);
        }
    }
    return out;
}

std::uint64_t length(const std::vector<Interval>& united) {
    std::uint64_t sum = 0;
    for (const Interval& interval : united) {
        sum += interval.end - interval.begin;
    }
    return sum;
}

std::uint64_t common_length(const std::vector<Interval>& a, const std::vector<Interval>& b) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const std::uint64_t begin = std::max(a[i].begin, b[j].begin), end = std::min(a[i].end, b[j].end);
        sum += end > begin ? end - begin : 0;
        a[i].end < b[j].end ? ++i : ++j;
    }
    return sum;
}

// Every command of the decoder, by an event of its own. The calls are plain functions, so what they note is global.
opencl::Api real;
std::vector<cl_event> commands;

cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                      const size_t* global, const size_t* local, cl_uint, const cl_event*, cl_event*) {
    return real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, 0, nullptr,
                                       &commands.emplace_back());
}
cl_int enqueue_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes, void* to,
                    cl_uint, const cl_event*, cl_event*) {
    return real.clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, to, 0, nullptr, &commands.emplace_back());
}
cl_int enqueue_write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                     const void* from, cl_uint, const cl_event*, cl_event*) {
    return real.clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, from, 0, nullptr,
                                     &commands.emplace_back());
}

/// The queue's own timer, with what it told the profiler.
class ListeningTimer final : public QueueTimer {
  public:
    explicit ListeningTimer(std::unique_ptr<QueueTimer> timer) : timer_(std::move(timer)) {}

    Result<DeviceToken> begin() noexcept override { return timer_->begin(); }
    Status end(DeviceToken token) noexcept override { return timer_->end(token); }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override {
        const Result<DeviceSpan> span = timer_->collect(token);
        if (span) {
            spans.push_back({span->begin_ticks, span->end_ticks}); // by the drain thread alone
        }
        return span;
    }
    void cancel(DeviceToken token) noexcept override { timer_->cancel(token); }
    Status wait(DeviceToken token) noexcept override { return timer_->wait(token); }
    bool immediate() const noexcept override { return timer_->immediate(); }
    const char* source() const noexcept override { return timer_->source(); }
    std::string clock_name() const override { return timer_->clock_name(); }
    bool clock_is_host() const noexcept override { return timer_->clock_is_host(); }
    Result<DeviceClockPair> clock_pair() noexcept override { return timer_->clock_pair(); }
    Result<Elapsed> duration(const DeviceSpan& span) override { return timer_->duration(span); }
    Result<double> floor_ns() override { return timer_->floor_ns(); }
    std::vector<Capability> capabilities() const override { return timer_->capabilities(); }
    std::size_t in_flight() const noexcept override { return timer_->in_flight(); }

    std::vector<Interval> spans;

  private:
    std::unique_ptr<QueueTimer> timer_;
};

std::unique_ptr<ListeningTimer> listening;
Profiler* profiler_of_run = nullptr;

Queue listening_queue(void* command_queue) {
    Result<std::unique_ptr<QueueTimer>> timer =
        (*find_backend("opencl"))->make_queue_timer(0, command_queue, TimerOptions{});
    EXPECT_TRUE(timer.ok()) << timer.error().message;
    listening = std::make_unique<ListeningTimer>(std::move(*timer));
    return profiler_of_run->add_queue(*listening, "device");
}

class OpenClCoverage : public testing::Test {
  protected:
    void SetUp() override {
        if (test_threads() == 1) {
            GTEST_SKIP() << "the thread sanitizer does not see what the driver synchronises";
        }
        keep_pocl_to_this_process();
        const Result<std::vector<plumb::Device>> devices = (*find_backend("opencl"))->enumerate();
        if (!devices) {
            GTEST_SKIP() << devices.error().message;
        }
        real = calls_ = *opencl::api();
        calls_.clEnqueueNDRangeKernel = enqueue_kernel;
        calls_.clEnqueueReadBuffer = enqueue_read;
        calls_.clEnqueueWriteBuffer = enqueue_write;
        commands.clear();
    }

    /// Decodes, with `outside` further operations between the steps, and returns the share of busy time in bricks.
    double coverage(std::size_t outside) {
        plumb::Config config;
        config.on = true;
        config.out = "none";
        config.device_every = 1;
        auto profiler = std::make_unique<Profiler>(config);
        profiler_of_run = profiler.get();
        Result<std::unique_ptr<ComputeBackend>> backend = opencl::make_backend(calls_, 0, listening_queue);
        EXPECT_TRUE(backend.ok()) << backend.error().message;
        Result<gguf::File> file = gguf::File::open(make_test_model(folder_, "test-qwen2", Type::f32));
        Result<ModelConfig> shape = read_config(*file);
        Result<Weights> weights = read_weights(*file, *shape);
        Result<State> state = make_state(*shape, std::move(*weights), **backend, 128, 16);
        EXPECT_TRUE(state.ok()) << state.error().message;
        commands.clear(); // the model's own
        run(*state, *profiler, outside);
        EXPECT_TRUE(profiler->flush(30).ok());
        const std::vector<Interval> bricks = union_of(listening->spans), busy = union_of(busy_times());
        EXPECT_GT(length(busy), 0U);
        const double share = static_cast<double>(common_length(bricks, busy)) / static_cast<double>(length(busy));
        RecordProperty("coverage_with_" + std::to_string(outside) + "_outside", std::to_string(share));
        profiler.reset(); // before the queue's timer
        return share;
    }

  private:
    static void run(State& state, Profiler& profiler, std::size_t outside) {
        SamplingOptions greedy;
        Result<Sampler> sampler = Sampler::make(greedy, state.weights.vocabulary());
        std::int32_t token = 1;
        for (std::size_t step = 0; step < 60; ++step) {
            token = run_step(state, {{&token, 1}, Phase::decode, &*sampler}, profiler);
            for (std::size_t i = 0; i < outside; ++i) {
                state.backend->rms_norm(state.hidden, state.weights.output_norm, 1e-5F, state.projected);
            }
        }
        static_cast<void>(state.backend->read(state.projected));
        EXPECT_TRUE(state.backend->status().ok());
    }

    static std::vector<Interval> busy_times() {
        std::vector<Interval> out;
        for (const cl_event event : commands) {
            cl_ulong begin = 0, end = 0;
            EXPECT_EQ(real.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, nullptr),
                      0);
            EXPECT_EQ(real.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr), 0);
            out.push_back({begin, end});
            real.clReleaseEvent(event);
        }
        commands.clear();
        return out;
    }

    TestFolder folder_;
    opencl::Api calls_;
};

TEST_F(OpenClCoverage, F5_at_least_95_percent_of_the_time_that_the_device_is_busy_lies_in_bricks) {
    EXPECT_GE(coverage(0), 0.95);
    // Commands that no scope holds count as busy, too.
    const double with_others = coverage(40);
    EXPECT_LT(with_others, 0.95);
    EXPECT_GT(with_others, 0.05);
}

} // namespace
} // namespace plumb::decoder
