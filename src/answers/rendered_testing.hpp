// SPDX-License-Identifier: Apache-2.0
// For tests: a result as text and as JSON, and its JSON against the committed schema and the reference. Plain functions.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "answers/answer.hpp"
#include "support/json_schema.hpp"

namespace plumb::answers {

using nlohmann::json;
using support::parsed;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline Figure missing(const char* reason) { return {std::nullopt, reason}; }
inline Figure measured(double value) { return {value, {}}; }

template <class R>
std::string render_text(const R& result, const TextOptions& options = {}) {
    return page::text_of(page_of(result, options), options.color);
}

template <class R>
std::string render_json(const R& result) {
    return page::json_of(schema_of(result), result, 1);
}

/// `root`: of the repository. Each result is valid under its schema and every key of it documented; what breaks the schema is not valid.
template <class R>
void expect_valid(const std::string& root, const std::vector<R>& results) {
    std::string file = schema_of(R{});
    file.replace(file.find('/'), 1, ".");
    file += ".json";
    std::vector<json> written;
    for (const R& result : results) {
        written.push_back(parsed(render_json(result)));
    }
    EXPECT_EQ(support::schema_problems(root, file, written), "");
    json bad = written.back();
    bad["schema"] = nullptr;
    EXPECT_NE(support::schema_problems(root, file, {bad}), "");
}

} // namespace plumb::answers
