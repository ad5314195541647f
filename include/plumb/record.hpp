// SPDX-License-Identifier: Apache-2.0
// Recording: scopes, laps, steps, layers, contexts, tokens, nodes, and the macros. The hot path of the library.
// A Recorder is the hot half of a Profiler (profiler.hpp). Thread rule: every function may be called from any thread at any
// time while the Profiler lives; objects returned (Scope, Step, …) belong to the thread that made them.
// Cost: off, one relaxed load; on, two clock reads and one 16-byte store. Nothing here throws or blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/clock.hpp"
#include "plumb/layout.hpp"
#include "plumb/node.hpp"
#include "plumb/thread_recorder.hpp"
#include "plumb/work.hpp"

namespace plumb {

class QueueTimer; // backend.hpp
struct DeviceToken;
namespace record {
class RingSet; // src/record
class TensorSink;
} // namespace record

inline namespace v1 {

class Scope;

/// Where work runs: the calling thread (plumb::host), or a device queue that a backend times.
struct Queue {
    QueueTimer* timer = nullptr; // null: the calling thread
    std::uint32_t track = 0;     // of the device queue
};
inline constexpr Queue host{};

/// Step and layer of the calling thread, to be carried to a worker.
struct Context {
    std::uint64_t step_plus_one = 0;
    std::uint32_t layer_plus_one = 0;
};

/// An open begin() that may be ended on another thread, once.
struct Token {
    std::uint64_t begin = 0;
    std::uint64_t bits = 0; // 0: not open
    std::uint32_t mode = 0;
    std::uint32_t track = 0;
    Work work{};
};

namespace detail {

// Bits of Recorder::mode(); the upper bits count enable()/disable(), so that equality means "nothing changed".
inline constexpr std::uint32_t mode_on = 1;
inline constexpr std::uint32_t mode_indirect =
    2; // stamps go through a function: injected clock, no sound TSC, immediate
inline constexpr std::uint32_t mode_slow_end =
    4;                                           // of a Scope, never of a Recorder: its end must not take the fast path
inline constexpr std::uint32_t mode_tensors = 8; // PLUMB_TENSOR acts (tensor.hpp)
inline constexpr std::uint32_t mode_tiles = 16;  // PLUMB_TILE acts (tile.hpp)
inline constexpr std::uint32_t mode_epoch = 32;

} // namespace detail

class PLUMB_API Recorder {
  public:
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // Relaxed: a scope that misses a toggle by a moment is as good as one begun a moment earlier.
    [[nodiscard]] std::uint32_t mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
    /// True while scopes are being recorded.
    [[nodiscard]] bool enabled() const noexcept { return (mode() & detail::mode_on) != 0; }
    /// True while PLUMB_TILE acts.
    [[nodiscard]] bool keeps_tiles() const noexcept { return (mode() & detail::mode_tiles) != 0; }

    /// The clock that scopes are stamped with.
    [[nodiscard]] Timestamp now() const noexcept;

    /// A scope by value: ends when the object does. Name is a plumb::Brick or an interned name.
    template <class... Tags>
    [[nodiscard]] Scope scope(Queue queue, Name name, Tags... tags) noexcept;

    /// begin() on one thread, end() on this or another. A token ended twice is refused and counted.
    template <class... Tags>
    [[nodiscard]] Token begin(Name name, Tags... tags) noexcept {
        Token token;
        if (PLUMB_UNLIKELY(enabled())) {
            announce(name, tags...);
            begin_token(token, name, detail::any_work<Tags...>, make_work(tags...));
        } else {
            token.track = begun_off;
        }
        return token;
    }
    void end(Token& token) noexcept {
        if (PLUMB_UNLIKELY(enabled() || token.bits != 0)) {
            end_token(token);
        }
    }

    /// A span timed elsewhere, with begin and end from now(). Outside the nesting of this thread.
    template <class... Tags>
    void record_span(Name name, Timestamp begin, Timestamp end, Tags... tags) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            announce(name, tags...);
            put_span(name, begin, end, detail::any_work<Tags...>, make_work(tags...));
        }
    }

    /// A scope of a device queue that was begun and ended elsewhere: its time is collected from the queue's timer. Work
    /// may be null; `lap` marks one that also holds the gap before the next.
    void record_device(Name name, Queue queue, DeviceToken token, const Work* work = nullptr,
                       bool lap = false) noexcept;

