// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/device.hpp"

#include <algorithm>
#include <utility>

namespace plumb::decoder::cuda {
namespace {

constexpr const char* plain_names[] = {
#define PLUMB_DECODER_CUDA_NAME(name, arguments, threads) "plumb_decoder_" #name,
    PLUMB_CUDA_PLAIN_KERNELS(PLUMB_DECODER_CUDA_NAME)
#undef PLUMB_DECODER_CUDA_NAME
};

std::string typed_name(TypedKernel kernel, Type type) {
    const std::string word(layout_of(type).word);
    switch (kernel) {
    case TypedKernel::embed:
        return "plumb_decoder_embed_" + word;
    case TypedKernel::gemv_1:
        return "plumb_decoder_gemv_" + word + "_1";
    case TypedKernel::gemv_4:
        return "plumb_decoder_gemv_" + word + "_4";
    default:
        return "plumb_decoder_tile_" + word;
    }
}

} // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& calls, std::string_view image,
                                                     std::size_t index) {
    if (image.empty()) {
        return Error{ErrorCode::unavailable, "this program was built without nvcc, so its CUDA kernels are not in it; "
                                             "build it where nvcc is found, or use --backend cpu"};
    }
    std::unique_ptr<CudaDevice> device(new CudaDevice(calls));
    if (Status status = device->choose(index); !status) {
        return status.error();
    }
    device->enter();
    Status status = device->load(image);
    device->leave();
    if (!status) {
        return status.error();
    }
    return device;
}

CudaDevice::~CudaDevice() {
    if (context_ == nullptr) {
        return;
    }
    enter();
    if (stream_ != nullptr) {
        calls_.stream_wait(stream_);
    }
    for (const std::uint64_t address : allocations_) {
        calls_.memory_free(address);
    }
    if (module_ != nullptr) {
        calls_.module_unload(module_);
    }
    if (stream_ != nullptr) {
        calls_.stream_destroy(stream_);
    }
    leave(); // the primary context stays: with its last user would go the events of the profiler's timers
}

Error CudaDevice::error_of(int result, const char* call) const {
    const char* name = nullptr;
    if (calls_.error_name(result, &name) != 0 || name == nullptr) {
        name = "an unknown error";
    }
    return {ErrorCode::failed, std::string(call) + " answers " + name + " (" + std::to_string(result) +
                                   "); check the driver with nvidia-smi, or use --backend cpu"};
}

void CudaDevice::fail(Error error) noexcept {
    if (status_.ok()) {
        status_ = std::move(error);
    }
}

void CudaDevice::check(int result, const char* call) noexcept {
    if (result != 0) {
        fail(error_of(result, call));
    }
}

Status CudaDevice::choose(std::size_t index) {
    int count = 0;
    if (calls_.init(0) != 0 || calls_.device_count(&count) != 0 || count <= 0) {
        return Error{ErrorCode::unavailable,
                     "there is no CUDA device; check with nvidia-smi that the driver sees one, or use --backend cpu"};
    }
    if (index >= static_cast<std::size_t>(count)) {
        return Error{ErrorCode::not_found, "there is no CUDA device " + std::to_string(index) + "; use 0 to " +
                                               std::to_string(count - 1) + ", as nvidia-smi -L lists them"};
    }
    char name[256] = "";
    int processors = 0;
    int result = calls_.device_get(&device_, static_cast<int>(index));
    result = result == 0 ? calls_.device_name(name, sizeof name - 1, device_) : result;
    if (calls_.device_attribute(&processors, attribute_processors, device_) == 0 && processors > 0) {
        processors_ = static_cast<unsigned>(processors);
    }
    result = result == 0 ? calls_.context_retain(&context_, device_) : result;
    if (result != 0) {
        return error_of(result, "cuDevicePrimaryCtxRetain");
    }
    name_ = name;
    return {};
}

Status CudaDevice::load(std::string_view image) {
    if (const int result = calls_.stream_create(&stream_, stream_non_blocking); result != 0) {
        return error_of(result, "cuStreamCreate");
    }
    const std::string aligned(image); // memory of its own is aligned for everything
    int result = calls_.module_load(&module_, aligned.data());
    if (result != 0) {
        module_ = nullptr;
        return error_of(result, "cuModuleLoadData");
    }
    const auto find = [&](const std::string& name) {
        CUfunc_st* function = nullptr;
        result = result == 0 ? calls_.function_get(&function, module_, name.c_str()) : result;
        return function;
    };
    for (const char* name : plain_names) {
        plain_.push_back(find(name));
    }
    for (const Type type : all_types) {
        typed_.emplace_back();
        for (int kernel = 0; kernel < static_cast<int>(TypedKernel::count); ++kernel) {
            typed_.back().push_back(find(typed_name(static_cast<TypedKernel>(kernel), type)));
        }
    }
    return result == 0 ? Status{} : error_of(result, "cuModuleGetFunction");
}

