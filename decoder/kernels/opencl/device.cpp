// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/opencl/device.hpp"

#include <sys/mman.h>

#include <utility>

namespace plumb::decoder::opencl {
namespace {

constexpr const char* kernel_names[] = {"product_f32", "product_bf16", "embed_f32", "embed_bf16",    "rms_norm", "rope",
                                        "kv_append",   "attention",    "add",       "silu_multiply", "largest"};
static_assert(std::size(kernel_names) == static_cast<std::size_t>(Kernel::count));

Error failed(cl_int result, const char* call) {
    return {ErrorCode::failed, std::string(call) + " answers " + std::to_string(result) +
                                   "; check the OpenCL driver with clinfo, or use --backend cpu"};
}

std::vector<cl_device_id> all_devices(const Api& calls) {
    cl_uint count = 0;
    std::vector<cl_platform_id> platforms;
    if (calls.clGetPlatformIDs(0, nullptr, &count) == CL_SUCCESS && count > 0) {
        platforms.resize(count);
        if (calls.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) {
            platforms.clear();
        }
    }
    std::vector<cl_device_id> devices;
    for (const cl_platform_id platform : platforms) {
        if (calls.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) {
            continue;
        }
        const std::size_t before = devices.size();
        devices.resize(before + count);
        if (calls.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data() + before, nullptr) != CL_SUCCESS) {
            devices.resize(before);
        }
    }
    return devices;
}

} // namespace

Result<std::unique_ptr<OpenClDevice>> OpenClDevice::open(const Api& calls, std::size_t index) {
    std::unique_ptr<OpenClDevice> device(new OpenClDevice(calls));
    Status status = device->choose(index);
    status = status ? device->make_queue() : status;
    status = status ? device->build() : status;
    if (!status) {
        return status.error();
    }
    return device;
}

OpenClDevice::~OpenClDevice() {
    if (queue_) {
        calls_.clFinish(queue_);
    }
    for (const auto& [address, region] : regions_) {
        calls_.clReleaseMemObject(region.buffer);
        if (region.ours) {
            ::munmap(reinterpret_cast<void*>(address), region.bytes);
        }
    }
    for (const cl_kernel kernel : kernels_) {
        calls_.clReleaseKernel(kernel);
    }
    if (program_) {
        calls_.clReleaseProgram(program_);
    }
    if (queue_) {
        calls_.clReleaseCommandQueue(queue_);
    }
    if (context_) {
        calls_.clReleaseContext(context_);
    }
}

Status OpenClDevice::choose(std::size_t index) {
    const std::vector<cl_device_id> devices = all_devices(calls_);
    if (devices.empty()) {
        return Error{ErrorCode::unavailable,
                     "there is no OpenCL device; install a driver for one (pocl-opencl-icd runs "
                     "OpenCL on a CPU), or use --backend cpu"};
    }
    if (index >= devices.size()) {
        return Error{ErrorCode::not_found, "there is no OpenCL device " + std::to_string(index) + "; use 0 to " +
                                               std::to_string(devices.size() - 1) + ", as clinfo -l lists them"};
    }
    device_ = devices[index];
    char name[256] = {};
    cl_device_type type = 0;
    cl_int asked = calls_.clGetDeviceInfo(device_, CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
    asked |= calls_.clGetDeviceInfo(device_, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
    if (asked != CL_SUCCESS) {
        return failed(asked, "clGetDeviceInfo");
    }
    name_ = name;
    is_cpu_ = (type & CL_DEVICE_TYPE_CPU) != 0;
    return {};
}

Status OpenClDevice::make_queue() {
    cl_int made = CL_SUCCESS;
    context_ = calls_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &made);
    if (made != CL_SUCCESS) {
        return failed(made, "clCreateContext");
    }
    queue_ = calls_.clCreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &made);
    return made == CL_SUCCESS ? Status() : failed(made, "clCreateCommandQueue");
}

Status OpenClDevice::build() {
    cl_int made = CL_SUCCESS;
    const char* text = kernels_text();
    program_ = calls_.clCreateProgramWithSource(context_, 1, &text, nullptr, &made);
    if (made != CL_SUCCESS) {
        return failed(made, "clCreateProgramWithSource");
    }
    made = calls_.clBuildProgram(program_, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr);
    if (made != CL_SUCCESS) {
        std::string log(2048, '\0');
        std::size_t size = 0;
        calls_.clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), &size);
        Error error = failed(made, "clBuildProgram");
        error.message += ": " + log.substr(0, log.find('\0'));
        return error;
    }
    for (const char* name : kernel_names) {
        const cl_kernel kernel = calls_.clCreateKernel(program_, name, &made);
        if (made != CL_SUCCESS) {
            return failed(made, "clCreateKernel");
        }
        kernels_.push_back(kernel);
    }
    return {};
}