    /// A kernel that the calling thread ran or launched, inside the scope that is open: what `plumb path` is made of.
    /// `hash`: code_hash() of its PTX or binary, 0 where it is not known. Tags: work, and timed(begin, end). A kernel
    /// without timed() has the time of its scope where it is the only one in there, else none of its own.
    template <class... Tags>
    NodeHandle record_kernel(Name name, std::uint64_t hash, Extent grid, Extent block, std::uint32_t shared_bytes,
                             Tags... tags) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            return put_kernel(name, hash, grid, block, shared_bytes, make_node_tags(tags...));
        }
        return {};
    }

    /// A copy of `size` bytes between two buffers; the tag is timed(begin, end).
    template <class... Tags>
    NodeHandle record_transfer(Buffer source, Buffer target, std::uint64_t size, TransferDirection direction,
                               Tags... tags) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            return put_transfer(source, target, size, direction, make_node_tags(tags...));
        }
        return {};
    }

    /// An asynchronous task that has ended: how often it was polled and yielded, and how long all polls took together.
    NodeHandle record_task(Name name, std::uint64_t polls, std::uint64_t yields, std::uint64_t nanoseconds) noexcept {
        return PLUMB_UNLIKELY(enabled()) ? put_task(name, polls, yields, nanoseconds) : NodeHandle{};
    }
    NodeHandle record_task(std::uint64_t polls, std::uint64_t yields, std::uint64_t nanoseconds) noexcept {
        return record_task(Name{}, polls, yields, nanoseconds);
    }

    /// `later` could not begin before `earlier` had ended. Handles may come from any thread; call it while the step they
    /// belong to is the calling thread's. An edge of a node that was not recorded is refused and counted.
    void add_dependency(NodeHandle earlier, NodeHandle later) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            put_dependency(earlier, later);
        }
    }

    /// Scopes without an object: what push_…() began, pop_scope() of the same thread ends, the innermost first. One that is
    /// open across enable() or disable() is dropped and counted, and so is a pop_scope() that has nothing to end.
    template <class... Tags>
    void push_scope(Queue queue, Name name, Tags... tags) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            announce(name, tags...);
            push_brick(queue, name, detail::any_work<Tags...>, make_work(tags...));
        }
    }
    void push_layer(std::uint32_t index) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            push_open_layer(index);
        }
    }
    template <class... Tags>
    void push_step(Queue queue, Phase phase, Tags... tags) noexcept;
    void pop_scope() noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            pop_open();
        }
    }

    /// A launch of a captured graph on the calling thread: `flags` are launch_* bits of layout.hpp.
    void record_graph_launch(std::uint64_t key, std::uint16_t flags, Queue queue, Timestamp begin,
                             Timestamp end) noexcept;

    /// Adds to the totals of a label: count, total, min, max. Untimed: never part of coverage or trace.
    void record(Name label, std::uint64_t nanoseconds) noexcept {
        if (PLUMB_UNLIKELY(enabled())) {
            put_label(label, nanoseconds);
        }
    }

    /// Step and layer of the calling thread.
    [[nodiscard]] Context context() noexcept;

    // For the inline path; not for users.
    PLUMB_ALWAYS_INLINE detail::ThreadRecorder* thread() noexcept {
        const detail::ThreadSlot& slot = detail::thread_slot_table[slot_];
        return PLUMB_LIKELY(slot.generation == generation_) ? slot.thread : attach_thread();
    }
    [[nodiscard]] std::uint64_t stamp() const noexcept;       // by the configured clock and mode
    [[nodiscard]] std::uint64_t plain_stamp() const noexcept; // the same without serialising
    [[nodiscard]] std::uint64_t layer_stamp() const noexcept; // at a layer's border: serialised by per_layer too
    [[nodiscard]] bool host_only() const noexcept { return host_only_; }
    [[nodiscard]] std::uint64_t device_every() const noexcept { return device_every_; }
    PLUMB_NOINLINE detail::ThreadRecorder* attach_thread() noexcept; // null: cannot record here, counted
    [[nodiscard]] std::uint64_t next_step_id() noexcept { return next_step_.fetch_add(1, std::memory_order_relaxed); }
    void note_step(std::uint64_t id, Phase phase, const detail::StepValues& values) noexcept;

  protected:
    Recorder() noexcept;
    ~Recorder();

    friend struct RecorderAccess; // src/record

  private:
    template <class... Tags>
    void announce([[maybe_unused]] Name name, [[maybe_unused]] Tags... tags) noexcept {
        if constexpr (detail::any_collective<Tags...>) {
            if (detail::ThreadRecorder* pen = thread(); pen != nullptr) {
                pen->push_collective(name, detail::make_collective(tags...));
            }
        }
    }

    // Token::track of a token begun while off, and on a thread that could not record, which is counted there.
    static constexpr std::uint32_t begun_off = ~std::uint32_t{0};
    static constexpr std::uint32_t begun_without_ring = begun_off - 1;

    void begin_token(Token& token, Name name, bool has_work, const Work& work) noexcept;
    void end_token(Token& token) noexcept;
    void put_label(Name label, std::uint64_t nanoseconds) noexcept;
    void put_span(Name name, Timestamp begin, Timestamp end, bool has_work, const Work& work) noexcept;
    NodeHandle put_kernel(Name name, std::uint64_t hash, Extent grid, Extent block, std::uint32_t shared_bytes,
                          const detail::NodeTags& tags) noexcept;
    NodeHandle put_transfer(Buffer source, Buffer target, std::uint64_t size, TransferDirection direction,
                            const detail::NodeTags& tags) noexcept;
    NodeHandle put_task(Name name, std::uint64_t polls, std::uint64_t yields, std::uint64_t nanoseconds) noexcept;
    void put_dependency(NodeHandle earlier, NodeHandle later) noexcept;
    void push_brick(Queue queue, Name name, bool has_work, const Work& work) noexcept;
    void push_open_layer(std::uint32_t index) noexcept;
    void push_open_step(Queue queue, Phase phase, const detail::StepValues& values) noexcept;
    void pop_open() noexcept;

    // One cache line that recording threads only read. All but mode_ and rings_ is settled before any thread knows us.
    alignas(64) std::atomic<std::uint32_t> mode_{0};
    std::uint32_t slot_ = 0;
    std::uint64_t generation_ = 0;                      // never 0: an untouched ThreadSlot cannot match
    bool serialise_ = false;                            // sync=immediate: nothing may cross a stamp
    bool serialise_layers_ = false;                     // sync=per_layer: nothing may cross a layer's border
    bool host_only_ = false;                            // sync=none: the timers of queues are left alone
    bool tiles_ = false;                                // tiles are kept while on
    bool hide_traces_ = false;                          // trace ids of requests are not kept
    const HostClock* clock_ = nullptr;                  // null: read_ticks()
    std::uint64_t device_every_ = 1;                    // device scopes are timed in one step out of so many
    std::atomic<record::RingSet*> rings_{nullptr};      // release, acquire: a thread that finds it finds it complete
    std::atomic<record::TensorSink*> tensors_{nullptr}; // the same
    alignas(64) std::atomic<std::uint64_t> next_step_{0};
    // Of the last steps begun while tensors are looked at, by step id: step + 1, phase, position + 1, packed.
    static constexpr std::size_t known_steps = 64;
    std::atomic<std::uint64_t> steps_[known_steps] = {};
};

