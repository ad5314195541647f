// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/logits.hpp"

#include <cmath>

#include "fingerprint/element.hpp"

namespace plumb::fingerprint {

namespace {

constexpr std::size_t piece = 64;

/// Whether a value of the piece is above the limit; NaN is not.
bool any_above(const float* values, float limit) noexcept {
    unsigned above = 0;
    for (std::size_t i = 0; i < piece; ++i) {
        above |= static_cast<unsigned>(values[i] > limit);
    }
    return above != 0;
}

} // namespace

LargestLogit largest_logit(const Tensor& tensor) {
    LargestLogit found;
    if (tensor.count() == 0) {
        return found;
    }
    const unsigned last = tensor.rank - 1u;
    std::ptrdiff_t row = 0; // of the last row
    for (unsigned i = 0; i < last; ++i) {
        row += static_cast<std::ptrdiff_t>(tensor.shape[i] - 1) * tensor.strides[i];
    }
    double largest = 0;
    double second = 0;
    bool any_second = false;
    const std::size_t count = tensor.shape[last];
    const float* plain = tensor.dtype == DType::f32 && tensor.strides[last] == 1
                             ? static_cast<const float*>(tensor.data) + row
                             : nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        // Nearly all pieces of a vocabulary hold nothing above the two largest so far.
        while (plain != nullptr && any_second && i + piece <= count &&
               !any_above(plain + i, static_cast<float>(second))) {
            i += piece;
        }
        if (i >= count) {
            break;
        }
        const double value =
            element_value(tensor.data, tensor.dtype, row + static_cast<std::ptrdiff_t>(i) * tensor.strides[last]);
        if (!std::isfinite(value)) {
            continue;
        }
        if (found.index == no_index || value > largest) {
            any_second = found.index != no_index;
            second = largest;
            largest = value;
            found.index = i;
        } else if (!any_second || value > second) {
            any_second = true;
            second = value;
        }
    }
    if (any_second) {
        found.margin = largest - second;
    }
    return found;
}

} // namespace plumb::fingerprint
