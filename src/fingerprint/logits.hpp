// SPDX-License-Identifier: Apache-2.0
// The token that logits name, and by how much. Plain function; any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {

struct LargestLogit {
    std::uint64_t index = no_index; // within the row, the first of equals; no_index: no value is finite
    double margin = std::numeric_limits<double>::quiet_NaN(); // to the second largest; NaN: there is none
};

/// Of the last row (the last dimension) of a tensor in host memory, over its finite values.
LargestLogit largest_logit(const Tensor& tensor);

} // namespace plumb::fingerprint
