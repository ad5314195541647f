// SPDX-License-Identifier: Apache-2.0
#include "truths/virtual_kernels.hpp"

#include <string>

#include "truths/kernels.hpp"
#include "virtual_gpu/control.hpp"

namespace gpu_check {
namespace {

using plumb::vgpu::DevicePointer;
using plumb::vgpu::KernelModel;
using plumb::vgpu::KernelRun;

void spin_result(const KernelRun& run) {
    auto* out = plumb::vgpu::at<std::uint64_t>(run.param<DevicePointer>(0), 3);
    if (out != nullptr) {
        out[0] = plumb::vgpu::globaltimer_ns(run.start_ns, run.device);
        out[1] = plumb::vgpu::globaltimer_ns(run.end_ns, run.device);
        out[2] = static_cast<std::uint64_t>(run.end_ns - run.start_ns);
    }
}

void add(const KernelRun& run) {
    if (auto* value = plumb::vgpu::at<std::uint32_t>(run.param<DevicePointer>(0))) {
        *value += run.param<std::uint32_t>(1);
    }
}

void timer_steps(const KernelRun& run) {
    const auto count = run.param<std::uint32_t>(1);
    auto* out = plumb::vgpu::at<std::uint64_t>(run.param<DevicePointer>(0), count);
    for (std::uint32_t i = 0; out != nullptr && i < count; ++i) {
        out[i] = plumb::vgpu::globaltimer_ns(run.start_ns, run.device) + i * plumb::vgpu::config().globaltimer_tick_ns;
    }
}

void model(const std::string& name, std::int64_t ns, plumb::vgpu::KernelFunction function = {}) {
    KernelModel made;
    made.min_ns = made.max_ns = ns;
    made.function = std::move(function);
    plumb::vgpu::kernel(name, made);
}

} // namespace

void teach_virtual_kernels() {
    for (const unsigned us : spin_microseconds) {
        model(spin_name(us), std::int64_t{us} * 1000, spin_result);
    }
    model("check_empty", 500);
    model("check_add", 1000, add);
    model("check_timer_steps", 50'000, timer_steps);
    model("check_read", 20'000);
    model("check_copy", 30'000);
    model("check_gemv", 20'000);
    model("check_norm", 3'000);
}

} // namespace gpu_check
