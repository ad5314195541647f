// SPDX-License-Identifier: Apache-2.0
#include "attach/ggml/engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>

#include "attach/attachment.hpp"
#include "attach/cudart/hooks.hpp"
#include "attach/ggml/hooks.hpp"
#include "attach/late_pen.hpp"
#include "base/os.hpp"

namespace plumb::attach::ggml {

const char* const function_symbols[functions] = {
    "ggml_backend_sched_new",
    "ggml_backend_sched_free",
    "ggml_backend_sched_graph_compute_async",
    "ggml_cpu_extra_compute_forward",
    "ggml_compute_forward_rms_norm_mul_fused",
    "ggml_barrier",
    "_ZN13llama_context6decodeERK11llama_batch",
    "_ZN13llama_context6decodeER11llama_batch",
    "_ZN13llama_context6encodeERK11llama_batch",
    "llama_decode",
    "llama_get_logits",
    "llama_get_logits_ith",
    "llama_sampler_apply",
    "ggml_is_empty",
    "__cudaPushCallConfiguration",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cublasSetStream_v2",
};

__thread ThreadState* computing_thread PLUMB_TLS_MODEL = nullptr;

namespace {

/// Of what every engine knows of schedulers and contexts. Under it no other lock is taken, and it is held across a fork: a child finds it free.
std::mutex books;

constexpr Function step_functions[] = {Function::decode, Function::decode_before_2025_08, Function::llama_decode};

/// Null: no memory for it.
ThreadState* state_of_thread(const Profiler& profiler) {
    static const pthread_key_t key = [] {
        pthread_key_t made{};
        pthread_key_create(&made, [](void* state) { delete static_cast<ThreadState*>(state); });
        return made;
    }();
    auto* state = static_cast<ThreadState*>(pthread_getspecific(key));
    if (state == nullptr) {
        state = new (std::nothrow) ThreadState;
        pthread_setspecific(key, state);
    }
    if (state != nullptr) {
        state->clock = (profiler.mode() & detail::mode_indirect) != 0 ? &profiler : nullptr;
    }
    return state;
}

/// At the borders of what a thread does for the engine: it may sleep for long between two of them, while others go on.
void read_cpu_time(Profiler& profiler, ThreadState& state) {
    const auto cpu_ns = static_cast<std::uint64_t>(base::thread_cpu_ns());
    state.sampled = stamp_of(state);
    LatePen(profiler).cpu_time(state.sampled, cpu_ns);
}

/// With the cache as this thread's graph finds it. Where that is not known, work that depends on it is not either.
Work given(const NodeWork& work, const ThreadState& state) {
    if (work.positions == 0) {
        return make_work(bytes(work.bytes), flops(work.flops));
    }
    if (std::isnan(state.kv_length)) {
        return make_work();
    }
    const NodeWork now = work.at(state.kv_length, state.kv_length_of_step);
    Work made = make_work(bytes(now.bytes), flops(now.flops));
    if (now.bytes_per_kv != 0) {
        made.bytes_per_kv = now.bytes_per_kv;
    }
    return made;
}

} // namespace

void note_node(ThreadState& state, const Tensor* first, const Tensor* last) noexcept {
    const std::size_t index = state.count++;
    if (index >= state.laps.size()) {
        return;
    }
    Lap& lap = state.laps[index];
    // Behind a barrier a node begins where that ends.
    lap = {state.passed != 0 ? std::exchange(state.passed, 0) : stamp_of(state), 0, 0, first, last, 0, 0};
    // As a scope does: where the last node was long, off-CPU time must be placed near it.
    if (index != 0 && lap.at - state.laps[index - 1].at >= detail::long_ticks &&
        lap.at - state.sampled >= detail::sample_ticks) {
        lap.cpu_ns = static_cast<std::uint64_t>(base::thread_cpu_ns());
        lap.at = stamp_of(state); // what the reading took is the last node's: it would be in a step's gap else
        state.sampled = lap.at;
    }
}

void note_wait(ThreadState& state, std::uint64_t begin, std::uint64_t end) noexcept {
    state.passed = end;
    if (state.count != 0 && state.count <= state.laps.size()) {
        state.laps[state.count - 1].waited += end - begin;
    }
}

/// A sequence with one token is one that decodes; with more, one that is filled.
struct GgmlEngine::StepFacts {
    std::uint64_t prefill = 0, decode = 0, sequences = 0;
    std::optional<std::uint64_t> kv_length;
};

GgmlEngine::StepFacts GgmlEngine::facts_of(llama_context* context, const Batch& batch) const {
    constexpr std::int32_t most_sequences = 256; // LLAMA_MAX_SEQ
    std::array<std::uint32_t, most_sequences> tokens{};
    std::uint64_t last_position = 0;
    std::int32_t first_sequence = 0;
    for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
        const bool stated = batch.seq_id != nullptr && batch.seq_id[i] != nullptr;
        const std::int32_t sequence = stated ? std::clamp(batch.seq_id[i][0], 0, most_sequences - 1) : 0;
        first_sequence = i == 0 ? sequence : first_sequence;
        ++tokens[static_cast<std::size_t>(sequence)];
        if (batch.pos != nullptr) {
            last_position = std::max(last_position, static_cast<std::uint64_t>(std::max(batch.pos[i], 0)));
        }
    }
    StepFacts facts;
    for (const std::uint32_t count : tokens) {
        facts.sequences += count != 0;
        (count == 1 ? facts.decode : facts.prefill) += count;
    }
    facts.kv_length = batch.pos != nullptr
                          ? last_position + 1
                          : cached_length(context, first_sequence) + static_cast<std::uint64_t>(batch.n_tokens);
    return facts;
}

