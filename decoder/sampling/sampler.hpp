// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from logits: greedy, or seeded sampling with temperature, top-k, top-p, min-p and a penalty on
// what was said lately. The same seed and logits give the same tokens on every machine that computes the same logits.
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
    float top_p = 1;         // the best tokens that together reach this probability
    std::uint64_t seed = 1;
    float min_p = 0;                  // those at least so likely as this share of the best
    float repeat_penalty = 1;         // logits of repeated tokens: divided by it if positive, else multiplied
    std::uint32_t repeat_window = 64; // tokens that count as lately said, the prompt's among them
};

class Sampler {
  public:
    /// Errors: invalid_argument.
    static Result<Sampler> make(const SamplingOptions& options, std::size_t vocabulary);

    /// True where the best logit is chosen as it stands.
    [[nodiscard]] bool greedy() const noexcept { return options_.temperature == 0 && options_.repeat_penalty == 1; }
    /// For sampling only; a greedy choice is the backend's. REQUIRES as many logits as the vocabulary has tokens.
    [[nodiscard]] std::int32_t pick(std::span<const float> logits) noexcept;
    /// How many of the best logits pick_among() needs; 0: pick() needs all.
    [[nodiscard]] std::size_t wanted() const noexcept {
        return options_.temperature != 0 && options_.repeat_penalty == 1 ? options_.top_k : 0;
    }
    /// As pick(), from the wanted() best logits, best first, and their tokens; of equal ones the smallest token first.
    /// REQUIRES wanted() of them, or as many as there are.
    [[nodiscard]] std::int32_t pick_among(std::span<const float> logits, std::span<const std::int32_t> tokens) noexcept;
    /// What was said: the prompt's tokens, and each that was chosen.
    void said(std::int32_t token) noexcept;
    /// Starts the random sequence again; nothing was said.
    void restart() noexcept;

  private:
    struct Candidate {
        float logit;
        std::int32_t token;
    };

    [[nodiscard]] double draw() noexcept;
    void penalise() noexcept;
    [[nodiscard]] std::int32_t pick_of_best(std::size_t kept) noexcept;

    SamplingOptions options_;
    std::vector<Candidate> candidates_;
    std::vector<std::int32_t> lately_; // a ring
    std::vector<bool> penalised_;      // by token, within a call
    std::size_t next_said_ = 0;
    std::size_t said_ = 0; // of the ring
    std::uint64_t drawn_ = 0;
};

} // namespace plumb::decoder
