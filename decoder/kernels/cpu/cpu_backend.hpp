// SPDX-License-Identifier: Apache-2.0
// The cpu backend: oneDNN for products with many tokens, Highway for everything else. See backend.hpp for the contract.
#pragma once

#include <memory>

#include "decoder/kernels/backend.hpp"

namespace plumb::decoder::cpu {

struct CpuOptions {
    int threads = 0;         // 0: every core this process may use
    bool widen_bf16 = false; // f32 arithmetic also where the processor has bf16 products
};

/// Errors: unsupported (no matrix product for this processor), invalid_argument (threads).
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(const CpuOptions& options);

} // namespace plumb::decoder::cpu