namespace detail {

// The rare paths of a scope, out of line.
struct SlowBegin {
    std::uint64_t begin;
    std::uint64_t token; // of the queue's timer
    bool open;           // false: too deep, counted
    bool on_device;      // `token` is the timer's, or was refused by it
};
struct SlowEnd {
    std::uint64_t now, begin, bits;
    std::uint32_t mode;
    Queue queue;
    std::uint64_t token;
    Work work;
};
PLUMB_API SlowBegin begin_scope_slow(ThreadRecorder& thread, Queue queue, std::uint64_t bits) noexcept;
PLUMB_API std::uint64_t begin_after_gap(ThreadRecorder& thread) noexcept;
PLUMB_API void end_scope_slow(ThreadRecorder& thread, const SlowEnd& ended) noexcept;

} // namespace detail

/// One begin/end of a brick on the calling thread or on a device queue. May not change threads.
class Scope {
  public:
    /// An off scope: does nothing.
    Scope() noexcept : thread_(nullptr) {}

    template <class... Tags>
    PLUMB_ALWAYS_INLINE Scope(Recorder& recorder, std::uint32_t mode, Queue queue, Name name, Tags... tags) noexcept
        : thread_(recorder.thread()), mode_(mode) {
        bits_ = detail::pack(detail::RecordKind::scope, name.id) | (detail::any_work<Tags...> ? detail::flag_work : 0);
        if constexpr (detail::any_work<Tags...>) {
            work_ = make_work(tags...);
        }
        detail::ThreadRecorder* thread = thread_;
        if (PLUMB_UNLIKELY(thread == nullptr)) {
            return;
        }
        if constexpr (detail::any_collective<Tags...>) {
            thread->push_collective(name, detail::make_collective(tags...));
        }
        const unsigned depth = thread->depth;
        if (PLUMB_UNLIKELY(depth >= max_depth || (mode & detail::mode_indirect) != 0 || queue.timer != nullptr)) {
            const detail::SlowBegin begun = detail::begin_scope_slow(*thread, queue, bits_);
            thread_ = begun.open ? thread : nullptr;
            mode_ |= detail::mode_slow_end; // never equal to Recorder::mode(): the end takes the slow path too
            begin_ = begun.begin;
            token_ = begun.token;
            queue_timer_ = begun.on_device ? queue.timer : nullptr;
            queue_track_ = queue.track;
            return;
        }
        thread->depth = depth + 1;
        begin_ = detail::read_ticks();
        if (PLUMB_UNLIKELY(begin_ >= thread->deadline)) {
            begin_ = detail::begin_after_gap(*thread);
        }
        std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the body behind the stamp
    }

    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    PLUMB_ALWAYS_INLINE ~Scope() { end(); }