// --- Memory ---

Status OpenClDevice::add_region(void* data, std::size_t bytes, bool ours) {
    cl_int made = CL_SUCCESS;
    const cl_mem_flags access = ours ? CL_MEM_READ_WRITE : CL_MEM_READ_ONLY;
    const cl_mem buffer = calls_.clCreateBuffer(context_, access | CL_MEM_USE_HOST_PTR, bytes, data, &made);
    if (made != CL_SUCCESS) {
        return Error{ErrorCode::out_of_memory, "the OpenCL device has no room for " + std::to_string(bytes >> 20) +
                                                   " MiB (" + std::to_string(made) +
                                                   "); use a smaller model or --ctx, or --backend cpu"};
    }
    regions_.emplace(reinterpret_cast<std::uintptr_t>(data), Region{bytes, buffer, ours});
    return {};
}

Result<void*> OpenClDevice::allocate(std::size_t bytes) {
    const std::size_t size = bytes == 0 ? 64 : bytes;
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return Error{ErrorCode::out_of_memory, "there is no memory for " + std::to_string(size >> 20) +
                                                   " MiB of buffers; use a smaller --ctx or --chunk"};
    }
    if (Status added = add_region(data, size, true); !added) {
        ::munmap(data, size);
        return added.error();
    }
    return data;
}

Status OpenClDevice::adopt(const void* data, std::size_t bytes) {
    const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(data));
    if (found != regions_.end() && found->second.bytes >= bytes) {
        return {};
    }
    return add_region(const_cast<void*>(data), bytes, false); // CL_MEM_READ_ONLY
}

std::pair<const std::uintptr_t, OpenClDevice::Region>* OpenClDevice::region_of(const void* data) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    auto after = regions_.upper_bound(address);
    if (after == regions_.begin() || address - (--after)->first >= after->second.bytes) {
        check(CL_INVALID_MEM_OBJECT, "looking up a tensor");
        return nullptr;
    }
    return &*after;
}

BufferPlace OpenClDevice::place(const void* data, std::size_t value_bytes) noexcept {
    const auto* region = region_of(data);
    return region == nullptr ? BufferPlace{}
                             : BufferPlace{region->second.buffer,
                                           (reinterpret_cast<std::uintptr_t>(data) - region->first) / value_bytes};
}

// --- Operations ---

void OpenClDevice::check(cl_int result, const char* call) noexcept {
    if (result != CL_SUCCESS && status_.ok()) {
        status_ = failed(result, call);
    }
}

void OpenClDevice::set_bytes(Kernel kernel, cl_uint& next, std::size_t bytes, const void* value) noexcept {
    check(calls_.clSetKernelArg(kernels_[static_cast<std::size_t>(kernel)], next++, bytes, value), "clSetKernelArg");
}

void OpenClDevice::set(Kernel kernel, cl_uint& next, const BufferPlace& place) noexcept {
    set_bytes(kernel, next, sizeof place.buffer, &place.buffer);
    set_bytes(kernel, next, sizeof place.at, &place.at);
}

// On a CPU each item is a group of its own: the items are long, and some drivers compile anew for each size of a group.
void OpenClDevice::enqueue(Kernel kernel, std::size_t x, std::size_t y) noexcept {
    if (!status_.ok()) {
        return;
    }
    const std::size_t global[] = {x, y};
    const std::size_t local[] = {1, 1};
    check(calls_.clEnqueueNDRangeKernel(queue_, kernels_[static_cast<std::size_t>(kernel)], y == 1 ? 1 : 2, nullptr,
                                        global, is_cpu_ ? local : nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
}

void OpenClDevice::read(void* data, std::size_t bytes) noexcept {
    const auto* region = status_.ok() ? region_of(data) : nullptr;
    if (region != nullptr) {
        check(calls_.clEnqueueReadBuffer(queue_, region->second.buffer, CL_TRUE,
                                         reinterpret_cast<std::uintptr_t>(data) - region->first, bytes, data, 0,
                                         nullptr, nullptr),
              "clEnqueueReadBuffer");
    }
}

void OpenClDevice::write(void* data, std::size_t bytes) noexcept {
    const auto* region = status_.ok() ? region_of(data) : nullptr;
    if (region != nullptr) {
        check(calls_.clEnqueueWriteBuffer(queue_, region->second.buffer, CL_TRUE,
                                          reinterpret_cast<std::uintptr_t>(data) - region->first, bytes, data, 0,
                                          nullptr, nullptr),
              "clEnqueueWriteBuffer");
    }
}

} // namespace plumb::decoder::opencl
