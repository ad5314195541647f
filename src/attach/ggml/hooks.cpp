// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/hooks.hpp"
#include "attach/ggml/engine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "attach/attachment.hpp"
#include "attach/cudart/hooks.hpp"
#include "attach/wiring.hpp"
#include "plumb/cuda.hpp"

namespace plumb::attach::ggml {
namespace {

constexpr std::size_t most_engines = 4; // copies of ggml in one process

/// Found by the address of one of its functions. Written under Engines::looks_, before any slot leads to its hooks.
struct EnginePlace {
    const void* key = nullptr;
    GgmlEngine* engine = nullptr;
};
std::array<EnginePlace, most_engines> places;

template <class Function>
Function original_of(const GgmlEngine& engine, plumb::attach::ggml::Function which) {
    return reinterpret_cast<Function>(engine.originals[static_cast<std::size_t>(which)]);
}

/// One set of functions for each copy: a slot cannot say whose it is.
template <std::size_t Index>
struct Hooks {
    static GgmlEngine& engine() { return *places[Index].engine; }

    // Later releases have more parameters; all of them come in registers, which are handed on.
    static void* scheduler_new(void* a, void* b, long c, long d, long e, long f) {
        open_door("a new context");
        cudart::open_door("a new context");
        void* made = original_of<void* (*)(void*, void*, long, long, long, long)>(engine(), Function::scheduler_new)(
            a, b, c, d, e, f);
        engine().forget(static_cast<Scheduler*>(made));
        return made;
    }
    static void scheduler_free(Scheduler* scheduler) {
        engine().forget(scheduler);
        original_of<void (*)(Scheduler*)>(engine(), Function::scheduler_free)(scheduler);
    }
    static int graph_compute(Scheduler* scheduler, Graph* graph) {
        return engine().compute(original_of<int (*)(Scheduler*, Graph*)>(engine(), Function::graph_compute), scheduler,
                                graph);
    }
    static bool node(void* parameters, Tensor* tensor) {
        if (ThreadState* const state = computing_thread; state != nullptr) {
            note_node(*state, tensor, tensor);
        }
        return original_of<bool (*)(void*, Tensor*)>(engine(), Function::node)(parameters, tensor);
    }
    static void fused_norm(void* parameters, Tensor* norm, Tensor* product) {
        if (ThreadState* const state = computing_thread; state != nullptr) {
            note_node(*state, norm, product);
        }
        original_of<void (*)(void*, Tensor*, Tensor*)>(engine(), Function::fused_norm)(parameters, norm, product);
    }
    static void barrier(void* team) {
        const auto original = original_of<void (*)(void*)>(engine(), Function::barrier);
        ThreadState* const state = computing_thread;
        if (state == nullptr) {
            original(team);
            return;
        }
        const std::uint64_t begin = stamp_of(*state);
        original(team);
        note_wait(*state, begin, stamp_of(*state));
    }
    template <Function Which>
    static int method(llama_context* context, const Batch& batch) {
        return engine().step(context, batch, [&] {
            return original_of<int (*)(llama_context*, const Batch&)>(engine(), Which)(context, batch);
        });
    }
    static int llama_decode(llama_context* context, Batch batch) {
        return engine().step(context, batch, [&] {
            return original_of<int (*)(llama_context*, Batch)>(engine(), Function::llama_decode)(context, batch);
        });
    }
    static float* logits(llama_context* context) {
        engine().logits_asked(context);
        return original_of<float* (*)(llama_context*)>(engine(), Function::logits)(context);
    }
    static float* logits_ith(llama_context* context, std::int32_t index) {
        engine().logits_asked(context);
        return original_of<float* (*)(llama_context*, std::int32_t)>(engine(), Function::logits_ith)(context, index);
    }
    static void sampler_apply(void* sampler, void* candidates) {
        engine().sample(original_of<void (*)(void*, void*)>(engine(), Function::sampler_apply), sampler, candidates);
    }
    static bool device_node(const Tensor* tensor) {
        if (ThreadState* const state = computing_thread; state != nullptr) {
            GgmlEngine::device_node(*state, tensor);
        }
        return original_of<bool (*)(const Tensor*)>(engine(), Function::device_node)(tensor);
    }
    static void on_stream(CUstream_st* stream) {
        if (const ThreadState* const state = computing_thread; state != nullptr && state->device_waits) {
            (void)on_device(cuda(stream));
        }
    }
    struct Dimensions { // dim3
        unsigned x, y, z;
    };
    struct LaunchConfig { // cudaLaunchConfig_t, its beginning
        Dimensions grid, block;
        std::size_t shared_bytes;
        CUstream_st* stream;
    };
    static int launch_configured(Dimensions grid, Dimensions block, std::size_t shared_bytes, CUstream_st* stream) {
        on_stream(stream);
        return original_of<int (*)(Dimensions, Dimensions, std::size_t, CUstream_st*)>(
            engine(), Function::device_launch_configured)(grid, block, shared_bytes, stream);
    }
    template <Function Which>
    static int launch(const void* kernel, Dimensions grid, Dimensions block, void** parameters,
                      std::size_t shared_bytes, CUstream_st* stream) {
        on_stream(stream);
        return original_of<int (*)(const void*, Dimensions, Dimensions, void**, std::size_t, CUstream_st*)>(
            engine(), Which)(kernel, grid, block, parameters, shared_bytes, stream);
    }
    static int launch_extended(const LaunchConfig* config, const void* kernel, void** parameters) {
        on_stream(config->stream);
        return original_of<int (*)(const LaunchConfig*, const void*, void**)>(
            engine(), Function::device_launch_extended)(config, kernel, parameters);
    }
    static int copy(void* to, const void* from, std::size_t bytes, int kind, CUstream_st* stream) {
        on_stream(stream);
        return original_of<int (*)(void*, const void*, std::size_t, int, CUstream_st*)>(
            engine(), Function::device_copy)(to, from, bytes, kind, stream);
    }
    static int fill(void* to, int value, std::size_t bytes, CUstream_st* stream) {
        on_stream(stream);
        return original_of<int (*)(void*, int, std::size_t, CUstream_st*)>(engine(), Function::device_fill)(
            to, value, bytes, stream);
    }
    static int product(void* handle, CUstream_st* stream) {
        on_stream(stream);
        return original_of<int (*)(void*, CUstream_st*)>(engine(), Function::device_product)(handle, stream);
    }

