// SPDX-License-Identifier: Apache-2.0
// A stand-in libcudart: what programs over the CUDA runtime call, led to the virtual GPU. The real one asks the driver for tables of its
// own that a stand-in cannot have. Its numbers of errors are the driver's, as in the real one. Kernels that were registered compute
// nothing: each folds its name, shape and parameters into one number, in the device's order, so that one that is missing, doubled,
// elsewhere or stale shows. Parameters that are addresses count as places in the program's own memory: that of others moves them.
// At the end VIRTUAL_CUDART_CHAIN names a file for that number, VIRTUAL_CUDART_TRUTH one for the kernels as the ledger has them.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fat_binary.hpp"
#include "virtual_gpu/engine_driver.hpp"

#define CUDART extern "C" __attribute__((visibility("default")))

namespace {

using namespace plumb::vgpu;

using Code = int; // cudaError_t

const EngineDriver& driver() {
    static const EngineDriver loaded = [] {
        EngineDriver found = load_engine_driver();
        if (found.init != nullptr) {
            found.init(0);
        }
        return found;
    }();
    return loaded;
}

thread_local Code last_error = 0;

/// As libcudart does before nearly each call: a thread without a context gets the device's own.
Code ready() {
    if (driver().init == nullptr) {
        return 35; // cudaErrorInsufficientDriver
    }
    thread_local bool is_ready = false;
    if (!is_ready) {
        Context context = nullptr;
        driver().ctx_get_current(&context);
        if (context == nullptr && driver().primary_ctx_retain(&context, 0) == CuResult::success) {
            driver().ctx_set_current(context);
        }
        is_ready = true;
    }
    return 0;
}

Code answer(CuResult result) {
    if (result != CuResult::success && result != CuResult::not_ready) {
        last_error = static_cast<Code>(result);
    }
    return static_cast<Code>(result);
}

template <class Call>
Code with_context(Call call) {
    const Code no_driver = ready();
    return no_driver != 0 ? no_driver : answer(call(driver()));
}

/// Kernels by the address of what stands for them on the host.
struct Registry {
    struct Kernel {
        std::string name;
        void** binary;
        Function function = nullptr;
    };
    struct Binary {
        const void* wrapper;
        Module module = nullptr;
    };
    std::mutex mutex;
    std::map<const void*, Kernel> kernels;
    std::deque<Binary> binaries; // one stays where it is
};
Registry& registry() {
    static auto* all = new Registry;
    return *all;
}

/// As the real one, a module is loaded when its first kernel is launched.
Function function_of(const void* stub) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.kernels.find(stub);
    if (found == all.kernels.end()) {
        return nullptr;
    }
    Registry::Kernel& kernel = found->second;
    if (kernel.function == nullptr) {
        auto& binary = *reinterpret_cast<Registry::Binary*>(kernel.binary);
        if (binary.module == nullptr) {
            const std::string ptx = ptx_of(binary.wrapper);
            driver().module_load_data(&binary.module, ptx.empty() ? "an image" : ptx.c_str());
        }
        driver().module_get_function(&kernel.function, binary.module, kernel.name.c_str());
    }
    return kernel.function;
}

struct Dimensions {
    unsigned x, y, z;
};
struct LaunchShape {
    Dimensions grid, block;
    std::size_t shared_bytes;
    void* stream;
};
thread_local LaunchShape pushed{};

Stream stream_of(void* stream) { return static_cast<Stream>(stream); }

bool on_device(const void* memory) { return (reinterpret_cast<std::uint64_t>(memory) >> 62U & 1U) != 0; }

CuResult copy(const EngineDriver& cu, void* to, const void* from, std::size_t bytes, Stream stream) {
    const auto device_to = reinterpret_cast<DevicePointer>(to);
    const auto device_from = reinterpret_cast<DevicePointer>(from);
    if (on_device(to) && on_device(from)) {
        return cu.memcpy_dtod_async(device_to, device_from, bytes, stream);
    }
    if (!on_device(to) && !on_device(from)) {
        std::memcpy(to, from, bytes);
        return CuResult::success;
    }
    return on_device(to) ? cu.memcpy_htod_async(device_to, from, bytes, stream)
                         : cu.memcpy_dtoh_async(to, device_from, bytes, stream);
}

std::uint64_t mixed(std::uint64_t state, std::uint64_t value) {
    state ^= value + 0x9e3779b97f4a7c15u + (state << 6U) + (state >> 2U);
    return state * 0xff51afd7ed558ccdU;
}