/// One decode or encode of the engine, or one graph, as a step of this thread.
class GgmlEngine::OpenStep {
  public:
    OpenStep(Profiler& profiler, ThreadState& state, const StepFacts& facts) : profiler_(profiler), state_(state) {
        const Phase phase = facts.prefill != 0  ? (facts.decode != 0 ? Phase::mixed : Phase::prefill)
                            : facts.decode != 0 ? Phase::decode
                                                : Phase::none; // a graph that takes no rows from a table of embeddings
        state_.in_step = true;
        state_.kv_length = state_.kv_length_of_step =
            facts.kv_length ? static_cast<double>(*facts.kv_length) : std::numeric_limits<double>::quiet_NaN();
        state_.tokens_ahead = facts.sequences == 1 ? facts.prefill + facts.decode : 0;
        if (facts.kv_length) {
            profiler_.push_step(host, phase, prefill_tokens(facts.prefill), decode_tokens(facts.decode),
                                sequences(facts.sequences), kv_length(*facts.kv_length));
        } else {
            profiler_.push_step(host, phase, prefill_tokens(facts.prefill), decode_tokens(facts.decode));
        }
        state_.step = profiler_.context();
        read_cpu_time(profiler_, state_);
    }
    OpenStep(const OpenStep&) = delete;
    OpenStep& operator=(const OpenStep&) = delete;
    ~OpenStep() { // also where the engine throws
        read_cpu_time(profiler_, state_);
        profiler_.pop_scope();
        state_.in_step = false;
    }

  private:
    Profiler& profiler_;
    ThreadState& state_;
};

/// A graph whose nodes the calling thread notes, until end(). Without that the engine threw: there are no bricks of it.
class GgmlEngine::OpenGraph {
  public:
    OpenGraph(GgmlEngine& engine, ThreadState& state, NodePlan& plan) : engine_(engine), state_(state), plan_(plan) {
        state.laps.resize(std::max(state.laps.size(), plan.nodes().size()));
        state.count = 0;
        state.passed = 0;
        state.engine = &engine;
        state.plan = &plan;
        state.on_device = state.device_captures = false;
        computing_thread = &state;
    }
    OpenGraph(const OpenGraph&) = delete;
    OpenGraph& operator=(const OpenGraph&) = delete;
    ~OpenGraph() {
        computing_thread = nullptr;
        end_device_node(state_);
        state_.device_waits = false;
        plan_.end_pass();
        if (!ended_) {
            engine_.count_partly(plan_, state_, match(plan_.nodes(), state_));
        }
    }
    std::uint64_t end() {
        ended_ = true;
        return stamp_of(state_);
    }

  private:
    GgmlEngine& engine_;
    ThreadState& state_;
    NodePlan& plan_;
    bool ended_ = false;
};

