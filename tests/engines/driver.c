// SPDX-License-Identifier: Apache-2.0
// A C program over a prebuilt libllama that knows nothing of a profiler. It opens the libraries by dlopen() and uses our own
// declarations: of the parameters only the first number is known, which is the same in every release, and room for the rest.
//
//   driver LIBRARIES MODEL PROMPT_TOKENS STEPS THREADS    prints {"tokens":[...],"logits":"hash","decode_ns":[...]}
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    int32_t n_tokens;
    int32_t* token;
    float* embd;
    int32_t* pos;
    int32_t* n_seq_id;
    int32_t** seq_id;
    int8_t* logits;
} Batch;
typedef struct {
    char room[512];
} ModelParams;
typedef struct {
    uint32_t n_ctx;
    char room[508];
} ContextParams;

static void* open_one(const char* folder, const char* plain, const char* versioned) {
    char pattern[4096];
    glob_t found;
    for (int i = 0; i < 2; ++i) {
        snprintf(pattern, sizeof pattern, "%s/%s", folder, i == 0 ? plain : versioned);
        if (glob(pattern, 0, NULL, &found) == 0) {
            void* library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
            if (library == NULL) {
                fprintf(stderr, "driver: %s\n", dlerror());
                exit(2);
            }
            globfree(&found);
            return library;
        }
    }
    fprintf(stderr, "driver: %s holds no %s\n", folder, plain);
    exit(2);
}

static void* symbol(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "driver: there is no %s\n", name);
        exit(2);
    }
    return found;
}

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void quiet(int level, const char* text, void* data) {
    (void)data;
    if (level == 4 && getenv("DRIVER_LOG") != NULL) {
        fputs(text, stderr);
    }
}

int main(int count, char** words) {
    if (count != 6) {
        fputs("usage: driver LIBRARIES MODEL PROMPT_TOKENS STEPS THREADS\n", stderr);
        return 2;
    }
    const int prompt = atoi(words[3]), steps = atoi(words[4]), threads = atoi(words[5]);
    void* llama = open_one(words[1], "libllama.so", "libllama.*v*.so");
    void* ggml = open_one(words[1], "libggml.so", "libggml.*v*.so");
#define FIND(type, name, arguments, library) type(*name) arguments = (type(*) arguments)symbol(library, #name)
    FIND(void, ggml_backend_load_all_from_path, (const char*), ggml);
    FIND(void, llama_log_set, (void (*)(int, const char*, void*), void*), llama);
    FIND(void, llama_backend_init, (void), llama);
    FIND(ModelParams, llama_model_default_params, (void), llama);
    FIND(ContextParams, llama_context_default_params, (void), llama);
    FIND(void*, llama_model_load_from_file, (const char*, ModelParams), llama);
    FIND(void*, llama_init_from_model, (void*, ContextParams), llama);
    FIND(void, llama_set_n_threads, (void*, int32_t, int32_t), llama);
    FIND(const void*, llama_model_get_vocab, (const void*), llama);
    FIND(int32_t, llama_vocab_n_tokens, (const void*), llama);
    FIND(float*, llama_get_logits_ith, (void*, int32_t), llama);
    FIND(void*, llama_sampler_init_dist, (uint32_t), llama);
    FIND(int32_t, llama_sampler_sample, (void*, void*, int32_t), llama);
    FIND(Batch, llama_batch_get_one, (int32_t*, int32_t), llama);
    FIND(int32_t, llama_decode, (void*, Batch), llama);
    FIND(void, llama_synchronize, (void*), llama);
    FIND(void, llama_free, (void*), llama);
    FIND(void, llama_model_free, (void*), llama);

    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(words[1]);
    llama_backend_init();
    void* model = llama_model_load_from_file(words[2], llama_model_default_params());
    if (model == NULL) {
        fprintf(stderr, "driver: %s is no model\n", words[2]);
        return 2;
    }
    ContextParams params = llama_context_default_params();
    params.n_ctx = (uint32_t)(prompt + steps + 8);
    void* context = llama_init_from_model(model, params);
    void* sampler = llama_sampler_init_dist(1); // random weights like one token alone: chance makes more of it
    const int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int32_t* tokens = calloc((size_t)prompt, sizeof *tokens);
    long long* took = calloc((size_t)steps, sizeof *took);
    int32_t* made = calloc((size_t)steps, sizeof *made);
    if (context == NULL || tokens == NULL || took == NULL || made == NULL) {
        fputs("driver: no context\n", stderr);
        return 2;
    }
    llama_set_n_threads(context, threads, threads);
    for (int i = 0; i < prompt; ++i) {
        tokens[i] = 3 + i % 250;
    }
    if (llama_decode(context, llama_batch_get_one(tokens, prompt)) != 0) {
        return 3;
    }
    int32_t token = llama_sampler_sample(sampler, context, -1);
    uint64_t hash = 1469598103934665603U;
    for (int i = 0; i < steps; ++i) {
        const long long begin = now();
        if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) {
            return 3;
        }
        llama_synchronize(context);
        took[i] = now() - begin;
        const unsigned char* logits = (const unsigned char*)llama_get_logits_ith(context, -1);
        for (size_t k = 0; k < (size_t)vocabulary * sizeof(float); ++k) {
            hash = (hash ^ logits[k]) * 1099511628211U;
        }
        made[i] = token = llama_sampler_sample(sampler, context, -1);
    }
    for (int i = 0; i < steps; ++i) {
        printf("%s%d", i == 0 ? "{\"tokens\":[" : ",", made[i]);
    }
    printf("],\"logits\":\"%016llx\",\"decode_ns\":[", (unsigned long long)hash);
    for (int i = 0; i < steps; ++i) {
        printf("%s%lld", i == 0 ? "" : ",", took[i]);
    }
    puts("]}");
    llama_free(context);
    llama_model_free(model);
    return 0;
}
