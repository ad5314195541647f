// SPDX-License-Identifier: Apache-2.0
// The backend that a word names. Any thread.
#pragma once

#include <memory>
#include <string>

#include "decoder/kernels/backend.hpp"
#include "decoder/kernels/cpu/cpu_backend.hpp"
#include "decoder/kernels/graphs.hpp"

namespace plumb::decoder {

/// "cpu", "cuda", "cuda:1", "opencl", "opencl:1"; `graphs` is for those that can. Errors: invalid_argument for any other word, and those of the backend.
[[nodiscard]] Result<std::unique_ptr<ComputeBackend>> make_backend(const std::string& word, const cpu::CpuOptions& cpu,
                                                                   Graphs graphs = Graphs::off);

using BackendFunction = Result<std::unique_ptr<ComputeBackend>> (*)(const std::string& word, const cpu::CpuOptions& cpu,
                                                                    Graphs graphs);

} // namespace plumb::decoder
