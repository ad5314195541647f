// SPDX-License-Identifier: Apache-2.0
// An OpenCL program that knows of no profiler, on whatever driver there is: 20 times a kernel "attention", and a kernel "stir" whose event it
// asks for itself. Its command queue is made without profiling. Prints the sum that they computed, and how long all took; 77: there is no
// device. Words: queues COUNT, one "attention" on each of so many queues.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "backends/opencl/driver.hpp"

using namespace plumb::backends::opencl;
using Context = plumb::backends::opencl::Context; // not plumb/record.hpp's

namespace {

bool failed(ClResult result, const char* call) {
    if (result != ClResult::success) {
        std::fprintf(stderr, "%s: %d\n", call, static_cast<int>(result));
    }
    return result != ClResult::success;
}

constexpr const char* text =
    "kernel void attention(global uint* sum) { for (uint i = 0; i < 200000; ++i) sum[0] = sum[0] * 1664525 + i; }\n"
    "kernel void stir(global uint* sum) { for (uint i = 0; i < 100000; ++i) sum[0] = sum[0] * 22695477 + i; }\n";

} // namespace

int main(int count, char** words) {
    if (!driver()) {
        std::fprintf(stderr, "%s\n", driver().error().message.c_str());
        return 77;
    }
    const OpenClDriver& cl = *driver();
    const plumb::Result<std::vector<DeviceId>> devices = devices_of(cl);
    if (!devices) {
        std::fprintf(stderr, "%s\n", devices.error().message.c_str());
        return 77;
    }
    ClResult error{};
    DeviceId device = devices->front();
    Context context = cl.create_context(nullptr, 1, &device, nullptr, nullptr, &error);
    CommandQueue queue = cl.create_command_queue(context, device, 0, &error);
    Program program = cl.create_program(context, 1, const_cast<const char**>(&text), nullptr, &error);
    if (failed(cl.build_program(program, 1, &device, "", nullptr, nullptr), "clBuildProgram")) {
        return 1;
    }
    Kernel kernels[] = {cl.create_kernel(program, "attention", &error), cl.create_kernel(program, "stir", &error)};
    unsigned sum = 1;
    constexpr Bits read_write_copied = 1 | 32; // CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR
    Memory buffer = cl.create_buffer(context, read_write_copied, sizeof sum, &sum, &error);
    for (Kernel kernel : kernels) {
        if (failed(cl.set_kernel_argument(kernel, 0, sizeof buffer, &buffer), "clSetKernelArg")) {
            return 1;
        }
    }
    const std::size_t one = 1;
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; count > 2 && i < std::atoi(words[2]); ++i) {
        CommandQueue one_more = cl.create_command_queue(context, device, 0, &error);
        Event event = nullptr;
        if (failed(cl.enqueue_kernel(one_more, kernels[0], 1, nullptr, &one, nullptr, 0, nullptr, &event),
                   "clEnqueueNDRangeKernel") ||
            failed(cl.wait_for_events(1, &event), "clWaitForEvents") ||
            failed(cl.release_event(event), "clReleaseEvent")) {
            return 1;
        }
        cl.release_command_queue(one_more);
    }
    for (int i = 0; count < 3 && i < 20; ++i) {
        Event event = nullptr;
        if (failed(cl.enqueue_kernel(queue, kernels[0], 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
                   "clEnqueueNDRangeKernel") ||
            failed(cl.enqueue_kernel(queue, kernels[1], 1, nullptr, &one, nullptr, 0, nullptr, &event),
                   "clEnqueueNDRangeKernel") ||
            failed(cl.wait_for_events(1, &event), "clWaitForEvents") ||
            failed(cl.release_event(event), "clReleaseEvent")) {
            return 1;
        }
    }
    if (failed(cl.read_buffer(queue, buffer, 1, 0, sizeof sum, &sum, 0, nullptr, nullptr), "clEnqueueReadBuffer")) {
        return 1;
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - started;
    std::printf("%u %lld\n", sum, static_cast<long long>(took.count()));
    for (Kernel kernel : kernels) {
        cl.release_kernel(kernel);
    }
    cl.release_memory(buffer);
    cl.release_program(program);
    cl.release_command_queue(queue);
    cl.release_context(context);
    return 0;
}
