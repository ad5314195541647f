// SPDX-License-Identifier: Apache-2.0
// For tests: a run that was planned, written as the trace of any tool, so that every name, step and time of it is known.
// Plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "import/device_op.hpp"

namespace plumb::imported {

/// Times are ns from the plan's begin.
struct PlannedOp {
    std::string name;
    DeviceOpKind kind = DeviceOpKind::kernel;
    std::int64_t start = 0, end = 0;
    std::uint64_t device = 0, stream = 7, process = 4711;
    std::uint64_t correlation = 0;
    std::uint64_t bytes = 0;
    int step = -1; // the truth
    int layer = -1;
    std::string brick;
};

struct PlannedCall {
    std::string name;
    std::int64_t start = 0, end = 0;
    std::uint64_t thread = 100, process = 4711;
    std::uint64_t correlation = 0;
};

struct PlannedRange {
    std::string name;
    std::int64_t start = 0, end = 0;
    std::uint64_t thread = 100, process = 4711;
};

struct PlannedTrace {
    std::vector<PlannedOp> ops;
    std::vector<PlannedCall> calls;
    std::vector<PlannedRange> ranges;
    std::string device_name = "Planned GPU";
    std::string rank = "3";
    std::int64_t base_ns = 1'750'000'000'000'000'000; // since 1970, of the plan's begin
    int steps = 0;
};

struct PlannedRun {
    int layers = 4, moe_layers = 0; // after the dense ones
    int steps = 3;
    bool graph = true;        // each step is one replay; else each kernel has a launch of its own
    bool annotated = false;   // each step lies in a range
    bool prefill = false;     // of annotated ones
    bool side_stream = false; // a copy beside each layer
    bool two_batches = false; // two micro-batches: their attentions of a layer, then what follows these
    bool overlaps = false;    // operations begin before the one before them on their stream has ended
    bool ahead = false;       // a step is launched while the one before it runs
    int processes = 1;        // with the same correlation ids
    std::int64_t unit_ns = 1; // all times are multiples of it
};
[[nodiscard]] PlannedTrace plan(const PlannedRun& run);
/// What lies whole between these times, as a tool that begins late and ends early sees it. Steps that miss an operation or a call are
/// none: what is left of them has the step -1. The others are numbered anew.
[[nodiscard]] PlannedTrace window_of(PlannedTrace trace, std::int64_t from, std::int64_t to);

struct KinetoForm {
    bool whole_us = false; // as before 2024
    bool absolute = false; // no base, but microseconds since 1970
    bool text_numbers = false;
    bool bare_array = false;
    bool wrapped = false; // {"trace": {…}}
    bool pretty = true;   // line breaks, as Kineto itself writes
    bool old = false;     // categories with capitals, as in 2021
    bool odd = false;     // marks, flows and empty events among them, machine and run without names
    std::string between;  // stands between the events, where it is damage
    // Beside each call, as an engine's Python leaves it:
    int python_functions = 1;
    int operators = 0;
    bool arrows = false; // from the call to what it launched
};
/// As an eager prefill with stacks is traced: of a hundred events one is a kernel.
[[nodiscard]] KinetoForm kineto_of_prefill();
void write_kineto(std::ostream& to, const PlannedTrace& trace, const KinetoForm& form = {});
[[nodiscard]] std::string as_kineto(const PlannedTrace& trace, const KinetoForm& form = {});
[[nodiscard]] std::string as_rocprofv3(const PlannedTrace& trace);
/// Databases, as files.
void save_nsys(const PlannedTrace& trace, const std::string& path);
void save_rpd(const PlannedTrace& trace, const std::string& path);
/// A database after these queries.
void change_database(const std::string& path, const std::vector<std::string>& queries);

} // namespace plumb::imported