    /// Work known only now; replaces what was given at the beginning.
    template <class... Tags>
    void work(Tags... tags) noexcept {
        if (thread_ != nullptr) {
            work_ = make_work(tags...);
            bits_ |= detail::flag_work;
        }
    }

    PLUMB_ALWAYS_INLINE void end() noexcept {
        detail::ThreadRecorder* thread = thread_;
        if (thread == nullptr) {
            return;
        }
        std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the body before the stamp
        const std::uint64_t now = detail::read_ticks();
        const std::uint64_t duration = now - begin_;
        const unsigned depth = thread->depth;
        if (PLUMB_UNLIKELY(duration >= detail::long_ticks || thread->recorder->mode() != mode_ ||
                           (thread->open_laps >> (depth - 1) & 1) != 0)) {
            const detail::SlowEnd slow{now, begin_, bits_, mode_, Queue{queue_timer_, queue_track_}, token_, work_};
            thread_ = nullptr;
            detail::end_scope_slow(*thread, slow);
            return;
        }
        thread->depth = depth - 1;
        std::uint64_t bits = bits_;
        if ((bits & detail::flag_work) != 0) {
            bits = thread->push_work(bits, work_);
        }
        if (PLUMB_UNLIKELY(!thread->push(begin_, bits | duration))) {
            thread->drop(detail::Drop::ring_full);
        }
        thread->deadline = now + detail::long_ticks;
        thread_ = nullptr;
    }

  private:
    // No function takes a pointer to a Scope: it lives in registers, and an off scope leaves nothing behind. Without gaps: g++
    // puts a function in line only while the sum of such objects is small, registers or not.
    detail::ThreadRecorder* thread_; // null: off or ended
    std::uint64_t begin_ = 0;
    std::uint64_t bits_ = 0;
    std::uint32_t mode_ = 0;        // differs from Recorder::mode() also where the fast end must not be taken
    std::uint32_t queue_track_ = 0; // with the next two: of a device scope
    std::uint64_t token_ = 0;
    QueueTimer* queue_timer_ = nullptr;
    Work work_{};
};

template <class... Tags>
Scope Recorder::scope(Queue queue, Name name, Tags... tags) noexcept {
    const std::uint32_t now_mode = mode();
    return PLUMB_UNLIKELY((now_mode & detail::mode_on) != 0) ? Scope(*this, now_mode, queue, name, tags...) : Scope();
}

