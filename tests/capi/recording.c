/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are recorded from C and read back by the answers. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { steps = 4, layers = 3 };

static plumb_step decode_step(uint64_t position) {
    plumb_step step;
    memset(&step, 0, sizeof step);
    step.struct_size = sizeof step;
    step.phase = plumb_phase_decode;
    step.decode_tokens = 1;
    step.sequences = 1;
    step.kv_length = position + 1;
    return step;
}

static plumb_work work_of(double bytes, double flops) {
    plumb_work work;
    memset(&work, 0, sizeof work);
    work.struct_size = sizeof work;
    work.bytes = bytes;
    work.flops = flops;
    return work;
}

static plumb_profiler* opened(const char* spec) {
    plumb_profiler* profiler = NULL;
    CHECK_OK(plumb_open(spec, &profiler));
    return profiler;
}

static void brick(plumb_profiler* profiler, plumb_name name, const plumb_work* work) {
    CHECK_OK(plumb_push_scope(profiler, NULL, name, work));
    CHECK_OK(plumb_pop_scope(profiler));
}

void test_run(const char* folder) {
    const run_names names = names_of(folder, "run", "");
    plumb_profiler* profiler = opened(names.spec);
    const plumb_work work = work_of(64, 128);
    plumb_name own = 0, known = 0, again = 0;
    char* path = NULL;
    char* json = NULL;
    uint64_t position, layer;
    CHECK(plumb_enabled(profiler) == 1);
    CHECK_OK(plumb_intern(profiler, "penalties", plumb_category_output, &own));
    CHECK_OK(plumb_intern(profiler, "penalties", plumb_category_output, &again));
    CHECK_OK(plumb_intern(profiler, "rms_norm", plumb_category_other, &known));
    CHECK(own >= 256 && own == again && known == plumb_brick_rms_norm);
    CHECK_OK(plumb_describe(profiler, "model", "a toy"));
    for (position = 0; position < steps; ++position) {
        const plumb_step step = decode_step(position);
        CHECK_OK(plumb_push_step(profiler, NULL, &step));
        for (layer = 0; layer < layers; ++layer) {
            CHECK_OK(plumb_push_layer(profiler, (uint32_t)layer));
            brick(profiler, plumb_brick_rms_norm, &work);
            brick(profiler, plumb_brick_attention, NULL);
            CHECK_OK(plumb_pop_scope(profiler));
        }
        brick(profiler, own, NULL);
        CHECK_OK(plumb_pop_scope(profiler));
    }
    CHECK_OK(plumb_flush(profiler, 10));
    CHECK_OK(plumb_path(profiler, &path));
    CHECK(path != NULL && strcmp(path, names.path) == 0);
    plumb_free(path);
    CHECK_OK(plumb_snapshot(profiler, &json));
    CHECK(json != NULL && strstr(json, "plumb.report/2") != NULL && strstr(json, "\"penalties\"") != NULL);
    plumb_free(json);
    CHECK_OK(plumb_close(profiler));
    CHECK(outcome_of_check(names.path, "rms_norm=3/step") == plumb_outcome_pass);
    CHECK(outcome_of_check(names.path, "penalties=1/step") == plumb_outcome_pass);
    CHECK(outcome_of_check(names.path, "attention=2/step") == plumb_outcome_fail);
    CHECK(answer_holds("report", names.path, "a toy"));
    CHECK(answer_holds("report", names.path, "\"bytes_per_call\": 64"));
    CHECK(answer_holds("layers", names.path, "plumb.layers/2"));
}

typedef struct job {
    plumb_profiler* profiler;
    plumb_context context;
    plumb_token token;
} job;

static void* work_in_context(void* given) {
    job* of = (job*)given;
    plumb_context now;
    CHECK_OK(plumb_push_context(of->profiler, &of->context));
    brick(of->profiler, plumb_brick_up_projection, NULL);
    CHECK_OK(plumb_end(of->profiler, &of->token)); /* begun by the other thread */
    CHECK_OK(plumb_pop_scope(of->profiler));
    memset(&now, 0, sizeof now);
    now.struct_size = sizeof now;
    CHECK_OK(plumb_get_context(of->profiler, &now));
    CHECK(now.step_plus_one == 0 && now.layer_plus_one == 0);
    return NULL;
}

