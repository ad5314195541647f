// SPDX-License-Identifier: Apache-2.0
// The one seam between libplumb, which records, and libplumb-analysis, which reads recordings: a table of functions that the
// analysis library defines (src/answers/table.cpp). Linked in, it is simply there; libplumb.so opens the library when something
// is asked for the first time, and keeps it for good. Both are of one build, so what crosses is plain C++.
// Any thread; never in a signal handler. There is no lock of ours that a fork could leave locked: threads that ask first open the
// library at once, which is one to the loader. A child may ask for itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "asking/selftest.hpp"
#include "plumb/answer.hpp"
#include "plumb/results.hpp"
#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::asking {

/// What this process recorded itself: all of it is in the file, or in the bytes.
struct LiveRecording {
    std::string path;                              // empty: in memory
    std::shared_ptr<const recording::Bytes> bytes; // null: in the file
    std::map<std::uint32_t, std::uint64_t> cut;    // track -> first sequence that counts
    recording::Counters cleared;                   // counted before the last reset()
};

struct AnalysisTable {
    const char* version; // first, whatever the version: a table of another one is not looked into
    Result<Report> (*report_of_live)(const LiveRecording&, const ReportOptions&);
    Result<Answer> (*ask_of_live)(const LiveRecording&, std::string_view name, const OptionValues&);
    Result<Report> (*report_of_file)(const std::string& path, const ReportOptions&);
    std::string (*report_text)(const Report&, const TextOptions&);
    std::string (*report_json)(const Report&);
    const std::vector<AnswerInfo>& (*known_answers)();
    Result<Answer> (*ask)(std::string_view name, const std::vector<std::string>& files, const OptionValues&);
    Answer (*answer_of_selftest)(SelfTest);
    Result<std::string> (*json_schema)(std::string_view schema);
    std::string (*json_reference)();
};

using AnalysisPointer = const AnalysisTable*;

/// Never null. Error unavailable: there is no such library, or one of another version; asked again, it is looked for again.
[[nodiscard]] Result<AnalysisPointer> analysis();

/// The table, if it is of our version.
[[nodiscard]] Result<AnalysisPointer> same_version(const AnalysisTable& table);

/// Defined in libplumb.so alone (open_analysis.cpp); null elsewhere.
[[gnu::weak]] Result<AnalysisPointer> open_analysis();

} // namespace plumb::asking

/// Defined by the analysis library; null where it is not linked in.
extern "C" [[gnu::weak]] PLUMB_API const plumb::asking::AnalysisTable* plumb_analysis_table() noexcept;
