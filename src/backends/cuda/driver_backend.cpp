// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver_backend.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/cuda/peak_kernels.hpp"
#include "backends/cuda/peaks.hpp"
#include "backends/cuda/queue_timer.hpp"

namespace plumb::backends::cuda {
namespace {

/// As nvidia-smi writes it. The driver gives the id of an instance (MIG) without saying so; its name does.
std::string uuid_words(const Uuid& uuid, const std::string& name) {
    std::string text = name.find(" MIG ") == std::string::npos ? "GPU-" : "MIG-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        std::array<char, 4> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", unsigned{uuid.bytes[i]});
        text += digits.data();
        text += i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "";
    }
    return text;
}

Error no_devices(const Driver& calls, CuResult result, const char* call) {
    Error error = error_of(calls, result, call, calls.vendor->no_device_advice);
    error.code = ErrorCode::unavailable;
    return error;
}

Result<plumb::Device> describe(const Driver& calls, int index) {
    Device handle = 0;
    Uuid uuid{};
    if (const CuResult got = calls.device_get(&handle, index); got != CuResult::success) {
        return no_devices(calls, got, "cuDeviceGet");
    }
    Result<std::string> name = device_name(calls, handle);
    if (!name) {
        return Error{ErrorCode::unavailable, name.error().message};
    }
    if (const CuResult got = calls.device_get_uuid(&uuid, handle); got != CuResult::success) {
        return no_devices(calls, got, "cuDeviceGetUuid");
    }
    plumb::Device device;
    device.index = static_cast<std::uint32_t>(index);
    device.name = std::move(*name);
    device.driver = calls.vendor->version_words(calls.version);
    device.uuid = uuid_words(uuid, device.name);
    device.capabilities = calls.vendor->capabilities(calls);
    return device;
}

Result<int> device_of(const Driver& calls, Stream stream) {
    Context context = nullptr;
    CuResult asked = calls.context_of(stream, &context);
    if (asked != CuResult::success) {
        return error_of(calls, asked, "cuStreamGetCtx", "give a stream that exists");
    }
    const CurrentContext current(calls, context);
    Device device = 0;
    asked = current.status() == CuResult::success ? calls.ctx_get_device(&device) : current.status();
    return asked == CuResult::success
               ? Result<int>(device)
               : Result<int>(error_of(calls, asked, "cuCtxGetDevice", "give a stream that exists"));
}

} // namespace

Result<std::vector<plumb::Device>> DriverBackend::enumerate() {
    const Result<Driver>& loaded = load_();
    if (!loaded) {
        return loaded.error();
    }
    int count = 0;
    if (const CuResult started = loaded->init(0); started != CuResult::success) {
        return no_devices(*loaded, started, "cuInit");
    }
    if (const CuResult asked = loaded->device_get_count(&count); asked != CuResult::success || count == 0) {
        return no_devices(*loaded, asked == CuResult::success ? CuResult::no_device : asked, "cuDeviceGetCount");
    }
    std::vector<plumb::Device> devices;
    for (int i = 0; i < count; ++i) {
        Result<plumb::Device> described = describe(*loaded, i);
        if (!described) {
            return described.error();
        }
        devices.push_back(std::move(*described));
    }
    return devices;
}

Result<std::unique_ptr<QueueTimer>> DriverBackend::make_queue_timer(std::uint32_t device, void* native,
                                                                    const TimerOptions& options) {
    const Result<Driver>& loaded = load_();
    if (!loaded) {
        return loaded.error();
    }
    const RelaxedCapture relaxed(*loaded);
    Device handle = 0;
    if (loaded->device_get(&handle, static_cast<int>(device)) != CuResult::success) {
        return no_such_device(*loaded, device);
    }
    std::unique_ptr<OwnStream> own;
    std::optional<CurrentContext> current; // a driver that cannot tell a stream's device takes the current one's
    auto stream = static_cast<Stream>(native);
    if (stream == nullptr) {
        Result<std::unique_ptr<OwnStream>> made = OwnStream::create(*loaded, handle);
        if (!made) {
            return made.error();
        }
        own = std::move(*made);
        stream = own->stream();
        current.emplace(*loaded, own->context());
    }
    const Result<int> its_device = device_of(*loaded, stream);
    if (!its_device || static_cast<std::uint32_t>(*its_device) != device) {
        return its_device ? Error{ErrorCode::invalid_argument, std::string("this stream belongs to ") + vendor_.api +
                                                                   " device " + std::to_string(*its_device) +
                                                                   "; ask that device for its timer"}
                          : its_device.error();
    }
    Result<std::unique_ptr<CudaQueueTimer>> timer = CudaQueueTimer::create(*loaded, stream, options, std::move(own));
    return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
}

Result<Peaks> DriverBackend::measure_peaks(std::uint32_t device, const PeakProgress& progress) {
    const Result<Driver>& loaded = load_();
    return loaded ? measure_device_peaks(*loaded, device, peaks_ptx, progress) : Result<Peaks>(loaded.error());
}

} // namespace plumb::backends::cuda
