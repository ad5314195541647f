// SPDX-License-Identifier: Apache-2.0
// The host's clock: which counter of this machine stamps, how to read it, and how to read it together with the common
// clock. Plain values that refer to an injected clock without owning it; every function may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "plumb/clock.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

namespace plumb::clock {

enum class HostClockKind : std::uint8_t {
    tsc,       // x86 time stamp counter, invariant
    cntvct,    // arm64 virtual counter
    monotonic, // CLOCK_MONOTONIC, one tick per nanosecond
    caller,    // a plumb::HostClock given by the caller
};

/// "tsc", "cntvct", "monotonic", "caller": the clock's name in recordings.
const char* name_of(HostClockKind kind);
/// "cpu_tsc", …: the source of samples stamped with it.
const char* source_of(HostClockKind kind);

/// What decides the choice of a counter; the machine's own facts by facts_of_this_machine().
struct CounterFacts {
    bool is_x86 = false;
    bool is_arm64 = false;
    bool tsc_invariant = false;     // CPUID 0x80000007, bit 8
    bool kernel_trusts_tsc = false; // see base/os.hpp
};
CounterFacts facts_of_this_machine();

struct HostClockChoice {
    HostClockKind kind = HostClockKind::monotonic;
    std::string reason; // why this one: "the TSC of this CPU is invariant"
};
HostClockChoice choose_host_clock(const CounterFacts& facts);

/// A clock that can be read. `caller` is set for kind caller only, and must outlive every use.
struct HostClockSource {
    HostClockKind kind = HostClockKind::monotonic;
    const HostClock* caller = nullptr;
};

/// The best clock of this machine, found once per process.
HostClockSource machine_clock();
/// The injected clock, or the machine's when it is null.
HostClockSource host_clock(const HostClock* injected);

/// CLOCK_MONOTONIC and CLOCK_REALTIME in nanoseconds.
std::int64_t monotonic_ns() noexcept;
std::int64_t realtime_ns() noexcept;

inline base::HostTicks now_ticks(const HostClockSource& source) noexcept {
    switch (source.kind) {
#if defined(__x86_64__) || defined(__i386__)
    case HostClockKind::tsc:
        return {__rdtsc()};
#elif defined(__aarch64__)
    case HostClockKind::cntvct: {
        std::uint64_t ticks;
        asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return {ticks};
    }
#endif
    case HostClockKind::caller:
        return {source.caller->now_ticks()};
    default:
        return {static_cast<std::uint64_t>(monotonic_ns())};
    }
}

/// The common clock: CLOCK_MONOTONIC, or the injected clock's own nanoseconds.
base::Nanoseconds now_ns(const HostClockSource& source) noexcept;
/// CPU time of the calling thread, or what the injected clock says it is.
base::Nanoseconds thread_cpu_ns(const HostClockSource& source) noexcept;

/// Both clocks as close together as possible: `ticks` is the middle of the bracket around the read of the common clock.
struct ClockReading {
    base::HostTicks ticks;
    base::Nanoseconds monotonic;     // the common clock
    base::Nanoseconds realtime;      // places the run in calendar time, nothing else
    std::uint64_t uncertainty_ticks; // width of the bracket
};

/// Reads `tries` times (at least once) and keeps the tightest bracket: a try that was interrupted loses.
ClockReading read_clock_pair(const HostClockSource& source, unsigned tries = 8) noexcept;

} // namespace plumb::clock
