// SPDX-License-Identifier: Apache-2.0
// The definition of a fingerprint, element by element, and as a kernel of the virtual GPU: fast enough for thousands of
// replays, and written without the kernel's own text. Test-only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>

#include "fingerprint/cuda/kernel_types.hpp"
#include "fingerprint/definition.hpp"
#include "fingerprint/element.hpp"
#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {

/// Elements by their offsets; `Offset` of an index.
template <class Offset>
Fingerprint naive_fingerprint(const void* data, DType type, std::uint64_t count, std::uint64_t first, unsigned buckets,
                              Offset offset) {
    Fingerprint made;
    made.count = count;
    made.sketch.assign(buckets, 0.0);
    std::map<std::uint64_t, std::uint64_t> rows;
    double largest = -1;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t place = first + i;
        const auto lane = static_cast<unsigned>(place % 32);
        const std::uint64_t key = row_key(place / 32);
        std::uint64_t bits = 0;
        std::memcpy(&bits, static_cast<const char*>(data) + offset(i) * static_cast<std::int64_t>(size_of(type)),
                    size_of(type));
        rows[place / 32] += lane_factor(lane) * fold(bits);
        const double x = element_value(data, type, offset(i));
        if (!std::isfinite(x)) {
            ++(std::isnan(x) ? made.nans : x > 0 ? made.positive_infs : made.negative_infs);
            made.first_nonfinite = std::min(made.first_nonfinite, place);
            continue;
        }
        made.min = made.largest == no_index ? x + 0.0 : std::min(made.min, x + 0.0);
        made.max = made.largest == no_index ? x + 0.0 : std::max(made.max, x + 0.0);
        if (std::fabs(x) > largest) {
            largest = std::fabs(x);
            made.largest = place;
        }
        made.sum += x;
        made.sum_of_squares += x * x;
        made.sketch[bucket_of(key, lane, buckets / 32)] += is_negative(key, lane) ? -x : x;
    }
    for (const auto& [row, sum] : rows) {
        made.hash += row_hash(sum, row_key(row));
    }
    return made;
}

inline Fingerprint naive_fingerprint(const Tensor& tensor, std::uint64_t first, unsigned buckets) {
    return naive_fingerprint(tensor.data, tensor.dtype, tensor.count(), first, buckets, [&](std::uint64_t index) {
        std::int64_t offset = 0;
        for (unsigned i = tensor.rank; i-- > 0;) {
            offset += static_cast<std::int64_t>(index % tensor.shape[i]) * tensor.strides[i];
            index /= tensor.shape[i];
        }
        return offset;
    });
}

} // namespace plumb::fingerprint
