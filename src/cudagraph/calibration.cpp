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

void ClosureBook::add_part(std::uint32_t number, double raw_ns) {
    if (number < parts_.size()) {
        parts_[number].add(raw_ns);
    }
}

double ClosureBook::plain_span() const {
    if (busy_.plain.count() < enough && waiting_.count() >= enough) {
        const double inside = waiting_.plain.median() - waiting_.around.median();
        return inside > 0 ? inside : nothing;
    }
    return busy_.plain.median();
}

bool ClosureBook::closure(double site_cost_ns, Closure& result) const {
    const Kind& kind = busy_.count() >= waiting_.count() ? busy_ : waiting_;
    const double plain = kind.plain.median() - kind.around.median();
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
