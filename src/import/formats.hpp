// SPDX-License-Identifier: Apache-2.0
// The formats of traces: one file each, recognised by content, ending in a TraceBuilder. Plain functions; any thread, each on
// files and builders of its own.
#pragma once

#include <string>

#include "import/input.hpp"
#include "import/sqlite_file.hpp"
#include "import/trace.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

/// Errors: those of the input. What is damaged is counted.
Status read_kineto(Input& input, TraceBuilder& to);
Status read_rocprofv3(Input& input, TraceBuilder& to);
Status read_nsys(SqliteFile& file, TraceBuilder& to);
Status read_rpd(SqliteFile& file, TraceBuilder& to);

/// Any of them. Errors: unsupported with what is known, where it is none.
Result<Trace> read_trace(const std::string& path, const InputLimits& limits = {});

} // namespace plumb::imported
