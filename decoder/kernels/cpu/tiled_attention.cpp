// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/tiled_attention.hpp"

#include <algorithm>

#include "decoder/kernels/cpu/vector_ops.hpp"

namespace plumb::decoder::cpu {
namespace {

/// Calls `block(first, end, number)` for each block of at most `size` positions.
template <class F>
void in_blocks(std::size_t first, std::size_t end, std::size_t size, F&& block) noexcept {
    for (std::size_t number = 0; first < end; ++number) {
        const std::size_t next = std::min(first + size, end);
        block(first, next, number);
        first = next;
    }
}

/// Runs `micro(first, end)` over all positions, block in block in block. A position is multiplied with `size` values, and
/// moves as many, beside `row_bytes` of the block's own.
template <class F>
void in_tiles(Recorder& recorder, Brick brick, const Head& head, double row_bytes, F&& micro) noexcept {
    const auto moved = [&](std::size_t positions) {
        return bytes(row_bytes + static_cast<double>(positions * (head.size + 1) * sizeof(float)));
    };
    const auto computed = [&](std::size_t positions) {
        return flops(2 * positions * head.size);
    };
    in_blocks(0, head.positions, macro_positions, [&](std::size_t a, std::size_t z, std::size_t block) {
        PLUMB_TILE(recorder, TileLevel::macro, head.index, block, brick, moved(z - a), computed(z - a));
        const std::size_t midi_before = block * (macro_positions / midi_positions);
        in_blocks(a, z, midi_positions, [&](std::size_t b, std::size_t y, std::size_t number) {
            PLUMB_TILE(recorder, TileLevel::midi, head.index, midi_before + number, brick, moved(y - b),
                       computed(y - b));
            in_blocks(b, y, micro_positions, [&](std::size_t c, std::size_t x, std::size_t place) {
                PLUMB_TILE(recorder, TileLevel::micro, head.index, place, brick, moved(x - c), computed(x - c));
                micro(c, x);
            });
        });
    });
}

} // namespace

void attend_in_tiles(Recorder& recorder, const Head& head, float* scores, float* out) noexcept {
    const std::size_t size = head.size;
    const double row_bytes = static_cast<double>(size * sizeof(float));
    in_tiles(recorder, Brick::attention_score, head, row_bytes, [&](std::size_t first, std::size_t end) {
        attention_scores(head.query, head.keys + first * size, end - first, size, scores + first);
    });
    const float normal = attention_weights(scores, head.positions);
    std::fill_n(out, size, 0.0F); // from here on nobody reads the query
    in_tiles(recorder, Brick::attention_output, head, 2 * row_bytes, [&](std::size_t first, std::size_t end) {
        add_weighted(scores + first, head.values + first * size, end - first, size, out);
    });
    scale(out, normal, size);
}

} // namespace plumb::decoder::cpu
