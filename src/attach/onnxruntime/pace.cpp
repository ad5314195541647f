// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/pace.hpp"

#include <algorithm>

namespace plumb::attach::onnxruntime {

/// Whether one more, that costs what they cost so far, stays within the bound.
bool Pace::is_cheap() const { return cost_ns_ + cost_ns_ / static_cast<double>(profiled_) <= most_cost * all_ns_; }

bool Pace::next() {
    ++begun_;
    if (every_ <= 1) {
        return true;
    }
    if (busy_) {
        return false;
    }
    const bool is_due =
        begun_ > warm_up_ + 1 && (profiled_ == 0 || since_ + 1 >= every_); // a plain one first, to compare with
    busy_ = is_due && plain_ != 0 && (profiled_ < first_few || is_cheap());
    return busy_;
}

void Pace::plain(std::int64_t nanoseconds) {
    ++plain_;
    ++since_;
    plain_ns_ += static_cast<double>(nanoseconds);
    all_ns_ += static_cast<double>(nanoseconds);
}

void Pace::profiled(std::int64_t nanoseconds) {
    busy_ = false;
    since_ = 0;
    ++profiled_;
    const double taken = static_cast<double>(nanoseconds);
    all_ns_ += taken;
    cost_ns_ += plain_ != 0 ? std::max(taken - plain_ns_ / static_cast<double>(plain_), 0.0) : 0;
}

} // namespace plumb::attach::onnxruntime
