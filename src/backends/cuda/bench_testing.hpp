// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: the virtual GPU with a context, streams and kernels of given durations, and the
// truth about them. Test-only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/queue_timer.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::backends::cuda {

/// The calling thread has the context current.
class VirtualBench {
  public:
    explicit VirtualBench(const vgpu::Config& config = {}) {
        vgpu::reset(config);
        EXPECT_EQ(calls().init(0), CuResult::success);
        EXPECT_EQ(calls().primary_ctx_retain(&context_, 0), CuResult::success);
        EXPECT_EQ(calls().ctx_push_current(context_), CuResult::success);
        EXPECT_EQ(calls().module_load_data(&module_, "any function one asks for"), CuResult::success);
    }
    ~VirtualBench() {
        Context popped = nullptr;
        static_cast<void>(calls().ctx_pop_current(&popped));
    }
    VirtualBench(const VirtualBench&) = delete;
    VirtualBench& operator=(const VirtualBench&) = delete;

    static const Driver& calls() { return *driver(); }
    [[nodiscard]] Context context() const { return context_; }

    Stream new_stream(unsigned flags = stream_non_blocking) {
        Stream stream = nullptr;
        EXPECT_EQ(calls().stream_create(&stream, flags), CuResult::success);
        return stream;
    }
    /// Enqueues a kernel of so many nanoseconds.
    CuResult kernel(Stream stream, std::int64_t ns) {
        return calls().launch_kernel(function_of(ns), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    }
    static std::unique_ptr<CudaQueueTimer> timer(Stream stream, TimerOptions options = {}) {
        options.host_clock = &vgpu::host_clock();
        Result<std::unique_ptr<CudaQueueTimer>> made = CudaQueueTimer::create(calls(), stream, options);
        EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
        return made ? std::move(*made) : nullptr;
    }
    /// What the device's event clock says of a true moment, as far as differences go.
    static std::int64_t stamp(std::int64_t true_ns) { return static_cast<std::int64_t>(vgpu::event_stamp_ns(true_ns)); }

    /// One function per duration: what is enqueued keeps its own.
    Function function_of(std::int64_t ns) {
        const std::lock_guard lock(mutex_);
        Function& function = functions_[ns];
        if (function == nullptr) {
            const std::string name = "work_" + std::to_string(ns);
            vgpu::KernelModel model;
            model.min_ns = model.max_ns = ns;
            vgpu::kernel(name, model);
            EXPECT_EQ(calls().module_get_function(&function, module_, name.c_str()), CuResult::success);
        }
        return function;
    }

  private:
    Context context_ = nullptr;
    Module module_ = nullptr;
    std::mutex mutex_;
    std::map<std::int64_t, Function> functions_;
};

/// The last operation of a kind in the ledger.
inline vgpu::Operation last_operation(vgpu::OpKind kind) {
    const std::vector<vgpu::Operation> all = vgpu::operations();
    for (std::size_t i = all.size(); i-- > 0;) {
        if (all[i].kind == kind) {
            return all[i];
        }
    }
    return {};
}

} // namespace plumb::backends::cuda
