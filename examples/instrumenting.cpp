// SPDX-License-Identifier: Apache-2.0
// The samples of docs/guide/instrumenting.md that the reference decoder does not show, compiled and run.
#include <cstdio>
#include <plumb/backend_timer.hpp>
#include <plumb/plumb.hpp>
#include <thread>
#include <vector>

namespace {

struct Matrix {
    std::vector<float> values = std::vector<float>(64 * 64, 0.5F);
    [[nodiscard]] double bytes() const { return 64 * 64 * sizeof(float); }
};

void multiply(const Matrix& matrix, std::vector<float>& x) {
    std::vector<float> y(64, 0.0F);
    for (std::size_t row = 0; row < 64; ++row) {
        for (std::size_t column = 0; column < 64; ++column) {
            y[row] += matrix.values[row * 64 + column] * x[column] / 64;
        }
    }
    x = y;
}

// clang-format off
// [laps]
void layer_in_laps(plumb::Profiler& prof, const Matrix& m, std::vector<float>& x) {
    PLUMB_BRICK(prof, plumb::host, prof.intern("block", plumb::Category::other));
    PLUMB_LAP(prof, plumb::host, plumb::Brick::qkv_projection, plumb::bytes(m.bytes()));
    multiply(m, x);
    PLUMB_LAP(prof, plumb::host, plumb::Brick::output_projection, plumb::bytes(m.bytes()));
    multiply(m, x);
}                                                  // the last lap ends with the block's scope
// [/laps]

// [literals]
void own_brick(plumb::Profiler& prof, std::vector<float>& x) {
    PLUMB_BRICK(prof, plumb::host, "penalties", plumb::elements(x.size()));
    for (float& value : x) value -= 0.1F;
}
// [/literals]

// [names]
void own_name(plumb::Profiler& prof, std::vector<float>& x) {
    static const plumb::Name dequantise = prof.intern("dequantise", plumb::Category::transfer);
    PLUMB_BRICK(prof, plumb::host, dequantise, plumb::elements(x.size()));
    for (float& value : x) value *= 0.5F;
}
// [/names]

// [workers]
void on_a_worker(plumb::Profiler& prof, const Matrix& m, std::vector<float>& x) {
    const plumb::Context context = prof.context();  // the step and layer that are open here
    std::thread worker([&] {
        PLUMB_CONTEXT(prof, context);
        PLUMB_BRICK(prof, plumb::host, plumb::Brick::up_projection, plumb::bytes(m.bytes()));
        multiply(m, x);
    });
    worker.join();
}
// [/workers]

// [late]
void late_work(plumb::Profiler& prof, std::vector<float>& x) {
    plumb::Scope scope = prof.scope(plumb::host, plumb::Brick::sampling);
    std::size_t looked_at = 0;
    for (const float value : x) looked_at += value > 0 ? 1 : 0;
    scope.work(plumb::elements(looked_at));         // known only now
}
// [/late]

// [generic]
template <class B> // plumb::Cpu, or an engine's own type: see BackendTraits
plumb::Status timed_scale(plumb::Profiler& prof, typename plumb::BackendTraits<B>::Context& context, plumb::Queue track,
                          std::vector<float>& x) {
    plumb::Probe<B> probe = plumb::probe<B>(prof.enabled(), context);  // empty while off: no clock is read
    for (float& value : x) value *= 2;
    return plumb::finish_traced(prof, probe, "scale", plumb::Category::other, track);
}
// [/generic]
// clang-format on

} // namespace

int main() {
    plumb::Profiler prof(plumb::Config::from_env());
    const Matrix matrix;
    std::vector<float> x(64, 1.0F);
    plumb::Result<plumb::Cpu::Context> cpu = plumb::Cpu::make_context();
    for (int position = 1; position <= 32; ++position) {
        PLUMB_STEP(prof, plumb::host, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(position));
        for (int layer = 0; layer < 2; ++layer) {
            PLUMB_LAYER(prof, layer);
            layer_in_laps(prof, matrix, x);
            own_brick(prof, x);
            own_name(prof, x);
            on_a_worker(prof, matrix, x);
        }
        late_work(prof, x);
        if (!cpu || !timed_scale<plumb::Cpu>(prof, *cpu, plumb::host, x)) {
            std::fputs("the CPU cannot be timed\n", stderr);
            return 1;
        }
    }
    const plumb::Result<plumb::Report> report = prof.snapshot();
    if (!report) {
        std::fprintf(stderr, "%s\n", report.error().message.c_str());
        return 1;
    }
    std::fputs(plumb::render_text(*report).c_str(), stdout);
    return 0;
}
