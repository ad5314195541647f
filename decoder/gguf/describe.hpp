// SPDX-License-Identifier: Apache-2.0
// What is in a GGUF file, for people (text) and for programs (JSON, schema plumb.model/1).
// Works for any GGUF, whatever its architecture and tensor types. Pure; any thread.
#pragma once

#include <string>

#include "decoder/gguf/reader.hpp"

namespace plumb::decoder::gguf {

[[nodiscard]] std::string describe_text(const Contents& contents, const std::string& path);
[[nodiscard]] std::string describe_json(const Contents& contents, const std::string& path);

} // namespace plumb::decoder::gguf
