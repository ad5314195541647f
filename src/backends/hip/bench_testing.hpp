// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: the virtual GPU's HIP face, as an engine uses it. Test-only.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/queue_timer.hpp"
#include "backends/hip/driver.hpp"
#include "virtual_hip/control.hpp"
#include "virtual_hip/hip.hpp"

namespace plumb::backends::hip {

class HipBench {
  public:
    explicit HipBench(const vgpu::Config& config = {}) {
        vhip::reset(config);
        EXPECT_TRUE(driver().ok());
        EXPECT_EQ(hipModuleLoadData(&module_, "any function one asks for"), CuResult::success);
        EXPECT_EQ(hipStreamCreateWithFlags(&stream, cuda::stream_non_blocking), CuResult::success);
    }
    /// Enqueues a kernel of so many nanoseconds.
    void kernel(std::int64_t ns, Stream on) {
        vgpu::KernelModel model;
        model.min_ns = model.max_ns = ns;
        const std::string name = "work_" + std::to_string(ns);
        vgpu::kernel(name, model);
        cuda::Function function = nullptr;
        EXPECT_EQ(hipModuleGetFunction(&function, module_, name.c_str()), CuResult::success);
        EXPECT_EQ(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, nullptr, nullptr), CuResult::success);
    }
    void kernel(std::int64_t ns) { kernel(ns, stream); }
    std::unique_ptr<QueueTimer> timer(Stream on, const Driver& calls = *driver()) const {
        TimerOptions options;
        options.host_clock = &vgpu::host_clock();
        auto made = cuda::CudaQueueTimer::create(calls, on, options);
        EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
        return made ? std::move(*made) : nullptr;
    }
    std::unique_ptr<QueueTimer> timer() const { return timer(stream); }

    Stream stream = nullptr;

  private:
    cuda::Module module_ = nullptr;
};

inline ScopeLabel any_label() {
    ScopeLabel label;
    label.name = 1;
    return label;
}

inline std::int64_t length_of(const DeviceSpan& span) {
    return static_cast<std::int64_t>(span.end_ticks - span.begin_ticks);
}

/// A scope around one kernel, done and ended, not collected.
inline DeviceToken scope_of(HipBench& bench, QueueTimer& timer, std::int64_t ns) {
    const auto token = timer.begin();
    EXPECT_TRUE(token.ok()) << (token ? "" : token.error().message);
    bench.kernel(ns);
    EXPECT_TRUE(timer.end(*token).ok());
    return *token;
}

} // namespace plumb::backends::hip
