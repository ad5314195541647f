/* SPDX-License-Identifier: Apache-2.0 */
/* A device queue and a captured graph through plumb.h, on the virtual GPU in real time: once as CUDA, once (PLUMB_TEST_HIP) as HIP. */
#include <stdlib.h>

#include "check.h"

#ifdef PLUMB_TEST_HIP
#define VENDOR(cuda, hip) hip
#else
#define VENDOR(cuda, hip) cuda
#endif

int VENDOR(cuInit, hipInit)(unsigned flags);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int hipSetDevice(int device);
int VENDOR(cuStreamCreate, hipStreamCreateWithFlags)(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream); /* the stand-in for HIP has none of its own */
int VENDOR(cuModuleLoadData, hipModuleLoadData)(void** module, const void* image);
int VENDOR(cuModuleGetFunction, hipModuleGetFunction)(void** function, void* module, const char* name);
int VENDOR(cuLaunchKernel, hipModuleLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                                  unsigned block_x, unsigned block_y, unsigned block_z,
                                                  unsigned shared_bytes, void* stream, void** params, void** extra);
int VENDOR(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void* stream, int mode);
int VENDOR(cuStreamEndCapture, hipStreamEndCapture)(void* stream, void** graph);
int VENDOR(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void** exec, void* graph,
                                                                      unsigned long long flags);

int failures = 0;

enum { key = 16, steps_of_round = 250, most_rounds = 40 };

typedef struct engine {
    plumb_profiler* profiler;
    plumb_queue queue;
    void* stream;
    void* kernel;
    uint64_t position;
} engine;

static void set_up_device(engine* of) {
    void* module = NULL;
    CHECK(VENDOR(cuInit, hipInit)(0) == 0);
#ifdef PLUMB_TEST_HIP
    CHECK(hipSetDevice(0) == 0);
#else
    {
        void* context = NULL;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0) == 0);
        CHECK(cuCtxSetCurrent(context) == 0);
    }
#endif
    CHECK(VENDOR(cuStreamCreate, hipStreamCreateWithFlags)(&of->stream, 1) == 0);
    CHECK(VENDOR(cuModuleLoadData, hipModuleLoadData)(&module, "an image") == 0);
    CHECK(VENDOR(cuModuleGetFunction, hipModuleGetFunction)(&of->kernel, module, "gemm") == 0);
    of->queue.struct_size = sizeof of->queue;
    CHECK_OK(VENDOR(plumb_cuda, plumb_hip)(of->stream, &of->queue));
    CHECK(of->queue.timer != NULL);
}

static void brick(engine* of, plumb_name name) {
    CHECK_OK(plumb_push_scope(of->profiler, &of->queue, name, NULL));
    CHECK(VENDOR(cuLaunchKernel, hipModuleLaunchKernel)(of->kernel, 16, 1, 1, 256, 1, 1, 0, of->stream, NULL, NULL) ==
          0);
    CHECK_OK(plumb_pop_scope(of->profiler));
}

static void forward(engine* of) {
    CHECK_OK(plumb_push_layer(of->profiler, 0));
    brick(of, plumb_brick_attention);
    CHECK_OK(plumb_pop_scope(of->profiler));
    brick(of, plumb_brick_lm_head);
}

/* Steps that launch the graph; null: that run the forward pass itself. */
static void decode(engine* of, plumb_graph* graph, void* executable, unsigned count) {
    plumb_step step;
    unsigned i;
    memset(&step, 0, sizeof step);
    step.struct_size = sizeof step;
    step.phase = plumb_phase_decode;
    step.decode_tokens = 1;
    for (i = 0; i < count; ++i) {
        step.kv_length = ++of->position;
        CHECK_OK(plumb_push_step(of->profiler, &of->queue, &step));
        if (graph != NULL) {
            CHECK_OK(plumb_graph_launch(graph, executable, of->stream));
        } else {
            forward(of);
        }
        CHECK(cuStreamSynchronize(of->stream) == 0);
        CHECK_OK(plumb_pop_scope(of->profiler));
    }
}

