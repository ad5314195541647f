// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/queue_timer.hpp"

#include <algorithm>
#include <array>
#include <new>

#include "clock/correlation.hpp"

namespace plumb::backends::cpu {
namespace {

void* allocate(std::size_t bytes) noexcept { return ::operator new(bytes, std::align_val_t{64}, std::nothrow); }

void release(void* memory) noexcept { ::operator delete(memory, std::align_val_t{64}); }

bool read_pair(const clock::HostClockSource& source, clock::ClockReading& reading) noexcept {
    reading = clock::read_clock_pair(source);
    return true;
}

Result<DeviceClockPair> pair_by(const CpuCalls& calls, const clock::HostClockSource& source) {
    clock::ClockReading reading{};
    if (!calls.read_pair(source, reading)) {
        return Error{ErrorCode::failed,
                     "the system's monotonic clock cannot be read; allow clock_gettime in this sandbox"};
    }
    return DeviceClockPair{reading.ticks.value, reading.monotonic.value, reading.realtime.value,
                           reading.uncertainty_ticks};
}

Error not_in_flight(TokenState found) {
    if (found == TokenState::ended) {
        return {ErrorCode::not_found, "this scope was ended before; end each token once"};
    }
    return {ErrorCode::not_found, "this token is not in flight here; use a token of this timer's begin(), once"};
}

} // namespace

const CpuCalls& system_calls() {
    static constexpr CpuCalls calls{allocate, release, read_pair};
    return calls;
}

std::vector<Capability> capabilities_of(const clock::CounterFacts& facts) {
    const clock::HostClockChoice choice = clock::choose_host_clock(facts);
    const bool tsc = choice.kind == clock::HostClockKind::tsc;
    const bool cntvct = choice.kind == clock::HostClockKind::cntvct;
    return {
        {"tsc", tsc,
         tsc            ? ""
         : facts.is_x86 ? choice.reason
                        : "only x86 CPUs have a time stamp counter"},
        {"cntvct", cntvct, cntvct ? "" : "only arm64 CPUs have this counter"},
        {"concurrent_queue", false,
         "one thread does one thing at a time; scopes of one queue never overlap on the CPU"},
        {"graph_capture", false, "a CPU runs its work as it is called; there are no captured graphs"},
        {"hardware_counters", false, "this backend reads clocks only"},
    };
}

Result<std::unique_ptr<QueueTimer>> CpuQueueTimer::create(const TimerOptions& options, const CpuCalls& calls,
                                                          bool sampled) {
    if (options.max_in_flight == 0 || options.max_in_flight > TokenPool<Stamps>::max_capacity) {
        return Error{ErrorCode::invalid_argument, "max_in_flight is " + std::to_string(options.max_in_flight) +
                                                      "; give a number from 1 to 16777215"};
    }
    const Result<DeviceClockPair> first = pair_by(calls, clock::host_clock(options.host_clock));
    if (!first) {
        return first.error();
    }
    void* memory = calls.allocate(TokenPool<Stamps>::bytes(options.max_in_flight));
    auto* timer =
        memory != nullptr ? new (std::nothrow) CpuQueueTimer(options, calls, memory, *first, sampled) : nullptr;
    if (timer != nullptr) {
        return std::unique_ptr<QueueTimer>(timer);
    }
    if (memory != nullptr) {
        calls.release(memory);
    }
    return Error{ErrorCode::out_of_memory, "there is no memory for " + std::to_string(options.max_in_flight) +
                                               " scopes in flight; lower max_in_flight"};
}

CpuQueueTimer::CpuQueueTimer(const TimerOptions& options, const CpuCalls& calls, void* memory,
                             const DeviceClockPair& first, bool sampled)
    : calls_(calls), clock_(clock::host_clock(options.host_clock)), immediate_(options.immediate), sampled_(sampled),
      memory_(memory), pool_(memory, options.max_in_flight), first_(first) {}

CpuQueueTimer::~CpuQueueTimer() { calls_.release(memory_); }

Result<DeviceToken> CpuQueueTimer::begin() noexcept {
    DeviceToken token;
    Stamps* stamps = pool_.acquire(token);
    if (stamps == nullptr) {
        return Error{ErrorCode::out_of_memory,
                     "too many scopes are in flight on this queue; collect or cancel some first"};
    }
    stamps->begin = clock::now_ticks(clock_);
    pool_.put(token, TokenState::open);
    return token;
}

Status CpuQueueTimer::end(DeviceToken token) noexcept {
    const base::HostTicks now = clock::now_ticks(clock_);
    TokenState found;
    Stamps* stamps = pool_.take(token, TokenState::open, found);
    if (stamps == nullptr) {
        return not_in_flight(found);
    }
    stamps->end = now;
    pool_.put(token, TokenState::ended);
    return {};
}

Result<DeviceSpan> CpuQueueTimer::collect(DeviceToken token) noexcept {
    TokenState found;
    Stamps* held = pool_.take(token, TokenState::ended, found);
    if (held == nullptr && found == TokenState::open) {
        return Error{ErrorCode::pending, "this scope is still open; collect it after its end"};
    }
    if (held == nullptr) {
        return not_in_flight(TokenState::unknown);
    }
    const Stamps stamps = *held;
    pool_.release(token);
    if ((stamps.end - stamps.begin).value < 0) {
        return Error{ErrorCode::corrupt,
                     "the host clock went back inside a scope; set the kernel's clock source or use another"};
    }
    return DeviceSpan{stamps.begin.value, stamps.end.value, 0};
}

void CpuQueueTimer::cancel(DeviceToken token) noexcept {
    TokenState found;
    if (pool_.take(token, TokenState::open, found) != nullptr ||
        pool_.take(token, TokenState::ended, found) != nullptr) {
        pool_.release(token);
    }
}

// The thread that calls has done the work itself: an ended scope is finished.
Status CpuQueueTimer::wait(DeviceToken token) noexcept {
    TokenState found;
    if (pool_.take(token, TokenState::ended, found) == nullptr) {
        return found == TokenState::open
                   ? Error{ErrorCode::invalid_argument, "this scope is still open; end it before waiting"}
                   : not_in_flight(TokenState::unknown);
    }
    pool_.put(token, TokenState::ended);
    return {};
}

Result<DeviceClockPair> CpuQueueTimer::clock_pair() noexcept { return pair_by(calls_, clock_); }

Result<Elapsed> CpuQueueTimer::duration(const DeviceSpan& span) {
    const Result<DeviceClockPair> now = clock_pair();
    if (!now) {
        return now.error();
    }
    const std::array<clock::CorrelationPair, 2> pairs = {
        clock::CorrelationPair{{first_.ticks}, {first_.monotonic_ns}, {0}},
        clock::CorrelationPair{{now->ticks}, {now->monotonic_ns}, {0}},
    };
    const Result<clock::Correlation> fit = clock::Correlation::fit(pairs);
    if (!fit) {
        return fit.error();
    }
    const Result<base::Nanoseconds> whole = fit->duration({span.begin_ticks}, {span.end_ticks});
    if (!whole) {
        return whole.error();
    }
    const auto ticks = static_cast<double>(span.end_ticks - span.begin_ticks);
    // Each pair is off by half its bracket at most, and each stamp by a tick.
    const double window = static_cast<double>(now->ticks - first_.ticks);
    const double rate_error = static_cast<double>(first_.uncertainty_ticks + now->uncertainty_ticks) / 2.0 / window;
    return Elapsed{ticks * fit->ns_per_tick(), (ticks * rate_error + 1.0) * fit->ns_per_tick()};
}

Result<double> CpuQueueTimer::floor_ns() {
    constexpr std::size_t rounds = 257;
    std::array<std::uint64_t, rounds> ticks{};
    for (std::uint64_t& one : ticks) {
        const Result<DeviceToken> token = begin();
        if (!token) {
            return token.error();
        }
        if (Status ended = end(*token); !ended) {
            return ended.error();
        }
        const Result<DeviceSpan> span = collect(*token);
        if (!span) {
            return span.error();
        }
        one = span->end_ticks - span->begin_ticks;
    }
    std::nth_element(ticks.begin(), ticks.begin() + rounds / 2, ticks.end());
    const Result<Elapsed> median = duration({0, ticks[rounds / 2], 0});
    return median ? Result<double>(median->nanoseconds) : median.error();
}

} // namespace plumb::backends::cpu
