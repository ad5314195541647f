// SPDX-License-Identifier: Apache-2.0
// The part of llama.h that the look-alike has. Parameters begin as the real ones do; what follows is ours.
#pragma once

#include "lookalike/ggml.hpp"

using llama_token = std::int32_t;
using llama_pos = std::int32_t;
using llama_seq_id = std::int32_t;

struct llama_batch {
    std::int32_t n_tokens;
    llama_token* token;
    float* embd;
    llama_pos* pos;         // null: goes on behind what is in the cache
    std::int32_t* n_seq_id; // null: one each
    llama_seq_id** seq_id;  // null: sequence 0
    std::int8_t* logits;    // null: of the last token
};
struct llama_model_params {
    void* devices;
};
struct llama_context_params {
    std::uint32_t n_ctx, n_batch, n_ubatch, n_seq_max;
    std::int32_t n_threads, n_threads_batch;
    ggml_backend_sched_eval_callback cb_eval;
    void* cb_eval_user_data;
    ggml_abort_callback abort_callback;
    void* abort_callback_data;
};
struct llama_token_data {
    llama_token id;
    float logit;
    float p;
};
struct llama_token_data_array {
    llama_token_data* data;
    std::size_t size;
    std::int64_t selected;
    bool sorted;
};
struct llama_sampler_chain_params {
    bool no_perf;
};
struct llama_model;
struct llama_context;
struct llama_vocab;
struct llama_memory_i;
using llama_memory_t = llama_memory_i*;
struct llama_sampler;

LOOKALIKE_API void llama_backend_init();
LOOKALIKE_API llama_model_params llama_model_default_params();
LOOKALIKE_API llama_context_params llama_context_default_params();
// The "file" is a text: layers=4,width=64,moe,bias,qknorm,noflash,scale=10
LOOKALIKE_API llama_model* llama_model_load_from_file(const char* path, llama_model_params params);
LOOKALIKE_API void llama_model_free(llama_model* model);
LOOKALIKE_API std::int32_t llama_model_n_layer(const llama_model* model);
LOOKALIKE_API std::int32_t llama_model_n_embd(const llama_model* model);
LOOKALIKE_API std::int32_t llama_model_n_head(const llama_model* model);
LOOKALIKE_API std::int32_t llama_model_n_head_kv(const llama_model* model);
LOOKALIKE_API std::int32_t llama_model_desc(const llama_model* model, char* text, std::size_t size);
LOOKALIKE_API const llama_vocab* llama_model_get_vocab(const llama_model* model);
LOOKALIKE_API std::int32_t llama_vocab_n_tokens(const llama_vocab* vocab);
LOOKALIKE_API llama_context* llama_init_from_model(llama_model* model, llama_context_params params);
LOOKALIKE_API void llama_free(llama_context* context);
LOOKALIKE_API const llama_model* llama_get_model(const llama_context* context);
LOOKALIKE_API std::uint32_t llama_n_ctx(const llama_context* context);
LOOKALIKE_API llama_memory_t llama_get_memory(const llama_context* context);
LOOKALIKE_API llama_pos llama_memory_seq_pos_max(llama_memory_t memory, llama_seq_id sequence);
LOOKALIKE_API void llama_memory_clear(llama_memory_t memory, bool data);
LOOKALIKE_API llama_batch llama_batch_get_one(llama_token* tokens, std::int32_t n_tokens);
LOOKALIKE_API std::int32_t llama_decode(llama_context* context, llama_batch batch);
LOOKALIKE_API void llama_synchronize(llama_context* context);
LOOKALIKE_API void llama_set_abort_callback(llama_context* context, ggml_abort_callback callback, void* data);
LOOKALIKE_API float* llama_get_logits_ith(llama_context* context, std::int32_t i);
LOOKALIKE_API llama_sampler_chain_params llama_sampler_chain_default_params();
LOOKALIKE_API llama_sampler* llama_sampler_chain_init(llama_sampler_chain_params params);
LOOKALIKE_API void llama_sampler_chain_add(llama_sampler* chain, llama_sampler* sampler);
LOOKALIKE_API llama_sampler* llama_sampler_init_temp(float temperature);
LOOKALIKE_API llama_sampler* llama_sampler_init_greedy();
LOOKALIKE_API void llama_sampler_apply(llama_sampler* sampler, llama_token_data_array* candidates);
LOOKALIKE_API void llama_sampler_accept(llama_sampler* sampler, llama_token token);
LOOKALIKE_API llama_token llama_sampler_sample(llama_sampler* sampler, llama_context* context, std::int32_t i);
LOOKALIKE_API void llama_sampler_free(llama_sampler* sampler);
