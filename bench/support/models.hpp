// SPDX-License-Identifier: Apache-2.0
// Model files for benchmarks: of a named shape, with random weights, made once. One thread.
#pragma once

#include <string>

#include "plumb/result.hpp"

namespace bench {

/// Path of `shape` in `type` ("bf16", "q8_0") below `folder`, made now if it is not there.
[[nodiscard]] plumb::Result<std::string> model_file(const std::string& folder, const std::string& shape,
                                                    const std::string& type);

inline constexpr const char* default_models = "build/models";

} // namespace bench