void EngineHead::add(const std::string& key, const std::string& text) {
    const auto all_of_key = [&] {
        constexpr std::size_t most_shown = 4;
        const std::lock_guard lock(books);
        std::vector<std::string>& all = texts_[key];
        if (std::find(all.begin(), all.end(), text) == all.end()) {
            all.push_back(text);
        }
        std::string line;
        for (std::size_t i = 0; i < std::min(all.size(), most_shown); ++i) {
            line += (i == 0 ? "" : " + ") + all[i];
        }
        if (all.size() > most_shown) {
            line += " + " + std::to_string(all.size() - most_shown) + " more";
        }
        return key == "layers" && all.size() > 1 ? line + " layers"
                                                 : line; // more than a number, which a report puts the key to
    };
    // Outside the lock, and once more where another thread added one meanwhile: the last that is described holds all.
    for (std::string described, line = all_of_key(); line != described; line = all_of_key()) {
        profiler_.describe(key, line);
        described = line;
    }
}

GgmlEngine::GgmlEngine(const GgmlApi& api, std::string version, Profiler& profiler, EngineHead& head)
    : api_(api), profiler_(profiler), head_(head), version_(std::move(version)) {
    static const int held_across_forks =
        pthread_atfork([] { books.lock(); }, [] { books.unlock(); }, [] { books.unlock(); });
    (void)held_across_forks;
}

int GgmlEngine::step(llama_context* context, const Batch& batch, const std::function<int()>& original) {
    ThreadState* state = profiler_.enabled() && batch.n_tokens > 0 ? state_of_thread(profiler_) : nullptr;
    if (state == nullptr || state->in_step) {
        return original();
    }
    describe_model(context);
    describe();
    state->context = context;
    int status = 0;
    {
        const OpenStep step(profiler_, *state, facts_of(context, batch));
        status = original();
    }
    keep_step(context, state->step); // last: a context may have made its scheduler anew
    return status;
}

int GgmlEngine::compute(int (*original)(Scheduler*, Graph*), Scheduler* scheduler, Graph* graph) {
    ThreadState* state = profiler_.enabled() ? state_of_thread(profiler_) : nullptr;
    if (state == nullptr || (!state->in_step && has_steps()) || computing_thread != nullptr) {
        return original(scheduler, graph);
    }
    NodePlan& plan = plan_for(scheduler, state->in_step ? state->context : nullptr);
    plan.prepare(api_, graph, [this](std::string_view name) { return profiler_.intern(name); });
    std::optional<OpenStep> step;
    if (!state->in_step) {
        describe();
        StepFacts facts;
        (plan.tokens() == 1 ? facts.decode : facts.prefill) = plan.tokens();
        step.emplace(profiler_, *state, facts);
    }
    if (const std::uint64_t tokens = std::min(plan.tokens(), state->tokens_ahead); tokens != 0) { // a part of a prompt
        state->tokens_ahead -= tokens;
        state->kv_length = std::max(state->kv_length_of_step - static_cast<double>(state->tokens_ahead), 0.0);
    }
    const std::uint32_t mode = profiler_.mode();
    int status = 0;
    std::uint64_t end = 0;
    {
        OpenGraph open(*this, *state, plan);
        status = original(scheduler, graph);
        end = open.end();
    }
    if (status == 0 && profiler_.mode() == mode) {
        emit(plan, *state, end);
    }
    return status;
}

void GgmlEngine::device_node(ThreadState& state, const Tensor* tensor) {
    NodePlan& plan = *state.plan;
    const std::size_t at = plan.find(tensor);
    if (at == plan.nodes().size() || !plan.nodes()[at].computes) {
        return; // asked of an operand of the last one, say
    }
    end_device_node(state);
    const bool captures = cudart::captured_stream() != nullptr;
    if (captures != state.device_captures || !plan.visit(at)) { // another pass, or the next part of a graph
        plan.end_pass();
        plan.visit(at);
    }
    state.on_device = true;
    state.device_captures = captures;
    state.device_at = at;
    state.device_waits = true;
}

