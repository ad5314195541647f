// SPDX-License-Identifier: Apache-2.0
// The samples of the README: the first one made to run, by an engine that multiplies two small matrices per layer; the others compiled.
#include <cstdio>
#include <vector>

struct Engine {
    int layers = 4;
    int position = 0;
    std::vector<float> weights = std::vector<float>(64 * 64, 0.5F);
    std::vector<float> x = std::vector<float>(64, 1.0F);

    void multiply() {
        std::vector<float> y(64, 0.0F);
        for (std::size_t row = 0; row < 64; ++row) {
            for (std::size_t column = 0; column < 64; ++column) {
                y[row] += weights[row * 64 + column] * x[column] / 64;
            }
        }
        x = y;
    }
    void qkv(int) { multiply(); }
    void attention(int) { multiply(); }
    [[nodiscard]] double qkv_bytes() const { return 64 * 64 * 4; }
};

// clang-format off
// [readme]
#include <plumb/plumb.hpp>
plumb::Profiler prof(plumb::Config::from_env());  // PLUMB=on ./engine, then: plumb report plumb-1234.plumb
void decode_step(Engine& e) {
    PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(e.position));
    for (int l = 0; l < e.layers; ++l) {
        PLUMB_LAYER(prof, l);
        { PLUMB_BRICK(prof, plumb::host, plumb::Brick::qkv_projection, plumb::bytes(e.qkv_bytes())); e.qkv(l); }
        { PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention); e.attention(l); }
    }
}
// [/readme]

void forward() {}
void attend() {}

void replay_forward(CUstream_st* stream, std::uint64_t batch) {
    // [cuda]
    plumb::Queue q = plumb::cuda(stream);       // no CUDA header needed; scopes on q are timed on the device, nothing waits
    plumb::CudaGraphCache cache(&prof);         // or your own: prof.graph_captured(key, graph), then probe.launch(exec, stream)
    if (cache.begin_capture(stream)) { forward(); }  // each call gives a Status: one sentence where it failed
    if (cache.end_capture(batch)) { (void)cache.replay(batch, stream); }  // bricks inside replays are timed too, in a few of them
    // [/cuda]
    (void)q;
}

void attend_with_prints(plumb::Queue q, const void* out, plumb::Tensor query, std::uint64_t rows, std::uint64_t cols) {
    // [tensors]
    plumb::Tensor attended = plumb::tensor(out, plumb::DType::bf16, {rows, cols});
    PLUMB_OP(prof, q, plumb::Brick::attention, plumb::in(query), plumb::out(attended)) { attend(); }  // PLUMB="on,tensors=all"
    // [/tensors]
}
// clang-format on

int main() {
    Engine engine;
    for (engine.position = 1; engine.position <= 64; ++engine.position) {
        decode_step(engine);
    }
    const plumb::Result<plumb::Report> report = prof.snapshot();
    if (!report) {
        std::fprintf(stderr, "%s\n", report.error().message.c_str());
        return 1;
    }
    std::fputs(plumb::render_text(*report).c_str(), stdout);
    return 0;
}