namespace detail {

PLUMB_API void lap_slow(Recorder& recorder, ThreadRecorder& thread, std::uint32_t mode, Queue queue, std::uint64_t bits,
                        const Work& work) noexcept;

/// Ends the lap before and begins this one: one stamp for both. Belongs to the innermost open scope.
template <class... Tags>
PLUMB_ALWAYS_INLINE void lap(Recorder& recorder, std::uint32_t mode, Queue queue, Name name, Tags... tags) noexcept {
    ThreadRecorder* thread = recorder.thread();
    if (PLUMB_UNLIKELY(thread == nullptr)) {
        return;
    }
    const std::uint64_t bits = pack(RecordKind::scope, name.id) | flag_lap | (any_work<Tags...> ? flag_work : 0);
    if constexpr (any_collective<Tags...>) {
        thread->push_collective(name, make_collective(tags...));
    }
    OpenLap& lap = thread->laps[thread->depth];
    const std::uint64_t open_bits = lap.bits;
    if (PLUMB_LIKELY(open_bits != 0 && lap.mode == mode && (mode & mode_indirect) == 0 && queue.timer == nullptr)) {
        const std::uint64_t now = read_ticks();
        const std::uint64_t duration = now - lap.begin;
        if (PLUMB_LIKELY(duration < long_ticks)) {
            std::uint64_t ended = open_bits;
            if ((ended & flag_work) != 0) {
                ended = thread->push_work(ended, lap.work);
            }
            if (PLUMB_UNLIKELY(!thread->push(lap.begin, ended | duration))) {
                thread->drop(Drop::ring_full);
            }
            lap.begin = now;
            lap.bits = bits;
            if constexpr (any_work<Tags...>) {
                lap.work = make_work(tags...);
            }
            thread->deadline = now + long_ticks;
            return;
        }
    }
    lap_slow(recorder, *thread, mode, queue, bits, make_work(tags...));
}

/// Ends the lap that is open at this depth, if any.
PLUMB_API void end_lap(Recorder& recorder, Queue queue) noexcept;

} // namespace detail

/// One forward pass. Scopes of this thread, and of threads that carry its context, belong to it.
class PLUMB_API Step {
  public:
    Step() noexcept = default;
    template <class... Tags>
    Step(Recorder& recorder, std::uint32_t mode, Queue queue, Phase phase, Tags... tags) noexcept {
        begin(recorder, mode, queue, phase, values_of(phase, tags...));
    }
    Step(Recorder& recorder, std::uint32_t mode, Queue queue, Phase phase, const detail::StepValues& values) noexcept {
        begin(recorder, mode, queue, phase, values);
    }
    template <class... Tags>
    static detail::StepValues values_of([[maybe_unused]] Phase phase, Tags... tags) noexcept {
        detail::StepValues values;
        (apply_step(values, phase, tags), ...);
        return values;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() {
        if (PLUMB_UNLIKELY(thread_ != nullptr)) { // in line: one that is off leaves no call behind
            end();
        }
    }
    void end() noexcept;

  private:
    static void apply_step(detail::StepValues& values, Phase phase, detail::TokensTag tag) noexcept {
        (phase == Phase::prefill ? values.prefill_tokens : values.decode_tokens) = tag.value;
    }
    static void apply_step(detail::StepValues& values, Phase,
                           detail::StepTag<detail::StepValue::prefill_tokens> tag) noexcept {
        values.prefill_tokens = tag.value;
    }
    static void apply_step(detail::StepValues& values, Phase,
                           detail::StepTag<detail::StepValue::decode_tokens> tag) noexcept {
        values.decode_tokens = tag.value;
    }
    static void apply_step(detail::StepValues& values, Phase,
                           detail::StepTag<detail::StepValue::sequences> tag) noexcept {
        values.sequences = tag.value;
    }
    static void apply_step(detail::StepValues& values, Phase,
                           detail::StepTag<detail::StepValue::kv_length> tag) noexcept {
        values.kv_length = tag.value;
    }
    void begin(Recorder& recorder, std::uint32_t mode, Queue queue, Phase phase,
               const detail::StepValues& values) noexcept;

    detail::ThreadRecorder* thread_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint32_t mode_ = 0;
    Phase phase_ = Phase::none;
    bool written_ = false; // its begin found room
    Context outer_;
};

namespace detail {
/// Of the innermost step that is open on this thread; nothing is recorded beyond four seconds, nor of kernels that ran for
/// longer than their stretch.
PLUMB_API void put_step_kernels(Recorder& recorder, std::uint64_t kernels_ns, std::uint64_t stretch_ns) noexcept;
} // namespace detail

template <class... Tags>
void Recorder::push_step(Queue queue, Phase phase, Tags... tags) noexcept {
    if (PLUMB_UNLIKELY(enabled())) {
        push_open_step(queue, phase, Step::values_of(phase, tags...));
    }
}

/// One transformer layer inside a step, from 0 to 65,534. Another index opens no layer, and is counted.
class PLUMB_API Layer {
  public:
    Layer() noexcept = default;
    template <class Integer>
    Layer(Recorder& recorder, std::uint32_t mode, Integer index) noexcept {
        begin(recorder, mode, static_cast<std::uint64_t>(index));
    }
    Layer(const Layer&) = delete;
    Layer& operator=(const Layer&) = delete;
    ~Layer() {
        if (PLUMB_UNLIKELY(thread_ != nullptr)) {
            end();
        }
    }
    void end() noexcept;