/// A node is a scope of the queue that it is first launched on; while that is captured, a brick of its graph.
void GgmlEngine::device_call(ThreadState& state, const Queue& queue) {
    if (!std::exchange(state.device_waits, false)) {
        return;
    }
    const NodeGroup group = state.plan->group_at(state.device_at);
    Context context = profiler_.context();
    const auto layer_plus_one = static_cast<std::uint32_t>(group.layer + 1);
    context.layer_plus_one = layer_plus_one <= max_layers ? layer_plus_one : 0;
    state.device_layer.emplace(profiler_, profiler_.mode(), context);
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    NodeWork work = group.work;
    if (state
            .device_captures) { // replays come at other lengths of the cache: what depends on it is given for each position, or not at all
        work.flops = work.flops_per_kv == 0 ? work.flops : unknown;
    } else {
        const Work now = given(work, state);
        work.bytes = now.bytes;
        work.flops = now.flops;
        work.bytes_per_kv = now.bytes_per_kv;
    }
    profiler_.push_scope(queue, group.brick, bytes(work.bytes), flops(work.flops),
                         bytes_per_kv(work.bytes_per_kv != 0 ? work.bytes_per_kv : unknown));
    state.device_scope = &profiler_;
}

void GgmlEngine::end_device_node(ThreadState& state) {
    if (Profiler* const profiler = std::exchange(state.device_scope, nullptr); profiler != nullptr) {
        profiler->pop_scope();
        state.device_layer.reset();
    }
}

/// Finds the plan's nodes for each lap, in order, and leaves what computes nothing out. Returns how many computing nodes were reached:
/// behind a node of another graph nothing can be told.
std::size_t GgmlEngine::match(const std::vector<PlannedNode>& nodes, ThreadState& state) {
    std::size_t seen = 0;
    std::size_t kept = 0;
    std::size_t at = 0;
    const std::size_t laps = std::min(state.count, state.laps.size());
    for (std::size_t i = 0; i < laps; ++i) {
        Lap lap = state.laps[i];
        std::size_t first = at;
        while (first < nodes.size() && nodes[first].tensor != lap.first) {
            ++first;
        }
        std::size_t last = first;
        while (last < nodes.size() && nodes[last].tensor != lap.last) {
            ++last;
        }
        if (last >= nodes.size()) {
            break;
        }
        at = last + 1;
        if (nodes[last].computes) {
            for (std::size_t k = first; k <= last; ++k) {
                seen += nodes[k].computes;
            }
            lap.index = static_cast<std::uint32_t>(first);
            lap.end_index = static_cast<std::uint32_t>(at);
            state.laps[kept++] = lap;
        }
    }
    state.count = kept;
    return seen;
}

