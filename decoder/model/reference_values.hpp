// SPDX-License-Identifier: Apache-2.0
// The yardstick of the types: the values of a tensor in double, one element after the other, as the file format
// describes them; written apart from the decoder's own. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plumb::decoder::reference {

/// The first `count` values of a tensor whose type has this id in a GGUF file. Aborts the test program on other types.
std::vector<double> values_of(std::uint32_t type, std::span<const std::byte> data, std::size_t count);

} // namespace plumb::decoder::reference
