// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver.hpp"

#include <array>
#include <string>
#include <utility>

#include "base/dynamic_library.hpp"
#include "plumb/cuda.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr int oldest_version = 11080;
constexpr unsigned long long legacy_streams = 1; // CU_GET_PROC_ADDRESS_LEGACY_STREAM

using FindV1 = CuResult(const char* symbol, void** address, int version, unsigned long long flags);
using FindV2 = CuResult(const char* symbol, void** address, int version, unsigned long long flags, int* found);

using base::Need;

/// Asks the driver for entry points: by the call that tells versions apart, whatever its own version.
class Finder {
  public:
    explicit Finder(const base::DynamicLibrary& library) {
        if (auto newer = library.function<FindV2>("cuGetProcAddress_v2")) {
            v2_ = *newer;
        } else if (auto older = library.function<FindV1>("cuGetProcAddress")) {
            v1_ = *older;
        }
    }
    [[nodiscard]] bool usable() const { return v1_ != nullptr || v2_ != nullptr; }

    void* find(const char* symbol, int version) {
        void* address = nullptr;
        int found = 0;
        last_ = v2_ != nullptr ? v2_(symbol, &address, version, legacy_streams, &found)
                               : v1_(symbol, &address, version, legacy_streams);
        return last_ == CuResult::success ? address : nullptr;
    }
    [[nodiscard]] CuResult last() const { return last_; }

  private:
    FindV1* v1_ = nullptr;
    FindV2* v2_ = nullptr;
    CuResult last_ = CuResult::success;
};

std::string words_of(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

Error stub_error(const std::string& library) {
    return {ErrorCode::unavailable, library + " is the stub that links programs, not a driver; take its folder out of "
                                              "the library path and install the NVIDIA driver"};
}

Error too_old(const std::string& what) {
    return {ErrorCode::unavailable, "the NVIDIA driver is too old (" + what + "); install one for CUDA " +
                                        words_of(oldest_version) + " or later"};
}

/// A call whose signature changed is there in one of its forms at least.
const char* missing_pair(const Driver& driver) {
    const std::pair<bool, const char*> pairs[] = {
        {driver.event_elapsed_time_v12080 != nullptr || driver.event_elapsed_time_v2000 != nullptr,
         "cuEventElapsedTime"},
        {driver.stream_get_capture_info_v12030 != nullptr || driver.stream_get_capture_info_v11030 != nullptr,
         "cuStreamGetCaptureInfo"},
        {driver.graph_get_edges_v12030 != nullptr || driver.graph_get_edges_v10000 != nullptr, "cuGraphGetEdges"},
        {driver.graph_add_dependencies_v12030 != nullptr || driver.graph_add_dependencies_v10000 != nullptr,
         "cuGraphAddDependencies"},
        {driver.graph_remove_dependencies_v12030 != nullptr || driver.graph_remove_dependencies_v10000 != nullptr,
         "cuGraphRemoveDependencies"},
        {driver.graph_kernel_node_get_params != nullptr || driver.graph_kernel_node_get_params_v10000 != nullptr,
         "cuGraphKernelNodeGetParams"},
        {driver.graph_add_kernel_node != nullptr || driver.graph_add_kernel_node_v10000 != nullptr,
         "cuGraphAddKernelNode"},
        {driver.graph_exec_update_v12000 != nullptr || driver.graph_exec_update_v10020 != nullptr, "cuGraphExecUpdate"},
    };
    for (const auto& [there, symbol] : pairs) {
        if (!there) {
            return symbol;
        }
    }
    return nullptr;
}

Result<Driver> fill(const base::DynamicLibrary& library) {
    Finder finder(library);
    if (!finder.usable()) {
        return too_old("it has no cuGetProcAddress");
    }
    Driver driver;
    driver.driver_get_version =
        reinterpret_cast<decltype(driver.driver_get_version)>(finder.find("cuDriverGetVersion", 2020));
    if (driver.driver_get_version == nullptr) {
        return finder.last() == CuResult::stub_library ? stub_error(library.name())
                                                       : too_old("it has no cuDriverGetVersion");
    }
    if (const CuResult asked = driver.driver_get_version(&driver.version); asked != CuResult::success) {
        return asked == CuResult::stub_library
                   ? stub_error(library.name())
                   : Error{ErrorCode::unavailable, "the NVIDIA driver does not say its version (" +
                                                       std::to_string(static_cast<int>(asked)) +
                                                       "); reinstall it, and see that its kernel module is loaded"};
    }
    if (driver.version < oldest_version) {
        return too_old("it is for CUDA " + words_of(driver.version));
    }
    const char* missing = nullptr;
#define PLUMB_CUDA_FIND(member, symbol, since, need, parameters)                            \
    driver.member = reinterpret_cast<decltype(driver.member)>(finder.find(#symbol, since)); \
    if (driver.member == nullptr && Need::need == Need::required && missing == nullptr) {   \
        missing = #symbol;                                                                  \
    }
    PLUMB_CUDA_CALLS(PLUMB_CUDA_FIND)
#undef PLUMB_CUDA_FIND
    if (missing == nullptr) {
        missing = missing_pair(driver);
    }
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable, "the NVIDIA driver for CUDA " + words_of(driver.version) + " has no " +
                                                 missing +
                                                 "; reinstall it, or take another libcuda.so.1 out of the "
                                                 "library path"};
    }
    return driver;
}

Result<Driver> load(const std::vector<std::string>& names) {
    Result<base::DynamicLibrary> opened =
        base::DynamicLibrary::open(names, "install the NVIDIA driver to use CUDA queues");
    if (!opened) {
        return opened.error();
    }
    return fill(base::keep_for_good(std::move(*opened)));
}

} // namespace

