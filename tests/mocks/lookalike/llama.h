// SPDX-License-Identifier: Apache-2.0
// The part of llama.h that the look-alike has. Parameters begin as the real ones do; what follows is ours.
#pragma once

#include "ggml.h"

typedef int32_t llama_token;
typedef int32_t llama_pos;
typedef int32_t llama_seq_id;

typedef struct llama_batch {
    int32_t n_tokens;
    llama_token* token;
    float* embd;
    llama_pos* pos;        // null: goes on behind what is in the cache
    int32_t* n_seq_id;     // null: one each
    llama_seq_id** seq_id; // null: sequence 0
    int8_t* logits;        // null: of the last token
} llama_batch;
typedef struct llama_model_params {
    void* devices;
    void* ours[8]; // as large as to be passed in memory
} llama_model_params;
typedef struct llama_context_params {
    uint32_t n_ctx, n_batch, n_ubatch, n_seq_max;
    int32_t n_threads, n_threads_batch;
    ggml_backend_sched_eval_callback cb_eval;
    void* cb_eval_user_data;
    ggml_abort_callback abort_callback;
    void* abort_callback_data;
} llama_context_params;
typedef struct llama_token_data {
    llama_token id;
    float logit;
    float p;
} llama_token_data;
typedef struct llama_token_data_array {
    llama_token_data* data;
    size_t size;
    int64_t selected;
    bool sorted;
} llama_token_data_array;
typedef struct llama_sampler_chain_params {
    bool no_perf;
} llama_sampler_chain_params;
typedef struct llama_model llama_model;
typedef struct llama_context llama_context;
typedef struct llama_vocab llama_vocab;
typedef struct llama_memory_i* llama_memory_t;
typedef struct llama_sampler llama_sampler;

LOOKALIKE_API void llama_backend_init(void);
LOOKALIKE_API llama_model_params llama_model_default_params(void);
LOOKALIKE_API llama_context_params llama_context_default_params(void);
// The "file" is a text: layers=4,width=64,moe,bias,qknorm,noflash,scale=10
LOOKALIKE_API llama_model* llama_model_load_from_file(const char* path, llama_model_params params);
LOOKALIKE_API void llama_model_free(llama_model* model);
LOOKALIKE_API int32_t llama_model_n_layer(const llama_model* model);
LOOKALIKE_API int32_t llama_model_n_embd(const llama_model* model);
LOOKALIKE_API int32_t llama_model_n_head(const llama_model* model);
LOOKALIKE_API int32_t llama_model_n_head_kv(const llama_model* model);
LOOKALIKE_API int32_t llama_model_desc(const llama_model* model, char* text, size_t size);
LOOKALIKE_API const llama_vocab* llama_model_get_vocab(const llama_model* model);
LOOKALIKE_API int32_t llama_vocab_n_tokens(const llama_vocab* vocab);
LOOKALIKE_API llama_context* llama_init_from_model(llama_model* model, llama_context_params params);
LOOKALIKE_API void llama_free(llama_context* context);
LOOKALIKE_API const llama_model* llama_get_model(const llama_context* context);
LOOKALIKE_API uint32_t llama_n_ctx(const llama_context* context);
LOOKALIKE_API llama_memory_t llama_get_memory(const llama_context* context);
LOOKALIKE_API llama_pos llama_memory_seq_pos_max(llama_memory_t memory, llama_seq_id sequence);
LOOKALIKE_API void llama_memory_clear(llama_memory_t memory, bool data);
LOOKALIKE_API llama_batch llama_batch_get_one(llama_token* tokens, int32_t n_tokens);
LOOKALIKE_API int32_t llama_decode(llama_context* context, llama_batch batch);
LOOKALIKE_API void llama_synchronize(llama_context* context);
LOOKALIKE_API void llama_set_abort_callback(llama_context* context, ggml_abort_callback callback, void* data);
LOOKALIKE_API float* llama_get_logits_ith(llama_context* context, int32_t i);
LOOKALIKE_API llama_sampler_chain_params llama_sampler_chain_default_params(void);
LOOKALIKE_API llama_sampler* llama_sampler_chain_init(llama_sampler_chain_params params);
LOOKALIKE_API void llama_sampler_chain_add(llama_sampler* chain, llama_sampler* sampler);
LOOKALIKE_API llama_sampler* llama_sampler_init_temp(float temperature);
LOOKALIKE_API llama_sampler* llama_sampler_init_greedy(void);
LOOKALIKE_API void llama_sampler_apply(llama_sampler* sampler, llama_token_data_array* candidates);
LOOKALIKE_API void llama_sampler_accept(llama_sampler* sampler, llama_token token);
LOOKALIKE_API llama_token llama_sampler_sample(llama_sampler* sampler, llama_context* context, int32_t i);
LOOKALIKE_API void llama_sampler_free(llama_sampler* sampler);
