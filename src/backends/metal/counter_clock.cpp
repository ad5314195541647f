// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/counter_clock.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/pair_fit.hpp"

namespace plumb::backends::metal {

Result<DeviceClockPair> CounterClock::pair() noexcept {
    std::uint64_t system = 0, ticks = 0;
    const std::int64_t realtime = clock::realtime_ns();
    const std::int64_t before = clock::now_ns(host_clock_).value;
    driver_.ask(device_.get(), driver_.words.sample_timestamps, &system, &ticks);
    const std::int64_t width = clock::now_ns(host_clock_).value - before;
    if (ticks == 0 || ticks == counter_error) {
        return Error{ErrorCode::unsupported,
                     "sampleTimestamps:gpuTimestamp: gives no counter here, so that samples have "
                     "no place in time; use plumb::metal()"};
    }
    // The uncertainty is in ticks, whose length the first pair cannot know: it is stated in nanoseconds until then, which
    // is too wide and never too narrow, since no counter is faster than one tick a nanosecond.
    DeviceClockPair pair{ticks, before + width / 2, realtime + width / 2, static_cast<std::uint64_t>(width) + 1};
    const std::lock_guard lock(mutex_);
    if (fit_) {
        pair.uncertainty_ticks =
            static_cast<std::uint64_t>(std::ceil(static_cast<double>(width) / fit_->ns_per_tick())) + 1;
    }
    pairs_.push_back(pair);
    fit_.reset();
    if (pairs_.size() > most_pairs) {
        pairs_.erase(pairs_.begin() + 1); // the first one stays: the longer the base, the better the rate
    }
    if (pairs_.size() >= 2) {
        if (const auto fitted = fit(); fitted) {
            fit_ = *fitted;
        }
    }
    return pair;
}

Result<clock::Correlation> CounterClock::fit() { return fit_of(pairs_); }

Result<double> CounterClock::ns_per_tick() {
    const std::lock_guard lock(mutex_);
    if (fit_) {
        return fit_->ns_per_tick();
    }
    const auto fitted = fit();
    return fitted ? Result<double>(fitted->ns_per_tick()) : fitted.error();
}

Result<Elapsed> CounterClock::duration(const DeviceSpan& span) {
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt,
                     "this span's counter runs backwards, so that it has no length; report this device"};
    }
    const Result<double> rate = ns_per_tick();
    if (!rate) {
        return rate.error();
    }
    const auto ticks = static_cast<double>(span.end_ticks - span.begin_ticks);
    const std::lock_guard lock(mutex_);
    const auto base = static_cast<double>(pairs_.back().ticks) - static_cast<double>(pairs_.front().ticks);
    const auto doubt = static_cast<double>(pairs_.back().uncertainty_ticks + pairs_.front().uncertainty_ticks) / 2;
    return Elapsed{ticks * *rate, (1 + ticks * doubt / std::max(base, 1.0)) * *rate};
}

} // namespace plumb::backends::metal
