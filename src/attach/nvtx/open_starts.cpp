// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/open_starts.hpp"

#include <exception>

namespace plumb::attach::nvtx {

std::uint64_t OpenStarts::start(Recorder& recorder, Name name, const Work& work) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        // The slot is in the number; what was given before under that slot has another one.
        const std::uint64_t serial = ++serial_ * most_open;
        ++counts_.started;
        if (free_.empty() && slots_.size() == most_open) {
            ++counts_.refused;
            return serial | refused_bit;
        }
        if (free_.empty()) {
            free_.reserve(slots_.size() + 1);
            slots_.emplace_back();
            free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
        }
        const std::uint32_t place = free_.back();
        free_.pop_back();
        ++counts_.open;
        slots_[place].number = serial + place;
        slots_[place].token = recorder.begin(name, work);
        return serial + place;
    } catch (const std::exception&) { // no memory
        return refused_bit;
    }
}

void OpenStarts::end(Recorder& recorder, std::uint64_t number) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t place = number % most_open;
    if ((number & refused_bit) != 0 && place == 0 && (number & ~refused_bit) / most_open <= serial_) {
        return; // counted when it was refused
    }
    if (number == 0 || place >= slots_.size() || slots_[place].number != number) {
        ++counts_.never_started; // or ended before
        return;
    }
    recorder.end(slots_[place].token);
    slots_[place].number = 0;
    free_.push_back(static_cast<std::uint32_t>(place)); // there is room: start() made it
    --counts_.open;
}

StartCounts OpenStarts::counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
}

} // namespace plumb::attach::nvtx