/* A worker's bricks belong to the step and layer that it was given. */
void test_context(const char* folder) {
    const run_names names = names_of(folder, "context", "");
    plumb_profiler* profiler = opened(names.spec);
    uint64_t position;
    for (position = 0; position < steps; ++position) {
        const plumb_step step = decode_step(position);
        pthread_t worker;
        job given;
        memset(&given, 0, sizeof given);
        given.profiler = profiler;
        given.context.struct_size = sizeof given.context;
        given.token.struct_size = sizeof given.token;
        CHECK_OK(plumb_push_step(profiler, NULL, &step));
        CHECK_OK(plumb_push_layer(profiler, 2));
        CHECK_OK(plumb_get_context(profiler, &given.context));
        CHECK(given.context.layer_plus_one == 3 && given.context.step_plus_one != 0);
        CHECK_OK(plumb_begin(profiler, plumb_brick_moe_experts, NULL, &given.token));
        CHECK(pthread_create(&worker, NULL, work_in_context, &given) == 0);
        CHECK(pthread_join(worker, NULL) == 0);
        CHECK_OK(plumb_pop_scope(profiler));
        CHECK_OK(plumb_pop_scope(profiler));
    }
    CHECK_OK(plumb_close(profiler));
    CHECK(outcome_of_check(names.path, "up_projection=1/step") == plumb_outcome_pass);
    CHECK(outcome_of_check(names.path, "moe_experts=1/step") == plumb_outcome_pass);
    CHECK(answer_holds("layers", names.path, "\"up_projection\""));
}

/* Work known late, spans timed elsewhere, kernels. */
void test_late(const char* folder) {
    const run_names names = names_of(folder, "late", "");
    plumb_profiler* profiler = opened(names.spec);
    plumb_work work = work_of(4096, 0);
    plumb_kernel kernel;
    uint64_t position;
    memset(&kernel, 0, sizeof kernel);
    kernel.struct_size = sizeof kernel;
    CHECK_OK(plumb_intern(profiler, "add_rows", plumb_category_other, &kernel.name));
    kernel.hash = 7;
    kernel.grid[0] = 64, kernel.grid[1] = kernel.grid[2] = 1;
    kernel.block[0] = 256, kernel.block[1] = kernel.block[2] = 1;
    kernel.work = &work;
    for (position = 0; position < steps; ++position) {
        const plumb_step step = decode_step(position);
        uint64_t begin, end;
        CHECK_OK(plumb_push_step(profiler, NULL, &step));
        begin = plumb_now(profiler);
        CHECK_OK(plumb_push_scope(profiler, NULL, plumb_brick_sampling, NULL));
        kernel.begin = plumb_now(profiler);
        kernel.end = plumb_now(profiler) + 1;
        CHECK_OK(plumb_record_kernel(profiler, &kernel));
        CHECK_OK(plumb_set_work(profiler, &work));
        CHECK_OK(plumb_pop_scope(profiler));
        end = plumb_now(profiler);
        CHECK(end > begin);
        CHECK_OK(plumb_record_span(profiler, plumb_brick_lm_head, begin, end, &work));
        CHECK_OK(plumb_pop_scope(profiler));
    }
    CHECK_OK(plumb_close(profiler));
    CHECK(outcome_of_check(names.path, "sampling=1/step") == plumb_outcome_pass);
    CHECK(answer_holds("report", names.path, "\"lm_head\""));
    CHECK(answer_holds("report", names.path, "\"bytes_per_call\": 4096"));
    CHECK(answer_holds("path", names.path, "add_rows"));
}

void test_tensors(const char* folder) {
    const run_names names = names_of(folder, "tensors", "tensors=all,");
    plumb_profiler* profiler = opened(names.spec);
    const plumb_step step = decode_step(0);
    float values[6] = {1, 2, 3, 4, 5, 6};
    const float infinite = 1e30F * 1e30F;
    const int64_t strides[2] = {1, 2};
    plumb_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.dtype = plumb_dtype_f32;
    tensor.rank = 2;
    tensor.data = values;
    tensor.shape[0] = 2, tensor.shape[1] = 3;
    CHECK_OK(plumb_push_step(profiler, NULL, &step));
    CHECK_OK(plumb_record_tensor(profiler, NULL, plumb_brick_rms_norm, &tensor));
    tensor.flags = plumb_tensor_input | plumb_tensor_at_position;
    tensor.strides = strides;
    values[4] = infinite;
    CHECK_OK(plumb_record_tensor(profiler, NULL, plumb_brick_attention, &tensor));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_OK(plumb_close(profiler));
    CHECK(answer_holds("health", names.path, "\"attention\""));
}

