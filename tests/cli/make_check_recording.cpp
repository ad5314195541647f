// SPDX-License-Identifier: Apache-2.0
// Writes a recording of a small model whose tensors are checked: make_check_recording FILE KIND. KIND is clean, fault (in step 3 the
// attention of layer 1 is wrong, and all behind it), noise (all is off by rounding), nan (one in the attention of layer
// 1), short (one step less), nonfinite (clean, with tensors=nonfinite) or none (nothing is checked).
#include <cmath>
#include <cstdio>
#include <cstring>
#include <plumb/plumb.hpp>
#include <plumb/tensor.hpp>
#include <string>
#include <vector>

namespace {

constexpr std::size_t columns = 256;
constexpr std::size_t layers = 3;

/// The same numbers everywhere: no library's random distribution.
std::vector<float> values_at(std::uint64_t seed, std::size_t rows, float noise) {
    std::vector<float> values(rows * columns);
    std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
    for (float& value : values) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        value = static_cast<float>(static_cast<double>(state >> 40) / 16777216.0 - 0.5);
        value += noise * value * static_cast<float>(static_cast<int>(state >> 33 & 7) - 3);
    }
    return values;
}

struct Run {
    plumb::Profiler& prof;
    const std::string kind;

    void step(plumb::Phase phase, std::uint64_t number, std::size_t first, std::size_t rows) const {
        const float noise = kind == "noise" ? 1e-7F : 0.0F;
        PLUMB_STEP(prof, plumb::host, phase, plumb::tokens(rows), plumb::sequences(1), plumb::kv_length(first + rows));
        for (std::size_t layer = 0; layer < layers; ++layer) {
            PLUMB_LAYER(prof, static_cast<int>(layer));
            const bool here = layer == 1 && number == 3;
            std::vector<float> in = values_at(first * 97 + layer, rows, noise);
            std::vector<float> out = values_at(first * 89 + layer + 50, rows, noise);
            if (kind == "fault" && number >= 3 && (layer > 1 || here)) {
                out = values_at(first * 89 + layer + 999, rows, noise);
            }
            if (kind == "nan" && here) {
                out[17] = std::nanf("");
            }
            PLUMB_TENSOR_INPUT(prof, plumb::host, plumb::Brick::attention,
                               plumb::tensor(in.data(), plumb::DType::f32, {rows, columns}));
            { PLUMB_BRICK(prof, plumb::host, plumb::Brick::attention); }
            PLUMB_TENSOR(prof, plumb::host, plumb::Brick::attention,
                         plumb::tensor(out.data(), plumb::DType::f32, {rows, columns}));
            PLUMB_TENSOR(prof, plumb::host, plumb::Brick::residual_add,
                         plumb::tensor(out.data(), plumb::DType::f32, {rows, columns}));
        }
        std::vector<float> logits = values_at(first * 83 + 7, 1, noise);
        PLUMB_TENSOR(prof, plumb::host, plumb::Brick::lm_head,
                     plumb::tensor(logits.data(), plumb::DType::f32, {1, columns}),
                     plumb::position(static_cast<std::int64_t>(first + rows - 1)), plumb::logits);
    }
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: make_check_recording FILE KIND\n");
        return 2;
    }
    const std::string kind = argv[2];
    plumb::Config config;
    config.on = true;
    config.out = argv[1];
    config.tensors.level = kind == "none"        ? plumb::TensorConfig::Level::off
                           : kind == "nonfinite" ? plumb::TensorConfig::Level::nonfinite
                                                 : plumb::TensorConfig::Level::all;
    plumb::Profiler prof(config);
    const Run run{prof, kind};
    run.step(plumb::Phase::prefill, 0, 0, 8);
    const std::uint64_t steps = kind == "short" ? 4 : 5;
    for (std::uint64_t step = 1; step <= steps; ++step) {
        run.step(plumb::Phase::decode, step, 7 + step, 1);
    }
    const plumb::Status closed = prof.close();
    if (!closed) {
        std::fprintf(stderr, "%s\n", closed.error().message.c_str());
        return 1;
    }
    return 0;
}
