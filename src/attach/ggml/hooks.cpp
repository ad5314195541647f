// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/hooks.hpp"
#include "attach/ggml/engine.hpp"

#include <array>
#include <dlfcn.h>
#include <utility>

#include "attach/attachment.hpp"

namespace plumb::attach::ggml {
namespace {

constexpr std::size_t most_engines = 4; // copies of ggml in one process

/// Found by the address of one of its functions. Written under Engines::mutex, before any slot leads to its hooks.
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
        void* made = original_of<void* (*)(void*, void*, long, long, long, long)>(engine(), Function::scheduler_new)(
            a, b, c, d, e, f);
        engine().forget(static_cast<Scheduler*>(made));
        return made;
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
        const std::uint64_t begin = detail::read_ticks();
        original(team);
        note_wait(*state, begin, detail::read_ticks());
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

    static constexpr std::array<void*, functions> all() {
        return {reinterpret_cast<void*>(&scheduler_new),
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
                reinterpret_cast<void*>(&sampler_apply)};
    }
};

std::array<std::array<void*, functions>, most_engines> all_hooks() {
    return []<std::size_t... Index>(std::index_sequence<Index...>) {
        return std::array{Hooks<Index>::all()...};
    }(std::make_index_sequence<most_engines>{});
}

/// A library with slots, and where they shall lead.
struct Wired {
    std::size_t place = most_engines; // most_engines: no engine of ours
    std::array<void*, functions> found{};
};

class Engines {
  public:
    void look(const char* door);

  private:
    std::size_t place_of(const Pinned& library, const void* key);
    void wire(const std::vector<Pinned>& libraries, std::vector<Wired>& wired);
    void tell_what_was_met(const char* door);

    std::mutex mutex_;
    std::uint64_t loads_ = 0;
    bool told_[most_engines] = {};
};

/// Of an engine that was not met before the profiler is made, and the engine.
std::size_t Engines::place_of(const Pinned& library, const void* key) {
    for (std::size_t i = 0; i < most_engines; ++i) {
        if (places[i].key == key) {
            return places[i].engine != nullptr ? i : most_engines;
        }
        if (places[i].key != nullptr) {
            continue;
        }
        places[i].key = key;
        if (Result<GgmlApi> api = GgmlApi::find(library); !api.ok()) {
            say(api.error().message + ": this engine is not profiled");
            return most_engines;
        } else {
            places[i].engine =
                new GgmlEngine(*api, version_of(library), profiler()); // slots lead to it as long as the process lives
            return i;
        }
    }
    say("more than four copies of ggml are in this process: the fifth is not profiled");
    return most_engines;
}

void Engines::wire(const std::vector<Pinned>& libraries, std::vector<Wired>& wired) {
    static const auto hooks = all_hooks();
    std::vector<std::pair<const void*, std::size_t>> foreign;
    // Where the loader will lead a slot that was not called yet, if another tool comes before the engine. Asked here, since
    // nothing of the loader may be called below.
    std::array<void*, functions> before_engine{};
    for (std::size_t k = 0; k < functions; ++k) {
        void* const found = dlsym(RTLD_DEFAULT, function_symbols[k]);
        bool of_an_engine = false;
        for (std::size_t i = 0; i < libraries.size(); ++i) { // the program finds what the loader finds
            of_an_engine = of_an_engine || (!libraries[i].path.empty() && wired[i].found[k] == found);
        }
        before_engine[k] = found != nullptr && !is_ours(found) && !of_an_engine ? found : nullptr;
    }
    const auto target = [&](const Slot& slot) -> void* {
        const auto library = static_cast<std::size_t>(slot.library - libraries.data());
        Wired& to = wired[library];
        if (to.place == most_engines || to.found[slot.symbol] == nullptr) {
            return nullptr;
        }
        void* const hook = hooks[to.place][slot.symbol];
        void* const leads_to = reinterpret_cast<void*>(slot.leads_to);
        if (leads_to == hook) {
            return nullptr;
        }
        void* original = to.found[slot.symbol];
        void* const other = slot.unresolved ? before_engine[slot.symbol] : leads_to;
        if (leads_to != original && other != nullptr && other != original && !is_ours(other)) {
            foreign.emplace_back(other, slot.symbol);
            original = other; // another tool's: it is called in its turn
        }
        void*& known = places[to.place].engine->originals[slot.symbol];
        if (known != nullptr && known != original) {
            return nullptr; // two callers of one engine that lead to different places: the second stays as it is
        }
        known = original;
        return hook;
    };
    if (const std::size_t refused = redirect(libraries, function_symbols, target); refused != 0) {
        say("the system refused to redirect " + std::to_string(refused) +
            " of the engine's slots: bricks may be missing");
    }
    for (const auto& [address, symbol] : foreign) {
        say(std::string(function_symbols[symbol]) + " led to " + library_of(address) +
            " already: it is called as before, behind this profiler");
    }
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
    const std::lock_guard lock(mutex_);
    const std::uint64_t loads = loads_so_far();
    if (loads == loads_) {
        return;
    }
    loads_ = loads;
    const std::vector<Pinned> libraries = pin_libraries_with(function_symbols);
    std::vector<Wired> wired(libraries.size());
    for (std::size_t i = 0; i < libraries.size(); ++i) {
        if (const void* key = find_symbol(libraries[i], "ggml_get_name"); key != nullptr) {
            wired[i].place = place_of(libraries[i], key);
            if (wired[i].place != most_engines) {
                places[wired[i].place].engine->learn(libraries[i]);
            }
            for (std::size_t k = 0; k < functions; ++k) {
                wired[i].found[k] = find_symbol(libraries[i], function_symbols[k]);
            }
            if (!takes_batch(libraries[i])) { // by value: one of another size would lose its end
                wired[i].found[static_cast<std::size_t>(Function::llama_decode)] = nullptr;
            }
        }
    }
    wire(libraries, wired);
    tell_what_was_met(door);
}

Engines& engines() {
    static auto* instance = new Engines; // threads may be in here until the process has ended
    return *instance;
}

/// What was seen and what was not, into the recording.
void count_nodes() {
    for (const EnginePlace& place : places) {
        if (place.engine == nullptr) {
            continue;
        }
        const GgmlEngine::Counts counts = place.engine->counts();
        if (counts.graphs + counts.partly == 0) {
            continue;
        }
        std::string text = std::to_string(counts.nodes) + " of " + std::to_string(counts.nodes) + " nodes seen in " +
                           std::to_string(counts.graphs) + " graphs";
        if (counts.partly != 0) {
            text += "; in " + std::to_string(counts.partly) + " more only " + std::to_string(counts.seen_of_partly) +
                    " of " + std::to_string(counts.nodes_of_partly) + ", which have no bricks";
        }
        profiler().describe("nodes", text);
    }
}

} // namespace

void open_door(const char* door) {
    if (!wanted()) {
        return;
    }
    static const bool counted = [] {
        at_close(count_nodes);
        return true;
    }();
    (void)counted;
    engines().look(door);
}

void* original_for(const char* symbol, const void* caller) {
    Dl_info from{};
    if (dladdr(caller, &from) != 0) {
        Pinned library{0, from.dli_fname, dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
        if (library.handle == nullptr) { // the program itself
            library.handle = dlopen(nullptr, RTLD_LAZY);
        }
        if (void* found = find_symbol(library, symbol); found != nullptr) {
            return found;
        }
    }
    return dlsym(RTLD_NEXT, symbol);
}

} // namespace plumb::attach::ggml
