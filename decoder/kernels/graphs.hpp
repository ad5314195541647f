// SPDX-License-Identifier: Apache-2.0
// How decode steps reach a device that can capture them. Plain data.
#pragma once

#include <cstdint>

namespace plumb::decoder {

enum class Graphs : std::uint8_t {
    off,    // every operation is launched
    on,     // a decode step is captured once, then replayed
    verify, // each replay is compared with the launched step, to the bit
};

} // namespace plumb::decoder
