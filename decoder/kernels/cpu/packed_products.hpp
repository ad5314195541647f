// SPDX-License-Identifier: Apache-2.0
// Matrix products that oneDNN does not offer, or does more slowly, in pieces that the team deals: a few inputs are multiplied with the rows
// as they are packed (packed.hpp); many are multiplied by oneDNN's f32 product with a piece of the matrix that was unpacked
// into the second-level cache.
// Owned by the backend, used by its thread; after prepare() nothing allocates or fails.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cpu/team.hpp"

namespace plumb::decoder::cpu {

class PackedProducts {
  public:
    /// The team must live longer.
    explicit PackedProducts(Team& team) : team_(team), unpacked_(static_cast<std::size_t>(team.size())) {}

    /// Errors: out_of_memory.
    [[nodiscard]] Status prepare(const Weight& weight);
    [[nodiscard]] std::size_t pieces(const Weight& weight, std::size_t rows) const noexcept;
    /// REQUIRES prepare(weight), and piece < pieces(weight, in.rows). `in` and `out` are f32.
    void run_piece(const Weight& weight, const float* bias, const Block& in, const Block& out, std::size_t piece,
                   int thread) noexcept;

  private:
    [[nodiscard]] std::size_t piece_outputs(const Weight& weight, std::size_t rows) const noexcept;

    Team& team_;
    std::vector<std::vector<float>> unpacked_; // per thread, one piece of weights
};

} // namespace plumb::decoder::cpu
