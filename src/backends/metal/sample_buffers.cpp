// SPDX-License-Identifier: Apache-2.0
#include "backends/metal/sample_buffers.hpp"

#include <algorithm>
#include <atomic>
#include <string>

namespace plumb::backends::metal {
namespace {

std::atomic<int>& alive_in_process() {
    static std::atomic<int> alive{0};
    return alive;
}

} // namespace

SampleBuffers::~SampleBuffers() {
    for (const Late& late : late_) {
        late.writer->disown();
    }
    alive_in_process() -= static_cast<int>(buffers_.size());
}

Status SampleBuffers::find_counters() {
    const AutoreleasePool pool(driver_);
    const Id sets = driver_.object(device_.get(), driver_.words.counter_sets);
    const std::uint64_t count = driver_.ask(sets, driver_.words.count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const Id set = driver_.object(sets, driver_.words.object_at, i);
        if (text_of(driver_, driver_.object(set, driver_.words.name)) == "timestamp") {
            counters_ = Held::retained(driver_, set);
            return {};
        }
    }
    return Error{ErrorCode::unsupported,
                 "counterSets: this device lists no counter set \"timestamp\", so that parts of "
                 "command buffers have no times; use plumb::metal()"};
}

Status SampleBuffers::add_buffer() {
    if (alive_in_process().fetch_add(1) >= most_in_process) {
        --alive_in_process();
        return Error{ErrorCode::out_of_memory, "all 32 counter sample buffers that a process may have are in use; "
                                               "collect or cancel some scopes first"};
    }
    const AutoreleasePool pool(driver_);
    const Id type = driver_.get_class("MTLCounterSampleBufferDescriptor");
    const Held description(driver_, driver_.object(driver_.object(type, driver_.words.alloc), driver_.words.init));
    driver_.ask(description.get(), driver_.words.set_counter_set, counters_.get());
    driver_.ask(description.get(), driver_.words.set_storage, storage_shared);
    driver_.ask(description.get(), driver_.words.set_sample_count, samples_each);
    Held buffer(driver_, driver_.object(device_.get(), driver_.words.new_samples, description.get(), nullptr));
    if (buffer.get() == nullptr) {
        --alive_in_process();
        return Error{ErrorCode::out_of_memory,
                     "newCounterSampleBufferWithDescriptor:error: this device gives no counter "
                     "sample buffer; close other profilers, or collect scopes sooner"};
    }
    const auto first = static_cast<std::uint32_t>(buffers_.size()) * places_each;
    buffers_.push_back(std::move(buffer));
    before_.resize(buffers_.size() * samples_each, 0);
    read_.resize(before_.size(), 0);
    late_.reserve(buffers_.size() * places_each);
    free_.reserve(buffers_.size() * places_each);
    for (std::uint32_t i = places_each; i-- > 0;) {
        free_.push_back(first + i);
    }
    return {};
}

void SampleBuffers::sweep() noexcept {
    const auto still =
        std::partition(late_.begin(), late_.end(), [](const Late& late) { return !late.writer->over(); });
    for (auto late = still; late != late_.end(); ++late) {
        free_.push_back(late->number);
        late->writer->disown();
    }
    late_.erase(still, late_.end());
}

Result<SamplePlace> SampleBuffers::take() noexcept {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        sweep();
    }
    if (free_.empty()) {
        if (const Status added = add_buffer(); !added) {
            return added.error();
        }
    }
    SamplePlace place;
    place.number = free_.back();
    free_.pop_back();
    place.buffer = buffers_[place.number / places_each].get();
    place.first = place.number % places_each * 2;
    return place;
}

void SampleBuffers::give_back(const SamplePlace& place, Completion& writer) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = std::size_t{place.number} * 2; i < std::size_t{place.number} * 2 + 2; ++i) {
        before_[i] = read_[i];
    }
    if (writer.over()) {
        free_.push_back(place.number);
    } else {
        writer.own();
        late_.push_back({place.number, &writer});
    }
}

Result<std::pair<std::uint64_t, std::uint64_t>> SampleBuffers::read(const SamplePlace& place,
                                                                    std::uint64_t count) noexcept {
    const AutoreleasePool pool(driver_);
    const Id data = driver_.object(place.buffer, driver_.words.resolve, place.first, count);
    const auto* values = static_cast<const std::uint64_t*>(driver_.object(data, driver_.words.bytes));
    if (values == nullptr || driver_.ask(data, driver_.words.length) < count * sizeof *values) {
        return Error{ErrorCode::failed,
                     "resolveCounterRange: this sample buffer gives no data, so that this scope has no "
                     "time; check the Metal calls before it"};
    }
    const std::lock_guard lock(mutex_);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t at = std::size_t{place.number} * 2 + i;
        if (values[i] == 0 || values[i] == counter_error || values[i] == before_[at]) {
            return Error{ErrorCode::unsupported, "the device left a counter sample out (0, its error value or what was "
                                                 "there before), so that this scope has no time; use plumb::metal()"};
        }
        read_[at] = values[i];
    }
    return std::pair{values[0], values[count - 1]};
}

} // namespace plumb::backends::metal
