/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of docs/guide/engines.md for llama.cpp, compiled as C99, C11 and C++17 and run over the look-alike (docs/internals/lookalike.md). */
// [lopen]
#include <ggml.h>
#include <llama.h>
#include <plumb/ggml.h>

static plumb_profiler* profiler;
static plumb_ggml bricks;

static struct llama_context* open_context(struct llama_model* model) {
    struct llama_context_params params = llama_context_default_params();
    if (plumb_open(NULL, &profiler) == plumb_ok && plumb_ggml_init(&bricks, profiler, "ggml") == plumb_ok) {
        params.cb_eval = plumb_ggml_eval;
        params.cb_eval_user_data = &bricks;
    }
    return llama_init_from_model(model, params);
}
// [/lopen]

// [ldecode]
static int decode(struct llama_context* context, llama_token* tokens, int count, int position) {
    plumb_step step;
    int result;
    memset(&step, 0, sizeof step);
    step.struct_size = sizeof step;
    step.phase = count == 1 ? plumb_phase_decode : plumb_phase_prefill;
    *(count == 1 ? &step.decode_tokens : &step.prefill_tokens) = (uint64_t)count;
    step.kv_length = (uint64_t)(position + count);
    plumb_ggml_begin_step(&bricks, &step);
    result = llama_decode(context, llama_batch_get_one(tokens, count));
    plumb_ggml_end_step(&bricks);
    return result;
}
// [/ldecode]

#include <stdio.h>
#include <stdlib.h>

/* llama_cpp LIBRARIES MODEL STEPS */
int main(int count, char** words) {
    llama_token tokens[8] = {3, 10, 17, 24, 31, 38, 5, 12};
    struct llama_model* model;
    struct llama_context* context;
    struct llama_sampler* sampler;
    int step, position = 0, fresh = 8;
    if (count != 4) {
        return 2;
    }
    ggml_backend_load_all_from_path(words[1]);
    model = llama_model_load_from_file(words[2], llama_model_default_params());
    context = open_context(model);
    sampler = llama_sampler_init_greedy();
    for (step = 0; step <= atoi(words[3]); ++step) {
        if (decode(context, tokens, fresh, position) != 0) {
            return 3;
        }
        position += fresh;
        fresh = 1;
        plumb_push_scope(profiler, NULL, plumb_brick_sampling, NULL);
        tokens[0] = llama_sampler_sample(sampler, context, -1);
        plumb_pop_scope(profiler);
        printf("%d ", (int)tokens[0]);
    }
    llama_sampler_free(sampler);
    llama_free(context);
    llama_model_free(model);
    return plumb_close(profiler) == plumb_ok ? 0 : 4;
}
