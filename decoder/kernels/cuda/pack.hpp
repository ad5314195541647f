// SPDX-License-Identifier: Apache-2.0
// A matrix of a file as the CUDA kernels want it: blocks whose size no vector load divides are taken apart into planes
// (arguments.hpp). Pure function.
#pragma once

#include <cstddef>
#include <vector>

#include "decoder/kernels/type.hpp"

namespace plumb::decoder::cuda {

/// True where the file's own bytes will do.
[[nodiscard]] bool lies_as_in_file(Type type) noexcept;

/// REQUIRES whole blocks, and a type that does not lie as in the file.
[[nodiscard]] std::vector<std::byte> planes_of(Type type, const void* data, std::size_t bytes);

} // namespace plumb::decoder::cuda
