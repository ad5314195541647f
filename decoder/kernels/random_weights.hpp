// SPDX-License-Identifier: Apache-2.0
// Matrices of random values that a backend makes on its device, instead of copying them: which, and from what numbers.
// The n-th value is that of model_maker/maker.cpp for the same key and spread. Plain data; any thread.
#pragma once

#include <cstdint>
#include <map>

namespace plumb::decoder {

/// Uniform around zero.
struct RandomMatrix {
    std::uint64_t key = 0; // stream_key() of the seed and the tensor's name
    float spread = 0;      // the largest size of a value
};

/// By Weight::data. What lies there is never read.
using RandomWeights = std::map<const void*, RandomMatrix>;

} // namespace plumb::decoder
