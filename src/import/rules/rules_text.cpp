// SPDX-License-Identifier: Apache-2.0
#include "import/rules/rules_text.hpp"

#include <fstream>

namespace plumb::imported {
namespace {

constexpr std::uintmax_t largest_file = 1 << 20;

} // namespace

Result<RulesText> read_rules_text(const std::string& file) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        return Error{ErrorCode::invalid_argument, file + " is a folder: name a rules file"};
    }
    std::ifstream in(file, std::ios::binary);
    std::string text(largest_file + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (!in.eof() && !in.good()) {
        return Error{ErrorCode::not_found, "the rules file " + file + " cannot be read: check its name"};
    }
    if (text.size() > largest_file) {
        return Error{ErrorCode::invalid_argument, file + " is no rules file: it is larger than 1 MiB"};
    }
    return RulesText{file, std::move(text)};
}

std::string installed_rules(const std::filesystem::path& prefix, const char* name) {
    std::error_code error;
    const auto rules = prefix / "share" / "plumb" / name;
    return !prefix.empty() && std::filesystem::is_regular_file(rules, error) ? rules.string() : std::string();
}

} // namespace plumb::imported
