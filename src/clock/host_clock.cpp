// SPDX-License-Identifier: Apache-2.0
#include "clock/host_clock.hpp"

#include <ctime>
#include <limits>

#include "base/os.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace plumb::clock {
namespace {

std::int64_t read_ns(clockid_t id) noexcept {
    timespec time{};
    clock_gettime(id, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

bool tsc_is_invariant() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
    return false;
#endif
}

// The counter may be read ahead of its neighbours, or after them: a bracket without fences would not enclose the read.
base::HostTicks fenced_ticks(const HostClockSource& source) noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
    const base::HostTicks ticks = now_ticks(source);
    _mm_lfence();
    return ticks;
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
    const base::HostTicks ticks = now_ticks(source);
    asm volatile("isb" ::: "memory");
    return ticks;
#else
    return now_ticks(source);
#endif
}

} // namespace

const char* name_of(HostClockKind kind) {
    switch (kind) {
    case HostClockKind::tsc:
        return "tsc";
    case HostClockKind::cntvct:
        return "cntvct";
    case HostClockKind::monotonic:
        return "monotonic";
    case HostClockKind::caller:
        return "caller";
    }
    return "unknown";
}

const char* source_of(HostClockKind kind) {
    switch (kind) {
    case HostClockKind::tsc:
        return "cpu_tsc";
    case HostClockKind::cntvct:
        return "cpu_cntvct";
    case HostClockKind::monotonic:
        return "cpu_monotonic";
    case HostClockKind::caller:
        return "caller";
    }
    return "unknown";
}

CounterFacts facts_of_this_machine() {
    CounterFacts facts;
#if defined(__x86_64__) || defined(__i386__)
    facts.is_x86 = true;
#elif defined(__aarch64__)
    facts.is_arm64 = true;
#endif
    facts.tsc_invariant = tsc_is_invariant();
    facts.kernel_trusts_tsc = base::kernel_trusts_tsc();
    return facts;
}

HostClockChoice choose_host_clock(const CounterFacts& facts) {
    if (facts.is_arm64) {
        return {HostClockKind::cntvct, "the virtual counter of an arm64 CPU runs at a constant rate"};
    }
    if (!facts.is_x86) {
        return {HostClockKind::monotonic, "no counter of this CPU is known to run at a constant rate"};
    }
    if (!facts.tsc_invariant) {
        return {HostClockKind::monotonic, "the TSC of this CPU is not invariant (CPUID 0x80000007 bit 8 is 0)"};
    }
    if (!facts.kernel_trusts_tsc) {
        return {HostClockKind::monotonic,
                "the kernel does not list the TSC among its clock sources, or bars programs from it"};
    }
    return {HostClockKind::tsc, "the TSC of this CPU is invariant and the kernel trusts it"};
}

HostClockSource machine_clock() {
    static const HostClockSource source{choose_host_clock(facts_of_this_machine()).kind, nullptr};
    return source;
}

HostClockSource host_clock(const HostClock* injected) {
    return injected != nullptr ? HostClockSource{HostClockKind::caller, injected} : machine_clock();
}

std::int64_t monotonic_ns() noexcept { return read_ns(CLOCK_MONOTONIC); }

std::int64_t realtime_ns() noexcept { return read_ns(CLOCK_REALTIME); }

base::Nanoseconds now_ns(const HostClockSource& source) noexcept {
    return {source.kind == HostClockKind::caller ? source.caller->now_ns() : monotonic_ns()};
}

base::Nanoseconds thread_cpu_ns(const HostClockSource& source) noexcept {
    return {source.kind == HostClockKind::caller ? source.caller->thread_cpu_ns() : base::thread_cpu_ns()};
}

ClockReading read_clock_pair(const HostClockSource& source, unsigned tries) noexcept {
    ClockReading best{};
    best.uncertainty_ticks = std::numeric_limits<std::uint64_t>::max();
    unsigned done = 0;
    do {
        const base::HostTicks before = fenced_ticks(source);
        const base::Nanoseconds now = now_ns(source);
        const base::HostTicks after = fenced_ticks(source);
        const std::uint64_t width = after.value - before.value;
        if (width < best.uncertainty_ticks) {
            best = {{before.value + width / 2}, now, {realtime_ns()}, width};
        }
    } while (++done < tries);
    return best;
}

} // namespace plumb::clock
