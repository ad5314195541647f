// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/block_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fingerprint/definition.hpp"
#include "fingerprint/element.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace plumb::fingerprint {
namespace {

constexpr std::size_t elements_of_block = rows_of_block * lanes_of_row;
constexpr std::size_t row_piece = 64 * lanes_of_row; // gathered at once: stays in the first cache

bool all_finite(const BlockSums& block) noexcept {
    return std::all_of(std::begin(block.squares), std::end(block.squares),
                       [](double sum) { return std::isfinite(sum); });
}

} // namespace

#if defined(__x86_64__)

// The register of the vector units alone: all arithmetic here is theirs, and the whole environment costs 0.2 us.
PlainArithmetic::PlainArithmetic() noexcept : saved_(_mm_getcsr()) {
    constexpr unsigned at_reset = 0x1f80;
    _mm_setcsr(at_reset);
}
PlainArithmetic::~PlainArithmetic() { _mm_setcsr(saved_); }

#else

PlainArithmetic::PlainArithmetic() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
}
PlainArithmetic::~PlainArithmetic() { std::fesetenv(&saved_); }

#endif

Blocks::Blocks(const Tensor& tensor, std::uint64_t first_index, unsigned groups, const Kernels& kernels) noexcept
    : elements_(tensor), type_(tensor.dtype), first_row_(first_index / lanes_of_row),
      head_(static_cast<std::size_t>(first_index % lanes_of_row)), groups_(groups), kernels_(kernels) {}

std::size_t Blocks::count() const noexcept {
    const std::size_t elements = elements_.count();
    return elements == 0 ? 0 : (elements + head_ - 1) / elements_of_block + 1;
}

std::size_t Blocks::begin(std::size_t b) const noexcept {
    return b == 0 ? 0 : std::min(b * elements_of_block - head_, elements_.count());
}

void Blocks::add_up(std::size_t b, BlockSums& block) const noexcept {
    const std::size_t first = begin(b), n = begin(b + 1) - first, type = static_cast<std::size_t>(type_);
    block.clear(groups_ * lanes_of_row);
    add_part(kernels_.add_rows[type], first, n, block);
    if (!all_finite(block)) {
        block.clear(groups_ * lanes_of_row);
        add_part(kernels_.add_rows_careful[type], first, n, block);
    }
    kernels_.close(groups_, block);
}

void Blocks::add_part(AddRows add_rows, std::size_t first, std::size_t n, BlockSums& block) const noexcept {
    alignas(64) std::byte buffer[row_piece * sizeof(double)];
    if (const std::size_t lane = (first + head_) % lanes_of_row; lane != 0) {
        const std::size_t present = std::min(n, lanes_of_row - lane);
        add_partial_row(add_rows, first, present, block);
        first += present;
        n -= present;
    }
    while (n >= lanes_of_row) {
        const std::size_t rows = (elements_.contiguous() ? n : std::min(n, row_piece)) / lanes_of_row;
        const std::size_t taken = rows * lanes_of_row;
        add_rows(elements_.read(first, taken, buffer), rows, first_row_ + (first + head_) / lanes_of_row, groups_,
                 block);
        first += taken;
        n -= taken;
    }
    if (n != 0) {
        add_partial_row(add_rows, first, n, block);
    }
}

/// The lanes that are not there are zeros, which add nothing; only the extremes must not see them.
void Blocks::add_partial_row(AddRows add_rows, std::size_t first, std::size_t n, BlockSums& block) const noexcept {
    alignas(64) std::byte row[lanes_of_row * sizeof(double)] = {};
    alignas(64) std::byte buffer[lanes_of_row * sizeof(double)];
    const std::size_t size = size_of(type_), place = first + head_;
    std::memcpy(row + place % lanes_of_row * size, elements_.read(first, n, buffer), n * size);
    double min = block.min, max = block.max;
    add_rows(row, 1, first_row_ + place / lanes_of_row, groups_, block);
    for (std::size_t i = 0; i < n; ++i) {
        const double value = element_value(row, type_, static_cast<std::ptrdiff_t>(place % lanes_of_row + i));
        if (std::isfinite(value)) {
            min = std::min(min, value);
            max = std::max(max, value);
        }
    }
    block.min = min;
    block.max = max;
}

} // namespace plumb::fingerprint
