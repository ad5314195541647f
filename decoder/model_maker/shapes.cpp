// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/shapes.hpp"

#include <array>

namespace plumb::decoder {
namespace {

constexpr ShapeExtras heads_normed{.qk_norm = true};
constexpr ShapeExtras frequencies_divided{.rope_factors = true};
constexpr ShapeExtras window_of_20{.window = 20};
constexpr ShapeExtras linear{.rope_scaling = "linear"};
constexpr ShapeExtras yarn{.rope_scaling = "yarn"};
constexpr ShapeExtras window_of_48{.window = 48};
constexpr ShapeExtras two_of_4{.experts = 4, .experts_used = 2};
constexpr ShapeExtras three_of_8{.qk_norm = true, .experts = 8, .experts_used = 3, .expert_feed_forward = 256};
constexpr ShapeExtras wide_two_of_4{.experts = 4, .experts_used = 2, .expert_feed_forward = 1024};
constexpr ShapeExtras wide_three_of_8{.qk_norm = true, .experts = 8, .experts_used = 3, .expert_feed_forward = 512};
constexpr ShapeExtras four_of_16{.qk_norm = true, .experts = 16, .experts_used = 4, .expert_feed_forward = 256};
constexpr ShapeExtras wide_four_of_16{.qk_norm = true, .experts = 16, .experts_used = 4, .expert_feed_forward = 768};

// tiny-llama is as small as keeps the profiler busy: more than 300 scopes in a millisecond.
// The small-* shapes are one of each family, of some 30 million weights: a step takes milliseconds, and making one less than a second.
// test-qwen2 and test have odd sizes on purpose: rows that no vector length divides. The other test shapes have rows of
// whole blocks of every type, and one peculiarity each.
constexpr std::array<Shape, 28> known{{
    {"tiny-llama", "llama", 6, 256, 8, 4, 32, 1280, 512, 2048, 10000.0F, 1e-5F, false, false},
    {"tiny-moe", "qwen3moe", 6, 256, 8, 4, 32, 512, 512, 2048, 1000000.0F, 1e-6F, false, false, four_of_16},
    {"test", "llama", 2, 48, 4, 2, 12, 80, 300, 512, 10000.0F, 1e-5F, false, false},
    {"test-qwen2", "qwen2", 2, 56, 4, 2, 14, 72, 300, 512, 1000000.0F, 1e-6F, true, true},
    {"test-llama3", "llama", 2, 256, 8, 2, 32, 256, 300, 512, 500000.0F, 1e-5F, true, false, frequencies_divided},
    {"test-mistral", "llama", 2, 256, 4, 2, 64, 512, 300, 512, 10000.0F, 1e-5F, false, false, window_of_20},
    {"test-mixtral", "llama", 2, 256, 8, 2, 32, 256, 300, 512, 10000.0F, 1e-5F, false, false, two_of_4},
    {"test-linear", "llama", 2, 256, 8, 4, 32, 256, 300, 512, 10000.0F, 1e-5F, false, false, linear},
    {"test-yarn", "qwen2", 2, 256, 4, 2, 64, 256, 300, 512, 10000.0F, 1e-6F, false, true, yarn},
    {"test-qwen3", "qwen3", 2, 256, 4, 2, 128, 256, 300, 512, 1000000.0F, 1e-6F, true, false, heads_normed},
    {"test-qwen3moe", "qwen3moe", 2, 256, 4, 2, 64, 512, 300, 512, 1000000.0F, 1e-6F, false, false, three_of_8},
    {"test-gemma", "gemma", 2, 256, 4, 1, 64, 512, 300, 512, 10000.0F, 1e-6F, true, false},
    {"small-moe", "qwen3moe", 8, 1024, 16, 4, 64, 768, 32000, 32768, 1000000.0F, 1e-6F, false, false, wide_four_of_16},
    {"small-llama", "llama", 4, 768, 12, 4, 64, 2304, 8192, 4096, 500000.0F, 1e-5F, true, false, frequencies_divided},
    {"small-mistral", "llama", 4, 768, 12, 4, 64, 2304, 8192, 4096, 10000.0F, 1e-5F, false, false, window_of_48},
    {"small-mixtral", "llama", 4, 768, 12, 4, 64, 1024, 8192, 4096, 1000000.0F, 1e-5F, false, false, wide_two_of_4},
    {"small-qwen2", "qwen2", 4, 768, 12, 4, 64, 2304, 8192, 4096, 1000000.0F, 1e-6F, true, true},
    {"small-qwen3", "qwen3", 4, 768, 12, 4, 64, 2304, 8192, 4096, 1000000.0F, 1e-6F, true, false, heads_normed},
    {"small-qwen3moe", "qwen3moe", 4, 768, 12, 4, 64, 512, 8192, 4096, 1000000.0F, 1e-6F, false, false,
     wide_three_of_8},
    {"small-gemma", "gemma", 4, 768, 6, 1, 128, 2304, 8192, 4096, 10000.0F, 1e-6F, true, false},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1000000.0F, 1e-6F, true, true},
    {"qwen2.5-1.5b", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1000000.0F, 1e-6F, true, true},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1000000.0F, 1e-6F, true, false, heads_normed},
    {"gemma-2b", "gemma", 18, 2048, 8, 1, 256, 16384, 256000, 8192, 10000.0F, 1e-6F, true, false},
    {"tinyllama-1.1b", "llama", 22, 2048, 32, 4, 64, 5632, 32000, 2048, 10000.0F, 1e-5F, false, false},
    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000.0F, 1e-5F, true, false},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 500000.0F, 1e-5F, false, false,
     frequencies_divided},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1000000.0F, 1e-6F, false, false, heads_normed},
}};

} // namespace

std::span<const Shape> shapes() noexcept { return known; }

const Shape* find_shape(std::string_view name) noexcept {
    for (const Shape& shape : known) {
        if (shape.name == name) {
            return &shape;
        }
    }
    return nullptr;
}

} // namespace plumb::decoder