    static constexpr std::array<void*, functions> all() {
        return {reinterpret_cast<void*>(&scheduler_new),
                reinterpret_cast<void*>(&scheduler_free),
                reinterpret_cast<void*>(&graph_compute),
                reinterpret_cast<void*>(&node),
                reinterpret_cast<void*>(&fused_norm),
                reinterpret_cast<void*>(&barrier),
                reinterpret_cast<void*>(&method<Function::decode>),
                reinterpret_cast<void*>(&method<Function::decode_before_2025_08>),
                reinterpret_cast<void*>(&method<Function::encode>),
                reinterpret_cast<void*>(&llama_decode),
                reinterpret_cast<void*>(&logits),
                reinterpret_cast<void*>(&logits_ith),
                reinterpret_cast<void*>(&sampler_apply),
                reinterpret_cast<void*>(&device_node),
                reinterpret_cast<void*>(&launch_configured),
                reinterpret_cast<void*>(&launch<Function::device_launch>),
                reinterpret_cast<void*>(&launch_extended),
                reinterpret_cast<void*>(&launch<Function::device_launch_cooperative>),
                reinterpret_cast<void*>(&copy),
                reinterpret_cast<void*>(&fill),
                reinterpret_cast<void*>(&product)};
    }
};

std::array<std::array<void*, functions>, most_engines> all_hooks() {
    return []<std::size_t... Index>(std::index_sequence<Index...>) {
        return std::array{Hooks<Index>::all()...};
    }(std::make_index_sequence<most_engines>{});
}

class Engines {
  public:
    void look(const char* door);

  private:
    std::size_t place_of(const Pinned& library, const void* key);
    void tell_what_was_met(const char* door);

