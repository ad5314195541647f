/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong arguments: a code and a sentence each, and the profiler goes on. */
#include <ggml.h>
#include <plumb/ggml.h>
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

static plumb_profiler* in_memory(void) {
    plumb_profiler* profiler = NULL;
    CHECK_OK(plumb_open("on,warmup=0,out=none", &profiler));
    return profiler;
}

static void test_specs(void) {
    plumb_profiler* profiler = (plumb_profiler*)1;
    CHECK_FAILS(plumb_open("on,speed=fast", &profiler), plumb_invalid_argument, "speed");
    CHECK(profiler == NULL && strstr(plumb_last_error(), "warmup") != NULL); /* it names the known keys */
    CHECK_FAILS(plumb_open("on,warmup=many", &profiler), plumb_invalid_argument, "warmup");
    CHECK_FAILS(plumb_open("on", NULL), plumb_invalid_argument, "NULL");
    CHECK(plumb_open("on,out=/proc/no/such/folder/x.plumb", &profiler) != plumb_ok);
    CHECK(profiler == NULL && plumb_last_error()[0] != '\0');
}

static void test_null_profiler(void) {
    plumb_name name = 9;
    plumb_graph* graph = (plumb_graph*)1;
    char* text = NULL;
    plumb_step step;
    memset(&step, 0, sizeof step);
    step.struct_size = sizeof step;
    CHECK_FAILS(plumb_close(NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_enable(NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_disable(NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_describe(NULL, "model", "x"), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_flush(NULL, 1), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_path(NULL, &text), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_intern(NULL, "x", 0, &name), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_push_step(NULL, NULL, &step), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_push_layer(NULL, 0), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_push_scope(NULL, NULL, 1, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_set_work(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_pop_scope(NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_begin(NULL, 1, NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_end(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_record_span(NULL, 1, 0, 1, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_request(NULL, 1, plumb_request_queue, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_end_request(NULL, 1, 1), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_step_request(NULL, 1), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_record_command(NULL, NULL, 1, NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_get_context(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_push_context(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_record_kernel(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_record_tensor(NULL, NULL, 1, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_graph_captured(NULL, 1, NULL, &graph), plumb_invalid_argument, "plumb_open()");
    CHECK(graph == NULL);
    CHECK_FAILS(plumb_hip_graph_captured(NULL, 1, NULL, &graph), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_graph_evicted(NULL, 1), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_graphs_evicted_all(NULL, 1), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_graph_launch(NULL, NULL, NULL), plumb_invalid_argument, "plumb_graph_captured()");
    CHECK_FAILS(plumb_graph_release(NULL), plumb_invalid_argument, "plumb_graph_captured()");
    CHECK_FAILS(plumb_snapshot(NULL, &text), plumb_invalid_argument, "plumb_open()");
    CHECK_FAILS(plumb_ggml_describe(NULL, NULL), plumb_invalid_argument, "plumb_open()");
    CHECK(plumb_enabled(NULL) == 0 && plumb_now(NULL) == 0 && plumb_timed(NULL) == 0);
    plumb_free(NULL);
}

static void test_null_arguments(plumb_profiler* profiler) {
    plumb_name name = 9;
    CHECK_FAILS(plumb_path(profiler, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_snapshot(profiler, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_describe(profiler, NULL, "x"), plumb_invalid_argument, "the key is NULL");
    CHECK_FAILS(plumb_describe(profiler, "model", NULL), plumb_invalid_argument, "the value is NULL");
    CHECK_FAILS(plumb_intern(profiler, "x", 0, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_intern(profiler, NULL, 0, &name), plumb_invalid_argument, "empty");
    CHECK_FAILS(plumb_intern(profiler, "", 0, &name), plumb_invalid_argument, "empty");
    CHECK_FAILS(plumb_intern(profiler, "x", 10, &name), plumb_invalid_argument, "plumb_category_");
    CHECK(name == 0);
    CHECK_FAILS(plumb_push_step(profiler, NULL, NULL), plumb_invalid_argument, "plumb_step is NULL");
    CHECK_FAILS(plumb_set_work(profiler, NULL), plumb_invalid_argument, "plumb_work is NULL");
    CHECK_FAILS(plumb_begin(profiler, 1, NULL, NULL), plumb_invalid_argument, "plumb_token is NULL");
    CHECK_FAILS(plumb_end(profiler, NULL), plumb_invalid_argument, "plumb_token is NULL");
    CHECK_FAILS(plumb_get_context(profiler, NULL), plumb_invalid_argument, "plumb_context is NULL");
    CHECK_FAILS(plumb_push_context(profiler, NULL), plumb_invalid_argument, "plumb_context is NULL");
    CHECK_FAILS(plumb_record_kernel(profiler, NULL), plumb_invalid_argument, "plumb_kernel is NULL");
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, NULL), plumb_invalid_argument, "plumb_tensor is NULL");
    CHECK_FAILS(plumb_graph_captured(profiler, 1, NULL, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_cuda(NULL, NULL), plumb_invalid_argument, "plumb_queue is NULL");
}

static pthread_key_t last_key;

/* Of a thread that may not record any more, which is counted there. */
static void record_too_late(void* profiler) {
    plumb_token token;
    memset(&token, 0, sizeof token);
    token.struct_size = sizeof token;
    CHECK_OK(plumb_begin(profiler, 1, NULL, &token));
    CHECK_OK(plumb_end(profiler, &token));
    CHECK_FAILS(plumb_end(profiler, &token), plumb_invalid_argument, "not open");
}

static void* record_until_the_end(void* profiler) {
    CHECK_OK(plumb_push_scope(profiler, NULL, 1, NULL));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK(pthread_setspecific(last_key, profiler) == 0);
    return NULL;
}

static void test_values(plumb_profiler* profiler) {
    plumb_step step;
    plumb_tensor tensor;
    plumb_work work;
    plumb_context context;
    plumb_queue queue;
    plumb_token token;
    pthread_t thread;
    float value = 1;
    memset(&token, 0, sizeof token);
    token.struct_size = sizeof token;
    memset(&context, 0, sizeof context);
    memset(&queue, 0, sizeof queue);
    context.struct_size = sizeof context;
    context.layer_plus_one = 70000;
    queue.struct_size = sizeof queue;
    CHECK_FAILS(plumb_push_context(profiler, &context), plumb_invalid_argument, "65,534");
    CHECK_FAILS(plumb_record_command(profiler, NULL, 1, NULL, NULL), plumb_invalid_argument, "plumb_queue is NULL");
    CHECK_FAILS(plumb_record_command(profiler, &queue, 1, NULL, NULL), plumb_invalid_argument, "calling thread");
    CHECK_OK(plumb_metal(NULL, &queue));
    CHECK(plumb_record_command(profiler, &queue, 1, NULL, NULL) != plumb_ok);
    memset(&step, 0, sizeof step);
    memset(&tensor, 0, sizeof tensor);
    memset(&work, 0, sizeof work);
    step.struct_size = sizeof step;
    tensor.struct_size = sizeof tensor;
    work.struct_size = sizeof work;
    step.phase = 4;
    CHECK_FAILS(plumb_push_step(profiler, NULL, &step), plumb_invalid_argument, "plumb_phase_");
    CHECK_FAILS(plumb_push_layer(profiler, 70000), plumb_invalid_argument, "65,534");
    CHECK_FAILS(plumb_record_span(profiler, 1, 9, 8, NULL), plumb_invalid_argument, "ends before");
    CHECK_FAILS(plumb_request(profiler, 1, 0, NULL), plumb_invalid_argument, "plumb_request_");
    CHECK_FAILS(plumb_request(profiler, 1, 6, NULL), plumb_invalid_argument, "plumb_request_");
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, &tensor), plumb_invalid_argument, "data");
    tensor.data = &value;
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, &tensor), plumb_invalid_argument, "rank");
    tensor.rank = 9;
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, &tensor), plumb_invalid_argument, "rank");
    tensor.rank = 1;
    tensor.dtype = 6;
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, &tensor), plumb_invalid_argument, "dtype");
    tensor.dtype = plumb_dtype_f32;
    tensor.flags = 8;
    CHECK_FAILS(plumb_record_tensor(profiler, NULL, 1, &tensor), plumb_invalid_argument, "flags");
    CHECK_OK(plumb_begin(profiler, 1, NULL, &token));
    CHECK_OK(plumb_end(profiler, &token));
    CHECK_FAILS(plumb_end(profiler, &token), plumb_invalid_argument, "not open");
    CHECK(pthread_key_create(&last_key, record_too_late) == 0);
    CHECK(pthread_create(&thread, NULL, record_until_the_end, profiler) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(plumb_disable(profiler));
    CHECK_OK(plumb_begin(profiler, 1, NULL, &token));
    CHECK_OK(plumb_enable(profiler));
    CHECK_OK(plumb_end(profiler, &token));
    CHECK_FAILS(plumb_end(profiler, &token), plumb_invalid_argument, "not open");
    CHECK_FAILS(plumb_pop_scope(profiler), plumb_invalid_argument, "nothing");
    CHECK_FAILS(plumb_set_work(profiler, &work), plumb_invalid_argument, "no brick");
    CHECK_OK(plumb_push_layer(profiler, 0));
    CHECK_FAILS(plumb_set_work(profiler, &work), plumb_invalid_argument, "no brick");
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_FAILS(plumb_pop_scope(profiler), plumb_invalid_argument, "nothing");
}

/* Whoever ends a step that was refused ends nothing. */
static void test_refused_step(plumb_profiler* profiler) {
    plumb_ggml bricks;
    plumb_step step;
    memset(&step, 0, sizeof step);
    CHECK_OK(plumb_ggml_init(&bricks, profiler, "ggml"));
    CHECK_OK(plumb_push_scope(profiler, NULL, plumb_brick_attention, NULL));
    CHECK_FAILS(plumb_ggml_begin_step(&bricks, &step), plumb_invalid_argument, "plumb_step");
    CHECK_OK(plumb_ggml_end_step(&bricks));
    step.struct_size = sizeof step;
    step.phase = plumb_phase_decode;
    CHECK_OK(plumb_ggml_begin_step(&bricks, &step));
    CHECK_OK(plumb_ggml_end_step(&bricks));
    CHECK_OK(plumb_pop_scope(profiler)); /* the brick, which is still open */
    CHECK_FAILS(plumb_pop_scope(profiler), plumb_invalid_argument, "nothing");
}

static void test_questions(const char* folder) {
    plumb_question question;
    char* json = (char*)1;
    const char* missing = NULL;
    const char* files[1];
    char absent[512];
    snprintf(absent, sizeof absent, "%s/absent.plumb", folder);
    files[0] = absent;
    memset(&question, 0, sizeof question);
    question.struct_size = sizeof question;
    CHECK_FAILS(plumb_ask(&question, NULL, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_ask(NULL, &json, NULL), plumb_invalid_argument, "plumb_question is NULL");
    CHECK(json == NULL);
    CHECK_FAILS(plumb_ask(&question, &json, NULL), plumb_invalid_argument, "NULL");
    question.answer = "weather";
    CHECK_FAILS(plumb_ask(&question, &json, NULL), plumb_not_found, "weather");
    question.answer = "report";
    question.file_count = 1;
    CHECK_FAILS(plumb_ask(&question, &json, NULL), plumb_invalid_argument, "NULL");
    question.files = &missing;
    CHECK_FAILS(plumb_ask(&question, &json, NULL), plumb_invalid_argument, "NULL");
    question.files = files;
    CHECK_FAILS(plumb_ask(&question, &json, NULL), plumb_not_found, "absent.plumb");
}

void test_wrong_arguments(const char* folder) {
    plumb_profiler* profiler = in_memory();
    CHECK(plumb_last_error()[0] == '\0');
    test_specs();
    test_null_profiler();
    test_null_arguments(profiler);
    test_values(profiler);
    test_refused_step(profiler);
    test_questions(folder);
    CHECK_OK(plumb_push_scope(profiler, NULL, plumb_brick_attention, NULL));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_OK(plumb_close(profiler));
}

/* A struct that another plumb.h made larger. */
typedef struct newer_work {
    plumb_work work;
    double more;
} newer_work;

void test_struct_sizes(const char* folder) {
    plumb_profiler* profiler = in_memory();
    newer_work newer;
    plumb_queue queue;
    plumb_step step;
    plumb_token token;
    plumb_ggml_node node;
    (void)folder;
    memset(&node, 0, sizeof node);
    memset(&newer, 0, sizeof newer);
    memset(&queue, 0, sizeof queue);
    memset(&step, 0, sizeof step);
    memset(&token, 0, sizeof token);
    CHECK_FAILS(plumb_push_scope(profiler, NULL, 1, &newer.work), plumb_invalid_argument,
                "struct_size of a plumb_work is 0, it must be 40");
    newer.work.struct_size = sizeof newer.work - 8;
    CHECK_FAILS(plumb_push_scope(profiler, NULL, 1, &newer.work), plumb_invalid_argument, "sizeof(plumb_work)");
    newer.work.struct_size = 0xffffffff;
    CHECK_FAILS(plumb_push_scope(profiler, NULL, 1, &newer.work), plumb_invalid_argument, "sizeof(plumb_work)");
    newer.work.struct_size = sizeof newer;
    CHECK_OK(plumb_push_scope(profiler, NULL, 1, &newer.work));
    CHECK_OK(plumb_pop_scope(profiler));
    newer.more = 1;
    CHECK_FAILS(plumb_push_scope(profiler, NULL, 1, &newer.work), plumb_invalid_argument, "newer plumb.h");
    CHECK_FAILS(plumb_push_scope(profiler, &queue, 1, NULL), plumb_invalid_argument, "plumb_queue");
    CHECK_FAILS(plumb_push_step(profiler, NULL, &step), plumb_invalid_argument, "plumb_step");
    CHECK_FAILS(plumb_begin(profiler, 1, NULL, &token), plumb_invalid_argument, "plumb_token");
    CHECK_FAILS(plumb_cuda(NULL, &queue), plumb_invalid_argument, "plumb_queue");
    CHECK_FAILS(plumb_sampled("x", &queue), plumb_invalid_argument, "plumb_queue");
    CHECK_FAILS(plumb_sampled(NULL, &queue), plumb_invalid_argument, "name");
    CHECK_FAILS(plumb_ggml_describe(profiler, &node), plumb_invalid_argument, "plumb_ggml_node");
    node.struct_size = sizeof node;
    CHECK_FAILS(plumb_ggml_describe(profiler, &node), plumb_invalid_argument, "operation");
    CHECK_FAILS(plumb_pop_scope(profiler), plumb_invalid_argument, "nothing"); /* none of these began anything */
    CHECK_OK(plumb_close(profiler));
}

/* Handles of devices that are not here: each queue is taken, its scopes are dropped and counted. */
void test_queues(const char* folder) {
    const run_names names = names_of(folder, "queues", "");
    plumb_profiler* profiler = NULL;
    plumb_vulkan_handles handles;
    plumb_vulkan* vulkan = (plumb_vulkan*)1;
    plumb_queue queue;
    CHECK_OK(plumb_open(names.spec, &profiler));
    memset(&queue, 0, sizeof queue);
    memset(&handles, 0, sizeof handles);
    queue.struct_size = sizeof queue;
    CHECK_OK(plumb_metal(NULL, &queue));
    CHECK_OK(plumb_push_scope(profiler, &queue, plumb_brick_attention, NULL));
    CHECK_OK(plumb_pop_scope(profiler));
    CHECK_FAILS(plumb_vulkan_open(&handles, &vulkan), plumb_invalid_argument, "plumb_vulkan_handles");
    handles.struct_size = sizeof handles;
    CHECK(plumb_vulkan_open(&handles, &vulkan) != plumb_ok);
    CHECK(vulkan == NULL && plumb_last_error()[0] != '\0');
    CHECK_FAILS(plumb_vulkan_open(&handles, NULL), plumb_invalid_argument, "NULL");
    CHECK_FAILS(plumb_vulkan_queue(NULL, &queue), plumb_invalid_argument, "plumb_vulkan_open()");
    CHECK_FAILS(plumb_vulkan_record(NULL, NULL, 0, &queue), plumb_invalid_argument, "plumb_vulkan_open()");
    CHECK_FAILS(plumb_vulkan_submitting(NULL, profiler, NULL), plumb_invalid_argument, "plumb_vulkan_open()");
    CHECK_FAILS(plumb_vulkan_forget(NULL, NULL), plumb_invalid_argument, "plumb_vulkan_open()");
    CHECK_FAILS(plumb_vulkan_close(NULL), plumb_invalid_argument, "plumb_vulkan_open()");
    CHECK_OK(plumb_close(profiler));
    CHECK(answer_holds("report", names.path, "device timer refused"));
}
