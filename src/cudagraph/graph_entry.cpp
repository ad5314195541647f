// SPDX-License-Identifier: Apache-2.0
// The launching side of a probe: which executable, and events around it.
#include "cudagraph/graph_entry.hpp"

#include <algorithm>
#include <utility>

#include "record/recorder_access.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

constexpr std::uint64_t first_plain = 2;  // the first launch of an executable uploads
constexpr std::uint64_t early_plain = 9;  // until then every launch is measured, so that the rate can be chosen
constexpr std::uint64_t plain_every = 64; // where there is no twin

} // namespace

GraphEntry::GraphEntry(std::shared_ptr<ProbesState> state, CapturedGraph graph)
    : state_(std::move(state)), graph_(std::move(graph)), rate_(state_->options().every) {
    refused_ = graph_.device == nullptr || graph_.source.graph == nullptr;
    source_gone_ = graph_.source.graph == nullptr;
    heavy_calls_seen_ = state_->heavy_calls();
    tell_device();
}

GraphEntry::~GraphEntry() {
    retired_ = true;
    retiring_.clear();
    twin_ = nullptr;
    tell_device();
}

void GraphEntry::tell_device() {
    if (graph_.device == nullptr) {
        return;
    }
    const bool waits = twin_ == nullptr && !retired_ && !refused_;
    const std::uint64_t bytes = twin_bytes_ * (retiring_.size() + (twin_ != nullptr ? 1 : 0));
    // What is less is added as its complement: the sums are of unsigned numbers.
    graph_.device->waiting.fetch_add(std::size_t{waits} - std::size_t{told_waits_}, std::memory_order_relaxed);
    graph_.device->twin_bytes.fetch_add(bytes - told_bytes_, std::memory_order_relaxed);
    told_waits_ = waits;
    told_bytes_ = bytes;
}

Status GraphEntry::answer(CuResult result) const {
    if (state_->driver().vendor->is_sticky(result) && graph_.device != nullptr) {
        static_cast<void>(graph_.device->timeline().failed(result, "cuGraphLaunch")); // it makes no more calls
    }
    return result == CuResult::success
               ? Status()
               : error_of(state_->driver(), result, "cuGraphLaunch",
                          "the graph was not launched; check the executable, the stream and the calls before it");
}

Status GraphEntry::launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept {
    const Driver& driver = state_->driver();
    const std::lock_guard order(enqueue_);
    ++number_;
    CaptureStatus capturing = CaptureStatus::none;
    if (!state_->recording() || !graph_.account->recorded() ||
        driver.stream_is_capturing(stream, &capturing) != CuResult::success || capturing != CaptureStatus::none) {
        last_plain_ = plain;
        static_cast<void>(follow(stream));
        const bool counted = state_->open();
        const std::int64_t begin_ns = counted ? state_->now_ns() : 0;
        const CuResult result = driver.graph_launch(plain, stream);
        if (counted && result == CuResult::success) {
            graph_.account->count_launch(state_->now_ns() - begin_ns);
        }
        return answer(result);
    }
    announce_checks(stream);
    ++recorded_;
    std::uint16_t flags = 0;
    if (plain != last_plain_ || recorded_ == 1) {
        flags = plain != last_plain_ ? launch_first : std::uint16_t{0};
        learn_flags(plain);
    }
    last_plain_ = plain;
    const Queue queue = queue_of(stream);
    const bool in_order = follow(stream);
    Shot* shot = choose(number_, flags, in_order);
    if (shot != nullptr) {
        shot->timer = queue.timer;
        shot->number = number_;
        if (!arm(*shot, stream)) {
            shot = nullptr;
        }
    }
    Recorder& recorder = state_->recorder();
    const std::int64_t begin_ns = state_->now_ns();
    const Timestamp begin = recorder.now();
    const Launch done = enqueue(shot, plain, stream);
    const Timestamp end = recorder.now();
    const std::int64_t end_ns = state_->now_ns();
    const std::uint64_t heavy = state_->heavy_calls();
    if (heavy != heavy_calls_seen_ || heavy % 2 != 0) {
        flags = static_cast<std::uint16_t>(flags | launch_beside_build);
    }
    heavy_calls_seen_ = heavy;
    if (done.result == CuResult::success) {
        graph_.account->count_launch(end_ns - begin_ns);
        recorder.record_graph_launch(graph_.key, static_cast<std::uint16_t>(flags | done.flags), queue, begin, end);
    } else if (graph_.checks != nullptr) {
        graph_.checks->withdraw();
    }
    return answer(done.result);
}

/// A twin that is scheduled by other rules than the executable would show times of a run that never happens.
void GraphEntry::learn_flags(GraphExec plain) {
    unsigned long long flags = 0;
    const auto ask = state_->driver().graph_exec_get_flags;
    const bool known = ask != nullptr && ask(plain, &flags) == CuResult::success; // before 12.0 nobody tells
    const std::lock_guard lock(mutex_);
    plain_flags_ = known ? flags : 0;
}