    LookLock looks_;
    std::uint64_t loads_ = 0;
    bool told_[most_engines] = {};
};

/// Made with the first engine.
EngineHead& head() {
    static auto* instance = new EngineHead(profiler());
    return *instance;
}

/// Of an engine that was not met before the profiler is made, and the engine.
std::size_t Engines::place_of(const Pinned& library, const void* key) {
    for (std::size_t i = 0; i < most_engines; ++i) {
        if (places[i].key == key) {
            return places[i].engine != nullptr ? i : no_copy;
        }
        if (places[i].key != nullptr) {
            continue;
        }
        places[i].key = key;
        if (Result<GgmlApi> api = GgmlApi::find(library); !api.ok()) {
            say(api.error().message + ": this engine is not profiled");
            return no_copy;
        } else {
            places[i].engine = new GgmlEngine(*api, version_of(library), profiler(),
                                              head()); // slots lead to it as long as the process lives
            return i;
        }
    }
    say("more than four copies of ggml are in this process: the fifth is not profiled");
    return no_copy;
}

void Engines::tell_what_was_met(const char* door) {
    for (std::size_t i = 0; i < most_engines; ++i) {
        GgmlEngine* engine = places[i].engine;
        const auto leads = [engine](Function which) {
            return engine->originals[static_cast<std::size_t>(which)] != nullptr;
        };
        if (engine == nullptr || told_[i] || !leads(Function::graph_compute)) {
            continue;
        }
        told_[i] = true;
        tell("engine", engine->version() + "\t" + door);
        if (!engine->has_steps()) {
            say("ggml was met, but no llama_decode that is called through a slot: each graph is taken for a step, its tokens "
                "are the rows it takes from the table of embeddings, and the length of the cache is not known");
        }
        if (!leads(Function::node)) {
            say("ggml was met, but not the slot through which it computes each node "
                "(ggml_cpu_extra_compute_forward): there are steps, and no bricks");
        }
    }
}

void Engines::look(const char* door) {
    const std::unique_lock lock = looks_.take();
    const std::uint64_t loads = loads_so_far();
    if (!lock.owns_lock() || loads == loads_) {
        return;
    }
    loads_ = loads;
    const std::vector<Pinned> libraries = pin_libraries_with(function_symbols);
    static constexpr const char* of_a_device[] = {"cudaGraphLaunch", "vkGetInstanceProcAddr", "clEnqueueNDRangeKernel"};
    const std::vector<Pinned> backends = pin_libraries_with(of_a_device);
    std::vector<Caller> callers(libraries.size());
    for (std::size_t i = 0; i < libraries.size(); ++i) {
        callers[i].found.resize(functions);
        if (const void* key = find_symbol(libraries[i], "ggml_get_name"); key != nullptr) {
            callers[i].copy = place_of(libraries[i], key);
            if (callers[i].copy != no_copy) {
                places[callers[i].copy].engine->learn(libraries[i]);
            }
            for (std::size_t k = 0; k < functions; ++k) {
                callers[i].found[k] = find_symbol(libraries[i], function_symbols[k]);
            }
            if (!takes_batch(libraries[i])) { // by value: one of another size would lose its end
                callers[i].found[static_cast<std::size_t>(Function::llama_decode)] = nullptr;
            }
            // Others ask it too: of a graph that is being made, or on several threads.
            if (std::none_of(backends.begin(), backends.end(),
                             [&](const Pinned& backend) { return backend.base == libraries[i].base; })) {
                std::fill(callers[i].found.begin() + static_cast<std::size_t>(Function::device_node),
                          callers[i].found.end(), nullptr);
            }
        }
    }
    static const auto hooks = all_hooks();
    const SlotFamily family{function_symbols, "the engine's",
                            [](std::size_t copy, std::size_t symbol) { return hooks[copy][symbol]; },
                            [](std::size_t copy, std::size_t symbol) -> void*& {
                                return places[copy].engine->originals[symbol];
                            }};
    wire(family, libraries, callers);
    tell_what_was_met(door);
}

Engines& engines() {
    static auto* instance = new Engines; // threads may be in here until the process has ended
    return *instance;
}

/// What was seen and what was not, into the recording.
void count_nodes() {
    GgmlEngine::Counts counts;
    for (const EnginePlace& place : places) {
        if (place.engine != nullptr) {
            counts += place.engine->counts();
        }
    }
    std::vector<std::string> parts;
    if (counts.graphs != 0) {
        parts.push_back(std::to_string(counts.nodes) + " of " + std::to_string(counts.nodes) + " nodes seen in " +
                        std::to_string(counts.graphs) + " graphs");
    }
    if (counts.partly != 0) {
        parts.push_back(std::to_string(counts.seen_of_partly) + " of " + std::to_string(counts.nodes_of_partly) +
                        " nodes seen in " + std::to_string(counts.partly) + " graphs, which have no bricks");
    }
    if (counts.elsewhere != 0) {
        parts.push_back(std::to_string(counts.elsewhere) + " graphs computed on a device");
    }
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "" : "; ") + part;
    }
    if (!text.empty()) {
        profiler().describe("nodes", text);
    }
}

} // namespace

bool on_device(const Queue& queue) {
    ThreadState* const state = computing_thread;
    if (state == nullptr || !state->on_device) {
        return false;
    }
    if (state->device_waits && queue.timer != nullptr) {
        state->engine->device_call(*state, queue);
    }
    return true;
}

void leave_device() {
    if (ThreadState* const state = computing_thread; state != nullptr) {
        GgmlEngine::end_device_node(*state);
    }
}

void open_door(const char* door) {
    if (!wanted()) {
        return;
    }
    static const bool counted = [] {
        at_close(count_nodes);
        cudart::before_capture_ends(leave_device);
        return true;
    }();
    (void)counted;
    engines().look(door);
}

} // namespace plumb::attach::ggml