void test_requests(const char* folder) {
    const run_names names = names_of(folder, "requests", "");
    plumb_profiler* profiler = opened(names.spec);
    const plumb_step step = decode_step(0);
    CHECK_OK(
        plumb_request(profiler, 17, plumb_request_queue, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    CHECK_OK(plumb_request(profiler, 17, plumb_request_prefill, NULL));
    CHECK_OK(plumb_push_step(profiler, NULL, &step));
    CHECK_OK(plumb_step_request(profiler, 17));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_OK(plumb_request(profiler, 17, plumb_request_decode, NULL));
    CHECK_OK(plumb_end_request(profiler, 17, 3));
    CHECK_OK(plumb_close(profiler));
    CHECK(answer_holds("requests", names.path, "\"ended\": 1"));
    CHECK(answer_holds("requests", names.path, "\"traced\": 1"));
}

/* The second rank lacks the first collective: by their numbers the others are matched all the same. */
void test_collectives(const char* folder) {
    const run_names names[2] = {names_of(folder, "rank0", "rank=0/2+tp=0/2,"), names_of(folder, "rank1", "rank=1/2+tp=1/2,")};
    const char* paths[2];
    plumb_profiler* ranks[2];
    plumb_name group[2];
    uint64_t number;
    int rank;
    for (rank = 0; rank < 2; ++rank) {
        paths[rank] = names[rank].path;
        ranks[rank] = opened(names[rank].spec);
        CHECK_OK(plumb_intern(ranks[rank], "tp", plumb_category_collective, &group[rank]));
    }
    for (number = 0; number < 4; ++number) {
        for (rank = 0; rank < 2; ++rank) {
            if (number > 0 || rank == 0) {
                CHECK_OK(plumb_collective(ranks[rank], plumb_brick_all_reduce, group[rank], number));
                CHECK_OK(plumb_push_scope(ranks[rank], NULL, plumb_brick_all_reduce, NULL));
            }
        }
        for (rank = number == 0 ? 0 : 1; rank >= 0; --rank) {
            CHECK_OK(plumb_pop_scope(ranks[rank]));
        }
    }
    for (rank = 0; rank < 2; ++rank) {
        CHECK_OK(plumb_close(ranks[rank]));
    }
    CHECK(answer_of_all_holds("ranks", paths, 2, "\"group\": \"tp\""));
    CHECK(answer_of_all_holds("ranks", paths, 2, "\"world\": 2"));
    CHECK(answer_of_all_holds("ranks", paths, 2, "\"collectives\": 3"));
    CHECK(answer_of_all_holds("ranks", paths, 2, "\"last_rank\": 1"));
    CHECK_FAILS(plumb_collective(NULL, plumb_brick_all_reduce, 0, 0), plumb_invalid_argument, "plumb_open()");
}

/* Off, everything is accepted and nothing is there. */
void test_off(const char* folder) {
    plumb_profiler* profiler = opened("off");
    const plumb_step step = decode_step(0);
    plumb_token token;
    char* path = NULL;
    (void)folder;
    memset(&token, 0, sizeof token);
    token.struct_size = sizeof token;
    CHECK(plumb_enabled(profiler) == 0);
    CHECK_OK(plumb_push_step(profiler, NULL, &step));
    CHECK_OK(plumb_push_layer(profiler, 0));
    brick(profiler, plumb_brick_attention, NULL);
    CHECK_OK(plumb_begin(profiler, plumb_brick_attention, NULL, &token));
    CHECK_OK(plumb_end(profiler, &token));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_OK(plumb_path(profiler, &path));
    CHECK(path != NULL && path[0] == '\0');
    plumb_free(path);
    CHECK_OK(plumb_close(profiler));
}
