// SPDX-License-Identifier: Apache-2.0
// For tests: what render_json() makes of an answer, against the schemas of tests/schema and the page on them. Plain functions.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "support/json_schema.hpp"

namespace plumb::render {

using nlohmann::json;
using support::collect_keys;
using support::SchemaCheck;

inline std::string file(const char* path) { return support::text_of_file(path); }

/// `root`: of the repository. Each report is valid under the schema and every key of it documented; what breaks the schema is not valid.
template <class T>
void expect_valid(const std::string& root, const std::string& schema_file, const std::vector<T>& reports) {
    std::vector<json> written;
    for (const T& report : reports) {
        written.push_back(json::parse(render_json(report)));
    }
    EXPECT_EQ(support::schema_problems(root, schema_file, written), "");
    json bad = written.back();
    bad["schema"] = nullptr;
    EXPECT_NE(support::schema_problems(root, schema_file, {bad}), "");
}

} // namespace plumb::render
