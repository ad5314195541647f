// SPDX-License-Identifier: Apache-2.0
// Which command buffers hold scopes of a queue, and what happens to them.
#include "backends/vulkan/command_timer.hpp"
#include "record/device_label.hpp"

namespace plumb::backends::vulkan {
namespace {

constexpr std::size_t most_recordings = 4'096;

} // namespace

// --- Under the lock ---

/// Its recording is over; what was read of it stays readable, what has not run never will.
void VulkanQueueTimer::give_up(CommandTimer& commands) noexcept {
    recorded_.erase(commands.commands_);
    commands.state_ = CommandTimer::State::given_up;
    rest(commands);
}

/// Frees a recording that nobody asks for any more.
void VulkanQueueTimer::rest(CommandTimer& commands) noexcept {
    if (closed_ || !commands.rests()) {
        return;
    }
    if (commands.state_ == CommandTimer::State::recorded) {
        recorded_.erase(commands.commands_);
    }
    commands.close();
    idle_.push_back(&commands); // timer_for_recording() made room for all
}

/// Those whose scopes were all given up, and that have run by now.
void VulkanQueueTimer::sweep() noexcept {
    for (const std::unique_ptr<CommandTimer>& commands : command_timers_) {
        rest(*commands);
    }
}

/// Nothing tells when a command buffer without stamps has run: of those, the older half of what may be recorded at once.
void VulkanQueueTimer::give_up_unstamped() noexcept {
    for (const std::unique_ptr<CommandTimer>& commands : command_timers_) {
        if (commands->unstamped() && commands->number_ + most_recordings / 2 <= recordings_) {
            give_up(*commands);
        }
    }
}

CommandTimer* VulkanQueueTimer::timer_for_recording() {
    if (idle_.empty()) {
        sweep();
    }
    if (idle_.empty() && command_timers_.size() >= most_recordings) {
        give_up_unstamped();
    }
    if (!idle_.empty()) {
        CommandTimer* const found = idle_.front(); // the one that rested longest: a stale Queue of it does least harm
        idle_.erase(idle_.begin());
        return found;
    }
    if (command_timers_.size() >= most_recordings) {
        return nullptr;
    }
    command_timers_.push_back(std::make_unique<CommandTimer>(*this));
    idle_.reserve(command_timers_.capacity());
    return command_timers_.back().get();
}

// --- Calls ---

CommandTimer* VulkanQueueTimer::record(CommandBuffer commands, VulkanUse use) {
    const std::lock_guard lock(mutex_);
    if (closed_) {
        return nullptr;
    }
    if (const auto found = recorded_.find(commands); found != recorded_.end()) {
        give_up(*found->second);
    }
    CommandTimer* const timer = timer_for_recording();
    if (timer != nullptr) {
        timer->open(commands, use, ++recordings_);
        recorded_[commands] = timer;
    }
    return timer;
}

void VulkanQueueTimer::forget(CommandBuffer commands) noexcept {
    const std::lock_guard lock(mutex_);
    if (const auto found = recorded_.find(commands); found != recorded_.end() && !closed_) {
        give_up(*found->second);
    }
}

Status VulkanQueueTimer::submitting(Recorder& recorder, CommandBuffer commands, std::uint32_t track) {
    detail::ThreadRecorder* const pen = recorder.enabled() ? recorder.thread() : nullptr;
    const bool timed = pen != nullptr && !recorder.host_only() && label_of(*pen, 0).timed;
    std::vector<std::pair<CommandTimer::Note, DeviceToken>> scopes;
    {
        const std::lock_guard lock(mutex_);
        const auto found = recorded_.find(commands);
        if (found == recorded_.end() || closed_) {
            return {}; // nothing of ours is in it
        }
        CommandTimer& timer = *found->second;
        if (timer.use_ == VulkanUse::once) {
            const bool before = timer.submitted_ns_ != 0;
            timer.submitted_ns_ = access_.now_ns();
            return before ? Status(Error{ErrorCode::invalid_argument,
                                         "this command buffer is submitted twice and was "
                                         "recorded for once; record it with VulkanUse::again"})
                          : Status();
        }
        auto begun = timer.begin_run(recorder, timed, access_.now_ns());
        if (!begun) {
            return begun.error();
        }
        scopes = std::move(*begun);
    }
    const Context here = recorder.context();
    for (const auto& [note, token] : scopes) {
        const ContextScope place(recorder, recorder.mode(), {here.step_plus_one, note.label.layer_plus_one});
        recorder.record_device(Name(note.label.name), Queue{this, track}, token, note.has_work ? &note.work : nullptr,
                               note.label.lap);
    }
    return {};
}

std::uint64_t VulkanQueueTimer::unread() const noexcept {
    const std::lock_guard lock(mutex_);
    return unread_;
}

} // namespace plumb::backends::vulkan
