// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from logits: greedy, or seeded sampling with temperature, top-k and top-p.
// The same seed and logits give the same tokens on every machine that computes the same logits.
// Owned by a decoder; one thread. pick() does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::decoder {

struct SamplingOptions {
    float temperature = 0;   // 0: greedy
    std::uint32_t top_k = 0; // 0: all
    float top_p = 1;
    std::uint64_t seed = 1;
};

class Sampler {
  public:
    /// Errors: invalid_argument.
    static Result<Sampler> make(const SamplingOptions& options, std::size_t vocabulary);

    [[nodiscard]] bool greedy() const noexcept { return options_.temperature == 0; }
    /// For sampling only; a greedy choice is the backend's. REQUIRES as many logits as the vocabulary has tokens.
    [[nodiscard]] std::int32_t pick(std::span<const float> logits) noexcept;
    /// Starts the random sequence again.
    void restart() noexcept { drawn_ = 0; }

  private:
    struct Candidate {
        float logit;
        std::int32_t token;
    };

    [[nodiscard]] double draw() noexcept;

    SamplingOptions options_;
    std::vector<Candidate> candidates_;
    std::uint64_t drawn_ = 0;
};

} // namespace plumb::decoder
