// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "backends/cpu/peaks.hpp"
#include "backends/cpu/queue_timer.hpp"
#include "base/os.hpp"
#include "plumb/backend.hpp"
#include "plumb/backend_timer.hpp"
#include "record/queue_registry.hpp"

namespace plumb {
namespace {

class CpuBackend final : public Backend {
  public:
    const char* name() const noexcept override { return "cpu"; }

    Result<std::vector<Device>> enumerate() override {
        const std::string model = base::cpu_model();
        return std::vector<Device>{{0, model.empty() ? "CPU of unknown model" : model, "",
                                    backends::cpu::capabilities_of(clock::facts_of_this_machine())}};
    }

    Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t device, void* native,
                                                         const TimerOptions& options) override {
        if (device != 0) {
            return Error{ErrorCode::not_found,
                         "the cpu backend has device 0 only, not " + std::to_string(device) + "; ask for device 0"};
        }
        if (native != nullptr) {
            return Error{ErrorCode::invalid_argument, "the cpu backend has no queues of its own; give a null handle"};
        }
        return backends::cpu::CpuQueueTimer::create(options);
    }

    Result<Peaks> measure_peaks(std::uint32_t device, const PeakProgress& progress) override {
        if (device != 0) {
            return Error{ErrorCode::not_found,
                         "the cpu backend has device 0 only, not " + std::to_string(device) + "; ask for device 0"};
        }
        return backends::cpu::measure_host_peaks(progress);
    }
};

} // namespace

Backend& cpu_backend(); // declared by the generated registry
Backend& cpu_backend() {
    static CpuBackend backend;
    return backend;
}

Result<Cpu::Context> Cpu::make_context(const TimerOptions& options) {
    Result<std::unique_ptr<QueueTimer>> timer = cpu_backend().make_queue_timer(0, nullptr, options);
    if (!timer) {
        return timer.error();
    }
    return Context{std::move(*timer)};
}

Result<Queue> Cpu::sampled_queue(std::string name) {
    auto timer = backends::cpu::CpuQueueTimer::create({}, backends::cpu::system_calls(), true);
    if (!timer) {
        return timer.error();
    }
    QueueTimer& lasting = *timer->release();
    return Queue{&lasting, record::register_queue(lasting, std::move(name))};
}

} // namespace plumb
