// SPDX-License-Identifier: Apache-2.0
#include "plumb/backend.hpp"

#include <memory>
#include <string>
#include <utility>

#include "backends/metal/queue_timer.hpp"

namespace plumb {
namespace {

using namespace backends::metal;

class MetalBackend final : public Backend {
  public:
    const char* name() const noexcept override { return "metal"; }

    Result<std::vector<Device>> enumerate() override {
        const auto found = find();
        if (!found) {
            return found.error();
        }
        const MetalDriver& calls = *driver();
        const AutoreleasePool pool(calls);
        std::vector<Device> devices;
        for (const Held& held : *found) {
            Device device;
            device.index = static_cast<std::uint32_t>(devices.size());
            device.name = text_of(calls, calls.object(held.get(), calls.words.name));
            device.uuid = std::to_string(calls.ask(held.get(), calls.words.registry_id));
            devices.push_back(std::move(device));
        }
        return devices;
    }

    Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t index, void* native,
                                                         const TimerOptions& options) override {
        const auto found = find();
        if (!found) {
            return found.error();
        }
        const MetalDriver& calls = *driver();
        if (index >= found->size()) {
            return Error{ErrorCode::not_found, "Metal lists no device " + std::to_string(index) + "; it lists " +
                                                   std::to_string(found->size()) + ", counted from 0"};
        }
        const Id device = (*found)[index].get();
        // Without a queue of the caller's one of ours; the timer keeps it.
        const Held queue = native != nullptr
                               ? Held::retained(calls, native)
                               : Held(calls, calls.object(device, calls.words.new_queue, std::uint64_t{64}));
        if (native != nullptr && calls.object(native, calls.words.device) != device) {
            return Error{ErrorCode::invalid_argument,
                         "this MTLCommandQueue is of another device; name that device's index"};
        }
        auto timer = MetalQueueTimer::create(calls, queue.get(), options);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }

    Result<Peaks> measure_peaks(std::uint32_t, const PeakProgress&) override {
        return Error{ErrorCode::unsupported,
                     "this library has no kernels in Metal's language, so peaks of Metal devices "
                     "are not measured; hold their bricks against the vendor's figures"};
    }

  private:
    static Result<std::vector<Held>> find() {
        const Result<MetalDriver>& loaded = driver();
        return loaded ? devices_of(*loaded) : Result<std::vector<Held>>(loaded.error());
    }
};

} // namespace

Backend& metal_backend(); // declared by the generated registry
Backend& metal_backend() {
    static MetalBackend only;
    return only;
}

} // namespace plumb