void GgmlEngine::count_partly(const NodePlan& plan, const ThreadState& state, std::size_t seen) {
    // Relaxed: counts that are read when all is over.
    if (state.on_device) {
        elsewhere_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    partly_.fetch_add(1, std::memory_order_relaxed);
    seen_of_partly_.fetch_add(seen, std::memory_order_relaxed);
    nodes_of_partly_.fetch_add(plan.computing(), std::memory_order_relaxed);
}

/// Only what was seen whole is written.
void GgmlEngine::emit(const NodePlan& plan, ThreadState& state, std::uint64_t end) {
    const std::vector<PlannedNode>& nodes = plan.nodes();
    const std::size_t seen = match(nodes, state);
    if (seen != plan.computing()) {
        count_partly(plan, state, seen);
        return;
    }
    if (graphs_.fetch_add(1, std::memory_order_relaxed) == 0) {
        describe_device(state.context);
    }
    nodes_.fetch_add(seen, std::memory_order_relaxed);

    const bool waits = originals[static_cast<std::size_t>(Function::barrier)] != nullptr;
    LatePen pen(profiler_);
    for (std::size_t i = 0; i < state.count; ++i) {
        const Lap& lap = state.laps[i];
        const PlannedNode& named = nodes[lap.end_index - 1];
        if (lap.cpu_ns != 0) {
            pen.cpu_time(lap.at, lap.cpu_ns);
        }
        pen.layer(named.layer, lap.at);
        NodeWork work = named.work;
        for (std::size_t k = lap.index; k + 1 < lap.end_index; ++k) {
            if (nodes[k].computes) {
                work += nodes[k].work;
            }
        }
        pen.scope(named.brick, lap.at, i + 1 < state.count ? state.laps[i + 1].at : end, given(work, state),
                  waits ? std::optional(lap.waited) : std::nullopt);
    }
    pen.finish(end);
}

void GgmlEngine::sample(void (*original)(void*, void*), void* sampler, void* candidates) {
    ThreadState* state = profiler_.enabled() ? state_of_thread(profiler_) : nullptr;
    if (state == nullptr || state->sampling) { // a chain applies its samplers in turn
        original(sampler, candidates);
        return;
    }
    const struct Sampling { // also where the sampler throws
        ThreadState& state;
        ~Sampling() { state.sampling = false; }
    } sampling{*state};
    state->sampling = true;
    {
        const ContextScope of_step(profiler_, profiler_.mode(), state->in_step ? profiler_.context() : state->step);
        read_cpu_time(profiler_, *state);
        {
            const Scope scope = profiler_.scope(host, Brick::sampling);
            original(sampler, candidates);
        }
        read_cpu_time(profiler_, *state);
    }
}

void GgmlEngine::keep_step(const llama_context* context, const Context& step) {
    const std::lock_guard lock(books);
    last_steps_[context] = step;
}

void GgmlEngine::logits_asked(const llama_context* context) {
    ThreadState* state = profiler_.enabled() ? state_of_thread(profiler_) : nullptr;
    if (state == nullptr || state->in_step) {
        return;
    }
    const std::lock_guard lock(books);
    if (const auto found = last_steps_.find(context); found != last_steps_.end()) {
        state->step = found->second;
    }
}

void GgmlEngine::forget(const Scheduler* scheduler) {
    const std::lock_guard lock(books);
    if (const auto found = schedulers_.find(scheduler); found != schedulers_.end()) {
        last_steps_.erase(found->second.context);
        schedulers_.erase(found);
    }
}

std::size_t GgmlEngine::known() const {
    const std::lock_guard lock(books);
    return schedulers_.size() + last_steps_.size();
}

/// REQUIRES: no other thread computes with this scheduler, as ggml itself does.
NodePlan& GgmlEngine::plan_for(const Scheduler* scheduler, const llama_context* context) {
    const std::lock_guard lock(books);
    Known& known = schedulers_[scheduler];
    known.context = context;
    return known.plan;
}

void GgmlEngine::learn(const Pinned& library) {
    const Llama found = Llama::find(library);
    if (found.get_model != nullptr && llama_.load(std::memory_order_relaxed) == nullptr) {
        // Release: who finds it finds it complete. As long-lived as the engine.
        llama_.store(new Llama(found), std::memory_order_release);
    }
}

std::uint64_t GgmlEngine::cached_length(llama_context* context, std::int32_t sequence) const {
    const Llama* llama = llama_.load(std::memory_order_acquire);
    return llama != nullptr ? llama->cached(context, sequence) : 0;
}

void GgmlEngine::describe() {
    if (!described_.exchange(true, std::memory_order_relaxed)) {
        const bool llama = llama_.load(std::memory_order_acquire) != nullptr;
        head_.add("engine", (llama ? "llama.cpp, " : "") + version_ + ", not built for this profiler");
    }
}

/// Of a context that has made no step yet.
void GgmlEngine::describe_model(llama_context* context) {
    const Llama* const llama = llama_.load(std::memory_order_acquire);
    if (llama == nullptr || context == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(books);
        if (last_steps_.contains(context)) {
            return;
        }
    }
    if (const std::string model = llama->model(context); !model.empty()) {
        head_.add("model", model);
    }
    if (const std::int32_t layers = llama->layers(context); layers > 0) {
        head_.add("layers", std::to_string(layers));
    }
}

/// REQUIRES: a graph was seen whole, so the processor computed all of it.
void GgmlEngine::describe_device(llama_context* context) {
    const Llama* llama = llama_.load(std::memory_order_acquire);
    if (const std::int32_t threads = llama != nullptr && context != nullptr ? llama->threads(context) : 0;
        threads > 0) {
        head_.add("device", "cpu, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
    }
}

bool GgmlEngine::has_steps() const {
    return std::any_of(std::begin(step_functions), std::end(step_functions),
                       [this](Function function) { return originals[static_cast<std::size_t>(function)] != nullptr; });
}

GgmlEngine::Counts& GgmlEngine::Counts::operator+=(const Counts& other) {
    graphs += other.graphs;
    nodes += other.nodes;
    partly += other.partly;
    seen_of_partly += other.seen_of_partly;
    nodes_of_partly += other.nodes_of_partly;
    elsewhere += other.elsewhere;
    return *this;
}

GgmlEngine::Counts GgmlEngine::counts() const {
    const auto of = [](const std::atomic<std::uint64_t>& value) {
        return value.load(std::memory_order_relaxed);
    };
    return {of(graphs_), of(nodes_), of(partly_), of(seen_of_partly_), of(nodes_of_partly_), of(elsewhere_)};
}

} // namespace plumb::attach::ggml
