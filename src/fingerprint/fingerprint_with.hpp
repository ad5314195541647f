// SPDX-License-Identifier: Apache-2.0
// What include/plumb/fingerprint.hpp offers, with the instruction set chosen by the caller: for tests and benchmarks.
// Pure functions; any thread.
#pragma once

#include "fingerprint/kernels.hpp"

namespace plumb::fingerprint {

/// Why the tensor cannot be read, in a sentence; null: it can.
[[nodiscard]] const char* complaint(const Tensor& tensor) noexcept;
Result<Fingerprint> fingerprint_with(const Kernels& kernels, const Tensor& tensor, const FingerprintOptions& options);
/// The same into memory that `made` already has. After an error `made` is any fingerprint.
[[nodiscard]] Status fingerprint_into(Fingerprint& made, const Kernels& kernels, const Tensor& tensor,
                                      const FingerprintOptions& options);
/// REQUIRES: a tensor that can be read.
double largest_with(const Kernels& kernels, const Tensor& tensor) noexcept;

} // namespace plumb::fingerprint
