// SPDX-License-Identifier: Apache-2.0
// One copy of ggml and llama.cpp in this process, and what is done when it calls through a redirected slot: a decode
// becomes a step, a graph that was seen whole becomes scopes, one for each node on the thread that computes it, from its
// entry to the next node's.
// Thread rule: any thread of the engine. An GgmlEngine stays for good.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attach/ggml/api.hpp"
#include "attach/ggml/plan.hpp"
#include "attach/slots.hpp"
#include "plumb/profiler.hpp"

namespace plumb::attach::ggml {

/// The functions through whose slots we see the engine work.
enum class Function : std::size_t {
    scheduler_new,         // a context begins: what it needs is loaded
    scheduler_free,        // it ends: what was known of it goes
    graph_compute,         // one graph
    node,                  // one node, called by every thread of the engine
    fused_norm,            // two nodes at once
    barrier,               // the threads wait for each other
    decode,                // one batch, inside libllama
    decode_before_2025_08, // the same, as it was declared earlier
    encode,
    llama_decode, // one batch, as programs call it
    logits,       // of a context's last batch, to be sampled from
    logits_ith,
    sampler_apply,
    device_node, // asked of each node by a backend that computes or captures it
    // What such a backend calls to have something done on a stream.
    device_launch_configured,
    device_launch,
    device_launch_extended,
    device_launch_cooperative,
    device_copy,
    device_fill,
    device_product,
    count
};
inline constexpr std::size_t functions = static_cast<std::size_t>(Function::count);
extern const char* const function_symbols[functions];

/// One stamp: the nodes from `first` to `last` of a plan begin.
struct Lap {
    std::uint64_t at;
    std::uint64_t cpu_ns; // of the thread, read at `at`; 0: not read
    std::uint64_t waited; // ticks, at barriers, until the next stamp
    const Tensor* first;
    const Tensor* last;
    std::uint32_t index, end_index; // of these nodes in the plan, once they were matched
};

class GgmlEngine;

/// What one thread of the engine does now.
struct ThreadState {
    const Recorder* clock =
        nullptr; // whose stamps these are; null: the machine's counter itself, as an engine's own scopes read it
    std::vector<Lap> laps;
    std::size_t count = 0; // of laps noted; more than there is room for: not all were seen
    std::uint64_t sampled = 0;
    std::uint64_t passed = 0;                    // when the last barrier was, behind which no node has begun; 0: none
    double kv_length = 0, kv_length_of_step = 0; // with this graph, and with the last of its step; NaN: not known
    std::uint64_t tokens_ahead = 0;              // that are yet to be appended in this step, all to one sequence
    NodePlan* plan = nullptr;                    // of the graph that is computed now
    GgmlEngine* engine = nullptr;                // that computes it
    bool on_device = false;                      // a device's backend came to a node of it
    std::size_t device_at = 0;                   // to which it came last
    bool device_captures = false;                // in this pass over the nodes
    bool device_waits = false;                   // nothing of that node was launched yet
    Profiler* device_scope = nullptr;            // in which a scope of a device's queue is open,
    std::optional<ContextScope> device_layer;    //   and its layer
    llama_context* context = nullptr;            // of the last step
    Context step;                                // whose logits this thread samples from
    bool in_step = false;
    bool sampling = false;
};

[[nodiscard]] inline std::uint64_t stamp_of(const ThreadState& state) noexcept {
    return PLUMB_LIKELY(state.clock == nullptr) ? detail::read_ticks() : state.clock->stamp();
}

/// What the recording says of all engines and models of this process: each once.
class EngineHead {
  public:
    explicit EngineHead(Profiler& profiler) : profiler_(profiler) {}
    void add(const std::string& key, const std::string& text);

  private:
    Profiler& profiler_;
    std::map<std::string, std::vector<std::string>> texts_; // by key, under the lock of all engines
};

class GgmlEngine {
  public:
    GgmlEngine(const GgmlApi& api, std::string version, Profiler& profiler, EngineHead& head);

    /// One more library that uses this ggml: it may be the one that leads to libllama. One call at a time.
    void learn(const Pinned& library);

    // What the hooks call; `original` is what the slot led to.
    int compute(int (*original)(Scheduler*, Graph*), Scheduler* scheduler, Graph* graph);
    int step(llama_context* context, const Batch& batch, const std::function<int()>& original);
    /// A device's backend comes to this node, on this thread.
    static void device_node(ThreadState& state, const Tensor* tensor);
    /// It has something done on that queue.
    void device_call(ThreadState& state, const Queue& queue);
    void sample(void (*original)(void*, void*), void* sampler, void* candidates);
    /// The calling thread will sample from what the context computed last.
    void logits_asked(const llama_context* context);
    /// A scheduler was made or goes: whatever was known of one at that address is forgotten, and of the context that computed with it.
    void forget(const Scheduler* scheduler);
    /// Of so many schedulers and contexts something is known.
    [[nodiscard]] std::size_t known() const;

    /// Ends what device_node() began: a capture is about to end.
    static void end_device_node(ThreadState& state);

    void* originals[functions] = {};
    /// Whether its decode, or what a program calls for it, goes through a slot. Else each graph is taken for a step.
    [[nodiscard]] bool has_steps() const;

    /// How many graphs ran whole here, how many did not, and how many a device's backend had a part of.
    struct Counts {
        std::uint64_t graphs = 0, nodes = 0, partly = 0, seen_of_partly = 0, nodes_of_partly = 0, elsewhere = 0;
        Counts& operator+=(const Counts& other);
    };
    [[nodiscard]] Counts counts() const;
    [[nodiscard]] const std::string& version() const { return version_; }

  private:
    struct Known { // of one scheduler
        NodePlan plan;
        const llama_context* context = nullptr; // that computed with it last
    };
    class OpenStep;
    class OpenGraph;
    struct StepFacts;

    [[nodiscard]] StepFacts facts_of(llama_context* context, const Batch& batch) const;
    void keep_step(const llama_context* context, const Context& step);
    NodePlan& plan_for(const Scheduler* scheduler, const llama_context* context);
    [[nodiscard]] std::uint64_t cached_length(llama_context* context, std::int32_t sequence) const;
    void describe();
    void describe_model(llama_context* context);
    void describe_device(llama_context* context);
    static std::size_t match(const std::vector<PlannedNode>& nodes, ThreadState& state);
    void count_partly(const NodePlan& plan, const ThreadState& state, std::size_t seen);
    void emit(const NodePlan& plan, ThreadState& state, std::uint64_t end);

    GgmlApi api_;
    Profiler& profiler_;
    EngineHead& head_;
    std::string version_;
    std::atomic<const Llama*> llama_{nullptr};
    std::atomic<bool> described_{false};
    // Both under one lock of all engines.
    std::unordered_map<const Scheduler*, Known> schedulers_;
    std::unordered_map<const llama_context*, Context> last_steps_;
    std::atomic<std::uint64_t> graphs_{0}, nodes_{0}, partly_{0}, seen_of_partly_{0}, nodes_of_partly_{0},
        elsewhere_{0};
};

} // namespace plumb::attach::ggml
