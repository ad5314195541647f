// SPDX-License-Identifier: Apache-2.0
// Metal in virtual time: the table of functions that the metal backend uses, over objects whose every reference is counted
// and a device whose every stamp is known, whose counters have a rate and a zero of their own, and whose messages fail on
// demand. One device for the whole process, since the functions are plain ones; any thread. Completion handlers run on
// whichever thread lets the time pass. reset() puts the settings back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/metal/driver.hpp"
#include "plumb/clock.hpp"

namespace plumb::vmetal {

using backends::metal::Id;

struct Config {
    std::int64_t call_ns = 300;         // the host spends so much in a message that makes or commits a command buffer
    std::int64_t start_ns = 500;        // from the call that commits to the earliest start
    std::int64_t marker_ns = 100;       // an empty command buffer takes so long
    std::int64_t overlap_ns = 0;        // a command buffer begins so much before its neighbour's end
    std::int64_t asleep_ns = 5'000'000; // the common clock is so much ahead of the system's uptime
    bool zero_times = false;            // GPUStartTime and GPUEndTime stay 0.0
    bool reversed_times = false;        // GPUEndTime lies before GPUStartTime
    std::uint64_t ending = 4;           // the status that every command buffer ends with; 5: an error
    bool stage_sampling = true;
    bool dispatch_sampling = true;
    bool timestamp_set = true;     // the device has the counter set "timestamp"
    double ticks_per_ns = 0.024;   // of the counters
    std::uint64_t zero = 77'000;   // the counter when the host's clock is 0
    std::uint64_t sample = 1;      // 1: samples are written; else each reads this (0, or the error value)
    bool lost_samples = false;     // the device leaves samples as they were
    std::size_t most_samples = 32; // sample buffers alive in a process
    std::size_t samples_each = 4'096;
};

void reset(const Config& config = {});
Config& config();

const backends::metal::MetalDriver& driver();
const HostClock& host_clock();

/// One reference each.
Id make_queue(std::size_t most_command_buffers = 64);
Id make_command_buffer(Id queue);
Id make_compute_pass();
Id make_render_pass();
Id make_encoder(Id command_buffer);
void release(Id object);

/// Encodes work of so many nanoseconds: plain, in a pass, or as a dispatch of an encoder.
void encode(Id command_buffer, std::int64_t ns);
void encode_pass(Id command_buffer, Id pass, std::int64_t ns);
void dispatch(Id encoder, std::int64_t ns);
void commit(Id command_buffer);
/// All of it at once, with plain work, and nothing kept.
void run(Id queue, std::int64_t ns);

/// The host does something else for so long.
void pass(std::int64_t ns);
/// The host goes on to the moment when everything committed has ended, and every handler has run.
void settle();
std::int64_t now_ns();

/// The `use`-th use of that message or function from now on fails, once: it answers 0 (a commit: its command buffer ends
/// with an error; a status: an error). Use 0: none fails any more.
void fail(const std::string& call, unsigned use);
bool has_failed();
/// References held by the program.
std::size_t references();
/// Sample buffers made so far, and alive.
std::size_t samples_made();
std::size_t samples_alive();
/// Times the program was made to wait for the device, so far.
std::size_t waits();
/// Blocks of handlers that were copied and not disposed of.
std::size_t blocks();

} // namespace plumb::vmetal
