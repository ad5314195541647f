// SPDX-License-Identifier: Apache-2.0
// A recording -> a Report: the one function that session and tests call. Pure: the same records give the same report.
// Any thread, one at a time per source. Partial recordings give partial reports that say what is missing.
#pragma once

#include "analysis/period_observer.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "recording/reader.hpp"
#include "resolve/record_source.hpp"
#include "resolve/track_table.hpp"

namespace plumb::analysis {

/// `cut`: what a live run cleared by reset(); steps begun before it do not count.
/// `observer` (may be null) is told what each period is made of.
[[nodiscard]] Result<Report> build_report(resolve::RecordSource& source, const ReportOptions& options,
                                          const resolve::Cut& cut = {}, PeriodObserver* observer = nullptr);
[[nodiscard]] Result<Report> build_report(recording::Reader& reader, const ReportOptions& options,
                                          const resolve::Cut& cut = {});

} // namespace plumb::analysis