const Result<Driver>& driver() {
    static const Result<Driver>& only = *new Result<Driver>(load({"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}));
    return only;
}

Result<Driver> load_driver(const char* library) { return load({library != nullptr ? library : ""}); }

CuResult Driver::elapsed(float* ms, Event begin, Event end) const noexcept {
    return event_elapsed_time_v12080 != nullptr ? event_elapsed_time_v12080(ms, begin, end)
                                                : event_elapsed_time_v2000(ms, begin, end);
}

CuResult Driver::context_of(Stream stream, Context* context) const noexcept {
    const CuResult asked = stream_get_ctx(stream, context);
    GreenContext green = nullptr;
    return asked == CuResult::not_supported && stream_get_ctx_v12050 != nullptr
               ? stream_get_ctx_v12050(stream, context, &green)
               : asked;
}

CuResult Driver::create_own_stream(Stream* stream) const noexcept {
    int least = 0, greatest = 0;
    if (stream_create_with_priority == nullptr ||
        ctx_get_stream_priority_range(&least, &greatest) != CuResult::success) {
        return stream_create(stream, stream_non_blocking);
    }
    return stream_create_with_priority(stream, stream_non_blocking, greatest);
}

CuResult Driver::capture_info(Stream stream, CaptureStatus* status, unsigned long long* id, Graph* graph,
                              const GraphNode** nodes, const EdgeData** edges, std::size_t* count) const noexcept {
    if (edges != nullptr) {
        *edges = nullptr;
    }
    return stream_get_capture_info_v12030 != nullptr
               ? stream_get_capture_info_v12030(stream, status, id, graph, nodes, edges, count)
               : stream_get_capture_info_v11030(stream, status, id, graph, nodes, count);
}

CuResult Driver::edges_of(Graph graph, GraphNode* from, GraphNode* to, EdgeData* edges,
                          std::size_t* count) const noexcept {
    if (graph_get_edges_v12030 != nullptr) {
        return graph_get_edges_v12030(graph, from, to, edges, count);
    }
    const CuResult result = graph_get_edges_v10000(graph, from, to, count);
    for (std::size_t i = 0; result == CuResult::success && edges != nullptr && from != nullptr && i < *count; ++i) {
        edges[i] = {};
    }
    return result;
}

CuResult Driver::add_edges(Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges,
                           std::size_t count) const noexcept {
    return graph_add_dependencies_v12030 != nullptr ? graph_add_dependencies_v12030(graph, from, to, edges, count)
                                                    : graph_add_dependencies_v10000(graph, from, to, count);
}

CuResult Driver::remove_edges(Graph graph, const GraphNode* from, const GraphNode* to, const EdgeData* edges,
                              std::size_t count) const noexcept {
    return graph_remove_dependencies_v12030 != nullptr ? graph_remove_dependencies_v12030(graph, from, to, edges, count)
                                                       : graph_remove_dependencies_v10000(graph, from, to, count);
}

CuResult Driver::kernel_params(GraphNode node, KernelNodeParams* params) const noexcept {
    *params = {}; // the older call leaves the last two members alone
    const auto call =
        graph_kernel_node_get_params != nullptr ? graph_kernel_node_get_params : graph_kernel_node_get_params_v10000;
    return call != nullptr ? call(node, params) : CuResult::not_supported;
}

CuResult Driver::add_kernel(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                            const KernelNodeParams* params) const noexcept {
    return graph_add_kernel_node != nullptr ? graph_add_kernel_node(node, graph, after, count, params)
                                            : graph_add_kernel_node_v10000(node, graph, after, count, params);
}

CuResult Driver::exec_update(GraphExec exec, Graph graph, ExecUpdateInfo* info) const noexcept {
    *info = {};
    return graph_exec_update_v12000 != nullptr
               ? graph_exec_update_v12000(exec, graph, info)
               : graph_exec_update_v10020(exec, graph, &info->error_node, &info->result);
}

// cuda.h says of these that the process has to end, or that the context cannot be used any more.
bool is_sticky(CuResult result) noexcept {
    switch (static_cast<int>(result)) {
    case 4:   // deinitialized: the process is ending
    case 214: // ECC_UNCORRECTABLE
    case 220: // NVLINK_UNCORRECTABLE
    case 226: // CONTAINED
    case 700: // ILLEGAL_ADDRESS
    case 702: // LAUNCH_TIMEOUT
    case 709: // CONTEXT_IS_DESTROYED
    case 710: // ASSERT
    case 714: // HARDWARE_STACK_ERROR
    case 715: // ILLEGAL_INSTRUCTION
    case 716: // MISALIGNED_ADDRESS
    case 717: // INVALID_ADDRESS_SPACE
    case 718: // INVALID_PC
    case 719: // LAUNCH_FAILED
        return true;
    default:
        return false;
    }
}

namespace {

std::vector<Capability> cuda_capabilities(const Driver& driver) {
    const auto since = [](bool there, const char* name, const char* reason) {
        return Capability{name, there, there ? "" : reason};
    };
    return {
        {"concurrent_queue", true, ""},
        {"graph_capture", true, ""},
        {"immediate_in_capture", false, "waiting is illegal while a stream is captured; scopes there are deferred"},
        since(driver.stream_get_id != nullptr, "stream_identity",
              "before CUDA 12.0 a stream handle that is given out anew looks like the old stream"),
        since(driver.stream_get_capture_info_v12030 != nullptr, "programmatic_edges",
              "before CUDA 12.3 scopes next to programmatic launches cannot be told apart in a capture"),
        {"true_busy_time", false, "events bound busy time from above; only kernel records give it"},
        {"hardware_counters", false, "this backend reads events only"},
    };
}

} // namespace

const Vendor cuda_vendor = {
    "CUDA",
    "cuda",
    "cuda_event",
    "cuda_graph_event",
    "cuda_graph_stamp",
    "check that nvidia-smi lists a device, and that CUDA_VISIBLE_DEVICES does not hide it",
    [](const char* call) { return call; },
    [](int version) { return "CUDA " + words_of(version); },
    cuda_capabilities,
    is_sticky,
    [](Stream stream) { return plumb::cuda(stream); },
    false, // doubts_event_nodes
    false, // small_negatives
    nullptr,
};

namespace {

ErrorCode code_of(CuResult result) {
    switch (result) {
    case CuResult::invalid_value:
    case CuResult::invalid_handle:
        return ErrorCode::invalid_argument;
    case CuResult::out_of_memory:
        return ErrorCode::out_of_memory;
    case CuResult::not_found:
        return ErrorCode::not_found;
    case CuResult::not_ready:
        return ErrorCode::pending;
    case CuResult::not_permitted:
        return ErrorCode::permission;
    case CuResult::not_initialized:
    case CuResult::deinitialized:
    case CuResult::stub_library:
    case CuResult::no_device:
    case CuResult::invalid_device:
    case CuResult::invalid_context:
    case CuResult::context_is_destroyed:
        return ErrorCode::unavailable;
    case CuResult::call_requires_newer_driver:
    case CuResult::not_supported:
    case CuResult::unsupported_ptx_version:
    case CuResult::jit_compiler_not_found:
    case CuResult::stream_capture_unsupported:
    case CuResult::stream_capture_implicit:
        return ErrorCode::unsupported;
    default:
        return ErrorCode::failed;
    }
}

} // namespace

Error error_of(const Driver& driver, CuResult result, const char* call, const std::string& advice) {
    const char* name = nullptr;
    if (driver.get_error_name == nullptr || driver.get_error_name(result, &name) != CuResult::success) {
        name = nullptr;
    }
    return {code_of(result), std::string(driver.vendor->symbol_of(call)) + ": " +
                                 (name != nullptr ? name : "an error without a name") + " (" +
                                 std::to_string(static_cast<int>(result)) + "); " + advice};
}

Result<std::string> device_name(const Driver& driver, Device device) {
    std::array<char, 256> name{};
    const int room = static_cast<int>(name.size()) - 1; // it stays terminated
    const CuResult asked = driver.device_get_name(name.data(), room, device);
    return asked == CuResult::success
               ? Result<std::string>(name.data())
               : Result<std::string>(
                     error_of(driver, asked, "cuDeviceGetName", "see that the vendor's own tools list the device"));
}

RelaxedCapture::RelaxedCapture(const Driver& driver) noexcept
    : driver_(driver), status_(driver.thread_exchange_capture_mode(&outer_)) {}

RelaxedCapture::~RelaxedCapture() {
    if (status_ == CuResult::success) {
        static_cast<void>(driver_.thread_exchange_capture_mode(&outer_));
    }
}

CurrentContext::CurrentContext(const Driver& driver, Context context) noexcept : driver_(driver) {
    Context now = nullptr;
    status_ = driver.ctx_get_current(&now);
    if (status_ == CuResult::success && now != context) {
        status_ = driver.ctx_push_current(context);
        pushed_ = status_ == CuResult::success;
    }
}

CurrentContext::~CurrentContext() {
    Context popped = nullptr;
    if (pushed_) {
        static_cast<void>(driver_.ctx_pop_current(&popped));
    }
}

} // namespace plumb::backends::cuda
