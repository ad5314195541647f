// SPDX-License-Identifier: Apache-2.0
// The yardstick of the tests: the same forward pass in double, by naive loops, written apart from the decoder (it shares
// only the file reader). Recomputes the whole sequence; no cache, no chunks. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::decoder::reference {

/// Logits after the last of `tokens`. Aborts the test program on a file it cannot read.
std::vector<double> logits(const std::string& path, const std::vector<std::int32_t>& tokens);

} // namespace plumb::decoder::reference
