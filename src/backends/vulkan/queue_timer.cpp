// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/queue_timer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <utility>

#include "backends/vulkan/command_timer.hpp"

namespace plumb::backends::vulkan {
namespace {

constexpr std::uint32_t most_blocks = 16'384;
constexpr std::uint32_t spare_blocks = 64; // command buffers that are recorded at once, and hold few scopes

Error is_closed() {
    return {ErrorCode::unavailable, "this Vulkan queue was closed; make a new one with plumb::vulkan()"};
}

std::uint32_t blocks_for(std::uint32_t max_in_flight) {
    const std::uint64_t stamps = std::uint64_t{5} * max_in_flight; // two of our own, or three in a command buffer
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(stamps / QueryRing::block + spare_blocks, most_blocks));
}

// Clocks of two queues may differ in their valid bits: each has a name of its own, which tells no device.
std::string next_clock_name() {
    static std::atomic<unsigned> next{0};
    return "vulkan:queue-" + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
}

} // namespace

Result<std::unique_ptr<VulkanQueueTimer>> VulkanQueueTimer::create(const VulkanHandles& handles,
                                                                   const TimerOptions& options,
                                                                   std::unique_ptr<OwnDevice> own) {
    Result<QueueAccess> access = QueueAccess::open(handles, clock::host_clock(options.host_clock));
    if (!access) {
        return access.error();
    }
    std::unique_ptr<VulkanQueueTimer> timer(new VulkanQueueTimer(std::move(*access), options, std::move(own)));
    if (Status opened = timer->open(options.max_in_flight); !opened) {
        return opened.error();
    }
    return timer;
}

VulkanQueueTimer::VulkanQueueTimer(QueueAccess access, const TimerOptions& options, std::unique_ptr<OwnDevice> own)
    : own_(std::move(own)), access_(std::move(access)), immediate_(options.immediate), own_queue_(own_ != nullptr),
      clock_name_(next_clock_name()), line_(access_.valid_bits(), access_.period_ns()), stamper_(*this) {}

Status VulkanQueueTimer::open(std::uint32_t max_in_flight) {
    Result<std::unique_ptr<Scopes>> scopes = Scopes::create(stamper_, max_in_flight);
    if (!scopes) {
        return scopes.error();
    }
    scopes_ = std::move(*scopes);
    const std::lock_guard lock(mutex_);
    CommandPoolCreateInfo info;
    info.family = access_.family();
    const VkResult made = access_.calls().create_command_pool(access_.device(), &info, nullptr, &command_pool_);
    if (made != VkResult::success) {
        command_pool_ = 0;
        return access_.failed(made, "vkCreateCommandPool");
    }
    Result<std::unique_ptr<QueryRing>> ring = QueryRing::create(access_, blocks_for(max_in_flight), command_pool_);
    if (!ring) {
        return ring.error();
    }
    ring_ = std::move(*ring);
    own_stamps_ = std::make_unique<OwnStamps>(access_, *ring_, command_pool_);
    return first_pair();
}

VulkanQueueTimer::~VulkanQueueTimer() { close(); }

void VulkanQueueTimer::close() noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_) {
        return;
    }
    closed_ = true;
    static_cast<void>(access_.calls().queue_wait_idle(access_.queue())); // our stamps may still be on their way
    if (ring_ != nullptr) {
        static_cast<void>(read_pair());
        farewell_ = line_.pairs();
        ring_->close();
    }
    if (command_pool_ != 0) {
        access_.calls().destroy_command_pool(access_.device(), command_pool_, nullptr);
        command_pool_ = 0;
    }
}

// --- Stamps ---

Status VulkanQueueTimer::Stamper::take(Stamp& stamp) noexcept {
    VulkanQueueTimer& timer = timer_;
    const std::lock_guard lock(timer.mutex_);
    Status status;
    if (CommandTimer::targeted(stamp, status)) {
        return status;
    }
    if (timer.closed_) {
        return is_closed();
    }
    if (!timer.access_.status()) {
        return timer.access_.status();
    }
    stamp = Stamp{};
    stamp.reached = stamp.neighbour = none;
    stamp.asked_ns = timer.access_.now_ns();
    const Result<std::uint32_t> query = timer.own_stamps_->take();
    if (!query) {
        return query.error();
    }
    stamp.at = *query;
    stamp.taken_ns = timer.access_.now_ns();
    return {};
}

void VulkanQueueTimer::Stamper::drop(Stamp& stamp) noexcept {
    const std::lock_guard lock(timer_.mutex_);
    if (stamp.commands == nullptr) {
        timer_.own_stamps_->drop(stamp.at);
        return;
    }
    stamp.commands->dropped(stamp);
    timer_.rest(*stamp.commands);
}

// --- Scopes around submissions ---

Result<DeviceToken> VulkanQueueTimer::begin() noexcept { return scopes_->begin(); }

Result<DeviceToken> VulkanQueueTimer::begin_labelled(const ScopeLabel& label) noexcept {
    return label.timed ? begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
}