/// The program's own memory on the device, in the order in which it asked for it.
class Memory {
  public:
    void add(const void* begin, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        blocks_[reinterpret_cast<std::uint64_t>(begin)] = {bytes, ++count_};
    }
    void remove(const void* begin) {
        const std::lock_guard lock(mutex_);
        blocks_.erase(reinterpret_cast<std::uint64_t>(begin));
    }
    /// The same in every run of the program, where `word` is an address of its own memory; else `word`.
    std::uint64_t place(std::uint64_t word) {
        const std::lock_guard lock(mutex_);
        auto block = blocks_.upper_bound(word);
        if (block == blocks_.begin()) {
            return word;
        }
        --block;
        const std::uint64_t offset = word - block->first;
        return offset <= block->second.bytes ? mixed(block->second.number, offset) : word;
    }

  private:
    struct Block {
        std::size_t bytes;
        std::uint64_t number;
    };
    std::mutex mutex_;
    std::map<std::uint64_t, Block> blocks_;
    std::uint64_t count_ = 0;
};
Memory& memory_of_the_program() {
    static auto* memory = new Memory;
    return *memory;
}

/// `memory` is looked at after the call that made it.
Code kept(Code result, void* const& memory, std::size_t bytes) {
    if (result == 0) {
        memory_of_the_program().add(memory, bytes);
    }
    return result;
}

/// What the kernels folded; read and written where the virtual GPU runs them, one at a time.
struct Chain {
    std::uint64_t state = 1, kernels = 0, parameter_bytes = 0;

    void fold(const KernelRun& run) {
        for (const char letter : run.name) {
            state = mixed(state, static_cast<unsigned char>(letter));
        }
        for (int axis = 0; axis < 3; ++axis) {
            state = mixed(mixed(state, run.grid[axis]), run.block[axis]);
        }
        state = mixed(state, run.shared_bytes);
        for (std::size_t i = 0; i < run.params.size(); ++i) {
            fold(static_cast<const unsigned char*>(run.params[i]), run.param_bytes[i]);
        }
        ++kernels;
    }

  private:
    void fold(const unsigned char* parameter, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, parameter + at, std::min(sizeof word, bytes - at));
            state = mixed(state, memory_of_the_program().place(word));
        }
        parameter_bytes += bytes;
    }
};
Chain chain;

struct AtEnd {
    const pid_t process = getpid(); // a forked child has nothing to tell, and a copy of locks that nobody opens
    ~AtEnd() {
        if (getpid() != process) {
            return;
        }
        if (const char* path = std::getenv("VIRTUAL_CUDART_CHAIN"); path != nullptr) {
            run_dry();
            std::ofstream(path) << std::hex << chain.state << std::dec << ' ' << chain.kernels << ' '
                                << chain.parameter_bytes << '\n';
        }
        if (const char* path = std::getenv("VIRTUAL_CUDART_TRUTH"); path != nullptr) {
            run_dry();
            std::ofstream out(path);
            for (const Operation& row : operations()) {
                if (row.kind == OpKind::kernel) {
                    out << row.graph_id << '\t' << row.replay << '\t' << row.start_ns << '\t' << row.end_ns << '\t'
                        << row.name << '\n';
                }
            }
        }
    }
};
AtEnd at_end;

} // namespace

CUDART void** __cudaRegisterFatBinary(void* wrapper) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    return reinterpret_cast<void**>(&all.binaries.emplace_back(Registry::Binary{wrapper}));
}
CUDART void __cudaRegisterFatBinaryEnd(void**) {}
CUDART void __cudaUnregisterFatBinary(void**) {}
CUDART void __cudaRegisterFunction(void** binary, const char* stub, char*, const char* name, int, void*, void*, void*,
                                   void*, int*) {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.kernels[stub] = {name, binary};
    kernel(name, {{}, -1, -1, [](const KernelRun& run) {
                      chain.fold(run);
                  }});
}
CUDART void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
CUDART Code __cudaGetKernel(const void** made, const void* stub) {
    *made = stub;
    return 0;
}
CUDART unsigned __cudaPushCallConfiguration(Dimensions grid, Dimensions block, std::size_t shared_bytes, void* stream) {
    pushed = {grid, block, shared_bytes, stream};
    return 0;
}
CUDART Code __cudaPopCallConfiguration(Dimensions* grid, Dimensions* block, std::size_t* shared_bytes, void* stream) {
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *static_cast<void**>(stream) = pushed.stream;
    return 0;
}
CUDART Code cudaLaunchKernel(const void* stub, Dimensions grid, Dimensions block, void** parameters,
                             std::size_t shared_bytes, void* stream) {
    return with_context([&](const EngineDriver& cu) {
        const Function function = function_of(stub);
        return function == nullptr
                   ? CuResult::invalid_handle
                   : cu.launch_kernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                      static_cast<unsigned>(shared_bytes), stream_of(stream), parameters, nullptr);
    });
}

