// SPDX-License-Identifier: Apache-2.0
// One piece of work, whether it is enqueued in a stream or is the node of a graph: a kernel, a copy, … with everything
// that it needs copied in. Plain data; the same for both so that eager and captured work mean the same.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "virtual_gpu/control.hpp"
#include "virtual_gpu/engine_calls.hpp"

namespace plumb::vgpu {

struct GraphObject;

struct FunctionObject {
    std::string name;
    Function handle = nullptr;
    Module module = nullptr;
    Context context = nullptr; // of the module: where the kernel runs, also as a node
    int device = 0;
    bool loaded = false; // used before
    bool from_ptx = false;
    std::vector<std::size_t> ptx_param_bytes;
};

struct KernelWork {
    std::shared_ptr<FunctionObject> function;
    unsigned grid[3] = {1, 1, 1};
    unsigned block[3] = {1, 1, 1};
    unsigned shared_bytes = 0;
    int priority = 0;                 // lower comes first
    bool device_updatable = false;    // a kernel may change its parameters
    std::vector<std::size_t> offsets; // of each parameter in `storage`
    std::vector<std::size_t> bytes;
    std::vector<unsigned char> storage;
    std::vector<void*> pointers; // into `storage`: what the driver returns as kernelParams
    KernelWork() = default;
    KernelWork(const KernelWork& other) { *this = other; }
    KernelWork& operator=(const KernelWork& other);
};

struct Work {
    NodeType type = NodeType::empty;
    KernelWork kernel;
    Memcpy3d copy{};
    MemsetNodeParams memset{};
    HostNodeParams host{};
    Event event = nullptr;
    std::shared_ptr<GraphObject> child;
    std::vector<WriteValueOp> writes;
    DevicePointer address = 0; // of an allocation or a free
    std::size_t bytes = 0;
};

/// What set-params calls leave as it was.
void keep_attributes(Work& work, const Work& before);
/// Parameter sizes of a function: of its model, else of its PTX.
std::vector<std::size_t> param_bytes_of(const FunctionObject& function);
/// Copies parameters out of the caller's arrays. False: `params` and `extra` are not usable.
bool read_params(KernelWork& kernel, void** params, void** extra);
/// Reads the driver's node parameters; false where they are wrong. `version` 1 has no `kern`.
bool read_kernel_params(Work& work, const KernelNodeParams& params, int version);
void write_kernel_params(Work& work, KernelNodeParams& params, int version);

Work copy_work(DevicePointer to, const void* from_host, DevicePointer from_device, void* to_host, std::size_t bytes);

/// How long it keeps the device, drawn anew at each execution. `replayed`: as the node of a graph.
std::int64_t duration_of(const Work& work, bool replayed);
bool is_stamp(const Work& work);
/// "copy_h2d", a kernel's name, …; lives until reset().
const char* name_of(const Work& work);
OpKind kind_of(const Work& work);
void note_geometry(const Work& work, Operation& operation);
/// There is something to carry out: a kernel without a host function only takes time.
bool has_effect(const Work& work);
/// What it does to memory and host functions, at its end.
void carry_out(const Work& work, int device, std::int64_t start_ns, std::int64_t end_ns);

} // namespace plumb::vgpu
