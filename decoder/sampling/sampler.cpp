// SPDX-License-Identifier: Apache-2.0
#include "decoder/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder {

Result<Sampler> Sampler::make(const SamplingOptions& options, std::size_t vocabulary) {
    // Written so that NaN fails, too.
    if (!(options.temperature >= 0 && options.temperature <= 100))
        return Error{ErrorCode::invalid_argument, "--temperature must lie between 0 (greedy) and 100"};
    if (!(options.top_p > 0 && options.top_p <= 1))
        return Error{ErrorCode::invalid_argument, "--top-p must be above 0 and at most 1"};
    Sampler sampler;
    sampler.options_ = options;
    if (!sampler.greedy())
        sampler.candidates_.resize(vocabulary);
    return sampler;
}

double Sampler::draw() noexcept {
    return static_cast<double>(random_bits(mix(options_.seed), drawn_++) >> 11) * 0x1.0p-53;
}

std::int32_t Sampler::pick(std::span<const float> logits) noexcept {
    const std::size_t vocabulary = std::min(logits.size(), candidates_.size());
    for (std::size_t i = 0; i < vocabulary; ++i) {
        // A NaN has no place in an order: it is never chosen.
        const float logit = std::isnan(logits[i]) ? -INFINITY : logits[i];
        candidates_[i] = {logit, static_cast<std::int32_t>(i)};
    }
    const auto better = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    const std::size_t kept = options_.top_k == 0 ? vocabulary : std::min<std::size_t>(options_.top_k, vocabulary);
    const auto begin = candidates_.begin();
    std::partial_sort(begin, begin + static_cast<std::ptrdiff_t>(kept), begin + static_cast<std::ptrdiff_t>(vocabulary),
                      better);
    const float top = begin->logit;
    if (!std::isfinite(top))
        return begin->token;
    const auto probability = [&](std::size_t i) {
        return std::exp(static_cast<double>(candidates_[i].logit - top) / static_cast<double>(options_.temperature));
    };
    double total = 0;
    for (std::size_t i = 0; i < kept; ++i)
        total += probability(i);
    double mass = 0;
    std::size_t nucleus = 0;
    while (nucleus < kept && mass < total * static_cast<double>(options_.top_p))
        mass += probability(nucleus++);
    double left = draw() * mass;
    for (std::size_t i = 0; i < nucleus; ++i) {
        left -= probability(i);
        if (left < 0)
            return candidates_[i].token;
    }
    return candidates_[nucleus == 0 ? 0 : nucleus - 1].token;
}

} // namespace plumb::decoder
