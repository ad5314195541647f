// SPDX-License-Identifier: Apache-2.0
#include "backends/hip/driver.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "backends/hip/hip_calls.hpp"
#include "base/dynamic_library.hpp"
#include "plumb/hip.hpp"

namespace plumb::backends::hip {
namespace {

using base::Need;
using cuda::Context;

/// The calls in HIP's own form. One HIP per process; a later load for a test replaces it.
struct OwnCalls {
#define PLUMB_HIP_MEMBER(member, cuda_name, symbol, need, result, parameters) result(*member) parameters = nullptr;
    PLUMB_HIP_OWN_CALLS(PLUMB_HIP_MEMBER)
#undef PLUMB_HIP_MEMBER
    CuResult (*get_device)(int* device) = nullptr;
    decltype(Driver::graph_node_get_type) node_type = nullptr;
    decltype(Driver::graph_create) graph_create = nullptr;
    decltype(Driver::graph_destroy) graph_destroy = nullptr;
    decltype(Driver::graph_add_empty_node) add_empty_node = nullptr;
    mutable std::atomic<int> empty_node{-1}; // its type's number, which tells of all others; -1: not asked yet
    std::vector<GraphCall> graph_calls;
    const OwnCalls* before = nullptr; // of an earlier load: its driver may still be used
};
std::atomic<const OwnCalls*> own_calls{nullptr};

const OwnCalls& own() { return *own_calls.load(std::memory_order_acquire); }

// --- CUDA's form over HIP's: a context is one more than the number of its device ---

Context context_of(int device) { return reinterpret_cast<Context>(static_cast<std::uintptr_t>(device) + 1); }
int device_of(Context context) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 1); }

CuResult get_error_name(CuResult error, const char** name) {
    *name = own().error_name(error);
    return *name != nullptr ? CuResult::success : CuResult::invalid_value;
}

CuResult primary_ctx_retain(Context* context, cuda::Device device) {
    *context = context_of(device);
    return CuResult::success;
}

CuResult primary_ctx_release(cuda::Device) { return CuResult::success; }

CuResult ctx_get_current(Context* context) {
    int device = 0;
    const CuResult asked = own().get_device(&device);
    *context = asked == CuResult::success ? context_of(device) : nullptr;
    return asked;
}

/// The devices that were current before, of this thread; guards nest a few deep at most.
struct Before {
    std::array<int, 16> devices{};
    std::size_t count = 0;
};
// Plain, so that a thread's first touch calls nothing.
#if defined(__GNUC__)
__thread Before before PLUMB_TLS_MODEL;
#else
thread_local Before before;
#endif

CuResult ctx_push_current(Context context) {
    int now = 0;
    CuResult done = before.count < before.devices.size() ? own().get_device(&now) : CuResult::invalid_context;
    if (done == CuResult::success) {
        done = own().set_device(device_of(context));
    }
    if (done == CuResult::success) {
        before.devices[before.count++] = now;
    }
    return done;
}

CuResult ctx_pop_current(Context*) {
    return before.count == 0 ? CuResult::invalid_context : own().set_device(before.devices[--before.count]);
}

CuResult stream_get_ctx(Stream stream, Context* context) {
    if (own().stream_get_device == nullptr) {
        return ctx_get_current(context); // a stream is given on the thread that works on its device
    }
    int device = 0;
    const CuResult asked = own().stream_get_device(stream, &device);
    *context = asked == CuResult::success ? context_of(device) : nullptr;
    return asked;
}

// --- Types of nodes: HIP counted them from 1 at first, and now has CUDA's numbers for most ---

/// What this library calls the type of a node that is certainly empty.
Result<int> empty_node_type() {
    const OwnCalls& calls = own();
    const int known = calls.empty_node.load(std::memory_order_relaxed);
    if (known >= 0) {
        return known;
    }
    cuda::Graph graph = nullptr;
    cuda::GraphNode node = nullptr;
    cuda::NodeType type{};
    CuResult asked = calls.graph_create(&graph, 0);
    if (asked != CuResult::success) {
        return Error{};
    }
    asked = calls.add_empty_node(&node, graph, nullptr, 0);
    asked = asked == CuResult::success ? calls.node_type(node, &type) : asked;
    static_cast<void>(calls.graph_destroy(graph));
    if (asked != CuResult::success) {
        return Error{};
    }
    calls.empty_node.store(static_cast<int>(type), std::memory_order_relaxed);
    return static_cast<int>(type);
}

