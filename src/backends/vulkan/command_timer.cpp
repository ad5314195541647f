// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/command_timer.hpp"

#include <array>

namespace plumb::backends::vulkan {
namespace {

constexpr std::size_t most_runs = 64;          // of one command buffer that were read and are not collected
constexpr std::uint32_t most_stamps = 1 << 20; // of one command buffer

constexpr unsigned note_bits = 32; // of its index, below the number of the recording

bool is_note(DeviceToken token) { return (token.value & token_noted) != 0; }

Error unknown_note() {
    return {ErrorCode::not_found, "this scope is not open in this command buffer; end each token once"};
}

Error over() {
    return {ErrorCode::not_found, "this recording of the command buffer is over; call VulkanQueue::record() after each "
                                  "vkBeginCommandBuffer"};
}

/// The CommandTimer::Target of this thread. Plain, so that a thread's first touch calls nothing.
#if defined(__GNUC__)
__thread void* target_of_thread PLUMB_TLS_MODEL;
#else
thread_local void* target_of_thread;
#endif

} // namespace

// --- Recording ---

void CommandTimer::open(CommandBuffer commands, VulkanUse use, std::uint64_t number) {
    commands_ = commands;
    use_ = use;
    number_ = number;
    state_ = State::recorded;
    last_end_ = none;
    count_ = 0;
    submitted_ns_ = 0;
    run_ = 0;
    doubtful_ = false;
}

void CommandTimer::close() noexcept {
    for (const std::uint32_t first : blocks_) {
        queue_.ring_->give_block(first);
    }
    blocks_.clear();
    notes_.clear();
    runs_.clear();
    commands_ = nullptr;
    state_ = State::idle;
}

Status CommandTimer::add_block() noexcept {
    if (queue_.ring_->empty()) {
        queue_.sweep();
    }
    const Result<std::uint32_t> first = queue_.ring_->take_block();
    if (!first) {
        return first.error();
    }
    blocks_.push_back(*first);
    if (!queue_.access_.host_reset()) {
        queue_.access_.calls().cmd_reset_query_pool(commands_, queue_.ring_->pool(), *first, QueryRing::block);
    }
    return {};
}

Result<std::uint32_t> CommandTimer::write(std::uint32_t stage) noexcept {
    if (count_ >= most_stamps) {
        return Error{ErrorCode::out_of_memory, "this command buffer holds a million stamps; time fewer scopes in it"};
    }
    if (count_ == blocks_.size() * QueryRing::block) {
        if (Status added = add_block(); !added) {
            return added.error();
        }
    }
    queue_.access_.calls().cmd_write_timestamp(commands_, stage, queue_.ring_->pool(), query(count_));
    return count_++;
}

Status CommandTimer::stamp(Border border, Stamp& stamp) noexcept {
    if (state_ != State::recorded || queue_.closed_) {
        return over();
    }
    stamp = Stamp{};
    stamp.commands = this;
    stamp.reached = stamp.neighbour = none;
    if (border == Border::begin) { // only where there is a neighbour is there something to compare with
        stamp.neighbour = last_end_;
        const Result<std::uint32_t> reached =
            last_end_ == none ? Result<std::uint32_t>(none) : write(stage_top_of_pipe);
        if (!reached) {
            return reached.error();
        }
        stamp.reached = *reached;
    }
    const Result<std::uint32_t> at = write(stage_bottom_of_pipe);
    if (!at) {
        return at.error();
    }
    stamp.at = *at;
    if (border != Border::begin) {
        last_end_ = *at;
    }
    live_ += use_ == VulkanUse::once ? 1 : 0;
    return {};
}

// --- Reading, under the queue timer's lock ---

// Whoever submits it once cannot add to it any more once its last stamp is there.
bool CommandTimer::has_run() noexcept { return count_ != 0 && queue_.ring_->read(query(count_ - 1)).ok(); }

bool CommandTimer::rests() noexcept {
    return live_ == 0 &&
           (state_ == State::given_up || (state_ == State::recorded && use_ == VulkanUse::once && has_run()));
}

Result<std::uint64_t> CommandTimer::raw(const Stamp& stamp, std::uint32_t number) noexcept {
    if (use_ == VulkanUse::again) {
        for (const Run& run : runs_) {
            if (run.number == stamp.run && run.lost) {
                return Error{ErrorCode::failed,
                             "this command buffer was submitted again before this run of it was read; "
                             "wait for the run before submitting the next"};
            }
            if (run.number == stamp.run && run.read) {
                return run.stamps[number];
            }
        }
    }
    Result<std::uint64_t> value = queue_.ring_->read(query(number));
    if (!value && value.error().code == ErrorCode::pending && state_ == State::given_up) {
        return Error{ErrorCode::failed,
                     "this scope's command buffer was recorded anew or given up before it ran; submit "
                     "it first"};
    }
    return value;
}

void CommandTimer::dropped(const Stamp& stamp) noexcept {
    --live_;
    if (use_ == VulkanUse::once) {
        return;
    }
    for (Run& run : runs_) {
        run.live -= run.number == stamp.run ? 1 : 0;
    }
    while (!runs_.empty() && runs_.front().live == 0) {
        runs_.pop_front();
    }
}

// --- Runs of a command buffer that is submitted again and again ---

// Before the next submission: what the last one left is read, or it is lost.
void CommandTimer::end_run() noexcept {
    if (run_ == 0 || doubtful_ || count_ == 0) {
        return;
    }
    std::vector<std::uint64_t> stamps(blocks_.size() * QueryRing::block);
    for (std::uint32_t number = 0; number < count_; number += QueryRing::block) {
        const std::uint32_t some = std::min(QueryRing::block, count_ - number);
        doubtful_ |= !queue_.ring_->read_many(query(number), some, &stamps[number]).ok();
    }
    const bool waited_for = !runs_.empty() && runs_.back().number == run_;
    if (doubtful_ && waited_for) {
        runs_.back().lost = true;
        queue_.unread_ += runs_.back().live;
    } else if (waited_for) {
        runs_.back().read = true;
        runs_.back().stamps = std::move(stamps);
    }
    for (std::uint32_t number = 0; !doubtful_ && number < count_; ++number) {
        queue_.ring_->settle(query(number));
    }
}

Result<std::vector<std::pair<CommandTimer::Note, DeviceToken>>> CommandTimer::begin_run(const Recorder& recorder,
                                                                                        bool timed, std::int64_t now) {
    end_run();
    ++run_;
    std::vector<std::pair<Note, DeviceToken>> scopes;
    if (!timed) {
        return scopes;
    }
    if (doubtful_) {
        queue_.unread_ += notes_.size();
        return Error{ErrorCode::pending,
                     "this command buffer is submitted while it is still in flight, so that its runs "
                     "cannot be told apart and are not timed; use several, or forget() and record it "
                     "anew"};
    }
    if (runs_.size() >= most_runs) {
        queue_.unread_ += notes_.size();
        return Error{ErrorCode::out_of_memory, "too many runs of this command buffer are not collected yet; flush the "
                                               "profiler"};
    }
    runs_.push_back(Run{run_, 0, false, false, {}});
    for (const Note& one : notes_) {
        if (!one.ended || one.label.recorder != &recorder) {
            continue;
        }
        Stamp both;
        both.commands = this;
        both.begin = one.begin;
        both.at = one.end;
        both.reached = one.reached;
        both.neighbour = one.neighbour;
        both.run = run_;
        both.asked_ns = now;
        const Result<DeviceToken> token = queue_.scopes_->adopt(both);
        if (!token) {
            ++queue_.unread_;
            continue;
        }
        ++live_;
        ++runs_.back().live;
        scopes.emplace_back(one, *token);
    }
    if (scopes.empty()) {
        runs_.pop_back();
    }
    return scopes;
}

DeviceToken CommandTimer::note(const ScopeLabel& label, const Stamp& stamp) {
    Note one;
    one.label = label;
    one.begin = stamp.at;
    one.reached = stamp.reached;
    one.neighbour = stamp.neighbour;
    notes_.push_back(one);
    return DeviceToken{token_of_notes() | notes_.size()};
}

/// A scope that is open in this recording. One of a recording that was given up stamps nothing in another one.
bool CommandTimer::is_open(DeviceToken token) const noexcept {
    const std::uint64_t number = token.value - token_of_notes();
    return number - 1 < notes_.size() && !notes_[number - 1].ended;
}

std::uint64_t CommandTimer::token_of_notes() const noexcept { return token_noted | (number_ << note_bits); }

void CommandTimer::end_note(DeviceToken token, const Work* work, const Stamp& stamp) noexcept {
    Note& one = notes_[token.value - token_of_notes() - 1];
    one.ended = true;
    one.end = stamp.at;
    one.has_work = work != nullptr;
    one.work = work != nullptr ? *work : Work{};
}

/// `ended`: the note that ends here.
Result<CommandTimer::Stamp> CommandTimer::stamp_now(Border border, const DeviceToken* ended) noexcept {
    if (ended != nullptr && !is_open(*ended)) {
        return unknown_note();
    }
    Stamp taken;
    const Status status = stamp(border, taken);
    return status ? Result<Stamp>(taken) : Result<Stamp>(status.error());
}

// --- Scopes ---

/// While it lives, stamps of the calling thread's scopes go into a command buffer.
class CommandTimer::Target {
  public:
    Target(CommandTimer& commands, Border border) noexcept : commands_(commands), border_(border) {
        target_of_thread = this;
    }
    ~Target() { target_of_thread = nullptr; }
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    Status stamp(Stamp& taken) { return commands_.stamp(border_, taken); }

