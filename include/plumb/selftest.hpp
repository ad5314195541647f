// SPDX-License-Identifier: Apache-2.0
// What this machine can measure, and how well (every backend of this build, its devices, and the clock behind them), and what it
// can do at most. Programs that call render_json() link plumb::analysis. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/answer.hpp"
#include "plumb/api.hpp"
#include "plumb/backend.hpp"
#include "plumb/result.hpp"
#include "plumb/roofline.hpp"

namespace plumb {

/// Measures it: `plumb selftest`, as text and as JSON (schema plumb.selftest/1). A few milliseconds per device.
/// Error unavailable: libplumb-analysis, which libplumb.so opens now, is not there.
PLUMB_API Result<Answer> run_selftest();

/// What this machine can do at most (docs/reference/roofline.md).
struct PeakTest {
    std::vector<Peaks> peaks;                                     // the host's, then those of devices
    std::vector<std::pair<std::string, std::string>> unsupported; // backend or device, and why it has none
    std::vector<std::string> notes;                               // "the machine was busy: …": peaks may be too low
};

/// Takes all cores for some seconds; measures nothing while a run records, so that neither disturbs the other: the caller
/// sees to that.
PLUMB_API PeakTest measure_peaks(const PeakProgress& progress = {});
/// The file that store_peaks() writes, in the user's cache folder, which this makes. Ask before measuring: error permission where
/// it cannot be written.
PLUMB_API Result<std::string> peaks_file();
/// Keeps them for the runs of this machine; returns the file. It is replaced as a whole.
PLUMB_API Result<std::string> store_peaks(const std::vector<Peaks>& peaks);
/// What store_peaks() kept on this very machine. Error not_found: nothing was, or it was on another one.
PLUMB_API Result<std::vector<Peaks>> stored_peaks();
/// `file`: which keeps them. Schema plumb.peaks/1.
PLUMB_API std::string render_json(const PeakTest& test, const std::string& file);

} // namespace plumb