/// Plain or twin: the checks in both are the same, and their results carry this launch's number.
void GraphEntry::announce_checks(Stream stream) noexcept {
    if (graph_.checks == nullptr) {
        return;
    }
    Recorder& recorder = state_->recorder();
    fingerprint::AnnouncedLaunch launch;
    launch.step_plus_one = recorder.context().step_plus_one;
    const RunningStep facts = RecorderAccess::step_facts(recorder, launch.step_plus_one);
    launch.phase = facts.phase;
    launch.position = facts.position;
    graph_.checks->announce(stream, launch);
}

/// The registry's lock is shared with whoever makes a queue: asked for once per stream in a row.
Queue GraphEntry::queue_of(Stream stream) noexcept {
    unsigned long long id = 0;
    const Driver& driver = state_->driver();
    if (driver.stream_get_id != nullptr && driver.stream_get_id(stream, &id) != CuResult::success) {
        id = 0;
    }
    if (!queue_known_ || stream != queue_stream_ || id != queue_stream_id_) {
        queue_ = driver.vendor->queue_of(stream);
        queue_stream_ = stream;
        queue_stream_id_ = id;
        queue_known_ = true;
    }
    return queue_;
}

/// The driver serialises the launches of one executable, also on two streams. Plain and twin are two, and ours to
/// serialise: a launch on another stream waits for the event behind the one before it. False: there is none to wait for, so
/// that this may be no twin.
bool GraphEntry::follow(Stream stream) {
    const Driver& driver = state_->driver();
    const Event behind = std::exchange(behind_last_, nullptr);
    const bool moved = last_stream_known_ && stream != last_stream_;
    last_stream_ = stream;
    last_stream_known_ = true;
    if (!moved || driver.stream_wait_event == nullptr) { // this vendor's are not serialised
        return true;
    }
    CaptureStatus capturing = CaptureStatus::none;
    return behind != nullptr && state_->open() && driver.stream_is_capturing(stream, &capturing) == CuResult::success &&
           capturing == CaptureStatus::none && driver.stream_wait_event(stream, behind, 0) == CuResult::success;
}

/// Decides by the number of the replay alone, so that all ranks of a job sample the same one.
GraphEntry::Shot* GraphEntry::choose(std::uint64_t number, std::uint16_t& flags, bool in_order) {
    bool wake = false;
    Shot* shot = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (!wanted_ && !refused_ && !retired_ && recorded_ >= 2) {
            wanted_ = wake = true;
        }
        if (retired_ || graph_.device == nullptr) {
            return nullptr;
        }
        if (twin_ != nullptr && twin_flags_ == plain_flags_ && !turning_ && in_order && number % rate_.every() == 0) {
            shot = free_shot(plain_shots, plain_shots + twin_->capacity());
            if (shot != nullptr) {
                shot->twin = twin_;
            } else {
                flags = static_cast<std::uint16_t>(flags | launch_unread);
                graph_.account->unread.fetch_add(1, std::memory_order_relaxed);
            }
        } else if (wants_plain(number)) {
            shot = free_shot(0, plain_shots);
        }
    }
    if (wake) {
        state_->attend(*this);
        state_->wake();
    }
    return shot;
}

/// The neighbours of sampled replays, and some at the start.
bool GraphEntry::wants_plain(std::uint64_t number) const {
    if (recorded_ >= first_plain && recorded_ <= early_plain) {
        return true;
    }
    const std::uint64_t every = twin_ != nullptr ? rate_.every() : plain_every;
    return every >= 2 && (number % every == 1 || number % every == every - 1);
}

GraphEntry::Shot* GraphEntry::free_shot(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
        if (!shots_[i].used) {
            shots_[i] = Shot{};
            shots_[i].used = true;
            return &shots_[i];
        }
    }
    return nullptr;
}

/// Events for a shot; false: it is given up, and the launch is plain.
bool GraphEntry::arm(Shot& shot, Stream stream) {
    Timeline& timeline = graph_.device->timeline();
    backends::cuda::Context context = nullptr;
    const CuResult asked = timeline.lost() ? CuResult::invalid_context : state_->driver().context_of(stream, &context);
    bool armed = asked == CuResult::success && context == timeline.context();
    if (asked == CuResult::success && !armed && !elsewhere_) {
        elsewhere_ = true;
        graph_.account->change_of(graph_.capture, [](recording::GraphInfo& info) {
            info.twin_reason = "n/a for replays on streams of another context than that of the capture";
        });
    }
    const bool copies = shot.twin != nullptr && shot.twin->kind() == ProbeKind::stamp;
    for (Event* const event : {&shot.before, &shot.after, &shot.copied}) {
        if (event == &shot.copied && !copies) {
            continue;
        }
        const Result<Event> taken = armed ? timeline.acquire() : Result<Event>(Error{});
        armed = taken.ok();
        *event = taken ? *taken : nullptr;
    }
    if (armed) {
        const CuResult recorded = state_->driver().event_record(shot.before, stream);
        armed = recorded == CuResult::success;
        if (!armed) {
            static_cast<void>(timeline.failed(recorded, "cuEventRecord"));
        }
    }
    if (!armed) {
        disarm(shot);
    }
    return armed;
}