  private:
    void begin(Recorder& recorder, std::uint32_t mode, std::uint64_t index) noexcept;

    detail::ThreadRecorder* thread_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint32_t mode_ = 0;
    std::uint32_t layer_ = 0;
    std::uint32_t outer_plus_one_ = 0;
    bool written_ = false; // its begin found room
};

/// While it lives, the calling thread's scopes belong to the given step and layer.
class PLUMB_API ContextScope {
  public:
    ContextScope() noexcept = default;
    ContextScope(Recorder& recorder, std::uint32_t mode, Context context) noexcept;
    ContextScope(const ContextScope&) = delete;
    ContextScope& operator=(const ContextScope&) = delete;
    ~ContextScope() {
        if (PLUMB_UNLIKELY(thread_ != nullptr)) {
            end();
        }
    }

  private:
    void end() noexcept;

    detail::ThreadRecorder* thread_ = nullptr;
    Context outer_;
    bool written_ = false; // its begin found room
};

namespace detail {

/// What a macro declares: the mode that it found, and the object that this mode asks for.
template <class T>
struct Guard {
    std::uint32_t mode;
    T object;
    PLUMB_ALWAYS_INLINE ~Guard() {} // NOLINT: the implicit one is not always in line, and then the object is in memory
};

/// The name interned at one place of the source; a type stands for the place. 0: not yet, else its id + 1.
template <class Site>
struct SiteName {
    static inline std::atomic<std::uint32_t> id_plus_one{0};
};
PLUMB_API PLUMB_NOINLINE Name intern_site(std::atomic<std::uint32_t>& id_plus_one, const char* text) noexcept;

template <class T>
inline constexpr bool is_literal = false;
template <std::size_t Size>
inline constexpr bool is_literal<const char (&)[Size]> = true;

/// What a macro was given for a name, as a Name.
template <class Site, class Given>
PLUMB_ALWAYS_INLINE Name name_at(Given&& given) noexcept {
    if constexpr (is_literal<Given>) {
        // Relaxed: the id is all there is to see; who reads the name takes the registry's lock.
        const std::uint32_t known = SiteName<Site>::id_plus_one.load(std::memory_order_relaxed);
        return PLUMB_LIKELY(known != 0) ? Name(static_cast<std::uint16_t>(known - 1))
                                        : intern_site(SiteName<Site>::id_plus_one, given);
    } else if constexpr (std::is_convertible_v<Given, Name>) {
        return given;
    } else {
        static_assert(is_literal<Given>,
                      "a brick is a plumb::Brick, a name from intern(), or a string literal; a text that "
                      "is known only at run time must be interned first: prof.intern(text)");
        return {};
    }
}

template <class Site, class Given, class... Tags>
PLUMB_ALWAYS_INLINE Scope open_scope(Recorder& recorder, std::uint32_t mode, Site, Queue queue, Given&& name,
                                     Tags... tags) noexcept {
    return Scope(recorder, mode, queue, name_at<Site, Given>(static_cast<Given&&>(name)), tags...);
}
template <class Site, class Given, class... Tags>
PLUMB_ALWAYS_INLINE void open_lap(Recorder& recorder, std::uint32_t mode, Site, Queue queue, Given&& name,
                                  Tags... tags) noexcept {
    lap(recorder, mode, queue, name_at<Site, Given>(static_cast<Given&&>(name)), tags...);
}

} // namespace detail
} // namespace v1
} // namespace plumb

#include "plumb/macros.hpp"
