// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/thread_ranges.hpp"

#include <cmath>
#include <limits>
#include <new>

#include "base/layout.hpp"

namespace plumb::attach::nvtx {
namespace {

constexpr double most_of_a_count = 9e15; // what a double holds exactly

std::uint64_t as_count(double value) noexcept {
    return value >= 0 && value <= most_of_a_count ? static_cast<std::uint64_t>(value) : 0;
}

/// What the payload says of a step.
void apply(RangePayload role, double value, StepValues& step) noexcept {
    if (role == RangePayload::prefill) {
        step.prefill_tokens = as_count(value);
    } else if (role == RangePayload::decode) {
        step.decode_tokens = as_count(value);
    } else if (role == RangePayload::sequences) {
        step.sequences = as_count(value);
    } else if (role == RangePayload::kv_length) {
        step.kv_length = as_count(value);
    }
}

} // namespace

bool add_payload(RangePayload role, double value, Work& work) noexcept {
    if (std::isnan(value) || value < 0) {
        return false;
    }
    if (role == RangePayload::bytes) {
        work.bytes = value;
    } else if (role == RangePayload::flops) {
        work.flops = value;
    } else if (role == RangePayload::elements) {
        work.elements = value;
    }
    return role == RangePayload::bytes || role == RangePayload::flops || role == RangePayload::elements;
}

double payload_of(const Attributes* attributes) noexcept {
    if (attributes == nullptr) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const auto& value = attributes->payload;
    switch (static_cast<PayloadType>(attributes->payload_type)) {
    case PayloadType::u64:
        return static_cast<double>(value.u64);
    case PayloadType::i64:
        return static_cast<double>(value.i64);
    case PayloadType::f64:
        return value.f64;
    case PayloadType::u32:
        return value.u32;
    case PayloadType::i32:
        return value.i32;
    case PayloadType::f32:
        return static_cast<double>(value.f32);
    case PayloadType::none:
        break;
    }
    return std::numeric_limits<double>::quiet_NaN(); // also types that NVTX has had since
}

int ThreadRanges::search_level(std::uint32_t domain) noexcept {
    for (unsigned i = count_; i > 0; --i) {
        if (at(i - 1).domain == domain) {
            return at(i - 1).level + 1;
        }
    }
    return 0;
}

/// A thread that only pushes keeps its newest ranges right.
void ThreadRanges::give_up_oldest() noexcept {
    if (at(0).opened != Opened::nothing) {
        close_structures(0, count_);
    }
    bottom_ = (bottom_ + 1) % most_open;
    --count_;
    add(given_up_);
}

void ThreadRanges::open_layer(Frame& frame, detail::ThreadRecorder& pen, std::uint64_t index) noexcept {
    if (index < 0xffff && pen.layer_plus_one != index + 1) {
        new (frame.object) Layer(recorder_, frame.mode, index);
        frame.opened = Opened::layer;
    }
}

void ThreadRanges::open_other(Frame& frame, detail::ThreadRecorder& pen, const KnownRange& known,
                              const Attributes* attributes) noexcept {
    const double value = known.payload != RangePayload::none ? payload_of(attributes) : NAN;
    if (known.kind == RangeKind::brick || known.kind == RangeKind::layer) {
        if (known.payload == RangePayload::layer && value >= 0) {
            open_layer(frame, pen, as_count(value));
        } else if (known.layer != no_layer) {
            open_layer(frame, pen, static_cast<std::uint64_t>(known.layer));
        }
    }
    if (known.kind == RangeKind::brick) {
        frame.work = known.work;
        if (add_payload(known.payload, value, frame.work)) {
            frame.bits |= flag_work;
        }
        return;
    }
    frame.bits = 0;
    if (known.kind == RangeKind::step && pen.step_plus_one == 0) { // one inside of another is a part of that
        StepValues step = known.step;
        apply(known.payload, value, step);
        new (frame.object) Step(recorder_, frame.mode, host, known.phase, step);
        frame.opened = Opened::step;
    }
}

void ThreadRanges::close_structures(unsigned first, unsigned count) noexcept {
    for (unsigned i = count; i > first; --i) {
        Frame& frame = at(i - 1);
        if (frame.opened == Opened::step) {
            std::launder(reinterpret_cast<Step*>(frame.object))->~Step();
        } else if (frame.opened == Opened::layer) {
            std::launder(reinterpret_cast<Layer*>(frame.object))->~Layer();
        }
        frame.opened = Opened::nothing;
    }
}

int ThreadRanges::pop_inner(std::uint32_t domain, std::uint64_t now) noexcept {
    unsigned index = count_;
    while (index > 0 && at(index - 1).domain != domain) {
        --index;
    }
    if (index == 0) {
        add(lone_pops_);
        return no_level;
    }
    const Frame ended = at(--index);
    if (ended.bits != 0) {
        constexpr std::uint64_t kind_mask = std::uint64_t{63} << kind_shift;
        end(ended, (ended.bits & ~kind_mask) | pack(RecordKind::span), now, recorder_.mode());
    } else {
        add(ended_);
    }
    if (ended.opened != Opened::nothing) {
        close_structures(index, count_);
    }
    for (unsigned i = index; i + 1 < count_; ++i) {
        at(i) = at(i + 1); // objects too: they are plain values that know their thread
    }
    --count_;
    return ended.level;
}

void ThreadRanges::end_slow(detail::ThreadRecorder* pen, const Frame& frame, std::uint64_t bits, std::uint64_t now,
                            std::uint32_t mode) noexcept {
    add(ended_);
    if (pen == nullptr) {
        return; // counted by the recorder
    }
    if (mode != frame.mode) {
        pen->drop(Drop::across_toggle);
        return;
    }
    if ((mode & detail::mode_indirect) != 0) {
        now = recorder_.stamp();
    }
    if (now < frame.begin) { // the counters of two cores may disagree by a little: unresolvable, not zero
        pen->drop(Drop::negative_span);
        return;
    }
    if ((bits & flag_work) != 0) {
        bits = pen->push_work(bits, frame.work);
    }
    if (!pen->push_timed(frame.begin, bits, now - frame.begin)) {
        pen->drop(Drop::ring_full);
    }
    pen->deadline = now + long_ticks;
    pen->sample_after(now - frame.begin, now);
}

} // namespace plumb::attach::nvtx
