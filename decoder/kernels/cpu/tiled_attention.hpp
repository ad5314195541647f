// SPDX-License-Identifier: Apache-2.0
// Attention of one query over blocks of the kv cache, each block a tile: what runs in attend()'s place while tiles are kept.
// Pure functions on the caller's memory; any thread.
#pragma once

#include <cstddef>

#include "plumb/tile.hpp"

namespace plumb::decoder::cpu {

/// Positions of a block: 1024 of 64 floats stream from the last-level cache or memory (256 KiB), 64 stay in the first
/// two levels (16 KiB), 16 are as many as one look at the query in registers is worth.
inline constexpr std::size_t macro_positions = 1024;
inline constexpr std::size_t midi_positions = 64;
inline constexpr std::size_t micro_positions = 16;

/// One head of one query, and what it attends to.
struct Head {
    std::size_t index = 0;
    const float* query = nullptr;
    const float* keys = nullptr;
    const float* values = nullptr;
    std::size_t positions = 0;
    std::size_t size = 0;
};

/// As attend() of vector_ops.hpp, to the last bit. Its tiles belong to attention_score and attention_output; rows are heads,
/// columns are blocks of the cache, on the micro level those of a midi block. `out` may be the query's place.
void attend_in_tiles(Recorder& recorder, const Head& head, float* scores, float* out) noexcept;

} // namespace plumb::decoder::cpu
