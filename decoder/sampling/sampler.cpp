// SPDX-License-Identifier: Apache-2.0
#include "decoder/sampling/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder {
namespace {

constexpr std::uint32_t longest_window = 1U << 20;

} // namespace

Result<Sampler> Sampler::make(const SamplingOptions& options, std::size_t vocabulary) {
    // Written so that NaN fails, too.
    if (!(options.temperature >= 0 && options.temperature <= 100)) {
        return Error{ErrorCode::invalid_argument, "--temperature must lie between 0 (greedy) and 100"};
    }
    if (!(options.top_p > 0 && options.top_p <= 1)) {
        return Error{ErrorCode::invalid_argument, "--top-p must be above 0 and at most 1"};
    }
    if (!(options.min_p >= 0 && options.min_p <= 1)) {
        return Error{ErrorCode::invalid_argument, "--min-p must lie between 0 (off) and 1"};
    }
    if (!(options.repeat_penalty > 0 && options.repeat_penalty <= 100)) {
        return Error{ErrorCode::invalid_argument, "--repeat-penalty must be above 0 (1: off) and at most 100"};
    }
    if (options.repeat_window > longest_window) {
        return Error{ErrorCode::invalid_argument, "--repeat-window must be at most " + std::to_string(longest_window)};
    }
    Sampler sampler;
    sampler.options_ = options;
    if (!sampler.greedy()) {
        sampler.candidates_.resize(vocabulary);
    }
    if (options.repeat_penalty != 1) {
        sampler.lately_.resize(options.repeat_window);
        sampler.penalised_.resize(vocabulary);
    }
    return sampler;
}

void Sampler::said(std::int32_t token) noexcept {
    if (lately_.empty()) {
        return;
    }
    lately_[next_said_] = token;
    next_said_ = (next_said_ + 1) % lately_.size();
    said_ = std::min(said_ + 1, lately_.size());
}

void Sampler::restart() noexcept {
    drawn_ = 0;
    next_said_ = said_ = 0;
}

double Sampler::draw() noexcept {
    return static_cast<double>(random_bits(mix(options_.seed), drawn_++) >> 11) * 0x1.0p-53;
}

/// Each token once, however often it was said. REQUIRES candidates in the order of tokens.
void Sampler::penalise() noexcept {
    for (std::size_t i = 0; i < said_; ++i) {
        const auto token = static_cast<std::size_t>(lately_[i]);
        if (token >= candidates_.size() || penalised_[token]) {
            continue;
        }
        penalised_[token] = true;
        float& logit = candidates_[token].logit;
        logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    }
    for (std::size_t i = 0; i < said_; ++i) {
        if (const auto token = static_cast<std::size_t>(lately_[i]); token < penalised_.size()) {
            penalised_[token] = false;
        }
    }
}

std::int32_t Sampler::pick(std::span<const float> logits) noexcept {
    const std::size_t vocabulary = std::min(logits.size(), candidates_.size());
    for (std::size_t i = 0; i < vocabulary; ++i) {
        // A NaN has no place in an order: it is never chosen.
        const float logit = std::isnan(logits[i]) ? -INFINITY : logits[i];
        candidates_[i] = {logit, static_cast<std::int32_t>(i)};
    }
    penalise();
    const auto better = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    const std::size_t wanted = options_.temperature == 0 ? 1 : options_.top_k;
    const std::size_t kept = wanted == 0 ? vocabulary : std::min(wanted, vocabulary);
    const auto begin = candidates_.begin();
    std::partial_sort(begin, begin + static_cast<std::ptrdiff_t>(kept), begin + static_cast<std::ptrdiff_t>(vocabulary),
                      better);
    return pick_of_best(kept);
}

std::int32_t Sampler::pick_among(std::span<const float> logits, std::span<const std::int32_t> tokens) noexcept {
    const std::size_t kept = std::min(logits.size(), candidates_.size());
    for (std::size_t i = 0; i < kept; ++i) {
        candidates_[i] = {logits[i], tokens[i]};
    }
    return pick_of_best(kept);
}

/// REQUIRES candidates in their order, the best first.
std::int32_t Sampler::pick_of_best(std::size_t kept) noexcept {
    const float top = candidates_.front().logit;
    if (!std::isfinite(top) || options_.temperature == 0) {
        return candidates_.front().token;
    }
    const auto probability = [&](std::size_t i) {
        return std::exp(static_cast<double>(candidates_[i].logit - top) / static_cast<double>(options_.temperature));
    };
    double total = 0;
    for (std::size_t i = 0; i < kept; ++i) {
        total += probability(i);
    }
    double mass = 0;
    std::size_t nucleus = 0;
    while (nucleus < kept && mass < total * static_cast<double>(options_.top_p) &&
           probability(nucleus) >= static_cast<double>(options_.min_p)) {
        mass += probability(nucleus++);
    }
    double left = draw() * mass;
    for (std::size_t i = 0; i < nucleus; ++i) {
        left -= probability(i);
        if (left < 0) {
            return candidates_[i].token;
        }
    }
    return candidates_[nucleus == 0 ? 0 : nucleus - 1].token;
}

} // namespace plumb::decoder
