// SPDX-License-Identifier: Apache-2.0
#include "attach/cudart/hooks.hpp"

#include <array>
#include <atomic>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "attach/attachment.hpp"
#include "attach/cudart/graphs.hpp"
#include "attach/cupti/kernels.hpp"
#include "attach/wiring.hpp"
#include "plumb/api.hpp"

namespace plumb::attach::cudart {

namespace {

using Exec = CUgraphExec_st*;
using Stream = CUstream_st*;

// The names of libcudart, in groups of one hook each. Those that end in _ptsz are the same for programs whose default stream is one
// per thread.
constexpr const char* symbols[] = {
    "cudaStreamBeginCapture",
    "cudaStreamBeginCapture_ptsz",
    "cudaStreamEndCapture",
    "cudaStreamEndCapture_ptsz",
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphInstantiateWithParams",
    "cudaGraphInstantiateWithParams_ptsz",
    "cudaGraphLaunch",
    "cudaGraphLaunch_ptsz",
    "cudaGraphExecUpdate",
    "cudaGraphExecDestroy",
    // What changes an executable and cannot be read back.
    "cudaGraphExecKernelNodeSetParams",
    "cudaGraphExecMemcpyNodeSetParams",
    "cudaGraphExecMemcpyNodeSetParams1D",
    "cudaGraphExecMemcpyNodeSetParamsToSymbol",
    "cudaGraphExecMemcpyNodeSetParamsFromSymbol",
    "cudaGraphExecMemsetNodeSetParams",
    "cudaGraphExecHostNodeSetParams",
    "cudaGraphExecChildGraphNodeSetParams",
    "cudaGraphExecEventRecordNodeSetEvent",
    "cudaGraphExecEventWaitNodeSetEvent",
    "cudaGraphExecExternalSemaphoresSignalNodeSetParams",
    "cudaGraphExecExternalSemaphoresWaitNodeSetParams",
    "cudaGraphExecNodeSetParams",
    "cudaGraphNodeSetEnabled",
    // What changes a graph but not its shape, or gives its handle free.
    "cudaGraphKernelNodeSetParams",
    "cudaGraphKernelNodeSetAttribute",
    "cudaGraphKernelNodeCopyAttributes",
    "cudaGraphMemcpyNodeSetParams",
    "cudaGraphMemcpyNodeSetParams1D",
    "cudaGraphMemcpyNodeSetParamsToSymbol",
    "cudaGraphMemcpyNodeSetParamsFromSymbol",
    "cudaGraphMemsetNodeSetParams",
    "cudaGraphHostNodeSetParams",
    "cudaGraphEventRecordNodeSetEvent",
    "cudaGraphEventWaitNodeSetEvent",
    "cudaGraphExternalSemaphoresSignalNodeSetParams",
    "cudaGraphExternalSemaphoresWaitNodeSetParams",
    "cudaGraphNodeSetParams",
    "cudaGraphDestroy",
};
constexpr std::size_t functions = std::size(symbols);

constexpr std::size_t index_of(std::string_view name) {
    for (std::size_t i = 0; i < functions; ++i) {
        if (name == symbols[i]) {
            return i;
        }
    }
    return functions;
}
constexpr std::size_t first_of_executable = index_of("cudaGraphExecKernelNodeSetParams");
constexpr std::size_t first_of_graph = index_of("cudaGraphKernelNodeSetParams");

constexpr std::size_t most_copies = 4; // of libcudart in one process

/// Written before any slot leads to the hooks of that copy.
struct Copy {
    const void* key = nullptr; // its cudaGraphExecDestroy
    std::string name;
    std::array<void*, functions> originals{};
};
std::array<Copy, most_copies> copies;

std::atomic<AttachedGraphs*> known_graphs{nullptr};

/// Made by the first graph: a process that has none gets no recording.
AttachedGraphs& graphs(const std::string& library, const char* door);

std::atomic<const char*> came_by{""};
std::atomic<void (*)()> capture_ends{nullptr};

__thread Stream captured PLUMB_TLS_MODEL = nullptr;

/// One set of functions for each copy: a slot cannot say whose it is. Parameters beyond the first ones come in registers, or on the
/// stack of whoever calls, and are handed on whether they are there or not: releases of libcudart differ in them.
template <std::size_t Index>
struct CudartHooks {
    template <class Function>
    static Function original(std::size_t symbol) {
        return reinterpret_cast<Function>(copies[Index].originals[symbol]);
    }
    template <std::size_t Symbol>
    static int begin_capture(Stream stream, int mode) {
        open_door(came_by.load(std::memory_order_relaxed));
        const int result = original<int (*)(Stream, int)>(Symbol)(stream, mode);
        captured = result == 0 ? stream : captured;
        return result;
    }
    template <std::size_t Symbol>
    static int end_capture(Stream stream, CUgraph_st** graph) {
        if (const auto function = capture_ends.load(std::memory_order_acquire);
            function != nullptr && captured == stream) {
            function();
        }
        captured = nullptr;
        AttachedGraphs::a_graph_changed();
        return original<int (*)(Stream, CUgraph_st**)>(Symbol)(stream, graph);
    }
    template <std::size_t Symbol>
    static int instantiate(Exec* made, CUgraph_st* graph, long a, long b, long c) {
        const int result = original<int (*)(Exec*, CUgraph_st*, long, long, long)>(Symbol)(made, graph, a, b, c);
        if (result == 0 && made != nullptr) {
            graphs(copies[Index].name, came_by.load(std::memory_order_relaxed)).instantiated(*made, graph);
        }
        return result;
    }
    template <std::size_t Symbol>
    static int launch(Exec executable, Stream stream) {
        const auto plain = original<int (*)(Exec, Stream)>(Symbol);
        AttachedGraphs* const all = known_graphs.load(std::memory_order_acquire);
        if (all == nullptr) {
            return plain(executable, stream);
        }
        // The driver's own launch takes null for the legacy stream.
        static const auto per_thread = reinterpret_cast<Stream>(2);
        const bool is_per_thread = Symbol == index_of("cudaGraphLaunch_ptsz") && stream == nullptr;
        return all->launch(executable, is_per_thread ? per_thread : stream, plain);
    }
    static int update(Exec executable, CUgraph_st* graph, long a, long b) {
        const int result =
            original<int (*)(Exec, CUgraph_st*, long, long)>(index_of("cudaGraphExecUpdate"))(executable, graph, a, b);
        if (AttachedGraphs* const all = known_graphs.load(std::memory_order_acquire); result == 0 && all != nullptr) {
            all->updated(executable, graph);
        }
        return result;
    }
    static int destroy(Exec executable) {
        if (AttachedGraphs* const all = known_graphs.load(std::memory_order_acquire); all != nullptr) {
            all->destroyed(executable);
        }
        return original<int (*)(Exec)>(index_of("cudaGraphExecDestroy"))(executable);
    }
    template <std::size_t Symbol>
    static int change(Exec executable, long a, long b, long c, long d, long e, long f) {
        if (AttachedGraphs* const all = known_graphs.load(std::memory_order_acquire); all != nullptr) {
            all->changed(executable,
                         symbols[Symbol]); // before, and also where the call fails: a twin must never be older
        }
        return original<int (*)(Exec, long, long, long, long, long, long)>(Symbol)(executable, a, b, c, d, e, f);
    }

