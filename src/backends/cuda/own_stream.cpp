// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/own_stream.hpp"

namespace plumb::backends::cuda {

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
        made = driver.create_own_stream(&own->stream_);
    }
    if (made != CuResult::success) {
        own->stream_ = nullptr;
        const char* call = current.status() == CuResult::success ? "cuStreamCreateWithPriority" : "cuCtxPushCurrent";
        return error_of(driver, made, call, "restart the program if the device was lost");
    }
    return own;
}

OwnStream::~OwnStream() {
    const RelaxedCapture relaxed(driver_);
    if (stream_ != nullptr) {
        const CurrentContext current(driver_, context_);
        static_cast<void>(driver_.stream_destroy(stream_));
    }
    if (context_ != nullptr) {
        static_cast<void>(driver_.primary_ctx_release(device_));
    }
}

} // namespace plumb::backends::cuda
