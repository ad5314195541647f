// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/peak_kernels.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace plumb::backends::cuda {
namespace {

constexpr const char* not_measured = "peaks of this device are not measured";

/// What every call here is made under: captures of other threads stay unharmed, the device's context is current.
struct MeasuringGuard {
    MeasuringGuard(const Driver& driver, const OwnStream& stream)
        : relaxed(driver), current(driver, stream.context()) {}
    RelaxedCapture relaxed;
    CurrentContext current;
};

} // namespace

Result<std::unique_ptr<CudaPeakKernels>> CudaPeakKernels::create(const Driver& driver, Device device, std::size_t bytes,
                                                                 const char* image) {
    int multiprocessors = 0;
    if (const CuResult asked = driver.device_get_attribute(&multiprocessors, attribute_multiprocessors, device);
        asked != CuResult::success) {
        return error_of(driver, asked, "cuDeviceGetAttribute", not_measured);
    }
    std::unique_ptr<CudaPeakKernels> kernels(
        new CudaPeakKernels(driver, static_cast<unsigned>(std::clamp(multiprocessors, 1, 65'536))));
    Result<std::unique_ptr<OwnStream>> stream = OwnStream::create(driver, device);
    if (!stream) {
        return stream.error();
    }
    kernels->stream_ = std::move(*stream);
    const MeasuringGuard guard(driver, *kernels->stream_);
    if (guard.current.status() != CuResult::success) {
        return error_of(driver, guard.current.status(), "cuCtxPushCurrent", not_measured);
    }
    Status ready = kernels->load(image);
    if (ready) {
        ready = kernels->take_memory(bytes);
    }
    return ready ? Result<std::unique_ptr<CudaPeakKernels>>(std::move(kernels)) : ready.error();
}

CudaPeakKernels::~CudaPeakKernels() {
    if (stream_ == nullptr) {
        return;
    }
    const MeasuringGuard guard(driver_, *stream_);
    for (const DevicePointer memory : {memory_, sums_}) {
        if (memory != 0) {
            static_cast<void>(driver_.mem_free(memory));
        }
    }
    for (const Event event : {begin_, end_}) {
        if (event != nullptr) {
            static_cast<void>(driver_.event_destroy(event));
        }
    }
    if (module_ != nullptr) {
        static_cast<void>(driver_.module_unload(module_));
    }
}

Status CudaPeakKernels::load(const char* image) {
    if (const CuResult loaded = driver_.module_load_data(&module_, image); loaded != CuResult::success) {
        module_ = nullptr;
        return error_of(driver_, loaded, "cuModuleLoadData",
                        loaded == CuResult::jit_compiler_not_found
                            ? "install the driver's PTX compiler (libnvidia-ptxjitcompiler) and measure again"
                            : not_measured);
    }
    const std::pair<const char*, Function*> wanted[] = {
        {"plumb_peak_fill", &fill_}, {"plumb_peak_read", &read_}, {"plumb_peak_multiply_adds", &multiply_adds_}};
    for (const auto& [name, function] : wanted) {
        if (const CuResult found = driver_.module_get_function(function, module_, name); found != CuResult::success) {
            return error_of(driver_, found, "cuModuleGetFunction", not_measured);
        }
    }
    for (Event* event : {&begin_, &end_}) {
        if (const CuResult made = driver_.event_create(event, event_default); made != CuResult::success) {
            *event = nullptr;
            return error_of(driver_, made, "cuEventCreate", not_measured);
        }
    }
    return {};
}

Status CudaPeakKernels::take_memory(std::size_t bytes) {
    const std::pair<DevicePointer*, std::size_t> wanted[] = {
        {&sums_, std::size_t{blocks(3)} * threads_of_block * sizeof(float)}, {&memory_, bytes}};
    for (const auto& [memory, size] : wanted) {
        const CuResult got = size == 0 ? CuResult::success : driver_.mem_alloc(memory, size);
        if (got != CuResult::success) {
            *memory = 0;
            return error_of(driver_, got, "cuMemAlloc", "free some of the device's memory and measure again");
        }
    }
    host_.resize(std::size_t{blocks(3)} * threads_of_block);
    bytes_ = bytes;
    if (bytes == 0) {
        return {};
    }
    auto words = static_cast<std::uint32_t>(bytes / sizeof(std::uint32_t));
    std::uint32_t factor = word_factor;
    void* parameters[] = {&memory_, &words, &factor};
    const Result<double> filled = run(fill_, blocks(3), parameters);
    return filled ? Status() : Status(filled.error());
}

Result<double> CudaPeakKernels::read(int shape) {
    const MeasuringGuard guard(driver_, *stream_);
    const std::size_t turn = std::size_t{threads_of_block} * 8; // loads of one turn in peaks.cu
    auto of_block = static_cast<std::uint32_t>(bytes_ / 16 / blocks(shape) / turn * turn);
    if (of_block == 0) {
        return Error{ErrorCode::invalid_argument, too_little_to_read};
    }
    void* parameters[] = {&memory_, &sums_, &of_block};
    const Result<double> ns = run(read_, blocks(shape), parameters);
    if (!ns) {
        return ns;
    }
    const std::size_t items = std::size_t{blocks(shape)} * threads_of_block;
    if (Status fetched = fetch(items); !fetched) {
        return fetched.error();
    }
    const std::uint64_t words = std::uint64_t{of_block} * blocks(shape) * 4;
    if (std::accumulate(host_.data(), host_.data() + items, std::uint32_t{0}) != sum_of_words(words)) {
        return wrong_result;
    }
    return *ns > 0 ? static_cast<double>(words * sizeof(std::uint32_t)) / *ns : 0;
}

Result<ArithmeticPass> CudaPeakKernels::multiply_adds(int shape, std::uint32_t rounds) {
    const MeasuringGuard guard(driver_, *stream_);
    std::uint32_t of_shape = std::max(rounds >> (shape & 3), 1U); // as much work in every shape
    float seed = chain_seed;
    void* parameters[] = {&sums_, &seed, &of_shape};
    const Result<double> ns = run(multiply_adds_, blocks(shape), parameters);
    if (!ns) {
        return ns.error();
    }
    std::vector<float> sums(std::size_t{blocks(shape)} * threads_of_block);
    if (Status fetched = fetch(sums.size()); !fetched) {
        return fetched.error();
    }
    std::memcpy(sums.data(), host_.data(), sums.size() * sizeof sums[0]);
    if (!are_sums_of_chains(sums, 1, of_shape)) {
        return wrong_result;
    }
    return ArithmeticPass{2.0 * chains_of_item * static_cast<double>(sums.size()) * of_shape, *ns};
}

Result<double> CudaPeakKernels::run(Function kernel, unsigned blocks, void** parameters) {
    const Stream stream = stream_->stream();
    const auto refused = [&](CuResult result, const char* call) {
        return error_of(driver_, result, call, not_measured);
    };
    const auto launch = [&] {
        return driver_.launch_kernel(kernel, blocks, 1, 1, threads_of_block, 1, 1, 0, stream, parameters, nullptr);
    };
    // The device is still at work on the first launch when the second one comes, so that the span holds no wait for it.
    if (const CuResult put = launch(); put != CuResult::success) {
        return refused(put, "cuLaunchKernel");
    }
    if (const CuResult put = driver_.event_record(begin_, stream); put != CuResult::success) {
        return refused(put, "cuEventRecord");
    }
    if (const CuResult put = launch(); put != CuResult::success) {
        return refused(put, "cuLaunchKernel");
    }
    if (const CuResult put = driver_.event_record(end_, stream); put != CuResult::success) {
        return refused(put, "cuEventRecord");
    }
    if (const CuResult waited = driver_.event_synchronize(end_); waited != CuResult::success) {
        return refused(waited, "cuEventSynchronize");
    }
    float ms = 0;
    if (const CuResult asked = driver_.elapsed(&ms, begin_, end_); asked != CuResult::success) {
        return refused(asked, "cuEventElapsedTime");
    }
    return ms > 0 ? static_cast<double>(ms) * 1e6 : 0;
}

Status CudaPeakKernels::fetch(std::size_t count) {
    const Stream stream = stream_->stream();
    const char* call = "cuMemcpyDtoHAsync";
    CuResult done = driver_.memcpy_dtoh_async(host_.data(), sums_, count * sizeof host_[0], stream);
    if (done == CuResult::success) {
        call = "cuStreamSynchronize";
        done = driver_.stream_synchronize(stream);
    }
    return done == CuResult::success ? Status() : error_of(driver_, done, call, not_measured);
}

} // namespace plumb::backends::cuda
