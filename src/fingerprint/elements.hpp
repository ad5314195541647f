// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor in row-major order, whatever its strides: in place where they lie without gaps, else gathered
// into the caller's buffer. A value that borrows the tensor's memory; any thread may read.
#pragma once

#include <cstddef>

#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {

class Elements {
  public:
    /// Dimensions of size 1 go, and those that continue each other become one. REQUIRES: rank <= max_rank.
    explicit Elements(const Tensor& tensor) noexcept;

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Without gaps from the first to the last.
    [[nodiscard]] bool contiguous() const noexcept { return rank_ == 1 && strides_[0] == 1; }
    /// How many elements lie side by side.
    [[nodiscard]] std::size_t run() const noexcept { return strides_[rank_ - 1] == 1 ? shape_[rank_ - 1] : 1; }
    /// Elements first .. first + n - 1, side by side: in place, or in `buffer`, which holds n of them.
    [[nodiscard]] const void* read(std::size_t first, std::size_t n, void* buffer) const noexcept;

  private:
    /// Copies n elements; returns where the first lies.
    const char* gather(std::size_t first, std::size_t n, void* buffer) const noexcept;

    const char* data_;
    std::size_t size_; // of an element
    std::size_t count_;
    unsigned rank_ = 0;
    std::size_t shape_[max_rank] = {};
    std::ptrdiff_t strides_[max_rank] = {};
};

} // namespace plumb::fingerprint
