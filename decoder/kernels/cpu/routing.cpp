// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/routing.hpp"

#include <algorithm>
#include <cmath>

namespace plumb::decoder::cpu {
namespace {

/// Whether expert a comes before b. A NaN comes last, so that the order is total.
bool better(const float* logits, std::size_t a, std::size_t b) noexcept {
    const bool a_number = !std::isnan(logits[a]);
    const bool b_number = !std::isnan(logits[b]);
    if (a_number != b_number) {
        return a_number;
    }
    if (a_number && logits[a] != logits[b]) {
        return logits[a] > logits[b];
    }
    return a < b;
}

/// The `used` best, by insertion: they are few.
void choose(const float* logits, const Routing& routing, std::int32_t* chosen) noexcept {
    std::size_t found = 0;
    for (std::size_t e = 0; e < routing.experts; ++e) {
        std::size_t at = found;
        while (at > 0 && better(logits, e, static_cast<std::size_t>(chosen[at - 1]))) {
            --at;
        }
        if (at == routing.used) {
            continue;
        }
        found = std::min(found + 1, routing.used);
        std::copy_backward(chosen + at, chosen + found - 1, chosen + found);
        chosen[at] = static_cast<std::int32_t>(e);
    }
}

void weigh(const float* logits, const Routing& routing, const std::int32_t* chosen, float* weight) noexcept {
    // The best logit is the first choice's; taken away, no exponential overflows.
    const float top = logits[chosen[0]];
    float sum = 0;
    for (std::size_t i = 0; i < routing.used; ++i) {
        weight[i] = std::exp(logits[chosen[i]] - top);
        sum += weight[i];
    }
    if (!routing.normalise) {
        sum = 0;
        for (std::size_t e = 0; e < routing.experts; ++e) {
            sum += std::exp(logits[e] - top);
        }
    }
    for (std::size_t i = 0; i < routing.used; ++i) {
        weight[i] *= routing.scale / sum;
    }
}

} // namespace

void route(const Block& logits, const Routing& routing) noexcept {
    for (std::size_t r = 0; r < logits.rows; ++r) {
        const float* row = logits.f32() + r * logits.cols;
        choose(row, routing, routing.chosen + r * routing.used);
        weigh(row, routing, routing.chosen + r * routing.used, routing.weight + r * routing.used);
    }
}

void order_by_expert(const Routing& routing, std::size_t rows) noexcept {
    std::int32_t* offsets = routing.offsets;
    const std::size_t choices = rows * routing.used;
    std::fill(offsets, offsets + routing.experts + 1, 0);
    for (std::size_t i = 0; i < choices; ++i) {
        ++offsets[routing.chosen[i] + 1];
    }
    for (std::size_t e = 0; e < routing.experts; ++e) {
        offsets[e + 1] += offsets[e];
    }
    // Each expert's offset moves on as its choices take their slots, and ends where the next one's began.
    for (std::size_t i = 0; i < choices; ++i) {
        routing.slot[i] = offsets[routing.chosen[i]]++;
    }
    std::copy_backward(offsets, offsets + routing.experts, offsets + routing.experts + 1);
    offsets[0] = 0;
}

} // namespace plumb::decoder::cpu
