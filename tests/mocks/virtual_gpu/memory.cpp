// SPDX-License-Identifier: Apache-2.0
// Device and mapped host memory, both backed by host memory.
#include "virtual_gpu/memory.hpp"

#include <cstring>
#include <iterator>

#include "virtual_gpu/timeline.hpp"

namespace plumb::vgpu {

namespace {

std::uintptr_t host_address(DevicePointer address) { return static_cast<std::uintptr_t>(address & ~device_tag); }

std::size_t used_bytes(int device) {
    std::size_t used = 0;
    for (const auto& [address, allocation] : gpu().allocations) {
        if (!allocation.host && allocation.device == device) {
            used += allocation.bytes;
        }
    }
    gpu().execs.for_each([&](GraphExec, const ExecObject& exec) {
        if (exec.device == device) {
            used += exec.nodes.size() * gpu().config.node_bytes;
        }
    });
    return used;
}

const Allocation* allocation_at(DevicePointer address, bool host) {
    const auto found = gpu().allocations.find(host_address(address));
    return found == gpu().allocations.end() || found->second.host != host ? nullptr : &found->second;
}

CuResult release(Call& call, DevicePointer address, bool host) {
    const Allocation* allocation = allocation_at(address, host);
    if (allocation == nullptr) {
        ledger_error(std::string(call.symbol()) + " got an address that is no allocation.");
        return CuResult::invalid_value;
    }
    call.synchronise(busy_until(allocation->context));
    gpu().allocations.erase(host_address(address));
    return call.done();
}

} // namespace

CuResult allocate(std::size_t bytes, bool host, bool pooled, std::uintptr_t* address) {
    Gpu& g = gpu();
    const auto context = context_of(current_context());
    if (!context) {
        return CuResult::context_is_destroyed;
    }
    if (bytes == 0) {
        return CuResult::invalid_value;
    }
    if (!host && used_bytes(context->device) + bytes > g.config.memory_bytes) {
        return CuResult::out_of_memory;
    }
    Allocation allocation;
    allocation.bytes = bytes;
    allocation.data.reset(static_cast<unsigned char*>(::operator new(bytes, allocation_alignment)));
    std::memset(allocation.data.get(), 0, bytes);
    allocation.host = host;
    allocation.pooled = pooled;
    allocation.context = current_context();
    allocation.device = context->device;
    *address = reinterpret_cast<std::uintptr_t>(allocation.data.get());
    g.allocations[*address] = std::move(allocation);
    return CuResult::success;
}

void free_pooled(DevicePointer address) {
    const Allocation* allocation = allocation_at(address, false);
    if (allocation != nullptr && allocation->pooled) {
        gpu().allocations.erase(host_address(address));
    }
}

bool is_mapped(DevicePointer address) {
    const auto next = gpu().allocations.upper_bound(host_address(address));
    return next != gpu().allocations.begin() && std::prev(next)->second.host && memory(address) != nullptr;
}

void* memory(DevicePointer address, std::size_t bytes) {
    const std::lock_guard lock(gpu().mutex);
    const auto& allocations = gpu().allocations;
    const std::uintptr_t at = host_address(address);
    auto next = allocations.upper_bound(at);
    if (next == allocations.begin()) {
        return nullptr;
    }
    const auto& [begin, allocation] = *--next;
    if (at - begin > allocation.bytes || bytes > allocation.bytes - (at - begin)) {
        return nullptr;
    }
    return reinterpret_cast<void*>(at);
}

extern "C" {

CuResult vgpu_mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes) {
    PLUMB_VGPU_ENTER(mem_get_info);
    const auto context = context_of(current_context());
    if (!context) {
        return CuResult::context_is_destroyed;
    }
    constexpr std::size_t page = std::size_t{2} << 20; // the device gives memory out in pages
    const std::size_t used = (used_bytes(context->device) + page - 1) / page * page;
    *total_bytes = gpu().config.memory_bytes;
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
    return call.done();
}

CuResult vgpu_mem_alloc(DevicePointer* address, std::size_t bytes) {
    PLUMB_VGPU_ENTER(mem_alloc);
    call.load(current_context());
    std::uintptr_t at = 0;
    const CuResult result = allocate(bytes, false, false, &at);
    if (result == CuResult::success) {
        *address = at | device_tag;
    }
    return call.done(result);
}

CuResult vgpu_mem_free(DevicePointer address) {
    PLUMB_VGPU_ENTER(mem_free);
    return address == 0 ? call.done() : release(call, address, false);
}

CuResult vgpu_mem_host_alloc(void** memory, std::size_t bytes, unsigned) {
    PLUMB_VGPU_ENTER(mem_host_alloc);
    call.load(current_context());
    std::uintptr_t at = 0;
    const CuResult result = allocate(bytes, true, false, &at);
    if (result == CuResult::success) {
        *memory = reinterpret_cast<void*>(at);
    }
    return call.done(result);
}

CuResult vgpu_mem_free_host(void* memory) {
    PLUMB_VGPU_ENTER(mem_free_host);
    return release(call, reinterpret_cast<std::uintptr_t>(memory), true);
}

CuResult vgpu_mem_host_get_device_pointer(DevicePointer* address, void* memory, unsigned flags) {
    PLUMB_VGPU_ENTER(mem_host_get_device_pointer);
    const auto at = static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(memory));
    if (flags != 0 || plumb::vgpu::memory(at) == nullptr) {
        return CuResult::invalid_value;
    }
    *address = at;
    return call.done();
}

CuResult vgpu_mem_alloc_async(DevicePointer* address, std::size_t bytes, Stream stream) {
    PLUMB_VGPU_ENTER(mem_alloc_async);
    const auto object = call.working_stream(stream);
    if (!object) {
        return call.result();
    }
    std::uintptr_t at = 0;
    const CuResult result = allocate(bytes, false, true, &at);
    if (result != CuResult::success) {
        return result;
    }
    *address = at | device_tag;
    if (!object->capture) {
        return call.done();
    }
    Work work;
    work.type = NodeType::mem_alloc;
    work.address = *address;
    work.bytes = bytes;
    return submit(call, *object, std::move(work));
}

CuResult vgpu_mem_free_async(DevicePointer address, Stream stream) {
    PLUMB_VGPU_ENTER(mem_free_async);
    const auto object = call.working_stream(stream);
    if (!object) {
        return call.result();
    }
    if (allocation_at(address, false) == nullptr) {
        return CuResult::invalid_value;
    }
    if (object->capture) {
        Work work;
        work.type = NodeType::mem_free;
        work.address = address;
        return submit(call, *object, std::move(work));
    }
    schedule_effect(ready_ns(*object), [address] { free_pooled(address); });
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu
