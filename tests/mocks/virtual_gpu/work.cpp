// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/work.hpp"

#include <algorithm>
#include <cstring>

#include "virtual_gpu/memory.hpp"

namespace plumb::vgpu {

namespace {

constexpr unsigned memory_host = 1;
constexpr unsigned memory_device = 2;

void lay_out(KernelWork& kernel) {
    kernel.bytes = param_bytes_of(*kernel.function);
    kernel.offsets.clear();
    std::size_t at = 0;
    for (const std::size_t bytes : kernel.bytes) {
        const std::size_t align = std::min<std::size_t>(bytes == 0 ? 1 : bytes, 8);
        at = (at + align - 1) / align * align;
        kernel.offsets.push_back(at);
        at += bytes;
    }
    kernel.storage.assign(at, 0);
}

void point(KernelWork& kernel) {
    kernel.pointers.clear();
    for (const std::size_t offset : kernel.offsets) {
        kernel.pointers.push_back(kernel.storage.data() + offset);
    }
}

void fault(const char* what) {
    ledger_error(std::string("A ") + what + " touched memory that is not there: the device is lost.");
    gpu().lost = CuResult::illegal_address;
}

const void* source_of(const Memcpy3d& copy) {
    return copy.src_memory_type == memory_host ? copy.src_host : memory(copy.src_device, copy.width_bytes);
}

void* target_of(const Memcpy3d& copy) {
    return copy.dst_memory_type == memory_host ? copy.dst_host : memory(copy.dst_device, copy.width_bytes);
}

void carry_out_copy(const Memcpy3d& copy) {
    const void* from = source_of(copy);
    void* to = target_of(copy);
    if (from == nullptr || to == nullptr) {
        return fault("copy");
    }
    std::memmove(to, from, copy.width_bytes);
}

void carry_out_memset(const MemsetNodeParams& memset) {
    void* to = memory(memset.dst, memset.width * memset.element_size);
    if (to == nullptr) {
        return fault("memset");
    }
    for (std::size_t i = 0; i < memset.width; ++i) {
        std::memcpy(static_cast<unsigned char*>(to) + i * memset.element_size, &memset.value, memset.element_size);
    }
}

void carry_out_writes(const std::vector<WriteValueOp>& writes) {
    for (const WriteValueOp& write : writes) {
        const std::size_t bytes = write.operation == mem_op_write_value_64 ? 8 : 4;
        void* to = memory(write.address, bytes);
        if (to == nullptr) {
            return fault("value write");
        }
        std::memcpy(to, &write.value, bytes);
    }
}

void carry_out_kernel(const KernelWork& kernel, int device, std::int64_t start_ns, std::int64_t end_ns) {
    const auto model = gpu().kernels.find(kernel.function->name);
    if (model == gpu().kernels.end() || !model->second.function) {
        return;
    }
    const std::vector<const void*> params(kernel.pointers.begin(), kernel.pointers.end());
    const KernelRun run{kernel.function->name,
                        {kernel.grid[0], kernel.grid[1], kernel.grid[2]},
                        {kernel.block[0], kernel.block[1], kernel.block[2]},
                        kernel.shared_bytes,
                        params,
                        kernel.bytes,
                        start_ns,
                        end_ns,
                        globaltimer_ns(start_ns + gpu().config.stamp_read_ns, device),
                        device};
    model->second.function(run);
}

std::int64_t draw(std::int64_t low, std::int64_t high) {
    if (high <= low) {
        return low;
    }
    return std::uniform_int_distribution<std::int64_t>(low, high)(gpu().random);
}

/// Each parameter that points to mapped host memory is one way there and back.
std::int64_t time_behind_the_bus(const KernelWork& kernel) {
    std::int64_t time = 0;
    for (std::size_t i = 0; gpu().config.mapped_access_ns != 0 && i < kernel.bytes.size(); ++i) {
        DevicePointer address = 0;
        if (kernel.bytes[i] == sizeof address) {
            std::memcpy(&address, kernel.pointers[i], sizeof address);
            time += is_mapped(address) ? gpu().config.mapped_access_ns : 0;
        }
    }
    return time;
}

} // namespace

KernelWork& KernelWork::operator=(const KernelWork& other) {
    if (this == &other) {
        return *this;
    }
    function = other.function;
    std::copy_n(other.grid, 3, grid);
    std::copy_n(other.block, 3, block);
    shared_bytes = other.shared_bytes;
    priority = other.priority;
    device_updatable = other.device_updatable;
    offsets = other.offsets;
    bytes = other.bytes;
    storage = other.storage;
    point(*this);
    return *this;
}

void keep_attributes(Work& work, const Work& before) {
    work.kernel.priority = before.kernel.priority;
    work.kernel.device_updatable = before.kernel.device_updatable;
}

bool read_params(KernelWork& kernel, void** params, void** extra) {
    lay_out(kernel);
    if (params != nullptr) {
        for (std::size_t i = 0; i < kernel.bytes.size(); ++i) {
            std::memcpy(kernel.storage.data() + kernel.offsets[i], params[i], kernel.bytes[i]);
        }
    } else if (extra != nullptr) {
        // {1, buffer, 2, &size, 0}: the parameters in one buffer.
        const void* buffer = nullptr;
        std::size_t size = 0;
        for (std::size_t i = 0; extra[i] != nullptr; i += 2) {
            if (reinterpret_cast<std::uintptr_t>(extra[i]) == 1) {
                buffer = extra[i + 1];
            } else if (reinterpret_cast<std::uintptr_t>(extra[i]) == 2) {
                size = *static_cast<const std::size_t*>(extra[i + 1]);
            }
        }
        if (buffer == nullptr) {
            return false;
        }
        std::memcpy(kernel.storage.data(), buffer, std::min(size, kernel.storage.size()));
    } else if (!kernel.bytes.empty()) {
        return false;
    }
    point(kernel);
    return true;
}

bool read_kernel_params(Work& work, const KernelNodeParams& params, int version) {
    work.type = NodeType::kernel;
    Function function = params.func;
    if (function == nullptr && version > 1) {
        function = reinterpret_cast<Function>(params.kern);
    }
    KernelWork& kernel = work.kernel;
    kernel.function = gpu().functions.find(function);
    if (!kernel.function || params.grid_x * params.grid_y * params.grid_z == 0 ||
        params.block_x * params.block_y * params.block_z == 0) {
        return false;
    }
    const unsigned grid[3] = {params.grid_x, params.grid_y, params.grid_z};
    const unsigned block[3] = {params.block_x, params.block_y, params.block_z};
    std::copy_n(grid, 3, kernel.grid);
    std::copy_n(block, 3, kernel.block);
    kernel.shared_bytes = params.shared_bytes;
    return read_params(kernel, params.kernel_params, params.extra);
}

void write_kernel_params(Work& work, KernelNodeParams& params, int version) {
    KernelWork& kernel = work.kernel;
    params.func = kernel.function->handle;
    params.grid_x = kernel.grid[0];
    params.grid_y = kernel.grid[1];
    params.grid_z = kernel.grid[2];
    params.block_x = kernel.block[0];
    params.block_y = kernel.block[1];
    params.block_z = kernel.block[2];
    params.shared_bytes = kernel.shared_bytes;
    params.kernel_params = kernel.pointers.empty() ? nullptr : kernel.pointers.data();
    params.extra = nullptr;
    if (version > 1) {
        params.kern = nullptr;
        params.ctx = kernel.function->context;
    }
}

Work copy_work(DevicePointer to, const void* from_host, DevicePointer from_device, void* to_host, std::size_t bytes) {
    Work work;
    work.type = NodeType::memcpy;
    work.copy.src_memory_type = from_host != nullptr ? memory_host : memory_device;
    work.copy.src_host = from_host;
    work.copy.src_device = from_device;
    work.copy.dst_memory_type = to_host != nullptr ? memory_host : memory_device;
    work.copy.dst_host = to_host;
    work.copy.dst_device = to;
    work.copy.width_bytes = bytes;
    work.copy.height = 1;
    work.copy.depth = 1;
    return work;
}

/// plumb_stamp and plumb_stamp_advance: kernels of one thread cost alike.
bool is_stamp(const Work& work) {
    return work.type == NodeType::kernel && work.kernel.function->name.rfind("plumb_stamp", 0) == 0;
}

std::int64_t duration_of(const Work& work, bool replayed) {
    const Config& config = gpu().config;
    const auto moved = [&config](std::size_t bytes) {
        return config.copy_ns +
               static_cast<std::int64_t>(bytes) * 1'000 / std::max<std::int64_t>(config.copy_bytes_per_us, 1);
    };
    switch (work.type) {
    case NodeType::kernel: {
        const std::int64_t away = time_behind_the_bus(work.kernel);
        if (is_stamp(work)) {
            return config.stamp_node_ns + away;
        }
        const auto model = gpu().kernels.find(work.kernel.function->name);
        if (model != gpu().kernels.end() && model->second.min_ns >= 0) {
            return draw(model->second.min_ns, model->second.max_ns) + away;
        }
        return draw(config.kernel_min_ns, config.kernel_max_ns) + away;
    }
    case NodeType::memcpy:
        return moved(work.copy.width_bytes);
    case NodeType::memset:
        return moved(work.memset.width * work.memset.element_size);
    case NodeType::batch_mem_op:
        return config.copy_ns;
    case NodeType::host:
        return config.host_function_ns;
    case NodeType::event_record:
        return replayed ? config.event_node_ns : config.event_ns;
    default:
        return 0;
    }
}

const char* name_of(const Work& work) {
    switch (work.type) {
    case NodeType::kernel:
        return intern(work.kernel.function->name);
    case NodeType::memcpy:
        if (work.copy.src_memory_type == memory_host) {
            return "copy_h2d";
        }
        return work.copy.dst_memory_type == memory_host ? "copy_d2h" : "copy_d2d";
    case NodeType::memset:
        return "memset";
    case NodeType::batch_mem_op:
        return "write_value";
    case NodeType::host:
        return "host_function";
    default:
        return "event";
    }
}

OpKind kind_of(const Work& work) {
    switch (work.type) {
    case NodeType::memcpy:
        return OpKind::copy;
    case NodeType::memset:
    case NodeType::batch_mem_op:
        return OpKind::memset;
    case NodeType::host:
        return OpKind::host_function;
    case NodeType::event_record:
        return OpKind::event_node;
    default:
        return OpKind::kernel;
    }
}

void note_geometry(const Work& work, Operation& operation) {
    if (work.type != NodeType::kernel) {
        return;
    }
    std::copy_n(work.kernel.grid, 3, operation.grid);
    std::copy_n(work.kernel.block, 3, operation.block);
    operation.priority = work.kernel.priority;
}

bool has_effect(const Work& work) {
    if (work.type != NodeType::kernel) {
        return kind_of(work) == OpKind::copy || kind_of(work) == OpKind::memset || work.type == NodeType::host;
    }
    const auto model = gpu().kernels.find(work.kernel.function->name);
    return model != gpu().kernels.end() && model->second.function != nullptr;
}

void carry_out(const Work& work, int device, std::int64_t start_ns, std::int64_t end_ns) {
    switch (work.type) {
    case NodeType::kernel:
        carry_out_kernel(work.kernel, device, start_ns, end_ns);
        break;
    case NodeType::memcpy:
        carry_out_copy(work.copy);
        break;
    case NodeType::memset:
        carry_out_memset(work.memset);
        break;
    case NodeType::batch_mem_op:
        carry_out_writes(work.writes);
        break;
    case NodeType::host:
        work.host.fn(work.host.user);
        break;
    default:
        break;
    }
}

} // namespace plumb::vgpu
