// SPDX-License-Identifier: Apache-2.0
// For tests: JSON against the schemas of tests/schema, and against the words of docs/reference/report_schema.md. Plain functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plumb::support {

using nlohmann::json;

/// As json::parse(), whose code every file that calls it has anew: a second of compiler each.
[[nodiscard]] json parsed(const std::string& text);

/// `root`: of the repository. What is wrong with the documents under that file of tests/schema, and which keys of theirs
/// docs/reference/report_schema.md does not name, a line each; empty: nothing.
[[nodiscard]] std::string schema_problems(const std::string& root, const std::string& schema_file,
                                          const std::vector<json>& documents);

} // namespace plumb::support