CUDART Code __cudaLaunchKernel(const void* stub, Dimensions grid, Dimensions block, void** parameters,
                               std::size_t shared_bytes, void* stream) {
    return cudaLaunchKernel(stub, grid, block, parameters, shared_bytes, stream);
}
CUDART Code cudaLaunchCooperativeKernel(const void* stub, Dimensions grid, Dimensions block, void** parameters,
                                        std::size_t shared_bytes, void* stream) {
    return cudaLaunchKernel(stub, grid, block, parameters, shared_bytes, stream);
}
CUDART Code cudaLaunchKernelExC(const LaunchShape* shape, const void* stub, void** parameters) {
    return cudaLaunchKernel(stub, shape->grid, shape->block, parameters, shape->shared_bytes, shape->stream);
}
CUDART Code cudaFuncSetAttribute(const void*, int, int) { return 0; }
CUDART Code cudaFuncGetAttributes(void* attributes, const void*) {
    struct Attributes { // cudaFuncAttributes, the part of it that is asked for
        std::size_t shared_bytes, constant_bytes, local_bytes;
        int max_threads, registers, ptx_version, binary_version;
    };
    std::memset(attributes, 0, 144);
    *static_cast<Attributes*>(attributes) = {0, 0, 0, 1'024, 64, 90, 90};
    return 0;
}
CUDART Code cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, std::size_t,
                                                                   unsigned) {
    *blocks = 2;
    return 0;
}