cuda::NodeType common_type(int type, int empty) {
    using cuda::NodeType;
    if (empty == static_cast<int>(NodeType::empty) + 1) { // HIP 5.2: 9 to 11 are copies of their own
        return type >= 9 && type <= 11 ? NodeType::memcpy : static_cast<NodeType>(type - 1);
    }
    constexpr int first_own = 12; // from and to a symbol, then batched memory operations
    return type == first_own || type == first_own + 1 ? NodeType::memcpy
           : type == first_own + 2                    ? NodeType::batch_mem_op
           : type < first_own                         ? static_cast<NodeType>(type)
                                                      : static_cast<NodeType>(type + 1000); // none of CUDA's
}

CuResult graph_node_get_type(cuda::GraphNode node, cuda::NodeType* type) {
    const Result<int> empty = empty_node_type();
    if (!empty) {
        return CuResult::unknown;
    }
    const CuResult asked = own().node_type(node, type);
    if (asked == CuResult::success) {
        *type = common_type(static_cast<int>(*type), *empty);
    }
    return asked;
}

// --- Loading ---

constexpr const char* install_advice = "install ROCm's HIP runtime (libamdhip64) to use HIP queues";

bool is_no_device(CuResult result) { return result == CuResult::no_device || result == CuResult::invalid_device; }

