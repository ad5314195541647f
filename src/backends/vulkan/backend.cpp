// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "backends/vulkan/queue_timer.hpp"
#include "plumb/backend.hpp"

namespace plumb {
namespace {

using backends::vulkan::FindCall;
using backends::vulkan::OwnDevice;
using backends::vulkan::OwnInstance;
using backends::vulkan::PhysicalDevice;
using backends::vulkan::VulkanQueueTimer;

class VulkanBackend final : public Backend {
  public:
    const char* name() const noexcept override { return "vulkan"; }

    Result<std::vector<Device>> enumerate() override {
        const Result<FindCall>& loaded = backends::vulkan::loader();
        if (!loaded) {
            return loaded.error();
        }
        const Result<std::shared_ptr<OwnInstance>> instance = OwnInstance::create(*loaded);
        if (!instance) {
            return instance.error();
        }
        const Result<std::vector<PhysicalDevice>> found = (*instance)->devices();
        if (!found) {
            return found.error();
        }
        std::vector<Device> devices;
        for (const PhysicalDevice physical : *found) {
            devices.push_back((*instance)->describe(physical, static_cast<std::uint32_t>(devices.size())));
        }
        return devices;
    }

    /// `native` points to a plumb::VulkanHandles; null: a device and a queue of our own.
    Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t device, void* native,
                                                         const TimerOptions& options) override {
        std::unique_ptr<OwnDevice> own;
        const auto* handles = static_cast<const VulkanHandles*>(native);
        if (handles == nullptr) {
            const Result<FindCall>& loaded = backends::vulkan::loader();
            if (!loaded) {
                return loaded.error();
            }
            Result<std::unique_ptr<OwnDevice>> made = OwnDevice::create(*loaded, device);
            if (!made) {
                return made.error();
            }
            own = std::move(*made);
            handles = &own->handles();
        }
        Result<std::unique_ptr<VulkanQueueTimer>> timer = VulkanQueueTimer::create(*handles, options, std::move(own));
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }

    Result<Peaks> measure_peaks(std::uint32_t, const PeakProgress&) override {
        return Error{ErrorCode::unsupported,
                     "Vulkan devices take kernels as SPIR-V, in which this library has none, so their peaks are not "
                     "measured; hold their bricks against the vendor's figures, or measure the same device by OpenCL"};
    }
};

} // namespace

Backend& vulkan_backend(); // declared by the generated registry
Backend& vulkan_backend() {
    static VulkanBackend backend;
    return backend;
}

} // namespace plumb