CUDART Code cudaGetDeviceCount(int* count) {
    return with_context([&](const EngineDriver& cu) { return cu.device_get_count(count); });
}
CUDART Code cudaGetDevice(int* device) {
    return with_context([&](const EngineDriver& cu) { return cu.ctx_get_device(device); });
}
CUDART Code cudaSetDevice(int device) { return device == 0 ? ready() : 101; } // cudaErrorInvalidDevice
CUDART Code cudaSetDeviceFlags(unsigned) { return 0; }
CUDART Code cudaDeviceGetAttribute(int* value, int attribute, int device) {
    return with_context([&](const EngineDriver& cu) { return cu.device_get_attribute(value, attribute, device); });
}
CUDART Code cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;
    return 0;
}
CUDART Code cudaDeviceEnablePeerAccess(int, unsigned) { return 801; } // cudaErrorNotSupported
CUDART Code cudaDeviceGetPCIBusId(char* text, int length, int) {
    std::strncpy(text, "0000:01:00.0", static_cast<std::size_t>(length));
    return 0;
}
CUDART Code cudaDeviceSynchronize() {
    return with_context([](const EngineDriver& cu) { return cu.ctx_synchronize(); });
}
/// cudaDeviceProp of CUDA 13.0: what an engine reads of it, at its place.
CUDART Code cudaGetDeviceProperties(char* properties, int device) {
    constexpr std::size_t whole = 1'008;
    const auto put = [properties](std::size_t at, auto value) {
        std::memcpy(properties + at, &value, sizeof value);
    };
    return with_context([&](const EngineDriver& cu) {
        std::memset(properties, 0, whole);
        std::size_t bytes = 0;
        int processors = 0;
        CuResult result = cu.device_get_name(properties, 256, device);
        result = result == CuResult::success ? cu.device_total_mem(&bytes, device) : result;
        result = result == CuResult::success ? cu.device_get_attribute(&processors, attribute_multiprocessors, device)
                                             : result;
        put(288, bytes);                   // totalGlobalMem
        put(296, std::size_t{48} << 10U);  // sharedMemPerBlock
        put(308, 32);                      // warpSize
        put(320, 1'024);                   // maxThreadsPerBlock
        put(360, 9);                       // major
        put(364, 0);                       // minor
        put(384, processors);              // multiProcessorCount
        put(604, 2'048);                   // maxThreadsPerMultiProcessor
        put(624, std::size_t{228} << 10U); // sharedMemPerMultiprocessor
        put(668, 1);                       // cooperativeLaunch
        put(672, std::size_t{227} << 10U); // sharedMemPerBlockOptin
        return result;
    });
}
CUDART const char* cudaGetErrorString(Code) { return "an error of the stand-in"; }

CUDART Code cudaGetLastError() { return std::exchange(last_error, 0); }
CUDART Code cudaPeekAtLastError() { return last_error; }

CUDART Code cudaMalloc(void** made, std::size_t bytes) {
    return kept(with_context([&](const EngineDriver& cu) {
                    return cu.mem_alloc(reinterpret_cast<DevicePointer*>(made), bytes);
                }),
                *made, bytes);
}
CUDART Code cudaFree(void* memory) {
    memory_of_the_program().remove(memory);
    return with_context([&](const EngineDriver& cu) { return cu.mem_free(reinterpret_cast<DevicePointer>(memory)); });
}
CUDART Code cudaMallocManaged(void**, std::size_t, unsigned) { return 801; }
CUDART Code cudaMallocHost(void** made, std::size_t bytes) {
    return kept(with_context([&](const EngineDriver& cu) { return cu.mem_host_alloc(made, bytes, 0); }), *made, bytes);
}
CUDART Code cudaHostAlloc(void** made, std::size_t bytes, unsigned flags) {
    return kept(with_context([&](const EngineDriver& cu) { return cu.mem_host_alloc(made, bytes, flags); }), *made,
                bytes);
}
CUDART Code cudaFreeHost(void* memory) {
    memory_of_the_program().remove(memory);
    return with_context([&](const EngineDriver& cu) { return cu.mem_free_host(memory); });
}
CUDART Code cudaHostGetDevicePointer(void** device, void* memory, unsigned) {
    return with_context([&](const EngineDriver& cu) {
        return cu.mem_host_get_device_pointer(reinterpret_cast<DevicePointer*>(device), memory, 0);
    });
}
CUDART Code cudaHostRegister(void*, std::size_t, unsigned) { return 801; }
CUDART Code cudaHostUnregister(void*) { return 801; }
CUDART Code cudaMemGetInfo(std::size_t* available, std::size_t* total) {
    return with_context([&](const EngineDriver& cu) { return cu.mem_get_info(available, total); });
}
CUDART Code cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* stream) {
    return with_context([&](const EngineDriver& cu) { return copy(cu, to, from, bytes, stream_of(stream)); });
}
CUDART Code cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
    return cudaMemcpyAsync(to, from, bytes, 4, stream);
}
CUDART Code cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
    const Code result = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return result != 0 ? result : with_context([](const EngineDriver& cu) { return cu.stream_synchronize(nullptr); });
}
CUDART Code cudaMemcpy2DAsync(char* to, std::size_t to_pitch, const char* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, int kind, void* stream) {
    Code result = 0;
    for (std::size_t row = 0; row < height && result == 0; ++row) {
        result = cudaMemcpyAsync(to + row * to_pitch, from + row * from_pitch, width, kind, stream);
    }
    return result;
}
CUDART Code cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
    return with_context([&](const EngineDriver& cu) {
        return cu.memset_d8_async(reinterpret_cast<DevicePointer>(to), static_cast<unsigned char>(value), bytes,
                                  stream_of(stream));
    });
}
CUDART Code cudaMemset(void* to, int value, std::size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }

CUDART Code cudaEventCreateWithFlags(void** made, unsigned flags) {
    return with_context([&](const EngineDriver& cu) { return cu.event_create(reinterpret_cast<Event*>(made), flags); });
}
CUDART Code cudaEventDestroy(void* event) {
    return with_context([&](const EngineDriver& cu) { return cu.event_destroy(static_cast<Event>(event)); });
}
CUDART Code cudaEventRecord(void* event, void* stream) {
    return with_context(
        [&](const EngineDriver& cu) { return cu.event_record(static_cast<Event>(event), stream_of(stream)); });
}
CUDART Code cudaEventSynchronize(void* event) {
    return with_context([&](const EngineDriver& cu) { return cu.event_synchronize(static_cast<Event>(event)); });
}
CUDART Code cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
    return with_context([&](const EngineDriver& cu) {
        return cu.stream_wait_event(stream_of(stream), static_cast<Event>(event), flags);
    });
}
CUDART Code cudaStreamIsCapturing(void* stream, int* status) {
    return with_context([&](const EngineDriver& cu) {
        return cu.stream_is_capturing(stream_of(stream), reinterpret_cast<CaptureStatus*>(status));
    });
}