static int report_holds(engine* of, const char* text) {
    char* json = NULL;
    int holds;
    CHECK_OK(plumb_flush(of->profiler, 10));
    CHECK_OK(plumb_snapshot(of->profiler, &json));
    holds = json != NULL && strstr(json, text) != NULL;
    plumb_free(json);
    return holds;
}

#ifndef PLUMB_TEST_HIP
/* A graph in which no scope was open: libplumb-naming.so, beside libplumb.so, reads the names of its kernels. */
static void name_by_kernels(engine* of) {
    static const char* const names[] = {"rms_norm_kernel", "flash_fwd_kernel", "silu_and_mul_kernel"};
    plumb_graph* graph = NULL;
    void* module = NULL;
    void* captured = NULL;
    void* executable = NULL;
    unsigned i;
    int rounds = 0;
    CHECK(cuModuleLoadData(&module, "an image") == 0);
    CHECK(cuStreamBeginCapture_v2(of->stream, 2) == 0);
    for (i = 0; i < 24; ++i) {
        void* kernel = NULL;
        CHECK(cuModuleGetFunction(&kernel, module, names[i % 3]) == 0);
        CHECK(cuLaunchKernel(kernel, 16, 1, 1, 256, 1, 1, 0, of->stream, NULL, NULL) == 0);
    }
    CHECK(cuStreamEndCapture(of->stream, &captured) == 0);
    CHECK(cuGraphInstantiateWithFlags(&executable, captured, 0) == 0);
    CHECK_OK(plumb_graph_captured(of->profiler, key + 1, captured, &graph));
    CHECK(!report_holds(of, "\"rms_norm\""));
    do {
        decode(of, graph, executable, steps_of_round);
    } while (failures == 0 && ++rounds < most_rounds && !report_holds(of, "\"rms_norm\""));
    CHECK(rounds < most_rounds);
    CHECK(report_holds(of, "\"activation\""));
    CHECK_OK(plumb_graph_evicted(of->profiler, key + 1));
    CHECK_OK(plumb_graphs_evicted_all(of->profiler, 10));
    CHECK_OK(plumb_graph_release(graph));
}
#endif

int main(void) {
    engine of;
    plumb_graph* graph = NULL;
    void* captured = NULL;
    void* executable = NULL;
    int rounds = 0;
    memset(&of, 0, sizeof of);
    CHECK_OK(plumb_open("on,warmup=0,out=none,graph.every=4", &of.profiler));
    set_up_device(&of);
    decode(&of, NULL, NULL, 64);
    CHECK(report_holds(&of, VENDOR("\"cuda_event\"", "\"hip_event\"")));
    CHECK(!report_holds(&of, VENDOR("\"cuda_graph_event\"", "\"hip_graph_event\"")));

    CHECK(VENDOR(cuStreamBeginCapture_v2, hipStreamBeginCapture)(of.stream, 2) == 0);
    forward(&of);
    CHECK(VENDOR(cuStreamEndCapture, hipStreamEndCapture)(of.stream, &captured) == 0);
    CHECK(VENDOR(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(&executable, captured, 0) == 0);
    CHECK_OK(VENDOR(plumb_graph_captured, plumb_hip_graph_captured)(of.profiler, key, captured, &graph));
    CHECK(graph != NULL);
    /* The twin is built by a thread of its own, in its own time. */
    do {
        decode(&of, graph, executable, steps_of_round);
    } while (failures == 0 && ++rounds < most_rounds &&
             !report_holds(&of, VENDOR("\"cuda_graph_event\"", "\"hip_graph_event\"")));
    CHECK(rounds < most_rounds);
    CHECK_OK(plumb_graph_evicted(of.profiler, key));
    CHECK_OK(plumb_graphs_evicted_all(of.profiler, 10));
    CHECK_OK(plumb_graph_release(graph));
#ifndef PLUMB_TEST_HIP
    name_by_kernels(&of);
#endif
    CHECK_OK(plumb_close(of.profiler));
    return failures == 0 ? 0 : 1;
}
