// SPDX-License-Identifier: Apache-2.0
// Words that text and JSON of tiles share. Pure function.
#pragma once

#include "plumb/tiles.hpp"

namespace plumb::render {

constexpr const char* basis_word(TileBasis basis) noexcept {
    constexpr const char* words[] = {"ns_per_call", "ns_per_flop", "ns_per_byte"};
    return words[static_cast<std::size_t>(basis)];
}

} // namespace plumb::render