    template <std::size_t Symbol>
    static int change_graph(long a, long b, long c, long d, long e, long f) {
        AttachedGraphs::a_graph_changed();
        return original<int (*)(long, long, long, long, long, long)>(Symbol)(a, b, c, d, e, f);
    }

    template <std::size_t Symbol>
    static constexpr void* hook() {
        constexpr std::string_view name = symbols[Symbol];
        if constexpr (name.starts_with("cudaStreamBeginCapture")) {
            return reinterpret_cast<void*>(&begin_capture<Symbol>);
        } else if constexpr (name.starts_with("cudaStreamEndCapture")) {
            return reinterpret_cast<void*>(&end_capture<Symbol>);
        } else if constexpr (name.starts_with("cudaGraphInstantiate")) {
            return reinterpret_cast<void*>(&instantiate<Symbol>);
        } else if constexpr (name.starts_with("cudaGraphLaunch")) {
            return reinterpret_cast<void*>(&launch<Symbol>);
        } else if constexpr (name == "cudaGraphExecUpdate") {
            return reinterpret_cast<void*>(&update);
        } else if constexpr (name == "cudaGraphExecDestroy") {
            return reinterpret_cast<void*>(&destroy);
        } else if constexpr (Symbol >= first_of_graph) {
            return reinterpret_cast<void*>(&change_graph<Symbol>);
        } else {
            static_assert(Symbol >= first_of_executable);
            return reinterpret_cast<void*>(&change<Symbol>);
        }
    }
    static std::array<void*, functions> all() {
        return []<std::size_t... Symbol>(std::index_sequence<Symbol...>) {
            return std::array{hook<Symbol>()...};
        }(std::make_index_sequence<functions>{});
    }
};

std::array<std::array<void*, functions>, most_copies> all_hooks() {
    return []<std::size_t... Index>(std::index_sequence<Index...>) {
        return std::array{CudartHooks<Index>::all()...};
    }(std::make_index_sequence<most_copies>{});
}

/// What was met, into the recording.
void count_graphs() {
    const AttachedGraphs* const all = known_graphs.load(std::memory_order_acquire);
    const AttachedGraphs::Counts counts = all->counts();
    std::string text = "CUDA graphs: " + std::to_string(counts.instantiated) + " instantiated";
    if (counts.updated != 0) {
        text += ", " + std::to_string(counts.updated) + " updates in place";
    }
    text += cupti::traces_kernels() ? ", launched as they are" : ", " + std::to_string(counts.launched) + " launches";
    profiler().describe("graphs", text);
}

AttachedGraphs& graphs(const std::string& library, const char* door) {
    static AttachedGraphs* const made = [&] {
        auto* all = new AttachedGraphs(profiler()); // slots lead to it as long as the process lives
        at_close(count_graphs);
        tell("engine", "CUDA graphs, " + library + "\t" + door);
        known_graphs.store(all, std::memory_order_release);
        return all;
    }();
    return *made;
}

/// Of a library that calls libcudart's graphs; no_copy: it finds none.
std::size_t copy_of(const Pinned& library) {
    const void* const key = find_symbol(library, "cudaGraphExecDestroy");
    if (key == nullptr) {
        return no_copy;
    }
    for (std::size_t i = 0; i < most_copies; ++i) {
        if (copies[i].key == nullptr) {
            copies[i].key = key;
            copies[i].name = library_of(key);
        }
        if (copies[i].key == key) {
            return i;
        }
    }
    say("more than four copies of libcudart are in this process: the graphs of the fifth are not looked into");
    return no_copy;
}

void look() {
    static auto* const looks = new LookLock;
    static std::uint64_t known_loads = 0;
    const std::unique_lock lock = looks->take();
    const std::uint64_t loads = loads_so_far();
    if (!lock.owns_lock() || loads == known_loads) {
        return;
    }
    known_loads = loads;
    const std::vector<Pinned> libraries = pin_libraries_with(symbols);
    std::vector<Caller> callers(libraries.size());
    for (std::size_t i = 0; i < libraries.size(); ++i) {
        callers[i].copy = copy_of(libraries[i]);
        for (const char* const symbol : symbols) {
            callers[i].found.push_back(find_symbol(libraries[i], symbol));
        }
    }
    static const auto hooks = all_hooks();
    const SlotFamily family{symbols, "libcudart's",
                            [](std::size_t copy, std::size_t symbol) { return hooks[copy][symbol]; },
                            [](std::size_t copy, std::size_t symbol) -> void*& {
                                return copies[copy].originals[symbol];
                            }};
    wire(family, libraries, callers);
}

/// At the end of a process that used CUDA and showed us no graph: why.
struct AtEnd {
    ~AtEnd() {
        if (known_graphs.load(std::memory_order_acquire) != nullptr ||
            dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == nullptr || !wanted() || uses_queues() ||
            cupti::traces_kernels()) {
            return;
        }
        static constexpr const char* launches[] = {"cudaGraphLaunch", "cudaGraphLaunch_ptsz"};
        say(pin_libraries_with(launches).empty()
                ? "CUDA was met, and nothing that launches graphs of libcudart through a slot: libcudart is linked statically, or the "
                  "driver is called directly. CUDA graphs of this process are not looked into"
                : "CUDA was met, and no CUDA graph was instantiated: work outside of graphs is not recorded");
    }
};
AtEnd at_end;

} // namespace

void open_door(const char* door) {
    if (!wanted()) {
        return;
    }
    came_by.store(door, std::memory_order_relaxed);
    look();
}

CUstream_st* captured_stream() noexcept { return captured; }

void before_capture_ends(void (*function)()) noexcept { capture_ends.store(function, std::memory_order_release); }

} // namespace plumb::attach::cudart
