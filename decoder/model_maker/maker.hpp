// SPDX-License-Identifier: Apache-2.0
// Writes a valid GGUF of a named shape with random weights. The same shape, type and seed give the same bytes on every
// machine, and the same values on a device that makes them itself. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "decoder/gguf/reader.hpp"
#include "decoder/kernels/backend.hpp"
#include "decoder/model_maker/shapes.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

struct MakeOptions {
    Type type = Type::bf16;
    std::optional<Type> second; // of value, down and output matrices, as in common files of mixed types
    std::uint64_t seed = 1;
    bool replace = false;
    std::function<void(std::uint64_t done, std::uint64_t total)> progress; // bytes
    const std::atomic<bool>* stop = nullptr;
};

/// Errors: invalid_argument (rows that do not fill the type's blocks), already_exists, no_space, permission, not_found
/// (the folder), failed (stopped). Nothing is left behind.
[[nodiscard]] Status make_model(const Shape& shape, const std::string& path, const MakeOptions& options);

/// The same model without a file: all but the values of its matrices, which a device makes from what `matrices` says.
struct UnwrittenModel {
    gguf::File file; // in memory; no page of a matrix is ever touched
    RandomWeights matrices;
};
/// Of the options type, second and seed count. Errors: invalid_argument, out_of_memory (addresses).
[[nodiscard]] Result<UnwrittenModel> lay_out_model(const Shape& shape, const MakeOptions& options);

} // namespace plumb::decoder
