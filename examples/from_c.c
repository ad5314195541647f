/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of docs/reference/c.md, compiled as C99 and run: a decode loop that records itself and asks for its report. */
#include <plumb/plumb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { layers = 2, width = 256 };

static float weights[width * width];
static float state[width], next[width];

// [copen]
static plumb_profiler* profiler; // NULL: not profiled

static void start(void) {
    if (plumb_open(NULL, &profiler) != plumb_ok) { // from PLUMB; or a spec: "on,out=run.plumb"
        fprintf(stderr, "not profiled: %s\n", plumb_last_error());
    }
}
// [/copen]

static void multiply(void) {
    int row, column;
    for (row = 0; row < width; ++row) {
        next[row] = 0;
        for (column = 0; column < width; ++column) {
            next[row] += weights[row * width + column] * state[column];
        }
    }
    memcpy(state, next, sizeof state);
}

// [cstep]
static void decode_step(unsigned position) {
    plumb_step step = {sizeof step, plumb_phase_decode, 0, 0, 0, 0};
    plumb_work work = {sizeof work, 0, 0, 0, 0, 0};
    unsigned layer;
    step.decode_tokens = 1;
    step.kv_length = position + 1;
    work.bytes = sizeof weights;
    work.flops = 2.0 * width * width;
    plumb_push_step(profiler, NULL, &step);
    for (layer = 0; layer < layers; ++layer) {
        plumb_push_layer(profiler, layer);
        plumb_push_scope(profiler, NULL, plumb_brick_up_projection, &work);
        multiply();
        plumb_pop_scope(profiler); // the brick
        plumb_pop_scope(profiler); // the layer
    }
    plumb_pop_scope(profiler); // the step
}
// [/cstep]

// [cworker]
static void* work_on(void* given) {
    const plumb_context* context = given; // plumb_get_context() of the thread that runs the step
    plumb_push_context(profiler, context);
    plumb_push_scope(profiler, NULL, plumb_brick_down_projection, NULL);
    multiply();
    plumb_pop_scope(profiler);
    plumb_pop_scope(profiler); // the context
    return NULL;
}
// [/cworker]

static void step_with_a_worker(unsigned position) {
    plumb_step step = {sizeof step, plumb_phase_decode, 0, 1, 1, 0};
    plumb_context context = {sizeof context, 0, 0};
    pthread_t worker;
    step.kv_length = position + 1;
    plumb_push_step(profiler, NULL, &step);
    plumb_get_context(profiler, &context);
    if (pthread_create(&worker, NULL, work_on, &context) == 0) {
        pthread_join(worker, NULL);
    }
    plumb_pop_scope(profiler);
}

// [cask]
static int print_report(void) {
    char* json = NULL;
    if (plumb_snapshot(profiler, &json) != plumb_ok) {
        fprintf(stderr, "%s\n", plumb_last_error());
        return 1;
    }
    puts(json);
    plumb_free(json);
    return 0;
}
// [/cask]

int main(void) {
    unsigned position;
    int failed;
    start();
    for (position = 0; position < 32; ++position) {
        decode_step(position);
        step_with_a_worker(position);
    }
    failed = print_report();
    plumb_close(profiler);
    return failed;
}
