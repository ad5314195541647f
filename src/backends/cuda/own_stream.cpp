// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/own_stream.hpp"

namespace plumb::backends::cuda {

std::vector<Capability> capabilities_of(const Driver& driver) {
    const auto since = [](bool there, const char* name, const char* reason) {
        return Capability{name, there, there ? "" : reason};
    };
    return {
        {"concurrent_queue", true, ""},
        {"graph_capture", true, ""},
        {"immediate_in_capture", false, "waiting is illegal while a stream is captured; scopes there are deferred"},
        since(driver.stream_get_id != nullptr, "stream_identity",
              "before CUDA 12.0 a stream handle that is given out anew looks like the old stream"),
        since(driver.stream_get_capture_info_v12030 != nullptr, "programmatic_edges",
              "before CUDA 12.3 scopes next to programmatic launches cannot be told apart in a capture"),
        {"true_busy_time", false, "events bound busy time from above; only kernel records give it"},
        {"hardware_counters", false, "this backend reads events only"},
    };
}

Result<std::unique_ptr<OwnStream>> OwnStream::create(const Driver& driver, Device device) {
    const RelaxedCapture relaxed(driver);
    std::unique_ptr<OwnStream> own(new OwnStream(driver, device));
    if (const CuResult got = driver.primary_ctx_retain(&own->context_, device); got != CuResult::success) {
        own->context_ = nullptr;
        return error_of(driver, got, "cuDevicePrimaryCtxRetain", "free memory on the device, or restart the program");
    }
    const CurrentContext current(driver, own->context_);
    CuResult made = current.status();
    if (made == CuResult::success) {
        made = driver.stream_create(&own->stream_, stream_non_blocking);
    }
    if (made != CuResult::success) {
        own->stream_ = nullptr;
        return error_of(driver, made, "cuStreamCreate", "restart the program if the device was lost");
    }
    return own;
}

OwnStream::~OwnStream() {
    const RelaxedCapture relaxed(driver_);
    if (stream_ != nullptr) {
        static_cast<void>(driver_.stream_destroy(stream_));
    }
    if (context_ != nullptr) {
        static_cast<void>(driver_.primary_ctx_release(device_));
    }
}

} // namespace plumb::backends::cuda
