// SPDX-License-Identifier: Apache-2.0
// The words for shapes and types of models with random weights, as options take them. Any thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "decoder/kernels/type.hpp"

namespace plumb::cli {

/// One of the words that plumb model make --shape takes; --type.
CLI::Validator shape_word();
CLI::Validator type_word();

/// REQUIRES a word that type_word() lets pass.
decoder::Type type_of(const std::string& word);

} // namespace plumb::cli
