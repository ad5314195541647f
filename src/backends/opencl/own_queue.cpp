// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/own_queue.hpp"

namespace plumb::backends::opencl {

Result<std::unique_ptr<OwnQueue>> OwnQueue::create(const OpenClDriver& driver, Context context, DeviceId device) {
    std::unique_ptr<OwnQueue> own(new OwnQueue(driver));
    ClResult made = ClResult::success;
    if (context == nullptr) {
        context = own->context_ = driver.create_context(nullptr, 1, &device, nullptr, nullptr, &made);
        if (made != ClResult::success) {
            own->context_ = nullptr;
            return error_of(made, "clCreateContext", "see that clinfo can use this device");
        }
    }
    // The call of OpenCL 1.0: the one that every driver has.
    own->queue_ = driver.create_command_queue(context, device, queue_profiling, &made);
    if (made != ClResult::success) {
        own->queue_ = nullptr;
        return error_of(made, "clCreateCommandQueue", "this device's clock cannot be read; free some of its resources");
    }
    return own;
}

OwnQueue::~OwnQueue() {
    if (queue_ != nullptr) {
        static_cast<void>(driver_.release_command_queue(queue_));
    }
    if (context_ != nullptr) {
        static_cast<void>(driver_.release_context(context_));
    }
}

} // namespace plumb::backends::opencl