/// Fills the table by names; says which required one is missing.
const char* find_calls(const base::DynamicLibrary& library, Driver& driver, OwnCalls& own) {
    const char* missing = nullptr;
    const auto find = [&](const char* symbol, Need need) {
        const Result<void*> found = library.symbol(symbol);
        missing = !found && need == Need::required && missing == nullptr ? symbol : missing;
        return found ? *found : nullptr;
    };
#define PLUMB_HIP_FIND(member, cuda_name, symbol, need) \
    driver.member = reinterpret_cast<decltype(driver.member)>(find(#symbol, Need::need));
    PLUMB_HIP_CALLS(PLUMB_HIP_FIND)
#undef PLUMB_HIP_FIND
#define PLUMB_HIP_FIND_OWN(member, cuda_name, symbol, need, result, parameters) \
    own.member = reinterpret_cast<decltype(own.member)>(find(#symbol, Need::need));
    PLUMB_HIP_OWN_CALLS(PLUMB_HIP_FIND_OWN)
#undef PLUMB_HIP_FIND_OWN
#define PLUMB_HIP_FIND_GRAPH(capability, symbol) \
    own.graph_calls.push_back({#capability, #symbol, find(#symbol, Need::optional) != nullptr});
    PLUMB_HIP_GRAPH_CALLS(PLUMB_HIP_FIND_GRAPH)
#undef PLUMB_HIP_FIND_GRAPH
    const char* no_probes = nullptr;
#define PLUMB_HIP_FIND_PROBE(member, cuda_name, symbol)                                       \
    driver.member = reinterpret_cast<decltype(driver.member)>(find(#symbol, Need::optional)); \
    no_probes = driver.member == nullptr && no_probes == nullptr ? #symbol : no_probes;
    PLUMB_HIP_PROBE_CALLS(PLUMB_HIP_FIND_PROBE)
#undef PLUMB_HIP_FIND_PROBE
    if (no_probes != nullptr) {
        driver.no_graphs = library.name() + " has no " + no_probes +
                           ", which graph probes need; install HIP 5.2 or later, or time these steps without a graph";
    }
    own.get_device = driver.ctx_get_device;
    own.node_type = driver.graph_node_get_type;
    own.graph_create = driver.graph_create;
    own.graph_destroy = driver.graph_destroy;
    own.add_empty_node = driver.graph_add_empty_node;
    return missing;
}

void put_forms(Driver& driver) {
    driver.get_error_name = get_error_name;
    driver.primary_ctx_retain = primary_ctx_retain;
    driver.primary_ctx_release = primary_ctx_release;
    driver.ctx_get_current = ctx_get_current;
    driver.ctx_push_current = ctx_push_current;
    driver.ctx_pop_current = ctx_pop_current;
    driver.stream_get_ctx = stream_get_ctx;
    driver.graph_node_get_type = graph_node_get_type;
}

// HIP_VERSION: major * 10'000'000 + minor * 100'000 + a build number. Questions break captures until 7.2.1, but a build
// number does not tell 7.2.0 from 7.2.1: captures are spared on every 7.2. From 7.0 HIP looks into a stream before it knows
// whether there still is one.
constexpr int questions_are_harmless = 70'300'000;
constexpr int dead_streams_crash = 70'000'000;

constexpr int oldest_version = 50'200'000;

Result<Driver> fill(const base::DynamicLibrary& library) {
    Driver driver;
    driver.vendor = &hip_vendor;
    auto own = std::make_unique<OwnCalls>();
    if (const char* missing = find_calls(library, driver, *own); missing != nullptr) {
        return Error{ErrorCode::unavailable, library.name() + " has no " + missing +
                                                 "; install HIP 5.2 or later, or take another libamdhip64 out of the "
                                                 "library path"};
    }
    put_forms(driver);
    own->before = own_calls.load(std::memory_order_relaxed);
    own_calls.store(own.release(), std::memory_order_release); // kept for good, as the library is
    // Asking for the version starts HIP, which fails like this where there is no device.
    if (const CuResult asked = driver.driver_get_version(&driver.version); asked != CuResult::success) {
        Error error = error_of(driver, asked, "cuDriverGetVersion",
                               is_no_device(asked) ? hip_vendor.no_device_advice : "reinstall ROCm's HIP runtime");
        error.code = ErrorCode::unavailable;
        return error;
    }
    if (driver.version < oldest_version) {
        return Error{ErrorCode::unavailable, library.name() + " is " + hip_vendor.version_words(driver.version) +
                                                 ", which is too old; install HIP 5.2 or later"};
    }
    driver.query_breaks_captures = driver.version < questions_are_harmless;
    driver.bears_dead_streams = driver.version < dead_streams_crash;
    return driver;
}

Result<Driver> load(const std::vector<std::string>& names) {
    Result<base::DynamicLibrary> opened = base::DynamicLibrary::open(names, install_advice);
    return opened ? fill(base::keep_for_good(std::move(*opened))) : Result<Driver>(opened.error());
}

const char* symbol_of(const char* call) {
    static constexpr std::pair<const char*, const char*> names[] = {
#define PLUMB_HIP_NAME(member, cuda_name, symbol, ...) {#cuda_name, #symbol},
        PLUMB_HIP_CALLS(PLUMB_HIP_NAME) PLUMB_HIP_OWN_CALLS(PLUMB_HIP_NAME) PLUMB_HIP_PROBE_CALLS(PLUMB_HIP_NAME)
#undef PLUMB_HIP_NAME
    };
    for (const auto& [known, symbol] : names) {
        if (std::strcmp(call, known) == 0) {
            return symbol;
        }
    }
    return call;
}

std::string version_words(int version) {
    return "HIP " + std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100) + "." +
           std::to_string(version % 100'000);
}

// HIP says "context is destroyed" (709) of a single stream that is gone.
bool is_sticky(CuResult result) { return result != CuResult::context_is_destroyed && cuda::is_sticky(result); }

} // namespace

const cuda::Vendor hip_vendor = {
    "HIP",
    "hip",
    "hip_event",
    "hip_graph_event",
    nullptr,
    "check that rocminfo lists a GPU and that this user may open /dev/kfd, and that neither HIP_VISIBLE_DEVICES nor "
    "ROCR_VISIBLE_DEVICES hides it",
    symbol_of,
    version_words,
    capabilities_of,
    is_sticky,
    [](Stream stream) { return plumb::hip(stream); },
    true, // doubts_event_nodes
    true, // small_negatives
    "our kernels are PTX, which HIP devices do not run, so their peaks are not measured; hold their bricks against the "
    "vendor's figures",
};

const Result<Driver>& driver() {
    static const Result<Driver>& only =
        *new Result<Driver>(load({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}));
    return only;
}

Result<Driver> load_driver(const char* library) { return load({library != nullptr ? library : ""}); }

std::vector<GraphCall> graph_calls() {
    const OwnCalls* loaded = own_calls.load(std::memory_order_acquire);
    return loaded != nullptr ? loaded->graph_calls : std::vector<GraphCall>();
}

} // namespace plumb::backends::hip
