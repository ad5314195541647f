// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/peak_kernels.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace plumb::backends::opencl {
namespace {

constexpr const char* not_measured = "peaks of this device are not measured";
constexpr std::size_t unroll = 8; // loads of one turn in peaks.cl

/// What peaks.cl wants to be defined before it.
std::string definitions(const PeakShape& shape) {
    const std::string lanes = std::to_string(shape.float_lanes);
    std::string numbers;
    for (std::uint32_t i = 0; i < shape.float_lanes; ++i) {
        numbers += (i == 0 ? "" : ", ") + std::to_string(i) + ".0f";
    }
    return std::string("#define WORDS ") + (shape.is_cpu ? "uint16" : "uint4") + "\n#define FLOATS float" +
           (shape.float_lanes == 1 ? "" : lanes) + "\n#define LANES " + numbers + "\n#define MULTIPLY_ADD " +
           (shape.fused ? "fma" : "mad") + "\n";
}

} // namespace

Result<PeakShape> peak_shape_of(const OpenClDriver& driver, DeviceId device) {
    const auto type = device_value<Bits>(driver, device, device_type);
    const auto units = device_value<std::uint32_t>(driver, device, device_compute_units);
    const auto lanes = device_value<std::uint32_t>(driver, device, device_native_float_lanes);
    const auto floats = device_value<Bits>(driver, device, device_single_fp_config);
    const auto group = device_value<std::size_t>(driver, device, device_max_work_group_size);
    for (const auto* asked : {&type, &floats}) {
        if (!*asked) {
            return asked->error();
        }
    }
    if (!units || !lanes || !group) {
        return !units ? units.error() : !lanes ? lanes.error() : group.error();
    }
    PeakShape shape;
    shape.is_cpu = (*type & device_type_cpu) != 0;
    shape.units = std::clamp<std::uint32_t>(*units, 1, 65'536);
    shape.fused = (*floats & fp_fused_multiply_add) != 0;
    shape.largest_group = std::max<std::size_t>(*group, 1);
    // A device whose lanes are its items takes its vectors apart.
    shape.float_lanes = *lanes >= 16 ? 16 : *lanes >= 8 ? 8 : 4;
    return shape;
}

Result<std::unique_ptr<OpenClPeakKernels>> OpenClPeakKernels::create(const OpenClDriver& driver, DeviceId device,
                                                                     std::size_t bytes) {
    const Result<PeakShape> shape = peak_shape_of(driver, device);
    if (!shape) {
        return shape.error();
    }
    std::unique_ptr<OpenClPeakKernels> kernels(new OpenClPeakKernels(driver, *shape));
    Result<std::unique_ptr<OwnQueue>> queue = OwnQueue::create(driver, nullptr, device);
    if (!queue) {
        return queue.error();
    }
    kernels->queue_ = std::move(*queue);
    if (Status built = kernels->build(device); !built) {
        return built.error();
    }
    const std::size_t most_items = kernels->groups(3) * kernels->local();
    const Result<Memory> sums = kernels->new_memory(most_items * 16 * sizeof(float));
    if (!sums) {
        return sums.error();
    }
    kernels->sums_ = *sums;
    if (bytes == 0) {
        return kernels;
    }
    const Result<Memory> memory = kernels->new_memory(bytes);
    if (!memory) {
        return memory.error();
    }
    kernels->memory_ = *memory;
    kernels->bytes_ = bytes;
    if (Status filled = kernels->fill(); !filled) {
        return filled.error();
    }
    return kernels;
}

OpenClPeakKernels::~OpenClPeakKernels() {
    for (const Memory memory : {memory_, sums_}) {
        if (memory != nullptr) {
            static_cast<void>(driver_.release_memory(memory));
        }
    }
    for (const Kernel kernel : {fill_, read_, multiply_adds_}) {
        if (kernel != nullptr) {
            static_cast<void>(driver_.release_kernel(kernel));
        }
    }
    if (program_ != nullptr) {
        static_cast<void>(driver_.release_program(program_));
    }
}

Status OpenClPeakKernels::build(DeviceId device) {
    const std::string before = definitions(shape_);
    const char* texts[] = {before.c_str(), peaks_text};
    ClResult made = ClResult::success;
    program_ = driver_.create_program(queue_->context(), 2, texts, nullptr, &made);
    if (made != ClResult::success) {
        program_ = nullptr;
        return error_of(made, "clCreateProgramWithSource", not_measured);
    }
    // No option that lets a compiler reorder sums: the results are checked to the last bit.
    if (const ClResult built = driver_.build_program(program_, 1, &device, "", nullptr, nullptr);
        built != ClResult::success) {
        return error_of(built, "clBuildProgram",
                        "this device's compiler does not take our kernels, so its peaks are not measured");
    }
    const std::pair<const char*, Kernel*> wanted[] = {
        {"plumb_fill", &fill_}, {"plumb_read", &read_}, {"plumb_multiply_adds", &multiply_adds_}};
    for (const auto& [name, kernel] : wanted) {
        const Result<Kernel> found = kernel_of(name);
        if (!found) {
            return found.error();
        }
        *kernel = *found;
    }
    return {};
}

Result<Kernel> OpenClPeakKernels::kernel_of(const char* name) {
    ClResult made = ClResult::success;
    const Kernel kernel = driver_.create_kernel(program_, name, &made);
    return made == ClResult::success ? Result<Kernel>(kernel) : error_of(made, "clCreateKernel", not_measured);
}

Result<Memory> OpenClPeakKernels::new_memory(std::size_t bytes) {
    ClResult made = ClResult::success;
    const Memory memory = driver_.create_buffer(queue_->context(), memory_read_write, bytes, nullptr, &made);
    return made == ClResult::success
               ? Result<Memory>(memory)
               : error_of(made, "clCreateBuffer", "free some of the device's memory and measure again");
}

Status OpenClPeakKernels::fill() {
    const auto count = static_cast<std::uint32_t>(bytes_ / sizeof(std::uint32_t));
    const Result<double> filled = run(fill_, groups(3), {{&memory_, sizeof memory_}, {&count, 4}, {&word_factor, 4}});
    return filled ? Status() : Status(filled.error());
}

Result<double> OpenClPeakKernels::read(int shape) {
    const std::size_t count = groups(shape);
    const std::size_t turn = local() * unroll;
    const auto of_group = static_cast<std::uint32_t>(bytes_ / sizeof(std::uint32_t) / words() / count / turn * turn);
    if (of_group == 0) {
        return Error{ErrorCode::invalid_argument, too_little_to_read};
    }
    const Result<double> ns = run(read_, count, {{&memory_, sizeof memory_}, {&sums_, sizeof sums_}, {&of_group, 4}});
    if (!ns) {
        return ns;
    }
    std::vector<std::uint32_t> sums(count * local() * words());
    if (Status fetched = fetch(sums.data(), sums.size() * sizeof sums[0]); !fetched) {
        return fetched.error();
    }
    const std::uint64_t read_words = std::uint64_t{of_group} * count * words();
    if (std::accumulate(sums.begin(), sums.end(), std::uint32_t{0}) != sum_of_words(read_words)) {
        return wrong_result;
    }
    return *ns > 0 ? static_cast<double>(read_words * sizeof(std::uint32_t)) / *ns : 0;
}

Result<ArithmeticPass> OpenClPeakKernels::multiply_adds(int shape, std::uint32_t rounds) {
    const std::size_t count = groups(shape);
    const std::uint32_t of_shape = static_cast<std::uint32_t>(std::max<std::size_t>(rounds * groups(0) / count, 1));
    const Result<double> ns = run(multiply_adds_, count, {{&sums_, sizeof sums_}, {&chain_seed, 4}, {&of_shape, 4}});
    if (!ns) {
        return ns.error();
    }
    std::vector<float> sums(count * local() * shape_.float_lanes);
    if (Status fetched = fetch(sums.data(), sums.size() * sizeof sums[0]); !fetched) {
        return fetched.error();
    }
    if (!are_sums_of_chains(sums, shape_.float_lanes, of_shape)) {
        return wrong_result;
    }
    return ArithmeticPass{2.0 * chains_of_item * static_cast<double>(sums.size()) * of_shape, *ns};
}

Result<double> OpenClPeakKernels::run(Kernel kernel, std::size_t groups, const std::vector<Argument>& arguments) {
    std::uint32_t place = 0;
    for (const Argument& argument : arguments) {
        if (const ClResult put = driver_.set_kernel_argument(kernel, place++, argument.bytes, argument.value);
            put != ClResult::success) {
            return error_of(put, "clSetKernelArg", not_measured);
        }
    }
    const std::size_t of_group = local();
    const std::size_t items = groups * of_group;
    Event event = nullptr;
    if (const ClResult put =
            driver_.enqueue_kernel(queue_->queue(), kernel, 1, nullptr, &items, &of_group, 0, nullptr, &event);
        put != ClResult::success) {
        return error_of(put, "clEnqueueNDRangeKernel", not_measured);
    }
    const ClResult waited = driver_.wait_for_events(1, &event);
    const Result<double> length =
        waited == ClResult::success ? length_of(event) : error_of(waited, "clWaitForEvents", not_measured);
    static_cast<void>(driver_.release_event(event));
    return length;
}

Result<double> OpenClPeakKernels::length_of(Event event) {
    std::uint64_t began = 0, ended = 0;
    for (const auto& [what, ns] : {std::pair(stamp_started, &began), std::pair(stamp_ended, &ended)}) {
        if (const ClResult asked = driver_.get_event_stamp(event, what, sizeof *ns, ns, nullptr);
            asked != ClResult::success) {
            return error_of(asked, "clGetEventProfilingInfo", not_measured);
        }
    }
    return ended > began ? static_cast<double>(ended - began) : 0.0;
}

Status OpenClPeakKernels::fetch(void* to, std::size_t bytes) {
    const ClResult got = driver_.read_buffer(queue_->queue(), sums_, 1, 0, bytes, to, 0, nullptr, nullptr);
    return got == ClResult::success ? Status() : error_of(got, "clEnqueueReadBuffer", not_measured);
}

} // namespace plumb::backends::opencl