Status VulkanQueueTimer::end_labelled(DeviceToken token, const Work*) noexcept {
    return token.value == token_not_timed ? Status() : end(token);
}

Result<DeviceToken> VulkanQueueTimer::lap(DeviceToken ended, const Work*, const ScopeLabel& next) noexcept {
    return scopes_->lap(ended, next.timed);
}

Status VulkanQueueTimer::wait(DeviceToken token) noexcept {
    Stamp end;
    const Status ended = scopes_->look_at_end(token, [&](const Stamp& stamp) { end = stamp; });
    if (!ended || end.commands != nullptr) {
        return ended; // a command buffer runs later: deferred, as capabilities() says
    }
    const std::lock_guard lock(mutex_);
    const VkResult waited = closed_ ? VkResult::success : access_.calls().queue_wait_idle(access_.queue());
    return waited == VkResult::success ? Status() : Status(access_.failed(waited, "vkQueueWaitIdle"));
}

// --- Times ---

Result<std::uint64_t> VulkanQueueTimer::raw_of(const Stamp& stamp, std::uint32_t number) noexcept {
    return stamp.commands != nullptr ? stamp.commands->raw(stamp, number) : ring_->read(number);
}

// The device got here while the scope before in this command buffer was still running: without a barrier in between they
// ran side by side, and the begin stamp, which waits for what came before, is later than the scope's true begin.
Result<bool> VulkanQueueTimer::overlaps(const Stamp& begin, const Stamp& of) noexcept {
    if (begin.reached == none || begin.neighbour == none) {
        return false;
    }
    const Result<std::uint64_t> reached = raw_of(of, begin.reached);
    const Result<std::uint64_t> neighbour = raw_of(of, begin.neighbour);
    if (!reached || !neighbour) {
        return reached ? neighbour.error() : reached.error();
    }
    return line_.difference(*reached, *neighbour) > 1; // a tick is what stamps resolve
}

Result<DeviceSpan> VulkanQueueTimer::read_span(const Stamp& begin, const Stamp& end) noexcept {
    const std::lock_guard lock(mutex_);
    const bool again = end.run != 0; // both stamps are in `end`
    const Result<std::uint64_t> last = raw_of(end, end.at);
    if (!last) {
        return last.error();
    }
    const Result<std::uint64_t> first = again ? raw_of(end, end.begin) : raw_of(begin, begin.at);
    if (!first) {
        return first.error();
    }
    // Its numbers are those of the command buffer that the scope began in, whichever it ended in.
    const Result<bool> beside = overlaps(begin, again ? end : begin);
    if (!beside) {
        return beside.error();
    }
    const std::int64_t now = access_.now_ns();
    const std::int64_t length = line_.difference(*first, *last);
    if (length < 0) {
        return Error{ErrorCode::corrupt,
                     "the device's stamps say that this scope ended before it began; begin and end it "
                     "in one command buffer, and report this driver otherwise"};
    }
    const std::uint64_t end_ticks = line_.unwrap(*last, now);
    DeviceSpan span;
    span.begin_ticks = end_ticks - static_cast<std::uint64_t>(length);
    span.end_ticks = end_ticks;
    span.flags = (length == 0 ? span_below_floor : 0) | (*beside ? span_cut_by_neighbour : 0);
    // The device reached the begin before the host had submitted everything: it may have waited for that inside.
    if (end.commands == nullptr && !line_.surely_after(span.begin_ticks, end.taken_ns)) {
        span.flags |= span_includes_launch_wait;
    }
    learn_from(span, begin, end, now);
    return span;
}

Result<DeviceSpan> VulkanQueueTimer::collect(DeviceToken token) noexcept {
    return scopes_->collect(token, [this](const Stamp& begin, const Stamp& end) { return read_span(begin, end); });
}

std::uint64_t VulkanQueueTimer::group_of(DeviceToken token) noexcept {
    std::uint64_t group = 0;
    static_cast<void>(
        scopes_->look_at_end(token, [&](const Stamp& end) { group = reinterpret_cast<std::uintptr_t>(end.commands); }));
    return group;
}

// --- Clock ---

DeviceClockPair VulkanQueueTimer::pair_of(const RawPair& raw) noexcept {
    const std::int64_t width = raw.after_ns - raw.before_ns;
    const std::int64_t middle = raw.before_ns + width / 2;
    const auto ticks = static_cast<std::uint64_t>(std::ceil(static_cast<double>(width) / access_.period_ns()));
    return {line_.unwrap(raw.raw, raw.after_ns), middle, clock::realtime_ns() - (access_.now_ns() - middle), ticks + 1};
}

Result<DeviceClockPair> VulkanQueueTimer::read_pair() noexcept {
    Result<DeviceClockPair> pair = Error{ErrorCode::pending, "no scope was seen since the last clock pair; ask later"};
    if (!access_.status()) {
        pair = access_.status().error();
    } else if (access_.calibrated()) {
        const Result<RawPair> raw = access_.calibrated_pair();
        pair = raw ? Result<DeviceClockPair>(pair_of(*raw)) : Result<DeviceClockPair>(raw.error());
    } else if (own_queue_ && !closed_) {
        pair = pair_by_stamp();
    } else if (coarse_) {
        pair = *std::exchange(coarse_, std::nullopt);
    }
    if (pair) {
        line_.add(*pair);
    }
    return pair;
}

