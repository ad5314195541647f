// SPDX-License-Identifier: Apache-2.0
// The backend that a word names. Any thread.
#pragma once

#include <memory>
#include <string>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cpu/cpu_backend.hpp"

namespace plumb::decoder {

/// "cpu", "opencl", "opencl:1". Errors: invalid_argument for any other word, and those of the backend.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(const std::string& word, const cpu::CpuOptions& cpu);

} // namespace plumb::decoder
