// SPDX-License-Identifier: Apache-2.0
// The cuda backend before the conformance suite (tests/conformance): on the virtual GPU, whose every call can be made to
// fail.
#include <map>
#include <mutex>
#include <string>

#include "backends/cuda/queue_timer.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_gpu/control.hpp"

namespace plumb::conformance {
namespace {

using namespace backends::cuda;

class CudaSubject final : public Subject {
  public:
    CudaSubject() {
        vgpu::reset();
        const Driver& calls = *driver();
        static_cast<void>(calls.init(0));
        static_cast<void>(calls.primary_ctx_retain(&context_, 0));
        static_cast<void>(calls.ctx_push_current(context_));
        static_cast<void>(calls.stream_create(&stream_, stream_non_blocking));
        static_cast<void>(calls.module_load_data(&module_, "any function one asks for"));
        function_of(1'000);
        held_before_ = vgpu::alive().total();
    }
    ~CudaSubject() override {
        Context popped = nullptr;
        static_cast<void>(driver()->ctx_pop_current(&popped));
    }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        TimerOptions virtual_time = options;
        virtual_time.host_clock = &vgpu::host_clock();
        Result<std::unique_ptr<CudaQueueTimer>> timer = CudaQueueTimer::create(*driver(), stream_, virtual_time);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }
    void work(std::int64_t ns) override {
        static_cast<void>(driver()->launch_kernel(function_of(ns), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr));
    }
    void settle() override { vgpu::run_dry(); }
    std::int64_t host_ns() const override { return vgpu::now_ns(); }

    // Left out: what gives things back (its failure leaks by nature), and what is asked only to know more.
    std::vector<std::string> calls() const override {
        return {"cuEventCreate",       "cuEventRecord",  "cuEventQuery",  "cuEventElapsedTime",
                "cuStreamIsCapturing", "cuStreamCreate", "cuStreamGetCtx"};
    }
    void fail(const std::string& call, unsigned use) override {
        failed_ = use == 0 && has_failed(); // switching off keeps what happened
        vgpu::clear_failures();
        planned_ = use != 0;
        if (planned_) {
            vgpu::fail(call, CuResult::unknown, use);
        }
    }
    bool has_failed() const override { return failed_ || (planned_ && vgpu::all_failures_struck()); }
    std::size_t resources() const override { return vgpu::alive().total() - held_before_; }

  private:
    /// One kernel per duration: what is enqueued keeps its own.
    Function function_of(std::int64_t ns) {
        const std::lock_guard lock(mutex_);
        Function& function = functions_[ns];
        if (function == nullptr) {
            const std::string name = "work_" + std::to_string(ns);
            vgpu::KernelModel model;
            model.min_ns = model.max_ns = ns;
            vgpu::kernel(name, model);
            static_cast<void>(driver()->module_get_function(&function, module_, name.c_str()));
        }
        return function;
    }

    Context context_ = nullptr;
    Stream stream_ = nullptr;
    Module module_ = nullptr;
    std::mutex mutex_;
    std::map<std::int64_t, Function> functions_;
    std::size_t held_before_ = 0;
    bool planned_ = false;
    bool failed_ = false;
};

} // namespace

std::unique_ptr<Subject> cuda_subject();
std::unique_ptr<Subject> cuda_subject() { return std::make_unique<CudaSubject>(); }

} // namespace plumb::conformance
