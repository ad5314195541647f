// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plumb::cudagraph {

namespace {
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
}

void Readings::add(double value) {
    if (values_.size() < most_) {
        values_.push_back(value);
        return;
    }
    values_[next_] = value;
    next_ = (next_ + 1) % most_;
}

double Readings::median() const {
    if (values_.empty()) {
        return nothing;
    }
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Readings::Estimate Readings::estimate(double tick_ns) const {
    if (values_.empty()) {
        return {nothing, nothing};
    }
    std::vector<double> away = values_;
    const double middle = median();
    std::for_each(away.begin(), away.end(), [&](double& value) { value = std::abs(value - middle); });
    const double mean_away = std::accumulate(away.begin(), away.end(), 0.0) / static_cast<double>(away.size());
    double count = 0;
    double sum = 0;
    double squares = 0;
    for (const double value : values_) {
        if (std::abs(value - middle) <= std::max(4 * mean_away, tick_ns)) {
            count += 1;
            sum += value - middle;
            squares += (value - middle) * (value - middle);
        }
    }
    const double mean = sum / count;
    return {middle + mean, std::sqrt(std::max(0.0, squares / count - mean * mean) / count)};
}

double cost_of_a_stamp(const Readings& pairs, double calibrated, double tick_ns) {
    const Readings::Estimate here = pairs.estimate(tick_ns);
    if (std::isnan(here.mean)) {
        return calibrated;
    }
    return std::abs(here.mean - calibrated) <= 2 * here.error + tick_ns ? calibrated : here.mean;
}

double Readings::spread() const {
    Readings away(std::max<std::size_t>(values_.size(), 1));
    const double middle = median();
    for (const double value : values_) {
        away.add(std::abs(value - middle));
    }
    return 1.4826 * away.median(); // of a normal distribution
}

SiteCost cost_of_a_site(const Readings& pairs, double calibrated, double tick_ns,
                        const Readings::Estimate& in_replays) {
    constexpr std::size_t enough = 8;
    constexpr double widest = 0.2; // of the value
    constexpr double unseen =
        0.5; // of what an empty pair reads: stamps with work around them may cost so much more or less
    const Readings::Estimate here = pairs.estimate(tick_ns);
    const double pair = cost_of_a_stamp(pairs, calibrated, tick_ns);
    SiteCost cost{pair, 3 * here.error, pair};
    const double error = 3 * in_replays.error;
    if (!std::isnan(in_replays.mean) && error <= widest * std::abs(in_replays.mean)) {
        if (std::isnan(pair) || std::abs(in_replays.mean - pair) > error) {
            cost.ns = in_replays.mean;
            cost.error = error;
        }
    } else if (pairs.count() >= enough && cost.error > widest * std::abs(pair) + tick_ns) {
        cost.ns = nothing;
        cost.error += here.mean; // all of it is in the samples
    } else {
        cost.error = std::max(cost.error, unseen * std::abs(pair));
    }
    return cost;
}

void TimerTick::add(std::uint64_t reading) {
    first_ = first_ == 0 ? reading : first_;
    const std::uint64_t since = reading > first_ ? reading - first_ : first_ - reading;
    differences_ += since != 0 ? 1 : 0;
    common_ = std::gcd(common_, since);
}

void TimerTick::add_step(std::uint64_t from, std::uint64_t to) {
    stood_ = stood_ || from == to;
    shortest_ = to > from ? std::min(shortest_, to - from) : shortest_;
}

double TimerTick::ns() const {
    if (stood_ && shortest_ != UINT64_MAX) {
        return static_cast<double>(std::max(common_, shortest_));
    }
    return common_ != 0 ? static_cast<double>(common_) : nothing;
}

void SiteBook::settle(double plain_ns) {
    if (pending_.number != 0 && !std::isnan(plain_ns)) {
        ((pending_.waited ? waiting_ : busy_).*to_).add(pending_.ns - plain_ns);
    }
    pending_ = {};
    const Kind& now = kind();
    if (sites_ != 0 && now.stamped.count() >= enough_stamped && now.framed.count() >= enough_framed) {
        const Readings::Estimate stamped = now.stamped.estimate();
        const Readings::Estimate framed = now.framed.estimate();
        const auto sites = static_cast<double>(sites_);
        // std::hypot() would need a newer C library than the rest does.
        site_ = {(stamped.mean - framed.mean) / sites,
                 std::sqrt(stamped.error * stamped.error + framed.error * framed.error) / sites};
    }
}

void SiteBook::add_plain(std::uint64_t number, double span_ns, bool waited) {
    if (pending_.number != 0 && pending_.number + 1 == number && pending_.waited == waited) {
        settle(std::isnan(left_) ? span_ns : (left_ + span_ns) / 2);
    }
    plain_ = {number, span_ns, waited};
    (waited ? waiting_ : busy_).plain.add(span_ns);
}

void SiteBook::add(std::uint64_t number, double inside_ns, bool waited, Readings Kind::*to) {
    settle(left_);
    const bool next = plain_.number + 1 == number && plain_.waited == waited;
    left_ = next ? plain_.ns : nothing;
    pending_ = {number, inside_ns, waited};
    to_ = to;
}

double SiteBook::usual_inside(std::uint64_t number, double inside_ns, bool waited) const {
    const bool next = plain_.number + 1 == number && plain_.waited == waited;
    return next ? inside_ns - (plain_.ns - (waited ? waiting_ : busy_).plain.median()) : inside_ns;
}

void SiteBook::add_stamped(std::uint64_t number, double inside_ns, bool waited) {
    insides_[turn_].add(usual_inside(number, inside_ns, waited));
    add(number, inside_ns, waited, &Kind::stamped);
}

void SiteBook::add_framed(std::uint64_t number, double inside_ns, bool waited) {
    add(number, inside_ns, waited, &Kind::framed);
}

void SiteBook::begin_turn(std::size_t turn, std::size_t sites) {
    settle(left_);
    if (turn != turn_ || sites != sites_) {
        waiting_.stamped = busy_.stamped = Readings();
    }
    turn_ = turn;
    sites_ = sites;
    insides_.resize(std::max(insides_.size(), turn + 1));
}

const SiteBook::Kind& SiteBook::kind() const {
    return busy_.stamped.count() >= waiting_.stamped.count() ? busy_ : waiting_;
}

bool SiteBook::wants_frame() const { return lacks_frames() && kind().stamped.count() >= enough_stamped; }

Readings::Estimate SiteBook::site() const { return site_; }

bool SiteBook::stands_out(std::uint64_t number, double inside_ns, bool waited, double slack_ns) const {
    const Readings& usual = insides_[turn_];
    const double over = usual_inside(number, inside_ns, waited) - usual.median();
    return usual.count() >= enough_stamped && std::abs(over) > 3 * usual.spread() + slack_ns;
}

void ClosureBook::add_part(std::uint32_t number, double raw_ns) {
    if (number < parts_.size()) {
        parts_[number].add(raw_ns);
    }
}

void ClosureBook::forget_stamps() {
    parts_.assign(parts_.size(), Readings());
    waiting_.around = waiting_.framed = busy_.around = busy_.framed = Readings();
}

double ClosureBook::median_part() const {
    Readings all(std::max<std::size_t>(parts_.size(), 1));
    for (const Readings& part : parts_) {
        if (part.count() != 0) {
            all.add(part.median());
        }
    }
    return all.median();
}

double ClosureBook::plain_span() const {
    if (busy_.plain.count() < enough && waiting_.count() >= enough) {
        const double inside = waiting_.plain.median() - waiting_.surround().median();
        return inside > 0 ? inside : nothing;
    }
    return busy_.plain.median();
}

bool ClosureBook::closure(double site_cost_ns, Closure& result) const {
    const Kind& kind = busy_.count() >= waiting_.count() ? busy_ : waiting_;
    const double plain = kind.plain.median() - kind.surround().median();
    if (kind.count() < enough || !(plain > 0) || parts_.empty()) {
        return false;
    }
    double raw = 0;
    for (const Readings& part : parts_) {
        if (part.count() < enough) {
            return false;
        }
        raw += part.median();
    }
    result.raw = (raw - plain) / plain;
    result.calibrated = (raw - static_cast<double>(parts_.size()) * site_cost_ns - plain) / plain;
    return true;
}

} // namespace plumb::cudagraph
