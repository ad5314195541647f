// SPDX-License-Identifier: Apache-2.0
#include "truths/virtual_kernels.hpp"

#include <atomic>
#include <cstdlib>
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

void mix(const KernelRun& run) {
    static const char* const skipped =
        std::getenv("PLUMB_CHECK_SKIPS_MIX"); // a dropped node, for the test of who notices
    static std::atomic<int> runs{0};
    auto* value = plumb::vgpu::at<std::uint32_t>(run.param<DevicePointer>(0));
    const auto* other = plumb::vgpu::at<std::uint32_t>(run.param<DevicePointer>(1));
    if (value != nullptr && (skipped == nullptr || ++runs != std::atoi(skipped))) {
        *value = mixed(*value, other != nullptr ? *other : 0, run.param<std::uint32_t>(2));
    }
}

void timer_steps(const KernelRun& run) {
    const auto count = run.param<std::uint32_t>(1);
    auto* out = plumb::vgpu::at<std::uint64_t>(run.param<DevicePointer>(0), count);
    for (std::uint32_t i = 0; out != nullptr && i < count; ++i) {
        out[i] = plumb::vgpu::globaltimer_ns(run.start_ns, run.device) + i * plumb::vgpu::config().globaltimer_tick_ns;
    }
}

void model(const std::string& name, std::int64_t ns, plumb::vgpu::KernelFunction function = {},
           std::vector<std::size_t> parameters = {}) {
    KernelModel made;
    made.param_bytes = std::move(parameters);
    made.min_ns = made.max_ns = ns;
    made.function = std::move(function);
    plumb::vgpu::kernel(name, made);
}

} // namespace

void teach_virtual_kernels() {
    for (const unsigned us : spin_microseconds) {
        model(spin_name(us), std::int64_t{us} * 1000, spin_result, {8});
    }
    model("check_empty", 500);
    model("check_add", 1000, add, {8, 4});
    model("check_mix", 1000, mix, {8, 8, 4});
    model("check_timer_steps", 50'000, timer_steps, {8, 4});
    model("check_read", 20'000);
    model("check_copy", 30'000);
    model("check_gemv", 20'000);
    model("check_norm", 3'000);
}

} // namespace gpu_check
