// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/markers.hpp"

#include <string>
#include <utility>

namespace plumb::backends::metal {

Result<std::uint64_t> uptime_ns(const MetalDriver& driver) noexcept {
    const std::uint64_t ns = driver.uptime_ns(clock_uptime_raw);
    return ns != 0 ? Result<std::uint64_t>(ns)
                   : Error{ErrorCode::failed, "clock_gettime_nsec_np: the system's uptime cannot be read; ask later"};
}

Result<std::unique_ptr<Markers>> Markers::create(const MetalDriver& driver, Id queue, std::uint32_t most,
                                                 Completions& completions) {
    std::unique_ptr<Markers> markers(new Markers(driver, queue, most, completions));
    const AutoreleasePool pool(driver);
    const Id device = driver.object(queue, driver.words.device);
    markers->event_ = Held(driver, driver.object(device, driver.words.new_event));
    if (markers->event_.get() == nullptr) {
        return Error{ErrorCode::failed, "newEvent: this device gives no event to order markers by; free some of its "
                                        "resources"};
    }
    return markers;
}

Markers::~Markers() {
    for (Completion* note : last_) {
        if (note != nullptr) {
            note->disown();
        }
    }
}

// Markers of one queue end in the order of their commits: if that one has ended, all before it have.
Status Markers::room(std::uint64_t behind) const noexcept {
    const Completion* note = value_ >= behind ? last_[(value_ - behind) % last_.size()] : nullptr;
    if (note == nullptr || note->over()) {
        return {};
    }
    return Error{ErrorCode::out_of_memory, std::to_string(behind) +
                                               " markers are on their way on this queue, and more could make your "
                                               "thread wait; time fewer scopes, or attach() your command buffers"};
}

Status Markers::room_to_begin() noexcept {
    const Result<std::uint64_t> now = uptime_ns(driver_);
    const std::lock_guard lock(mutex_);
    return now ? room(last_.size() / 3) : Status(now.error());
}

Result<Marker> Markers::commit() noexcept {
    const AutoreleasePool pool(driver_);
    const std::lock_guard lock(mutex_);
    const Status has_room = room(last_.size());
    const Result<Marker> marker = has_room ? encode() : has_room.error();
    if (marker) {
        marker->done->own();
        if (Completion* old = std::exchange(last_[value_ % last_.size()], marker->done); old != nullptr) {
            old->disown();
        }
        ++value_;
    }
    return marker;
}

Result<Marker> Markers::encode() noexcept {
    const Result<std::uint64_t> now = uptime_ns(driver_);
    if (!now) {
        return now.error();
    }
    Marker marker;
    marker.queued_ns = *now;
    const Id buffer = driver_.object(queue_.get(), driver_.words.command_buffer);
    if (buffer == nullptr) {
        return Error{ErrorCode::failed, "commandBuffer: this queue gives none, so that this scope is not timed; check "
                                        "the Metal calls before it"};
    }
    const Result<Completion*> done = completions_.watch(buffer);
    if (!done) {
        return done.error();
    }
    marker.done = *done;
    marker.buffer = buffer;
    driver_.ask(buffer, driver_.words.retain);
    driver_.ask(buffer, driver_.words.signal_event, event_.get(), value_ + 1);
    driver_.ask(buffer, driver_.words.wait_for_event, event_.get(), value_ + 1);
    driver_.ask(buffer, driver_.words.commit);
    return marker;
}

void Markers::drop(Marker& marker) const noexcept {
    if (marker.buffer != nullptr) {
        driver_.ask(std::exchange(marker.buffer, nullptr), driver_.words.release);
    }
    if (marker.done != nullptr) {
        std::exchange(marker.done, nullptr)->disown();
    }
}

} // namespace plumb::backends::metal
