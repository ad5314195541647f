// SPDX-License-Identifier: Apache-2.0
// A number that may be missing. A plain value; no thread rule.
#pragma once

#include <optional>
#include <string>

namespace plumb {

/// A number that was measured, or the reason why there is none. Never 0 for "unknown".
struct Figure {
    std::optional<double> value;
    std::string reason; // set when value is absent: "too few samples (n = 12, p99 needs 1000)"
};

} // namespace plumb
