// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/calibration.hpp"

#include <algorithm>
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

double Readings::middle_mean() const {
    if (values_.empty()) {
        return nothing;
    }
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const auto quarter = static_cast<std::ptrdiff_t>(sorted.size() / 4);
    const auto first = sorted.begin() + quarter;
    const auto last = sorted.end() - quarter;
    return std::accumulate(first, last, 0.0) / static_cast<double>(last - first);
}

void ClosureBook::add_part(std::uint32_t number, double raw_ns) {
    if (number < parts_.size()) {
        parts_[number].add(raw_ns);
    }
}

bool ClosureBook::closure(double site_cost_ns, Closure& result) const {
    const double plain = plain_.median();
    if (plain_.count() < enough || !(plain > 0) || parts_.empty()) {
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
