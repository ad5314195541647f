// SPDX-License-Identifier: Apache-2.0
// What kernels are called and where their code comes from, to and from bytes (docs/reference/plumb_format.md), and the bounds it is
// kept within. Pure functions; no thread rule. Decoding takes hostile input: false when the code hash is not there.
#pragma once

#include <cstddef>
#include <string>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

inline constexpr std::size_t most_kernel_name = 1024;
inline constexpr std::size_t most_kernel_file = 4096;
inline constexpr std::size_t most_kernel_source = std::size_t{256} << 10;

/// The entry with name and file cut to the bounds, and without a source text that is beyond them.
[[nodiscard]] KernelInfo bounded(KernelInfo kernel);

/// REQUIRES: the entry is bounded.
void encode(const KernelInfo& from, Bytes& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, KernelInfo& to);

/// One hash stands for different code, or one kernel for different sources: which of the two ran cannot be told.
[[nodiscard]] bool collide(const KernelInfo& a, const KernelInfo& b);
/// A sentence about two that collide.
[[nodiscard]] std::string collision_text(const KernelInfo& a, const KernelInfo& b);

} // namespace plumb::recording
