// SPDX-License-Identifier: Apache-2.0
// A backend over the driver table of src/backends/cuda before the conformance suite: on the virtual GPU, whose every call can be
// made to fail. Test-only; one per vendor.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/queue_timer.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_gpu/control.hpp"

namespace plumb::conformance {

class VirtualSubject final : public Subject {
  public:
    using Kernel = backends::cuda::Function;
    /// How the vendor's stand-in is spoken to by those who use it: the engine's side.
    struct Engine {
        const backends::cuda::Driver& calls;
        backends::cuda::Stream (*open)(); // a stream, after the virtual GPU was reset
        void (*close)();
        Kernel (*kernel)(const char* name);
        void (*launch)(Kernel kernel, backends::cuda::Stream stream);
        std::vector<std::string> failing; // by the virtual GPU's names
    };

    explicit VirtualSubject(Engine engine) : engine_(std::move(engine)), stream_(engine_.open()) {
        function_of(1'000);
        held_before_ = vgpu::alive().total();
    }
    ~VirtualSubject() override { engine_.close(); }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        TimerOptions virtual_time = options;
        virtual_time.host_clock = &vgpu::host_clock();
        auto timer = backends::cuda::CudaQueueTimer::create(engine_.calls, stream_, virtual_time);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }
    void work(std::int64_t ns) override { engine_.launch(function_of(ns), stream_); }
    void settle() override { vgpu::run_dry(); }
    std::int64_t host_ns() const override { return vgpu::now_ns(); }

    std::vector<std::string> calls() const override { return engine_.failing; }
    void fail(const std::string& call, unsigned use) override {
        failed_ = use == 0 && has_failed(); // switching off keeps what happened
        vgpu::clear_failures();
        planned_ = use != 0;
        if (planned_) {
            vgpu::fail(call, backends::cuda::CuResult::unknown, use);
        }
    }
    bool has_failed() const override { return failed_ || (planned_ && vgpu::all_failures_struck()); }
    std::size_t resources() const override { return vgpu::alive().total() - held_before_; }

  private:
    /// One kernel per duration: what is enqueued keeps its own.
    Kernel function_of(std::int64_t ns) {
        const std::lock_guard lock(mutex_);
        Kernel& function = functions_[ns];
        if (function == nullptr) {
            const std::string name = "work_" + std::to_string(ns);
            vgpu::KernelModel model;
            model.min_ns = model.max_ns = ns;
            vgpu::kernel(name, model);
            function = engine_.kernel(name.c_str());
        }
        return function;
    }

    Engine engine_;
    backends::cuda::Stream stream_;
    std::mutex mutex_;
    std::map<std::int64_t, Kernel> functions_;
    std::size_t held_before_ = 0;
    bool planned_ = false;
    bool failed_ = false;
};

} // namespace plumb::conformance
