// SPDX-License-Identifier: Apache-2.0
// Rules files as they lie on the disk. Pure but for reading files; safe from any thread.
#pragma once

#include <filesystem>
#include <string>

#include "plumb/result.hpp"

namespace plumb::imported {

/// A rules file: what it is called in errors, and its text.
struct RulesText {
    std::string file;
    std::string text;
};

/// Errors: not a file that can be read, or larger than 1 MiB.
[[nodiscard]] Result<RulesText> read_rules_text(const std::string& file);

/// share/plumb/`name` below the folder that something was installed to; empty where it is not there.
[[nodiscard]] std::string installed_rules(const std::filesystem::path& prefix, const char* name);

} // namespace plumb::imported
