// SPDX-License-Identifier: Apache-2.0
// The ranges that are open on one thread, of all domains, and how they become scopes, steps and layers. A range that ends before one
// that began inside of it (another domain's) is a span, outside the nesting. Of more than most_open the oldest are given up.
// Thread rule: one thread; counts() from any.
#pragma once

#include <atomic>
#include <cstdint>

#include "attach/nvtx/abi.hpp"
#include "attach/nvtx/texts.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::nvtx {

/// What became of the ranges of one thread, or of several.
struct RangeCounts {
    std::uint64_t ranges = 0;      // pushed
    std::uint64_t never_ended = 0; // pushed and not popped
    std::uint64_t never_begun = 0; // popped and not pushed
};

class ThreadRanges {
  public:
    static constexpr unsigned most_open = 128;

    explicit ThreadRanges(Recorder& recorder) noexcept : recorder_(recorder) {}
    ThreadRanges(const ThreadRanges&) = delete;
    ThreadRanges& operator=(const ThreadRanges&) = delete;

    /// A range of that domain begins. `attributes`: what came with it; null: nothing. The level in its domain, from 0.
    PLUMB_ALWAYS_INLINE int push(std::uint32_t domain, const KnownRange& known, const Attributes* attributes) noexcept {
        const std::uint32_t mode = recorder_.mode();
        if (PLUMB_UNLIKELY((mode & detail::mode_on) == 0)) {
            return no_level;
        }
        detail::ThreadRecorder* const pen = recorder_.thread();
        if (PLUMB_UNLIKELY(pen == nullptr)) {
            return no_level; // counted by the recorder
        }
        if (PLUMB_UNLIKELY(count_ == most_open)) {
            give_up_oldest();
        }
        const int level = level_in(domain);
        Frame& frame = at(count_++);
        frame.domain = domain;
        frame.level = level;
        frame.mode = mode;
        frame.opened = Opened::nothing;
        frame.bits = known.bits;
        add(ranges_);
        const bool in_its_layer =
            known.layer == no_layer || pen->layer_plus_one == static_cast<std::uint32_t>(known.layer) + 1;
        if (PLUMB_UNLIKELY(known.kind != RangeKind::brick || !in_its_layer ||
                           (known.payload != RangePayload::none && attributes != nullptr))) {
            open_other(frame, *pen, known, attributes);
        } else if ((known.bits & detail::flag_work) != 0) {
            frame.work = known.work;
        }
        frame.begin = begin_stamp(*pen, mode);
        return level;
    }

    /// The innermost range of that domain ends. Its level.
    PLUMB_ALWAYS_INLINE int pop(std::uint32_t domain) noexcept {
        const std::uint64_t now = detail::read_ticks();
        const std::uint32_t mode = recorder_.mode();
        if (PLUMB_UNLIKELY((mode & detail::mode_on) == 0)) {
            return no_level;
        }
        if (PLUMB_UNLIKELY(count_ == 0 || at(count_ - 1).domain != domain)) {
            return pop_inner(domain, now);
        }
        const Frame& frame = at(--count_);
        if (PLUMB_LIKELY(frame.bits != 0)) {
            end(frame, frame.bits, now, mode);
        } else {
            add(ended_);
        }
        if (PLUMB_UNLIKELY(frame.opened != Opened::nothing)) {
            close_structures(count_, count_ + 1);
        }
        return frame.level;
    }

    /// Ranges that are open now will not be ended: their thread, or the process, ends.
    [[nodiscard]] RangeCounts counts() const noexcept {
        return {ranges_.load(std::memory_order_relaxed), given_up_.load(std::memory_order_relaxed) + open(),
                lone_pops_.load(std::memory_order_relaxed)};
    }

  private:
    enum class Opened : std::uint8_t { nothing, layer, step };

    struct Frame {
        std::uint64_t begin;
        std::uint64_t bits; // of its record; 0: there will be none
        std::uint32_t mode;
        std::uint32_t domain;
        std::int32_t level;
        Opened opened;
        Work work;                                                                                    // with flag_work
        alignas(8) unsigned char object[sizeof(Step) > sizeof(Layer) ? sizeof(Step) : sizeof(Layer)]; // what was opened
    };

