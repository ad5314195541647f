// SPDX-License-Identifier: Apache-2.0
// Fingerprints: what a whole tensor holds, in about 80 bytes and a sketch from which the distance of two tensors is
// estimated without keeping either (docs/reference/fingerprints.md has the definition, the bounds and the experiment).
// Plain values, owned by the caller. Thread rule: every function from any thread. Distance and cosine are plumb::analysis's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// Element types. Values are part of the file format.
enum class DType : std::uint8_t { f32 = 0, f64 = 1, f16 = 2, bf16 = 3, i8 = 4, i32 = 5 };
inline constexpr std::size_t dtype_count = 6;

constexpr std::size_t size_of(DType type) noexcept {
    constexpr std::size_t sizes[dtype_count] = {4, 8, 2, 2, 1, 4};
    return sizes[static_cast<std::size_t>(type)];
}
/// "f32", …
constexpr const char* dtype_word(DType type) noexcept {
    constexpr const char* words[dtype_count] = {"f32", "f64", "f16", "bf16", "i8", "i32"};
    return words[static_cast<std::size_t>(type)];
}

inline constexpr unsigned max_rank = 8;

/// A tensor somewhere: borrowed, never written. Elements are numbered in row-major order of the shape, whatever the
/// strides are; the last dimension varies fastest.
struct Tensor {
    const void* data = nullptr; // of element 0; follow it only where it lives
    DType dtype = DType::f32;
    std::uint8_t rank = 0;
    std::size_t shape[max_rank] = {};
    std::ptrdiff_t strides[max_rank] = {}; // in elements; may be 0 or negative

    [[nodiscard]] constexpr std::size_t count() const noexcept {
        std::size_t n = rank == 0 ? 0 : 1;
        for (unsigned i = 0; i < rank; ++i) {
            n *= shape[i];
        }
        return n;
    }
    [[nodiscard]] constexpr bool contiguous() const noexcept {
        std::ptrdiff_t expected = 1;
        for (unsigned i = rank; i-- > 0;) {
            if (shape[i] != 1 && strides[i] != expected) {
                return false;
            }
            expected *= static_cast<std::ptrdiff_t>(shape[i]);
        }
        return true;
    }
};

/// Row-major without gaps. REQUIRES at most max_rank dimensions.
inline Tensor tensor(const void* data, DType dtype, std::initializer_list<std::size_t> shape) noexcept {
    Tensor made;
    made.data = data;
    made.dtype = dtype;
    for (const std::size_t size : shape) {
        made.shape[made.rank++] = size;
    }
    std::size_t stride = 1; // of a shape that no memory holds it wraps: such a tensor is refused where it is read
    for (unsigned i = made.rank; i-- > 0;) {
        made.strides[i] = static_cast<std::ptrdiff_t>(stride);
        stride *= made.shape[i];
    }
    return made;
}
/// With strides in elements, one per dimension.
inline Tensor tensor(const void* data, DType dtype, std::initializer_list<std::size_t> shape,
                     std::initializer_list<std::ptrdiff_t> strides) noexcept {
    Tensor made = tensor(data, dtype, shape);
    unsigned i = 0;
    for (const std::ptrdiff_t stride : strides) {
        made.strides[i++] = stride;
    }
    return made;
}

/// An index of no element.
inline constexpr std::uint64_t no_index = ~std::uint64_t{0};
inline constexpr unsigned default_buckets = 32;
inline constexpr unsigned max_buckets = 256;

/// Exact on every backend and for every number of threads: count to hash. With a bound: sum, sum_of_squares, sketch.
/// Sums, sketch, min, max and largest are over the finite elements alone.
struct Fingerprint {
    std::uint64_t count = 0;
    std::uint64_t nans = 0;
    std::uint64_t positive_infs = 0;
    std::uint64_t negative_infs = 0;
    std::uint64_t first_nonfinite = no_index;
    double min = PLUMB_NAN; // NaN: no element is finite
    double max = PLUMB_NAN;
    std::uint64_t largest = no_index; // first of the elements with the largest |x|
    std::uint64_t hash = 0;           // of all bits and their places
    double sum = 0;
    double sum_of_squares = 0;
    std::vector<double> sketch; // 32, 64, 128 or 256 buckets

    [[nodiscard]] bool finite() const noexcept { return first_nonfinite == no_index; }
};

struct FingerprintOptions {
    unsigned buckets = default_buckets; // 32, 64, 128, 256
    /// Number of element 0 within a larger tensor of which this one is a piece: fingerprints of pieces can be joined.
    std::uint64_t first_index = 0;
    unsigned threads = 1; // at most so many, for large tensors
};

/// Of a tensor in host memory. Deterministic: the same bits for every number of threads and every instruction set.
/// Error invalid_argument: null data, rank above max_rank, a number of buckets that is none of the above.
PLUMB_API Result<Fingerprint> fingerprint_of(const Tensor& tensor, const FingerprintOptions& options = {});

/// Of the tensor that `a` and `b` are pieces of: `b` follows `a`. The hash is that of the whole only where the border is a
/// multiple of 32 elements; REQUIRES the same number of buckets.
PLUMB_API Fingerprint join(const Fingerprint& a, const Fingerprint& b);

/// The largest |x| alone: what tensors=nonfinite asks. NaN or infinite where an element is. Faster than a fingerprint.
PLUMB_API double largest_magnitude(const Tensor& tensor) noexcept;
/// Number of the first NaN or infinite element; no_index: all are finite.
PLUMB_API std::uint64_t first_nonfinite(const Tensor& tensor) noexcept;

/// |a - b| / |a| (L2 norms) as the sketches tell: the true distance lies in [low, high] in at least 95 of 100 pairs.
/// Infinite where non-finite elements differ in number, where shapes differ, or where |a| is 0 and |b| is not.
/// Exactly 0, with an interval of width 0, where all bits agree.
struct Distance {
    double estimate = 0;
    double low = 0;
    double high = 0;
};
PLUMB_API Distance relative_distance(const Fingerprint& a, const Fingerprint& b);
/// Cosine of the angle between both, as the sketches tell; NaN where one is 0 or either has a non-finite element.
PLUMB_API double cosine(const Fingerprint& a, const Fingerprint& b);

} // namespace plumb
