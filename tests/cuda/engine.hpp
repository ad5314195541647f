// SPDX-License-Identifier: Apache-2.0
// An engine on the virtual GPU in virtual time, profiled: kernels of known durations, one stream, one profiler. Test-only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/backend.hpp"
#include "plumb/plumb.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::cuda_test {

namespace cuda = backends::cuda;

/// `kernel` inside the scope of `brick`, so many times a layer (or, outside layers, a step).
struct Work {
    Brick brick;
    std::int64_t kernel_ns;
};

inline const std::vector<Work> layer_work = {
    {Brick::rms_norm, 20'000}, {Brick::attention, 90'000}, {Brick::down_projection, 150'000}};
inline constexpr std::uint64_t graph_key = 16;

class Engine {
  public:
    explicit Engine(const vgpu::Config& config, const std::string& spec) {
        vgpu::reset(config);
        EXPECT_EQ(calls().init(0), cuda::CuResult::success);
        EXPECT_EQ(calls().primary_ctx_retain(&context_, 0), cuda::CuResult::success);
        EXPECT_EQ(calls().ctx_push_current(context_), cuda::CuResult::success);
        EXPECT_EQ(calls().module_load_data(&module_, "an image"), cuda::CuResult::success);
        EXPECT_EQ(calls().stream_create(&stream_, cuda::stream_non_blocking), cuda::CuResult::success);
        Config parsed = *Config::parse("on,out=" + path() + "," + spec);
        parsed.clock = &vgpu::host_clock();
        profiler_ = std::make_unique<Profiler>(parsed);
        EXPECT_TRUE(profiler_->status().ok());
        TimerOptions options;
        options.host_clock = &vgpu::host_clock();
        Result<std::unique_ptr<QueueTimer>> timer = (*find_backend("cuda"))->make_queue_timer(0, stream_, options);
        EXPECT_TRUE(timer.ok()) << (timer.ok() ? "" : timer.error().message);
        timer_ = *std::move(timer);
        queue_ = profiler_->add_queue(*timer_, "stream 1");
    }
    ~Engine() {
        profiler_.reset();
        std::remove(path().c_str());
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    static const cuda::Driver& calls() { return *cuda::driver(); }
    static std::string path() { // of this process: tests run side by side
        static const std::string own = testing::TempDir() + "plumb_cuda_test-" + std::to_string(getpid()) + ".plumb";
        return own;
    }
    Profiler& profiler() { return *profiler_; }
    void end_profiler() { profiler_.reset(); }
    [[nodiscard]] Queue queue() const { return queue_; }
    [[nodiscard]] cuda::Stream stream() const { return stream_; }

    void kernel(const std::string& name, std::int64_t ns) { kernel_on(name, ns, stream_); }
    void kernel_on(const std::string& name, std::int64_t ns, cuda::Stream stream) {
        cuda::Function& function = functions_[name];
        if (function == nullptr) {
            vgpu::KernelModel model;
            model.min_ns = model.max_ns = ns;
            vgpu::kernel(name, model);
            ASSERT_EQ(calls().module_get_function(&function, module_, name.c_str()), cuda::CuResult::success);
        }
        ASSERT_EQ(calls().launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr),
                  cuda::CuResult::success);
    }
    /// One forward pass: every piece of work in a scope of its own, in every layer; then lm_head.
    void forward(int layers, const std::vector<Work>& work) {
        for (int layer = 0; layer < layers; ++layer) {
            PLUMB_LAYER(*profiler_, layer);
            for (const Work& piece : work) {
                PLUMB_BRICK(*profiler_, queue_, piece.brick);
                kernel("kernel_" + std::to_string(piece.kernel_ns), piece.kernel_ns);
            }
        }
        PLUMB_BRICK(*profiler_, queue_, Brick::lm_head);
        kernel("head", head_ns);
    }
    void wait() { ASSERT_EQ(calls().stream_synchronize(stream_), cuda::CuResult::success); }

    Report report() {
        EXPECT_TRUE(profiler_->flush().ok());
        Result<Report> made = profiler_->snapshot();
        EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
        return made.ok() ? *made : Report{};
    }
    static const Row* row_of(const Report& report, const std::string& brick) {
        for (const Row& row : report.bricks) {
            if (row.key.name == brick && row.key.phase == Phase::decode && row.device) {
                return &row;
            }
        }
        return nullptr;
    }

    static constexpr std::int64_t head_ns = 640'000;

  private:
    cuda::Context context_ = nullptr;
    cuda::Module module_ = nullptr;
    cuda::Stream stream_ = nullptr;
    std::map<std::string, cuda::Function> functions_;
    std::unique_ptr<QueueTimer> timer_;
    std::unique_ptr<Profiler> profiler_;
    Queue queue_{};
};

} // namespace plumb::cuda_test