CUDART Code cudaStreamCreateWithFlags(void** made, unsigned flags) {
    return with_context(
        [&](const EngineDriver& cu) { return cu.stream_create(reinterpret_cast<Stream*>(made), flags); });
}
CUDART Code cudaStreamDestroy(void* stream) {
    return with_context([&](const EngineDriver& cu) { return cu.stream_destroy(stream_of(stream)); });
}
CUDART Code cudaStreamSynchronize(void* stream) {
    return with_context([&](const EngineDriver& cu) { return cu.stream_synchronize(stream_of(stream)); });
}

CUDART Code cudaStreamBeginCapture(void* stream, int mode) {
    return with_context([&](const EngineDriver& cu) {
        return cu.stream_begin_capture(stream_of(stream), static_cast<CaptureMode>(mode));
    });
}
CUDART Code cudaStreamEndCapture(void* stream, void** graph) {
    return with_context([&](const EngineDriver& cu) {
        return cu.stream_end_capture(stream_of(stream), reinterpret_cast<Graph*>(graph));
    });
}
CUDART Code cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
    return with_context([&](const EngineDriver& cu) {
        return cu.graph_get_nodes(static_cast<Graph>(graph), reinterpret_cast<GraphNode*>(nodes), count);
    });
}
CUDART Code cudaGraphInstantiate(void** made, void* graph, unsigned long long flags) {
    return with_context([&](const EngineDriver& cu) {
        return cu.graph_instantiate(reinterpret_cast<GraphExec*>(made), static_cast<Graph>(graph), flags);
    });
}
CUDART Code cudaGraphInstantiateWithFlags(void** made, void* graph, unsigned long long flags) {
    return cudaGraphInstantiate(made, graph, flags);
}
CUDART Code cudaGraphLaunch(void* executable, void* stream) {
    return with_context(
        [&](const EngineDriver& cu) { return cu.graph_launch(static_cast<GraphExec>(executable), stream_of(stream)); });
}
CUDART Code cudaGraphLaunch_ptsz(void* executable, void* stream) {
    return cudaGraphLaunch(executable, stream != nullptr ? stream : reinterpret_cast<void*>(2));
}
CUDART Code cudaGraphExecUpdate(void* executable, void* graph, void* result) {
    return with_context([&](const EngineDriver& cu) {
        ExecUpdateInfo info{};
        const CuResult done =
            cu.graph_exec_update_v12000(static_cast<GraphExec>(executable), static_cast<Graph>(graph), &info);
        if (result != nullptr) {
            std::memcpy(result, &info, sizeof info);
        }
        return done;
    });
}
/// The runtime's params are the driver's, but for the first: a stub in place of a function.
CUDART Code cudaGraphExecKernelNodeSetParams(void* executable, void* node, const void* params) {
    return with_context([&](const EngineDriver& cu) {
        struct Runtime { // cudaKernelNodeParams
            const void* stub;
            Dimensions grid, block;
            unsigned shared_bytes;
            void** parameters;
            void** extra;
        };
        const auto& given = *static_cast<const Runtime*>(params);
        KernelNodeParams made{};
        made.func = function_of(given.stub);
        made.grid_x = given.grid.x;
        made.grid_y = given.grid.y;
        made.grid_z = given.grid.z;
        made.block_x = given.block.x;
        made.block_y = given.block.y;
        made.block_z = given.block.z;
        made.shared_bytes = given.shared_bytes;
        made.kernel_params = given.parameters;
        return cu.graph_exec_kernel_node_set_params(static_cast<GraphExec>(executable), static_cast<GraphNode>(node),
                                                    &made);
    });
}
CUDART Code cudaGraphExecDestroy(void* executable) {
    return with_context(
        [&](const EngineDriver& cu) { return cu.graph_exec_destroy(static_cast<GraphExec>(executable)); });
}
CUDART Code cudaGraphDestroy(void* graph) {
    return with_context([&](const EngineDriver& cu) { return cu.graph_destroy(static_cast<Graph>(graph)); });
}

// What an engine asks the driver itself for, and the virtual GPU does not have: memory by pages.
#define NOT_THERE(name) \
    CUDART int name() { return 801; }
NOT_THERE(cuMemAddressFree)
NOT_THERE(cuMemAddressReserve)
NOT_THERE(cuMemCreate)
NOT_THERE(cuMemGetAllocationGranularity)
NOT_THERE(cuMemMap)
NOT_THERE(cuMemRelease)
NOT_THERE(cuMemSetAccess)
NOT_THERE(cuMemUnmap)
