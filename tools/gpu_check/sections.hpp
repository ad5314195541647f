// SPDX-License-Identifier: Apache-2.0
// The sections of the check, in the order in which they run. Each runs in a process of its own.
#pragma once

#include <string>

#include "results.hpp"

namespace gpu_check {

class Gpu;

struct Options {
    bool tiny = false;   // seconds instead of minutes: for the virtual GPU, and to try a machine
    std::string cupti;   // path of libcupti, empty: look for it
    std::string scratch; // folder for recordings
};

struct Section {
    const char* name;
    double limit_s; // then it is killed, and what it wrote stays
    double tiny_limit_s;
    void (*run)(const ResultFile& results, const Options& options);
    const char* asks;
};

void run_identity(const ResultFile& results, const Options& options);
void run_peaks(const ResultFile& results, const Options& options);
void run_truth(const ResultFile& results, const Options& options);
void run_floors(const ResultFile& results, const Options& options);
void run_fingerprints(const ResultFile& results, const Options& options);
void run_growth(const ResultFile& results, const Options& options);
void run_decode(const ResultFile& results, const Options& options);
void run_values(const ResultFile& results, const Options& options);
void run_stall(const ResultFile& results, const Options& options);
void run_twins(const ResultFile& results, const Options& options);
void run_coverage(const ResultFile& results, const Options& options);
void run_clock(const ResultFile& results, const Options& options);
void run_cupti(const ResultFile& results, const Options& options);

/// Asserts what makes the driver log an Xid: health monitors may then take the machine away.
void run_break(const ResultFile& results, const Options& options);
inline constexpr const char* break_section = "break";

/// The child of the section decode, with or without a profiler: answers until nobody asks.
void run_decode_side(const ResultFile& results, const Options& options, bool profiled, unsigned shape);
/// The child that asserts truths from index `first` on.
int run_truths_from(const ResultFile& results, unsigned first);

/// What decides comes first, since access to a device may be short; what may make the system take it away comes last.
inline constexpr Section sections[] = {
    {"identity", 20, 20, run_identity, "which device and driver, and what its clocks count in"},
    {"floors", 60, 60, run_floors, "what an empty pair reads, and what each way of stamping costs"},
    {"decode", 90, 60, run_decode, "what profiling a decode step costs, and how much of it is explained"},
    {"values", 60, 60, run_values, "whether replays with and without stamps compute the same"},
    {"stall", 40, 40, run_stall, "how long a launch takes while twins are built"},
    {"twins", 90, 120, run_twins, "what events and stamps cost in graphs of each kind, and what a clone keeps"},
    {"coverage", 60, 60, run_coverage,
     "how much of the tracer's kernel time lies in scopes, and how far bricks are off"},
    {"truth", 100, 60, run_truth, "which of our beliefs about driver and device hold"},
    {"growth", 50, 60, run_growth, "what capture, instantiation, upload, launch and memory cost per node"},
    {"fingerprints", 40, 40, run_fingerprints, "whether fingerprints are those of the host, and what they cost"},
    {"peaks", 30, 20, run_peaks, "how fast memory is read, and copied"},
    {"clock", 75, 30, run_clock, "how far device times may be off on the host's clock, over a minute"},
    {"cupti", 40, 30, run_cupti, "what the vendor's tracer says of the same kernels"},
    {break_section, 20, 20, run_break, "with --break: beliefs that can be asked only by an illegal address (Xid 31)"},
};

} // namespace gpu_check
