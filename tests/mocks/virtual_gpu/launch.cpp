// SPDX-License-Identifier: Apache-2.0
// Kernels, copies, memsets, value writes and host functions put into a stream.
#include <cstring>

#include "virtual_gpu/memory.hpp"
#include "virtual_gpu/timeline.hpp"

namespace plumb::vgpu {

namespace {

std::int64_t launch_cost() { return gpu().config.launch_ns - gpu().config.call_ns; }

CuResult enqueue(Call& call, Stream stream, Work work, bool programmatic = false) {
    const auto object = call.working_stream(stream);
    if (!object) {
        return call.result();
    }
    return call.done(submit(call, *object, std::move(work), programmatic));
}

CuResult launch(Call& call, const KernelNodeParams& params, Stream stream, bool programmatic, bool updatable = false) {
    Work work;
    if (!gpu().functions.find(params.func)) {
        return CuResult::invalid_handle;
    }
    if (!read_kernel_params(work, params, 1)) {
        return CuResult::invalid_value;
    }
    const auto object = call.stream(stream);
    if (object && object->context != work.kernel.function->context) {
        return CuResult::invalid_handle;
    }
    call.load(*work.kernel.function);
    work.kernel.device_updatable = updatable;
    return enqueue(call, stream, std::move(work), programmatic);
}

bool is_device_range(DevicePointer address, std::size_t bytes) { return memory(address, bytes) != nullptr; }

// The synchronous copies use the legacy stream and wait for it.
CuResult copy_now(Call& call, Work work) {
    const auto stream = call.working_stream(nullptr);
    if (!stream) {
        return call.result();
    }
    const CuResult result = submit(call, *stream, std::move(work));
    if (result == CuResult::success) {
        call.synchronise(stream->tail_ns);
    }
    return call.done(result);
}

Work memset_work(DevicePointer to, unsigned value, unsigned element_size, std::size_t count) {
    Work work;
    work.type = NodeType::memset;
    work.memset = {to, 0, value, element_size, count, 1};
    return work;
}

} // namespace

extern "C" {

CuResult vgpu_launch_kernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params,
                            void** extra) {
    PLUMB_VGPU_ENTER(launch_kernel, {}, launch_cost());
    const KernelNodeParams all{function, grid_x,       grid_y, grid_z, block_x, block_y,
                               block_z,  shared_bytes, params, extra,  nullptr, nullptr};
    return launch(call, all, stream, false);
}

CuResult vgpu_launch_kernel_ex(const LaunchConfig* config, Function function, void** params, void** extra) {
    PLUMB_VGPU_ENTER(launch_kernel_ex, {}, launch_cost());
    bool programmatic = false;
    bool updatable = false; // means something in a capture only
    for (unsigned i = 0; i < config->attribute_count; ++i) {
        const LaunchAttribute& attribute = config->attributes[i];
        if (attribute.id == attribute_programmatic_serialization) {
            programmatic = attribute.value.programmatic_allowed != 0;
        } else if (attribute.id == attribute_device_updatable) {
            updatable = attribute.value.device_updatable.updatable != 0;
        }
    }
    const KernelNodeParams all{function,        config->grid_x,  config->grid_y,  config->grid_z,
                               config->block_x, config->block_y, config->block_z, config->shared_bytes,
                               params,          extra,           nullptr,         nullptr};
    return launch(call, all, config->stream, programmatic, updatable);
}

CuResult vgpu_launch_host_func(Stream stream, HostFunction function, void* user) {
    PLUMB_VGPU_ENTER(launch_host_func, {}, launch_cost());
    if (function == nullptr) {
        return CuResult::invalid_value;
    }
    Work work;
    work.type = NodeType::host;
    work.host = {function, user};
    return enqueue(call, stream, std::move(work));
}

CuResult vgpu_memcpy_htod_async(DevicePointer to, const void* from, std::size_t bytes, Stream stream) {
    PLUMB_VGPU_ENTER(memcpy_htod_async, {}, launch_cost());
    if (from == nullptr || !is_device_range(to, bytes)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, stream, copy_work(to, from, 0, nullptr, bytes));
}

CuResult vgpu_memcpy_dtoh_async(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
    PLUMB_VGPU_ENTER(memcpy_dtoh_async, {}, launch_cost());
    if (to == nullptr || !is_device_range(from, bytes)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, stream, copy_work(0, nullptr, from, to, bytes));
}

CuResult vgpu_memcpy_dtod_async(DevicePointer to, DevicePointer from, std::size_t bytes, Stream stream) {
    PLUMB_VGPU_ENTER(memcpy_dtod_async, {}, launch_cost());
    if (!is_device_range(to, bytes) || !is_device_range(from, bytes)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, stream, copy_work(to, nullptr, from, nullptr, bytes));
}

CuResult vgpu_memcpy_htod(DevicePointer to, const void* from, std::size_t bytes) {
    PLUMB_VGPU_ENTER(memcpy_htod);
    if (from == nullptr || !is_device_range(to, bytes)) {
        return CuResult::invalid_value;
    }
    return copy_now(call, copy_work(to, from, 0, nullptr, bytes));
}

CuResult vgpu_memcpy_dtoh(void* to, DevicePointer from, std::size_t bytes) {
    PLUMB_VGPU_ENTER(memcpy_dtoh);
    if (to == nullptr || !is_device_range(from, bytes)) {
        return CuResult::invalid_value;
    }
    return copy_now(call, copy_work(0, nullptr, from, to, bytes));
}

CuResult vgpu_memcpy_dtod(DevicePointer to, DevicePointer from, std::size_t bytes) {
    PLUMB_VGPU_ENTER(memcpy_dtod, {}, launch_cost());
    if (!is_device_range(to, bytes) || !is_device_range(from, bytes)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, nullptr, copy_work(to, nullptr, from, nullptr, bytes));
}

CuResult vgpu_memset_d32(DevicePointer to, unsigned value, std::size_t count) {
    PLUMB_VGPU_ENTER(memset_d32, {}, launch_cost());
    if (!is_device_range(to, count * 4)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, nullptr, memset_work(to, value, 4, count));
}

CuResult vgpu_memset_d32_async(DevicePointer to, unsigned value, std::size_t count, Stream stream) {
    PLUMB_VGPU_ENTER(memset_d32_async, {}, launch_cost());
    if (!is_device_range(to, count * 4)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, stream, memset_work(to, value, 4, count));
}

CuResult vgpu_memset_d8_async(DevicePointer to, unsigned char value, std::size_t count, Stream stream) {
    PLUMB_VGPU_ENTER(memset_d8_async, {}, launch_cost());
    if (!is_device_range(to, count)) {
        return CuResult::invalid_value;
    }
    return enqueue(call, stream, memset_work(to, value, 1, count));
}

CuResult vgpu_stream_batch_mem_op(Stream stream, unsigned count, WriteValueOp* operations, unsigned flags) {
    PLUMB_VGPU_ENTER(stream_batch_mem_op, {}, launch_cost());
    if (operations == nullptr || count == 0 || count > 256 || flags != 0) {
        return CuResult::invalid_value;
    }
    Work work;
    work.type = NodeType::batch_mem_op;
    for (unsigned i = 0; i < count; ++i) {
        const unsigned operation = operations[i].operation;
        const std::size_t bytes = operation == mem_op_write_value_64 ? 8 : 4;
        if (operation != mem_op_write_value_32 && operation != mem_op_write_value_64) {
            return CuResult::not_supported;
        }
        if (operations[i].address % bytes != 0 || !is_device_range(operations[i].address, bytes)) {
            return CuResult::invalid_value;
        }
        work.writes.push_back(operations[i]);
    }
    return enqueue(call, stream, std::move(work));
}

} // extern "C"

} // namespace plumb::vgpu
