// SPDX-License-Identifier: Apache-2.0
// What run_selftest() of plumb/selftest.hpp found: libplumb measures it, libplumb-analysis makes an answer of it.
// Plain values; any thread.
#pragma once

#include <string>
#include <vector>

#include "plumb/backend.hpp"
#include "plumb/figure.hpp"

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

} // namespace plumb
