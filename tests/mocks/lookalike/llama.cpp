// SPDX-License-Identifier: Apache-2.0
// libllama: models, contexts, decoding, sampling. Tokens depend on nothing but tokens and positions.
#include "lookalike/llama.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "lookalike/model.hpp"

struct llama_memory_i {
    std::map<llama_seq_id, llama_pos> last;
};

struct LOOKALIKE_INTERNAL llama_context {
    llama_context(const llama_model& of, const llama_context_params& params);
    ~llama_context();
    int decode(const llama_batch& batch);
    ggml_status graph_compute(ggml_cgraph* graph, bool batched);

    const llama_model& model;
    llama_context_params params;
    ggml_backend_reg_t reg;
    ggml_backend_t backend;
    ggml_backend_sched_t sched;
    lookalike::Graph graph;
    llama_memory_i memory;
    std::vector<float> logits; // of each token of the last batch
    int number, steps = 0;
    std::unique_ptr<lookalike::Step> step;
};

struct llama_sampler {
    bool greedy = false;
    std::vector<llama_sampler*> chain;
};

namespace {

// The cache is looked at in pieces of so many positions.
constexpr std::int64_t cache_piece = 256;

int next_number() {
    static int contexts = 0;
    return __atomic_fetch_add(&contexts, 1, __ATOMIC_RELAXED);
}

std::uint32_t mixed(std::uint32_t value) {
    value ^= value >> 16;
    value *= 0x7feb352dU;
    value ^= value >> 15;
    value *= 0x846ca68bU;
    return value ^ (value >> 16);
}

llama_seq_id sequence_of(const llama_batch& batch, int i) { return batch.seq_id != nullptr ? batch.seq_id[i][0] : 0; }

// What a profiler may know of a batch from its caller.
void describe(const llama_batch& batch, const std::vector<llama_pos>& positions, lookalike::Step& step) {
    std::map<llama_seq_id, int> tokens;
    for (int i = 0; i < batch.n_tokens; ++i) {
        ++tokens[sequence_of(batch, i)];
    }
    const auto one_each =
        std::count_if(tokens.begin(), tokens.end(), [](const auto& each) { return each.second == 1; });
    step.tokens = batch.n_tokens;
    step.sequences = static_cast<int>(tokens.size());
    step.phase = one_each == step.sequences ? "decode" : one_each == 0 ? "prefill" : "mixed";
    step.kv_length = positions.back() + 1;
}

} // namespace

llama_context::llama_context(const llama_model& of, const llama_context_params& given)
    : model(of), params(given), reg(ggml_backend_reg_by_name("CPU")), backend(reg->init()),
      sched(ggml_backend_sched_new(&backend, nullptr, 1, 8192, false, true)), graph(of), number(next_number()) {
    reg->set_abort_callback(backend, params.abort_callback, params.abort_callback_data);
}
llama_context::~llama_context() {
    ggml_backend_sched_free(sched);
    ggml_backend_free(backend);
}

ggml_status llama_context::graph_compute(ggml_cgraph* computed, bool batched) {
    reg->set_n_threads(backend, batched ? params.n_threads_batch : params.n_threads);
    return ggml_backend_sched_graph_compute_async(sched, computed);
}

