// SPDX-License-Identifier: Apache-2.0
// A recording in a file, opened for an answer. Any thread.
#pragma once

#include <string>

#include "plumb/result.hpp"
#include "plumb/results.hpp"

namespace plumb::answers {

/// The report that answers made of one start from.
[[nodiscard]] Result<Report> read_report(const std::string& path, const ReportOptions& options = {});

} // namespace plumb::answers
