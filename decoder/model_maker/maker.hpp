// SPDX-License-Identifier: Apache-2.0
// Writes a valid GGUF of a named shape with random weights. The same shape, type and seed give the same bytes on every
// machine. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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

} // namespace plumb::decoder
