// SPDX-License-Identifier: Apache-2.0
// What a model's config.json, as Hugging Face writes it, says of its layers. Pure but for reading the file; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/result.hpp"

namespace plumb::imported {

/// How many layers the model has; of one that reads texts and images, those that read texts.
[[nodiscard]] Result<std::uint32_t> layers_of_config(const std::string& path);

} // namespace plumb::imported
