// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/tick_line.hpp"

#include <cmath>

#include "backends/pair_fit.hpp"

namespace plumb::backends::vulkan {
namespace {

constexpr std::int64_t pair_gap_ns = 50'000'000; // pairs that are closer say nothing more of the rate

} // namespace

TickLine::TickLine(unsigned valid_bits, double period_ns)
    : bits_(valid_bits), mask_(valid_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid_bits) - 1),
      period_ns_(period_ns) {}

std::uint64_t TickLine::unwrap(std::uint64_t raw, std::int64_t now_ns) {
    raw &= mask_;
    if (mask_ == ~std::uint64_t{0}) {
        return raw;
    }
    if (!reference_) { // one range up: stamps from before the first pair have a place too
        reference_ = Reference{raw + mask_ + 1, now_ns};
    }
    const double since = static_cast<double>(now_ns - reference_->ns) / (fit_ ? fit_->ns_per_tick() : period_ns_);
    const std::uint64_t now = reference_->ticks + static_cast<std::uint64_t>(std::llround(since));
    const std::uint64_t latest = now + (mask_ + 1) / 4;
    return latest - ((latest - raw) & mask_);
}

std::int64_t TickLine::difference(std::uint64_t begin, std::uint64_t end) const noexcept {
    const unsigned unused = 64 - bits_;
    // The sign bit of N bits becomes that of 64.
    return static_cast<std::int64_t>((end - begin) << unused) >> unused;
}

void TickLine::add(const DeviceClockPair& pair) {
    reference_ = Reference{pair.ticks, pair.monotonic_ns};
    const std::size_t count = pairs_.size();
    if (count >= 2 && pairs_[count - 1].monotonic_ns - pairs_[count - 2].monotonic_ns < pair_gap_ns) {
        pairs_.pop_back(); // the newest stands for its neighbours
    }
    if (pairs_.size() == most_pairs) {
        pairs_.pop_front();
    }
    pairs_.push_back(pair);
    fit_ = fitted();
}

std::optional<clock::Correlation> TickLine::fitted() const {
    const Result<clock::Correlation> fit = fit_of(pairs_);
    return fit ? std::optional(*fit) : std::nullopt;
}

bool TickLine::surely_after(std::uint64_t ticks, std::int64_t host_ns) const {
    if (!fit_) {
        return false;
    }
    return static_cast<double>(fit_->to_host({ticks}).value - host_ns) >= fit_->sure_bound_ns({ticks});
}

Result<Elapsed> TickLine::duration(std::uint64_t ticks) const {
    if (!fit_) {
        return Error{ErrorCode::unavailable,
                     "the rate of this device's clock is not known before its second clock pair; "
                     "ask again a moment later"};
    }
    const DeviceClockPair& first = pairs_.front();
    const DeviceClockPair& last = pairs_.back();
    // Each pair is off by half its bracket at most, and each stamp by a tick.
    const double rate_error = static_cast<double>(first.uncertainty_ticks + last.uncertainty_ticks) / 2.0 /
                              static_cast<double>(last.ticks - first.ticks);
    const auto length = static_cast<double>(ticks);
    return Elapsed{length * fit_->ns_per_tick(), (length * rate_error + 1.0) * fit_->ns_per_tick()};
}

} // namespace plumb::backends::vulkan
