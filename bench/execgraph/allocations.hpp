// SPDX-License-Identifier: Apache-2.0
// How many bytes this program holds by operator new, and held at most: it replaces those operators. One thread.
#pragma once

#include <cstddef>

namespace bench::allocations {

[[nodiscard]] std::size_t held();
/// Since the last forget_peak().
[[nodiscard]] std::size_t peak();
void forget_peak();
/// From now on memory that was given back stays with the process.
void keep_memory();

} // namespace bench::allocations