// Cause and effect: the device stamps after the submission was asked for and before its stamp was seen.
Result<DeviceClockPair> VulkanQueueTimer::pair_by_stamp() noexcept {
    constexpr std::int64_t limit_ns = 2'000'000; // the thread may be the engine's
    constexpr int tries = 3;
    constexpr int most_polls = 100'000; // an injected clock may stand still
    std::optional<RawPair> best;
    for (int attempt = 0; attempt < tries; ++attempt) {
        RawPair pair;
        pair.before_ns = access_.now_ns();
        const Result<std::uint32_t> query = own_stamps_->take();
        if (!query) {
            return query.error();
        }
        Result<std::uint64_t> raw = ring_->read(*query);
        for (int i = 0; !raw && raw.error().code == ErrorCode::pending && i < most_polls; ++i) {
            if (access_.now_ns() - pair.before_ns > limit_ns) {
                break;
            }
            raw = ring_->read(*query);
        }
        pair.after_ns = access_.now_ns();
        own_stamps_->drop(*query);
        if (!raw && !best) {
            return raw.error();
        }
        if (!raw) {
            break;
        }
        pair.raw = *raw;
        if (!best || pair.after_ns - pair.before_ns < best->after_ns - best->before_ns) {
            best = pair;
        }
    }
    return pair_of(*best);
}

// A device that is too busy to answer now is placed once its scopes are seen.
Status VulkanQueueTimer::first_pair() noexcept {
    Result<DeviceClockPair> pair = access_.calibrated() ? read_pair() : pair_by_stamp();
    if (pair && !access_.calibrated()) {
        line_.add(*pair);
        coarse_ = *pair;
    }
    return pair || pair.error().code == ErrorCode::pending ? Status() : Status(pair.error());
}

// Without calibrated timestamps the scopes themselves are the pairs: between submission and being seen.
void VulkanQueueTimer::learn_from(const DeviceSpan& span, const Stamp& begin, const Stamp& end,
                                  std::int64_t now) noexcept {
    std::int64_t asked = begin.asked_ns;
    if (end.commands != nullptr && end.run == 0) {
        asked = end.commands->submitted_ns_;
    }
    if (access_.calibrated() || asked == 0 || now < asked) {
        return;
    }
    const clock::CorrelationPair pair =
        clock::pair_from_command({span.begin_ticks}, {span.end_ticks}, {asked}, {now}, access_.period_ns());
    const auto width =
        static_cast<std::uint64_t>(std::ceil(2.0 * static_cast<double>(pair.uncertainty.value) / access_.period_ns()));
    if (!coarse_ || width < coarse_->uncertainty_ticks) {
        coarse_ = DeviceClockPair{pair.device.value, pair.host.value, clock::realtime_ns() - (now - pair.host.value),
                                  width + 1};
    }
}

Result<DeviceClockPair> VulkanQueueTimer::clock_pair() noexcept {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
        return read_pair();
    }
    if (farewell_.empty()) {
        return is_closed();
    }
    const DeviceClockPair pair = farewell_.front();
    farewell_.pop_front();
    return pair;
}

Result<Elapsed> VulkanQueueTimer::duration(const DeviceSpan& span) {
    if (span.end_ticks < span.begin_ticks) {
        return Error{ErrorCode::corrupt, "this span ends before it begins; its stamps cannot be used"};
    }
    const std::lock_guard lock(mutex_);
    if (line_.pairs().size() < 2 && !closed_) {
        if (const Result<DeviceClockPair> second = read_pair(); !second) {
            return second.error();
        }
    }
    return line_.duration(span.end_ticks - span.begin_ticks);
}

Result<double> VulkanQueueTimer::floor_ns() {
    constexpr std::size_t rounds = 65;
    constexpr std::int64_t limit_ns = 20'000'000;
    std::array<std::uint64_t, rounds> ticks{};
    for (std::uint64_t& one : ticks) {
        const Result<DeviceToken> token = begin();
        const Status ended = token ? end(*token) : Status(token.error());
        if (!ended) {
            cancel(token ? *token : DeviceToken{});
            return ended.error();
        }
        const std::int64_t before = access_.now_ns();
        Result<DeviceSpan> span = collect(*token);
        while (!span && span.error().code == ErrorCode::pending && access_.now_ns() - before < limit_ns) {
            span = collect(*token);
        }
        if (!span) {
            cancel(*token);
            return span.error();
        }
        one = span->end_ticks - span->begin_ticks;
    }
    std::nth_element(ticks.begin(), ticks.begin() + rounds / 2, ticks.end());
    const Result<Elapsed> median = duration({0, ticks[rounds / 2]});
    return median ? Result<double>(median->nanoseconds) : median.error();
}

} // namespace plumb::backends::vulkan