int llama_context::decode(const llama_batch& batch) {
    if (batch.n_tokens <= 0) {
        return -1;
    }
    step = std::make_unique<lookalike::Step>();
    step->nodes.reserve(4096);
    step->begin = lookalike_now();
    step->context = number;
    step->number = steps++;
    std::vector<llama_pos> positions;
    for (int i = 0; i < batch.n_tokens; ++i) {
        llama_pos& last = memory.last.try_emplace(sequence_of(batch, i), -1).first->second;
        positions.push_back(last = batch.pos != nullptr ? batch.pos[i] : last + 1);
    }
    describe(batch, positions, *step);
    const int piece = static_cast<int>(params.n_ubatch);
    for (int first = 0; first < batch.n_tokens && step->status == GGML_STATUS_SUCCESS; first += piece) {
        const int tokens = std::min(piece, batch.n_tokens - first);
        const bool batched = step->sequences > 1;
        const int cached = batched ? step->kv_length : step->kv_length - batch.n_tokens + first + tokens;
        const std::int64_t padded = (cached + cache_piece - 1) / cache_piece * cache_piece;
        if (graph.build(tokens, batched ? tokens : 1, padded)) {
            ggml_backend_sched_reset(sched);
            ggml_backend_sched_set_eval_callback(sched, params.cb_eval, params.cb_eval_user_data);
            ggml_backend_sched_alloc_graph(sched, graph.get());
        }
        graph.prepare(step.get(), batched ? 0 : cached);
        step->graph_nodes += graph.working_nodes();
        step->compute_begin = lookalike_now();
        step->status = graph_compute(graph.get(), tokens > 1);
        step->compute_end = lookalike_now();
    }
    const auto vocabulary = static_cast<std::size_t>(model.vocab.tokens);
    logits.assign(vocabulary * static_cast<std::size_t>(batch.n_tokens), 0);
    for (std::size_t i = 0; i < positions.size(); ++i) {
        for (std::size_t token = 0; token < vocabulary; ++token) {
            const auto seed =
                static_cast<std::uint32_t>(batch.token[i]) * 131 + static_cast<std::uint32_t>(positions[i]) * 31;
            logits[i * vocabulary + token] =
                static_cast<float>(mixed(seed + static_cast<std::uint32_t>(token) * 7919) % 10007);
        }
    }
    step->end = lookalike_now();
    lookalike_write_step(*step);
    return step->status == GGML_STATUS_ABORTED ? 2 : step->status;
}

void llama_backend_init() {}
llama_model_params llama_model_default_params() { return {}; }
llama_context_params llama_context_default_params() {
    return {512, 512, 512, 8, 1, 1, nullptr, nullptr, nullptr, nullptr};
}

llama_model* llama_model_load_from_file(const char* path, llama_model_params) {
    if (ggml_backend_reg_by_name("CPU") == nullptr) {
        std::fputs("lookalike: no backend is loaded\n", stderr);
        return nullptr;
    }
    auto model = std::make_unique<llama_model>();
    model->text = path;
    std::istringstream words(path);
    for (std::string word; std::getline(words, word, ',');) {
        const std::size_t sign = word.find('=');
        const std::string key = word.substr(0, sign);
        const double value = sign == std::string::npos ? 0 : std::atof(word.c_str() + sign + 1);
        const std::map<std::string, bool*> flags{
            {"moe", &model->moe}, {"bias", &model->bias}, {"qknorm", &model->qk_norm}};
        const std::map<std::string, std::int64_t*> numbers{
            {"layers", &model->layers}, {"width", &model->width}, {"heads", &model->heads}, {"inner", &model->inner}};
        if (flags.contains(key)) {
            *flags.at(key) = true;
        } else if (numbers.contains(key)) {
            *numbers.at(key) = static_cast<std::int64_t>(value);
        } else if (key == "noflash") {
            model->flash = false;
        } else if (key == "scale") {
            model->scale = value;
        } else {
            std::fprintf(stderr, "lookalike: a model has no %s\n", key.c_str());
            return nullptr;
        }
    }
    return model.release();
}
void llama_model_free(llama_model* model) { delete model; }
std::int32_t llama_model_n_layer(const llama_model* model) { return static_cast<std::int32_t>(model->layers); }
std::int32_t llama_model_n_embd(const llama_model* model) { return static_cast<std::int32_t>(model->width); }
std::int32_t llama_model_n_head(const llama_model* model) { return static_cast<std::int32_t>(model->heads); }
std::int32_t llama_model_n_head_kv(const llama_model* model) { return static_cast<std::int32_t>(model->kv_heads); }
std::int32_t llama_model_desc(const llama_model* model, char* text, std::size_t size) {
    return std::snprintf(text, size, "lookalike %s", model->text.c_str());
}
const llama_vocab* llama_model_get_vocab(const llama_model* model) { return &model->vocab; }
std::int32_t llama_vocab_n_tokens(const llama_vocab* vocab) { return vocab->tokens; }