Status CudaDevice::launch_programmatically() {
    int version = 0, capability = 0;
    const bool known =
        calls_.version(&version) == 0 && calls_.device_attribute(&capability, attribute_capability, device_) == 0;
    // Of those there is machine code, in which kernels wait; the PTX for others knows no such wait.
    if (!known || version < version_programmatic || (capability != 9 && capability != 10)) {
        return Error{ErrorCode::unsupported,
                     "--programmatic-launch needs a driver of CUDA 12.0 or later and a device of compute capability 9 "
                     "or 10; leave it out"};
    }
    programmatic_ = true;
    return {};
}

void CudaDevice::enter() noexcept { check(calls_.context_push(context_), "cuCtxPushCurrent"); }

void CudaDevice::leave() noexcept {
    CUctx_st* before = nullptr;
    check(calls_.context_pop(&before), "cuCtxPopCurrent");
}

Result<std::uint64_t> CudaDevice::allocate(std::size_t bytes) {
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + 3) / 4 * 4;
    std::uint64_t address = 0;
    if (const int result = calls_.memory_allocate(&address, size); result != 0) {
        return Error{ErrorCode::out_of_memory, "the CUDA device has no " + std::to_string(size >> 20) + " MiB (" +
                                                   std::to_string(result) +
                                                   "); use a smaller model or --ctx, or --backend cpu"};
    }
    allocations_.push_back(address);
    if (const int result = calls_.memory_zero(address, 0, size / 4, stream_); result != 0) {
        return error_of(result, "cuMemsetD32Async");
    }
    return address;
}

std::uint64_t CudaDevice::copy_of(const void* data) const noexcept {
    const auto found = copies_.find(data);
    return found == copies_.end() ? 0 : found->second;
}

Result<std::uint64_t> CudaDevice::adopt(const void* key, const void* data, std::size_t bytes) {
    Result<std::uint64_t> address = allocate(bytes);
    if (!address) {
        return address;
    }
    write(*address, data, bytes);
    wait();
    if (!status_) {
        return status_.error();
    }
    copies_[key] = *address;
    return address;
}

Result<std::uint64_t> CudaDevice::place(const void* key, std::size_t bytes) {
    Result<std::uint64_t> address = allocate(bytes);
    if (address) {
        copies_[key] = *address;
    }
    return address;
}

void CudaDevice::write(std::uint64_t to, const void* from, std::size_t bytes) noexcept {
    if (status_.ok() && bytes != 0) {
        check(calls_.copy_in(to, from, bytes, stream_), "cuMemcpyHtoDAsync");
    }
}

void CudaDevice::read(void* to, std::uint64_t from, std::size_t bytes) noexcept {
    if (status_.ok()) {
        check(calls_.copy_out(to, from, bytes, stream_), "cuMemcpyDtoHAsync");
    }
    wait();
}

void CudaDevice::wait() noexcept {
    if (status_.ok()) {
        check(calls_.stream_wait(stream_), "cuStreamSynchronize");
    }
}

Status CudaDevice::stamp_launches() {
    const Result<std::uint64_t> memory = allocate(StampSlots::most * sizeof(StampSlot));
    if (!memory) {
        return memory.error();
    }
    stamps_ = StampSlots(*memory);
    return {};
}

void CudaDevice::clear_stamps() noexcept {
    stamped_ = std::min(std::max(stamped_, stamps_.used()), StampSlots::most);
    stamps_.go_to(0);
    if (stamps_.memory() != 0 && stamped_ != 0 && status_.ok()) {
        check(calls_.memory_zero(stamps_.memory(), 0, stamped_ * sizeof(StampSlot) / 4, stream_), "cuMemsetD32Async");
    }
}

std::vector<StampSlot> CudaDevice::read_stamps() noexcept {
    std::vector<StampSlot> out;
    if (stamps_.memory() != 0 && stamps_.used() <= StampSlots::most) {
        out.resize(stamps_.used());
        read(out.data(), stamps_.memory(), out.size() * sizeof(StampSlot));
    }
    return out;
}

void CudaDevice::launch(CUfunc_st* function, const Grid& grid, unsigned threads, std::size_t shared_bytes,
                        const void* arguments) noexcept {
    if (!status_.ok()) {
        return;
    }
    std::uint64_t stamp = stamps_.next();
    void* parameters[] = {const_cast<void*>(arguments), &stamp}; // copied before the call returns
    if (programmatic_) {
        LaunchExtension property;
        property.id = property_programmatic;
        property.value.allowed = 1;
        const ExtendedLaunch shape{narrow(grid.x),       narrow(grid.y), narrow(grid.z), threads, 1, 1,
                                   narrow(shared_bytes), stream_,        &property,      1};
        check(calls_.launch_with(&shape, function, parameters, nullptr), "cuLaunchKernelEx");
        return;
    }
    check(calls_.launch(function, narrow(grid.x), narrow(grid.y), narrow(grid.z), threads, 1, 1, narrow(shared_bytes),
                        stream_, parameters, nullptr),
          "cuLaunchKernel");
}

} // namespace plumb::decoder::cuda
