// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/shapes.hpp"

#include <array>

namespace plumb::decoder {
namespace {

// tiny-llama is as small as keeps the profiler busy: more than 300 scopes in a millisecond.
// test-qwen2 and test have odd sizes on purpose: rows that no vector length divides.
constexpr std::array<Shape, 7> known{{
    {"tiny-llama", "llama", 6, 256, 8, 4, 32, 1280, 512, 2048, 10000.0F, 1e-5F, false, false},
    {"test", "llama", 2, 48, 4, 2, 12, 80, 300, 512, 10000.0F, 1e-5F, false, false},
    {"test-qwen2", "qwen2", 2, 56, 4, 2, 14, 72, 300, 512, 1000000.0F, 1e-6F, true, true},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1000000.0F, 1e-6F, true, true},
    {"qwen2.5-1.5b", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1000000.0F, 1e-6F, true, true},
    {"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 10000.0F, 1e-5F, false, false},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000.0F, 1e-5F, true, false},
}};

} // namespace

std::span<const Shape> shapes() noexcept { return known; }

const Shape* find_shape(std::string_view name) noexcept {
    for (const Shape& shape : known)
        if (shape.name == name)
            return &shape;
    return nullptr;
}

} // namespace plumb::decoder
