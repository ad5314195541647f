// SPDX-License-Identifier: Apache-2.0
// A tensor in blocks of 2,048 rows, and what each holds. Blocks are independent: any thread may do any of them; what they
// add up to does not depend on who did which.
#pragma once

#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "fingerprint/elements.hpp"
#include "fingerprint/kernels.hpp"

namespace plumb::fingerprint {

/// Denormals are kept and rounding is to nearest inside, whatever the caller's thread has switched on.
class PlainArithmetic {
  public:
    PlainArithmetic() noexcept;
    ~PlainArithmetic();
    PlainArithmetic(const PlainArithmetic&) = delete;
    PlainArithmetic& operator=(const PlainArithmetic&) = delete;

  private:
#if defined(__x86_64__)
    unsigned saved_;
#else
    std::fenv_t saved_;
#endif
};

class Blocks {
  public:
    /// Borrows the tensor's memory. `first_index`: number of element 0 in the larger tensor.
    Blocks(const Tensor& tensor, std::uint64_t first_index, unsigned groups, const Kernels& kernels) noexcept;

    [[nodiscard]] std::size_t count() const noexcept;
    /// Elements of block b are begin(b) .. begin(b + 1) - 1.
    [[nodiscard]] std::size_t begin(std::size_t b) const noexcept;
    void add_up(std::size_t b, BlockSums& block) const noexcept;

    [[nodiscard]] const Elements& elements() const noexcept { return elements_; }

  private:
    void add_part(AddRows add_rows, std::size_t first, std::size_t n, BlockSums& block) const noexcept;
    void add_partial_row(AddRows add_rows, std::size_t first, std::size_t n, BlockSums& block) const noexcept;

    Elements elements_;
    DType type_;
    std::uint64_t first_row_;
    std::size_t head_; // lanes of the first row that are not there
    unsigned groups_;
    const Kernels& kernels_;
};

} // namespace plumb::fingerprint