  private:
    CommandTimer& commands_;
    Border border_;
};

bool CommandTimer::targeted(Stamp& taken, Status& status) noexcept {
    if (target_of_thread == nullptr) {
        return false;
    }
    status = static_cast<Target*>(target_of_thread)->stamp(taken);
    return true;
}

Result<DeviceToken> CommandTimer::begin() noexcept {
    if (use_ == VulkanUse::again) {
        return Error{ErrorCode::unsupported,
                     "in a command buffer that runs again only scopes of a profiler are timed; use "
                     "PLUMB_BRICK or Profiler::scope()"};
    }
    const Target here(*this, Border::begin);
    return queue_.begin();
}

Status CommandTimer::end(DeviceToken token) noexcept {
    if (use_ == VulkanUse::again) {
        return end_labelled(token, nullptr); // a note, or none of its own
    }
    const Target here(*this, Border::end);
    return queue_.end(token);
}

Result<DeviceToken> CommandTimer::begin_labelled(const ScopeLabel& label) noexcept {
    if (use_ == VulkanUse::once) {
        return label.timed ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
    }
    const std::lock_guard lock(queue_.mutex_);
    const Result<Stamp> taken = stamp_now(Border::begin, nullptr);
    return taken ? Result<DeviceToken>(note(label, *taken)) : Result<DeviceToken>(taken.error());
}

Status CommandTimer::end_labelled(DeviceToken token, const Work* work) noexcept {
    if (use_ == VulkanUse::once) {
        return token.value == token_not_timed ? Status() : end(token);
    }
    const std::lock_guard lock(queue_.mutex_);
    const Result<Stamp> taken = stamp_now(Border::end, &token);
    if (!taken) {
        return taken.error();
    }
    end_note(token, work, *taken);
    return {};
}

Result<DeviceToken> CommandTimer::lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept {
    if (ended.value == token_not_timed) {
        return begin_labelled(next);
    }
    if (use_ == VulkanUse::once) {
        const Target here(*this, next.timed ? Border::lap : Border::end);
        return queue_.lap(ended, work, next);
    }
    const std::lock_guard lock(queue_.mutex_);
    const Result<Stamp> border = stamp_now(Border::lap, &ended);
    if (!border) {
        return border.error();
    }
    end_note(ended, work, *border);
    return note(next, *border);
}

// A note that is never ended is in no run.
void CommandTimer::cancel(DeviceToken token) noexcept {
    if (!is_note(token)) {
        queue_.cancel(token);
    }
}

} // namespace plumb::backends::vulkan
