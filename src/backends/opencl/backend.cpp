// SPDX-License-Identifier: Apache-2.0
#include "plumb/backend.hpp"

#include <memory>
#include <string>
#include <utility>

#include "backends/opencl/peaks.hpp"
#include "backends/opencl/queue_timer.hpp"

namespace plumb {
namespace {

using namespace backends::opencl;

Result<Device> describe(const OpenClDriver& calls, DeviceId handle, std::size_t index) {
    const Result<std::string> name = device_text(calls, handle, device_name);
    const Result<std::string> driver_words = name ? device_text(calls, handle, device_driver_version) : name;
    const Result<std::string> version = driver_words ? device_text(calls, handle, device_version) : driver_words;
    if (!version) {
        return version.error();
    }
    return Device{static_cast<std::uint32_t>(index), *name, *driver_words + ", " + *version, {}};
}

Result<std::vector<DeviceId>> known_devices(const Result<OpenClDriver>& loaded) {
    return loaded ? devices_of(*loaded) : Result<std::vector<DeviceId>>(loaded.error());
}

Result<DeviceId> device_at(std::uint32_t index) {
    const Result<OpenClDriver>& loaded = driver();
    const Result<std::vector<DeviceId>> handles = known_devices(loaded);
    if (!handles) {
        return handles.error();
    }
    if (index >= handles->size()) {
        return Error{ErrorCode::not_found,
                     "there is no OpenCL device " + std::to_string(index) + "; ask for one that enumerate() lists"};
    }
    return (*handles)[index];
}

class OpenClBackend final : public Backend {
  public:
    const char* name() const noexcept override { return "opencl"; }

    Result<std::vector<Device>> enumerate() override {
        const Result<OpenClDriver>& loaded = driver();
        const Result<std::vector<DeviceId>> handles = known_devices(loaded);
        if (!handles) {
            return handles.error();
        }
        std::vector<Device> devices;
        for (const DeviceId handle : *handles) {
            const Result<Device> described = describe(*loaded, handle, devices.size());
            if (!described) {
                return described.error();
            }
            devices.push_back(*described);
        }
        return devices;
    }

    Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t device, void* native,
                                                         const TimerOptions& options) override {
        const Result<DeviceId> found = device_at(device);
        if (!found) {
            return found.error();
        }
        const OpenClDriver& calls = *driver();
        const DeviceId handle = *found;
        std::unique_ptr<OwnQueue> own; // the timer keeps what it needs of it
        auto queue = static_cast<CommandQueue>(native);
        if (queue == nullptr) {
            Result<std::unique_ptr<OwnQueue>> made = OwnQueue::create(calls, nullptr, handle);
            if (!made) {
                return made.error();
            }
            own = std::move(*made);
            queue = own->queue();
        }
        const Result<DeviceId> its_device = queue_value<DeviceId>(calls, queue, queue_device);
        if (!its_device || *its_device != handle) {
            return its_device ? Error{ErrorCode::invalid_argument, "this queue belongs to another device; ask that "
                                                                   "device for its timer"}
                              : its_device.error();
        }
        Result<std::unique_ptr<OpenClQueueTimer>> timer = OpenClQueueTimer::create(calls, queue, options);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }

    Result<Peaks> measure_peaks(std::uint32_t device, const PeakProgress& progress) override {
        const Result<DeviceId> found = device_at(device);
        return found ? measure_device_peaks(*driver(), *found, device, progress) : Result<Peaks>(found.error());
    }
};

} // namespace

Backend& opencl_backend(); // declared by the generated registry
Backend& opencl_backend() {
    static OpenClBackend backend;
    return backend;
}

} // namespace plumb