void GraphEntry::disarm(Shot& shot) {
    for (const Event event : {shot.before, shot.after, shot.copied}) {
        if (event != nullptr) {
            graph_.device->timeline().release(event);
        }
    }
    const std::lock_guard lock(mutex_);
    shot = Shot{};
}

GraphEntry::Launch GraphEntry::enqueue(Shot* shot, GraphExec plain, Stream stream) {
    const Driver& driver = state_->driver();
    Launch launch;
    if (shot == nullptr) {
        launch.result = driver.graph_launch(plain, stream);
        return launch;
    }
    if (shot->twin != nullptr) {
        const CuResult sampled = shot->twin->launch(stream);
        if (sampled == CuResult::success) {
            launch.flags =
                static_cast<std::uint16_t>(launch_instrumented | (shot->twin->launches() == 0 ? launch_first : 0));
            shot->replay = shot->twin->count_launch();
            shot->step_plus_one = state_->recorder().context().step_plus_one;
            graph_.account->instrumented.fetch_add(1, std::memory_order_relaxed);
            state_->unresolved.fetch_add(shot->twin->plan().scopes.size(), std::memory_order_relaxed);
        } else {
            drop_twin("its launch failed: " + graph_.device->timeline().failed(sampled, "cuGraphLaunch").message);
            disarm(*shot);
            launch.result = driver.graph_launch(plain, stream);
            return launch;
        }
    } else {
        launch.result = driver.graph_launch(plain, stream);
        if (launch.result != CuResult::success) {
            disarm(*shot);
            return launch;
        }
    }
    shot->launched_ns = state_->now_ns();
    const CuResult recorded = record_end(*shot, stream);
    behind_last_ = shot->ended ? shot->after : nullptr;
    {
        const std::lock_guard lock(mutex_);
        shot->enqueued = true;
        if (shot->twin != nullptr) {
            twin_used_ns_ = shot->launched_ns;
        }
        if (recorded != CuResult::success) {
            static_cast<void>(graph_.device->timeline().failed(recorded, "cuEventRecord"));
            shot->unread = true;
        }
    }
    state_->attend(*this);
    state_->sample_pending();
    return launch;
}

/// An event behind a launch, and what has to follow it.
CuResult GraphEntry::record_end(Shot& shot, Stream stream) {
    const Driver& driver = state_->driver();
    CuResult done = driver.event_record(shot.after, stream);
    shot.ended = done == CuResult::success;
    if (shot.copied != nullptr && shot.ended) {
        done = shot.twin->copy_back(stream, shot.replay);
        done = done == CuResult::success ? driver.event_record(shot.copied, stream) : done;
    }
    return done;
}

void GraphEntry::retire() noexcept {
    const std::lock_guard lock(mutex_);
    retired_ = true;
    if (twin_ != nullptr) {
        retiring_.push_back(std::move(twin_));
        twin_ = nullptr;
    }
    tell_device();
}

void GraphEntry::drop_twin(const std::string& reason) {
    {
        const std::lock_guard lock(mutex_);
        refused_ = true;
        if (twin_ != nullptr) {
            retiring_.push_back(std::move(twin_));
            twin_ = nullptr;
        }
        tell_device();
    }
    graph_.account->change_of(graph_.capture, [&](recording::GraphInfo& info) {
        info.twin.clear();
        info.twin_bytes = recording::GraphInfo::unknown;
        info.twin_reason = reason;
    });
    state_->attend(*this);
    state_->wake();
}

bool GraphEntry::in_flight(const Twin& twin) const {
    return std::any_of(shots_.begin(), shots_.end(),
                       [&](const Shot& shot) { return shot.used && shot.twin.get() == &twin; });
}

bool GraphEntry::holds() const {
    const std::lock_guard lock(mutex_);
    return twin_ != nullptr || !retiring_.empty() || !source_gone_;
}

bool GraphEntry::waits_for_device() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(retiring_.begin(), retiring_.end(),
                       [&](const std::shared_ptr<Twin>& twin) { return in_flight(*twin); });
}

bool GraphEntry::finished() const {
    const std::lock_guard lock(mutex_);
    return retired_ && retiring_.empty() && source_gone_ &&
           std::none_of(shots_.begin(), shots_.end(), [](const Shot& shot) { return shot.used; });
}

bool GraphEntry::at_rest() const {
    const std::lock_guard lock(mutex_);
    const bool waits = wanted_ && twin_ == nullptr && !retired_ && !refused_;
    return !waits && !wants_turn() && retiring_.empty() && (source_gone_ || needs_source()) &&
           std::none_of(shots_.begin(), shots_.end(), [](const Shot& shot) { return shot.used; });
}

bool GraphEntry::has_pending() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(shots_.begin(), shots_.end(), [](const Shot& shot) { return shot.used; });
}

} // namespace plumb::cudagraph
