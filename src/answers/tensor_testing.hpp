// SPDX-License-Identifier: Apache-2.0
// For tests: a checked tensor in two runs. A plain function.
#pragma once

#include <limits>

#include "answers/rendered_testing.hpp"
#include "answers/tensors.hpp"
#include "base/layout.hpp"

namespace plumb::answers {

inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline TensorPair pair_of(const char* brick, std::uint32_t layer, TensorRole role, Difference difference,
                          double distance) {
    TensorPair pair;
    pair.place.step = 3;
    pair.place.step_b = 5;
    pair.place.phase = Phase::decode;
    pair.place.position = 66;
    pair.place.rows = 1;
    pair.place.layer = layer;
    pair.place.brick = brick;
    pair.place.role = role;
    pair.a.count = pair.b.count = 4096;
    pair.a.largest = pair.b.largest = 2.5;
    pair.difference = difference;
    pair.distance = {distance, distance * 0.9, distance * 1.1};
    return pair;
}

} // namespace plumb::answers
