// SPDX-License-Identifier: Apache-2.0
// A file of checks for continuous integration (plumb.checks/1, docs/reference/checks.md). Pure function of the file.
#pragma once

#include <string>

#include "answers/check/check.hpp"

namespace plumb {

/// Its form; the keys are those that read_checks_file() knows.
struct ChecksFile {};
template <class V>
void describe(V& v, const ChecksFile&) {
    v.type(
        "checks",
        "The file of `plumb check --file`, an input. Each key is the option of that name; checks.md has an example.");
    v("phase", page::Word{{}, page::step_phases}, "", false);
    v("expect", page::limited(std::vector<std::string>(), {.pattern = "^.+=[0-9]+/(step|token)$"}),
      "each an `--expect`", false);
    v("coverage", page::limited(double(), {.above = 0, .most = 1}), "", false);
    v("drops", std::uint64_t(), "", false);
    v("pending", std::uint64_t(), "", false);
    v("node_check", bool(), "", false);
    v("cv", page::limited(double(), {.above = 0}), "", false);
}
constexpr const char* schema_of(const ChecksFile&) { return "plumb.checks/1"; }

/// An unknown key, a wrong type and a wrong schema are errors that say what is known.
[[nodiscard]] Result<Invariants> read_checks_file(const std::string& path);

} // namespace plumb
