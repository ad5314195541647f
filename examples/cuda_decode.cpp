// SPDX-License-Identifier: Apache-2.0
// An engine's decode loop: one step is captured into a CUDA graph and replayed 1,000 times; the report shows what is
// inside the replays. Once with a graph cache of the engine's own, once with plumb::CudaGraphCache.
#include <cstdio>
#include <cstring>
#include <plumb/cuda.hpp>
#include <plumb/plumb.hpp>

#include "small_cuda.hpp"

namespace {

constexpr unsigned layers = 8, hidden = 4096, replays = 1000;

void forward(small_cuda::Gpu& gpu, plumb::Profiler& prof, plumb::Queue queue) {
    for (unsigned layer = 0; layer < layers; ++layer) {
        PLUMB_LAYER(prof, layer);
        {
            PLUMB_BRICK(prof, queue, plumb::Brick::rms_norm, plumb::bytes(8 * hidden));
            gpu.run(hidden);
        }
        {
            PLUMB_BRICK(prof, queue, plumb::Brick::attention, plumb::bytes(8 * 64 * hidden));
            gpu.run(64 * hidden);
        }
        {
            PLUMB_BRICK(prof, queue, plumb::Brick::down_projection, plumb::bytes(8 * 256 * hidden));
            gpu.run(256 * hidden);
        }
    }
    PLUMB_BRICK(prof, queue, plumb::Brick::lm_head, plumb::bytes(8 * 512 * hidden));
    gpu.run(512 * hidden);
}

template <class Launch>
void decode(small_cuda::Gpu& gpu, plumb::Profiler& prof, plumb::Queue queue, Launch launch) {
    for (unsigned step = 0; step < replays; ++step) {
        PLUMB_STEP(prof, queue, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(step));
        launch();
        gpu.wait(); // for the token
    }
}

void check(const plumb::Status& status) {
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.error().message.c_str());
    }
}

} // namespace

int main(int argc, char** argv) {
    small_cuda::Gpu gpu(512 * hidden);
    plumb::Profiler prof(plumb::Config::from_env()); // PLUMB=on
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    if (argc > 1 && std::strcmp(argv[1], "--own-cache") == 0) {
        CUgraph_st* graph = nullptr;
        CUgraphExec_st* exec = nullptr;
        small_cuda::check(gpu.cuda.begin_capture(gpu.stream, 2), "cuStreamBeginCapture");
        forward(gpu, prof, queue);
        small_cuda::check(gpu.cuda.end_capture(gpu.stream, &graph), "cuStreamEndCapture");
        small_cuda::check(gpu.cuda.instantiate(&exec, graph, 0), "cuGraphInstantiate");
        plumb::Result<plumb::GraphProbe> probe = prof.graph_captured(1, graph);
        plumb::GraphProbe launcher = probe.ok() ? *probe : plumb::GraphProbe();
        decode(gpu, prof, queue, [&] { check(launcher.launch(exec, gpu.stream)); });
    } else {
        plumb::CudaGraphCache cache(&prof);
        check(cache.begin_capture(gpu.stream));
        forward(gpu, prof, queue);
        check(cache.end_capture(1));
        decode(gpu, prof, queue, [&] { (void)cache.replay(1, gpu.stream); });
    }
    check(prof.flush());
    const plumb::Result<plumb::Report> report = prof.snapshot();
    std::printf("%s", report.ok() ? plumb::render_text(*report).c_str() : report.error().message.c_str());
    return report.ok() ? 0 : 2;
}
