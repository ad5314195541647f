// SPDX-License-Identifier: Apache-2.0
// A kernel's name as people read it, and its base: what is left without return type, template arguments and parameters. Names come
// from files of anybody: whatever they hold, these take no more than a few milliseconds. Pure functions; safe from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plumb::imported {

/// Bytes of a name that are looked at.
inline constexpr std::size_t longest_kernel_name = 4096;

/// Demangled where it is mangled and can be; else as it is. At most longest_kernel_name bytes of it.
[[nodiscard]] std::string readable_kernel_name(std::string_view name);

/// "void vllm::act_and_mul<c10::Half, &silu>(c10::Half*)" -> "vllm::act_and_mul"; of a name that could not be demangled, the
/// identifiers in front of its template arguments. Empty where nothing is left.
[[nodiscard]] std::string base_kernel_name(std::string_view readable);

} // namespace plumb::imported
