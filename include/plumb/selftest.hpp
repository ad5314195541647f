// SPDX-License-Identifier: Apache-2.0
// What this machine can measure, and how well: every backend of this build, its devices, and the clock behind them.
// Plain values; run_selftest() may be called from any thread and takes a few milliseconds per device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/backend.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// One device of one backend. A figure that could not be measured is absent with its reason.
struct DeviceSelfTest {
    Device device;
    std::string source;      // "cpu_tsc"
    std::string clock;       // "tsc"
    Figure ticks_per_second; // slope of the clock fit
    Figure floor_ns;         // what an empty scope reads
    Figure begin_end_ns;     // host time of begin(), end() and cancel() together, median
    Figure clock_read_ns;    // one read of the queue's clock by the host, median; absent where only pairs can be had
    Figure clock_pair_ns;    // one clock_pair(), several brackets inside, median
    Figure fit_residual_ns;  // largest distance of a clock pair from the fitted line
    Figure fit_bound_ns;     // how far a placed stamp may be off
    std::vector<Capability> capabilities; // of its queue timer, beyond those of the device
};

struct BackendSelfTest {
    std::string name;
    std::string unavailable; // why and what to do; empty where available
    std::vector<DeviceSelfTest> devices;
};

struct SelfTest {
    std::string cpu;          // as the system names it
    std::string clock;        // that the host's scopes are stamped with: "tsc"
    std::string clock_reason; // why this one
    std::vector<BackendSelfTest> backends;
};

PLUMB_API Result<SelfTest> run_selftest();

/// What this machine can do at most (docs/reference/roofline.md).
struct PeakTest {
    std::vector<Peaks> peaks;                                     // the host's, then those of devices
    std::vector<std::pair<std::string, std::string>> unsupported; // backend or device, and why it has none
    std::vector<std::string> notes;                               // "the machine was busy: …": peaks may be too low
};

/// Takes all cores for some seconds; measures nothing while a run records, so that neither disturbs the other: the caller
/// sees to that.
PLUMB_API PeakTest measure_peaks(const PeakProgress& progress = {});
/// Keeps them in the user's cache folder for the runs of this machine; returns the file. It is replaced as a whole.
PLUMB_API Result<std::string> store_peaks(const std::vector<Peaks>& peaks);
/// What store_peaks() kept on this very machine. Error not_found: nothing was, or it was on another one.
PLUMB_API Result<std::vector<Peaks>> stored_peaks();

} // namespace plumb
