// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/elements.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace plumb::fingerprint {
namespace {

/// A copy of known size is one load and one store.
template <class T>
void copy_spaced(const char* from, std::ptrdiff_t step, std::size_t n, char* to) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(to + i * sizeof(T), from + static_cast<std::ptrdiff_t>(i) * step, sizeof(T));
    }
}

/// n elements of `size` bytes, `step` bytes apart.
void copy_line(const char* from, std::ptrdiff_t step, std::size_t size, std::size_t n, char* to) noexcept {
    if (step == static_cast<std::ptrdiff_t>(size)) {
        std::memcpy(to, from, n * size);
    } else if (size == 8) {
        copy_spaced<std::uint64_t>(from, step, n, to);
    } else if (size == 4) {
        copy_spaced<std::uint32_t>(from, step, n, to);
    } else if (size == 2) {
        copy_spaced<std::uint16_t>(from, step, n, to);
    } else {
        copy_spaced<std::uint8_t>(from, step, n, to);
    }
}

} // namespace

Elements::Elements(const Tensor& tensor) noexcept
    : data_(static_cast<const char*>(tensor.data)), size_(size_of(tensor.dtype)), count_(tensor.count()) {
    for (unsigned i = 0; i < tensor.rank && count_ != 0; ++i) {
        if (tensor.shape[i] == 1) {
            continue;
        }
        const auto size = static_cast<std::ptrdiff_t>(tensor.shape[i]);
        if (rank_ != 0 && strides_[rank_ - 1] == size * tensor.strides[i]) {
            shape_[rank_ - 1] *= tensor.shape[i];
            strides_[rank_ - 1] = tensor.strides[i];
        } else {
            shape_[rank_] = tensor.shape[i];
            strides_[rank_++] = tensor.strides[i];
        }
    }
    if (rank_ == 0) { // a single element, or none
        rank_ = 1;
        shape_[0] = count_;
        strides_[0] = 1;
    }
}

const void* Elements::read(std::size_t first, std::size_t n, void* buffer) const noexcept {
    if (contiguous()) {
        return data_ + first * size_;
    }
    if (n == 1 || (run() >= n && first % run() + n <= run())) {
        return gather(first, 0, nullptr);
    }
    gather(first, n, buffer);
    return buffer;
}

const char* Elements::gather(std::size_t first, std::size_t n, void* buffer) const noexcept {
    std::size_t at[max_rank] = {};
    std::ptrdiff_t offset = 0;
    for (unsigned i = rank_; i-- > 0;) {
        at[i] = first % shape_[i];
        first /= shape_[i];
        offset += static_cast<std::ptrdiff_t>(at[i]) * strides_[i];
    }
    const unsigned last = rank_ - 1;
    const auto size = static_cast<std::ptrdiff_t>(size_);
    const char* const begin = data_ + offset * size;
    char* to = static_cast<char*>(buffer);
    while (n != 0) {
        const std::size_t line = std::min(n, shape_[last] - at[last]);
        copy_line(data_ + offset * size, strides_[last] * size, size_, line, to);
        to += line * size_;
        n -= line;
        offset += static_cast<std::ptrdiff_t>(line) * strides_[last];
        at[last] += line;
        for (unsigned i = last; i != 0 && at[i] == shape_[i]; --i) {
            offset += strides_[i - 1] - static_cast<std::ptrdiff_t>(shape_[i]) * strides_[i];
            at[i] = 0;
            ++at[i - 1];
        }
    }
    return begin;
}

} // namespace plumb::fingerprint