llama_context* llama_init_from_model(llama_model* model, llama_context_params params) {
    return new llama_context(*model, params);
}
void llama_free(llama_context* context) { delete context; }
const llama_model* llama_get_model(const llama_context* context) { return &context->model; }
std::uint32_t llama_n_ctx(const llama_context* context) { return context->params.n_ctx; }
llama_memory_t llama_get_memory(const llama_context* context) { return const_cast<llama_memory_t>(&context->memory); }
llama_pos llama_memory_seq_pos_max(llama_memory_t memory, llama_seq_id sequence) {
    const auto at = memory->last.find(sequence);
    return at != memory->last.end() ? at->second : -1;
}
void llama_memory_clear(llama_memory_t memory, bool) { memory->last.clear(); }

llama_batch llama_batch_get_one(llama_token* tokens, std::int32_t n_tokens) {
    return {n_tokens, tokens, nullptr, nullptr, nullptr, nullptr, nullptr};
}
std::int32_t llama_decode(llama_context* context, llama_batch batch) { return context->decode(batch); }
void llama_synchronize(llama_context* context) { ggml_backend_sched_synchronize(context->sched); }
void llama_set_abort_callback(llama_context* context, ggml_abort_callback callback, void* data) {
    context->params.abort_callback = callback;
    context->params.abort_callback_data = data;
    context->reg->set_abort_callback(context->backend, callback, data);
}
float* llama_get_logits_ith(llama_context* context, std::int32_t i) {
    const auto vocabulary = static_cast<std::size_t>(context->model.vocab.tokens);
    const std::size_t row =
        i < 0 ? context->logits.size() / vocabulary - static_cast<std::size_t>(-i) : static_cast<std::size_t>(i);
    return &context->logits[row * vocabulary];
}

llama_sampler_chain_params llama_sampler_chain_default_params() { return {true}; }
llama_sampler* llama_sampler_chain_init(llama_sampler_chain_params) { return new llama_sampler; }
void llama_sampler_chain_add(llama_sampler* chain, llama_sampler* sampler) { chain->chain.push_back(sampler); }
llama_sampler* llama_sampler_init_temp(float) { return new llama_sampler; }
llama_sampler* llama_sampler_init_greedy() { return new llama_sampler{true, {}}; }
void llama_sampler_free(llama_sampler* sampler) {
    std::for_each(sampler->chain.begin(), sampler->chain.end(), llama_sampler_free);
    delete sampler;
}
// A chain applies its samplers by the same exported call.
void llama_sampler_apply(llama_sampler* sampler, llama_token_data_array* candidates) {
    for (llama_sampler* one : sampler->chain) {
        llama_sampler_apply(one, candidates);
    }
    if (sampler->greedy) {
        lookalike_busy(10'000);
        candidates->selected =
            std::max_element(candidates->data, candidates->data + candidates->size,
                             [](const llama_token_data& a, const llama_token_data& b) { return a.logit < b.logit; }) -
            candidates->data;
    }
}
void llama_sampler_accept(llama_sampler*, llama_token) {}
llama_token llama_sampler_sample(llama_sampler* sampler, llama_context* context, std::int32_t i) {
    const float* logits = llama_get_logits_ith(context, i);
    std::vector<llama_token_data> candidates;
    for (llama_token id = 0; id < context->model.vocab.tokens; ++id) {
        candidates.push_back({id, logits[id], 0});
    }
    llama_token_data_array all{candidates.data(), candidates.size(), -1, false};
    const std::int64_t begin = lookalike_now();
    llama_sampler_apply(sampler, &all);
    lookalike_write_sampled({context->number, begin, lookalike_now()});
    const llama_token token = candidates[static_cast<std::size_t>(all.selected)].id;
    llama_sampler_accept(sampler, token);
    return token;
}
