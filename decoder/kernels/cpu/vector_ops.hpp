// SPDX-License-Identifier: Apache-2.0
// Small operations on rows of floats, compiled for every instruction set and chosen at run time.
// Pure functions on the caller's memory; any thread. bf16 values are the upper halves of floats, rounded to even.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::decoder::cpu {

using Bf16 = std::uint16_t;

void to_bf16(const float* in, std::size_t n, Bf16* out) noexcept;
void from_bf16(const Bf16* in, std::size_t n, float* out) noexcept;

/// out = in * weight / sqrt(mean(in²) + epsilon)
void rms_norm(const float* in, const float* weight, float epsilon, std::size_t n, float* out) noexcept;
void rms_norm(const float* in, const float* weight, float epsilon, std::size_t n, Bf16* out) noexcept;

/// out = gate / (1 + exp(-gate)) * up
void silu_multiply(const float* gate, const float* up, std::size_t n, float* out) noexcept;
void silu_multiply(const float* gate, const float* up, std::size_t n, Bf16* out) noexcept;

/// out = gelu(gate) * up, gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x³)))
void gelu_multiply(const float* gate, const float* up, std::size_t n, float* out) noexcept;
void gelu_multiply(const float* gate, const float* up, std::size_t n, Bf16* out) noexcept;

/// x *= factor
void scale(float* x, float factor, std::size_t n) noexcept;
/// out += factor * x
void add_scaled(const float* x, float factor, std::size_t n, float* out) noexcept;

/// x += y
void add(float* x, const float* y, std::size_t n) noexcept;

/// Rotates one head by the angles whose cos and sin lie in `cosines`, `sines` (`pairs` of each).
void rotate_neighbours(float* head, const float* cosines, const float* sines, std::size_t pairs) noexcept;
void rotate_halves(float* head, const float* cosines, const float* sines, std::size_t pairs) noexcept;

/// The three parts of attend(), for whoever cuts it into blocks of positions; any cut gives the same bits.
/// scores[p] = q·k[p] / sqrt(size)
void attention_scores(const float* query, const float* keys, std::size_t positions, std::size_t size,
                      float* scores) noexcept;
/// Turns scores into weights; returns what their sum must be multiplied with to be 1.
[[nodiscard]] float attention_weights(float* scores, std::size_t positions) noexcept;
/// sums += weights·values
void add_weighted(const float* weights, const float* values, std::size_t positions, std::size_t size,
                  float* sums) noexcept;

/// One query against `positions` keys and values of `size` each: softmax(q·k / sqrt(size))·v. scores: `positions` floats.
void attend(const float* query, const float* keys, const float* values, std::size_t positions, std::size_t size,
            float* scores, float* out) noexcept;

/// Index of the largest value, the first of equals; 0 where nothing is comparable.
[[nodiscard]] std::size_t largest(const float* values, std::size_t n) noexcept;

} // namespace plumb::decoder::cpu