    /// Counts have one writer, this thread.
    static void add(std::atomic<std::uint64_t>& count) noexcept {
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    [[nodiscard]] Frame& at(unsigned index) noexcept { return frames_[(bottom_ + index) % most_open]; }
    [[nodiscard]] std::uint64_t open() const noexcept {
        const std::uint64_t ended = ended_.load(std::memory_order_relaxed) + given_up_.load(std::memory_order_relaxed);
        const std::uint64_t begun = ranges_.load(std::memory_order_relaxed);
        return begun > ended ? begun - ended : 0;
    }

    PLUMB_ALWAYS_INLINE int level_in(std::uint32_t domain) noexcept {
        if (PLUMB_LIKELY(count_ != 0 && at(count_ - 1).domain == domain)) {
            return at(count_ - 1).level + 1;
        }
        return count_ == 0 ? 0 : search_level(domain);
    }
    PLUMB_ALWAYS_INLINE std::uint64_t begin_stamp(detail::ThreadRecorder& pen, std::uint32_t mode) noexcept {
        if (PLUMB_UNLIKELY((mode & detail::mode_indirect) != 0)) {
            return recorder_.stamp();
        }
        const std::uint64_t now = detail::read_ticks();
        return PLUMB_LIKELY(now < pen.deadline) ? now : detail::begin_after_gap(pen);
    }
    /// Writes what ended. As Scope::end(), for scopes that are not nested by objects.
    PLUMB_ALWAYS_INLINE void end(const Frame& frame, std::uint64_t bits, std::uint64_t now,
                                 std::uint32_t mode) noexcept {
        detail::ThreadRecorder* const pen = recorder_.thread();
        const std::uint64_t duration = now - frame.begin;
        if (PLUMB_UNLIKELY(pen == nullptr || duration >= detail::long_ticks || mode != frame.mode ||
                           (mode & detail::mode_indirect) != 0)) {
            end_slow(pen, frame, bits, now, mode);
            return;
        }
        if ((bits & detail::flag_work) != 0) {
            bits = pen->push_work(bits, frame.work);
        }
        if (PLUMB_UNLIKELY(!pen->push(frame.begin, bits | duration))) {
            pen->drop(detail::Drop::ring_full);
        }
        pen->deadline = now + detail::long_ticks;
        add(ended_);
    }

    PLUMB_NOINLINE int search_level(std::uint32_t domain) noexcept;
    PLUMB_NOINLINE void give_up_oldest() noexcept;
    PLUMB_NOINLINE void open_other(Frame& frame, detail::ThreadRecorder& pen, const KnownRange& known,
                                   const Attributes* attributes) noexcept;
    PLUMB_NOINLINE int pop_inner(std::uint32_t domain, std::uint64_t now) noexcept;
    PLUMB_NOINLINE void end_slow(detail::ThreadRecorder* pen, const Frame& frame, std::uint64_t bits, std::uint64_t now,
                                 std::uint32_t mode) noexcept;
    /// Steps and layers nest: those of the frames from `first` on end, the innermost first. `count`: of the frames.
    PLUMB_NOINLINE void close_structures(unsigned first, unsigned count) noexcept;
    void open_layer(Frame& frame, detail::ThreadRecorder& pen, std::uint64_t index) noexcept;

    Recorder& recorder_;
    unsigned bottom_ = 0; // the oldest frame
    unsigned count_ = 0;
    std::atomic<std::uint64_t> ranges_{0}, ended_{0}, given_up_{0}, lone_pops_{0};
    Frame frames_[most_open];
};

/// The number that came with a range; NaN: none, or none that can be.
[[nodiscard]] double payload_of(const Attributes* attributes) noexcept;
/// True where it says something of a brick's work.
[[nodiscard]] bool add_payload(RangePayload role, double value, Work& work) noexcept;

} // namespace plumb::attach::nvtx
