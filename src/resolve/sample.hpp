// SPDX-License-Identifier: Apache-2.0
// One resolved interval on the common clock: what statistics and exporters consume. Plain data.
#pragma once

#include <cstdint>
#include <limits>

#include "plumb/bricks.hpp"

namespace plumb::resolve {

enum class SampleKind : std::uint8_t { scope, lap, span, layer, step };

inline constexpr std::uint64_t no_step = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint32_t no_layer = std::numeric_limits<std::uint32_t>::max();

/// work is NaN where it was not given: never 0 for unknown. bytes already holds bytes_per_kv * kv_length.
struct Sample {
    SampleKind kind = SampleKind::scope;
    Phase phase = Phase::none;
    std::uint16_t name = 0; // 0 for step and layer
    std::uint32_t track = 0;
    std::uint32_t layer = no_layer;
    std::uint64_t step = no_step;
    std::int64_t begin_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t self_ns = 0; // duration less that of direct children
    bool leaf = true;
    bool warmup = false;
    double bytes = std::numeric_limits<double>::quiet_NaN();
    double flops = std::numeric_limits<double>::quiet_NaN();
    double elements = std::numeric_limits<double>::quiet_NaN();
};

} // namespace plumb::resolve
