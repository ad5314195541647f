// SPDX-License-Identifier: Apache-2.0
#include "drain/drain.hpp"

#include <algorithm>
#include <system_error>

#include "base/os.hpp"
#include "base/ring_source.hpp"
#include "record/name_registry.hpp"
#include "recording/drop_reasons.hpp"

namespace plumb::drain {
namespace {

using namespace std::chrono_literals;

// A ring is written when it is a quarter full, or when its oldest record has waited this long: few, large chunks compress
// better (a slow decode: 7.8 bytes per scope in chunks of 250 ms, 5.7 in chunks of 1 s). Nothing is at stake meanwhile
// where the ring outlives the process.
constexpr auto longest_wait = 1000ms;
constexpr auto longest_wait_in_anonymous_memory = 250ms;
// Device scopes hold tokens until their records were seen here.
constexpr auto longest_wait_with_devices = 50ms;
// A look costs about 50 us of a busy core whose caches hold weights; a 1 MiB ring holds 100 ms of 650,000 records per
// second, so that only a thread that turns from slow to faster than that loses records, once.
constexpr auto longest_pause = 100ms;
constexpr auto shortest_pause = 1ms;
constexpr auto patience_without_progress = 20ms;
constexpr auto longest_collection = 100ms;
constexpr auto longest_wait_for_clocks = 20ms;
constexpr auto clock_pair_interval = 1s;
constexpr auto off_cpu_interval = 100ms;
constexpr auto pause_after_failure = 200ms;

std::uint64_t load_tail(record::Ring& ring) { return ring.header().tail.load(std::memory_order_relaxed); }
// Acquire: the records behind head are complete.
std::uint64_t load_head(record::Ring& ring) { return ring.header().head.load(std::memory_order_acquire); }

detail::RingState load_state(record::Ring& ring) {
    return static_cast<detail::RingState>(ring.header().state.load(std::memory_order_acquire));
}

} // namespace

Drain::Drain(record::RingSet& rings, recording::Writer& writer, DrainOptions options)
    : rings_(rings), writer_(writer), options_(std::move(options)), collector_(options_.device_every, options_.clock),
      rings_told_(!rings.reason().empty()) {}

Drain::~Drain() {
    if (thread_.joinable()) {
        (void)stop();
    }
}

Status Drain::start() {
    longest_wait_ = rings_.reason().empty() ? longest_wait : longest_wait_in_anonymous_memory;
    // Before the first record: no sample begins before the first pair.
    if (options_.opened) {
        note_failure(write_host_pair(*options_.opened));
    }
    note_failure(write_clock_pairs());
    try {
        thread_ = base::start_quiet_thread([this] { run(); });
    } catch (const std::system_error&) {
        return Error{ErrorCode::out_of_memory,
                     "no thread can be started to write the recording; raise the limit of threads"};
    }
    return {};
}

Status Drain::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
    }
    rings_.wake.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
    return flush_status_;
}

Status Drain::flush(std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t mine = ++flush_asked_;
    rings_.wake.notify_all();
    if (!done_.wait_for(lock, timeout, [&] { return flush_done_ >= mine || stop_; })) {
        return Error{ErrorCode::pending, "the recording is not written up to date yet; call flush() again"};
    }
    return flush_status_;
}

void Drain::describe(const std::string& key, const std::string& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    descriptions_.set({key, value});
}

void Drain::add_kernel(const recording::KernelInfo& kernel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    kernels_.push_back(kernel);
}

std::map<std::uint32_t, std::uint64_t> Drain::device_heads() {
    const std::lock_guard<std::mutex> lock(round_mutex_);
    return collector_.written();
}

void Drain::reset_tiles() {
    const std::lock_guard<std::mutex> lock(round_mutex_); // no table is asked for another generation while it is read
    tiles_.start_over(rings_.reset_tiles());
}

recording::Counters Drain::totals() {
    const std::lock_guard<std::mutex> lock(round_mutex_);
    return counters();
}

void Drain::between_rounds(const std::function<void(const recording::Writer&)>& read) {
    const std::lock_guard<std::mutex> lock(round_mutex_);
    read(writer_);
}

void Drain::add_queue(QueueTimer& timer, const recording::TrackInfo& track) { collector_.add(timer, track); }

void Drain::before_fork() noexcept {
    round_mutex_.lock();
    mutex_.lock();
    rings_.before_fork();
}

void Drain::after_fork(bool in_child) noexcept {
    in_child ? rings_.in_child() : rings_.in_parent();
    mutex_.unlock();
    round_mutex_.unlock();
}

void Drain::run() {
    base::set_thread_name("plumb-drain");
    std::unique_lock<std::mutex> lock(mutex_);
    bool last = false;
    while (!last) {
        rings_.wake.wait_for(
            lock, pause_, [&] { return stop_ || flush_asked_ > flush_done_ || (rings_.take_crowded() && !failing_); });
        last = stop_;
        const std::uint64_t asked = flush_asked_;
        const bool all = last || asked > flush_done_;
        lock.unlock();
        if (last) {
            next_off_cpu_ = {}; // the last sample is of the end
        }
        const Status status = guarded_round(all, last);
        lock.lock();
        if (all) {
            flush_done_ = asked;
            flush_status_ = status;
            done_.notify_all();
        }
    }
    lock.unlock();
    give_up_device_scopes();
}

Status Drain::guarded_round(bool all, bool last) {
    const std::lock_guard<std::mutex> lock(round_mutex_);
    Status status = round(all);
    if (all && status.ok() && collector_.active()) {
        status = collect_the_rest();
    }
    if (last && status.ok()) {
        status = complete_clocks();
    }
    note_failure(status);
    return status;
}

// A device that was busy whenever its clock was asked: with one pair alone all its times would be lost.
Status Drain::complete_clocks() {
    const auto begin = Clock::now();
    while (collector_.read_missing_pairs() && Clock::now() - begin < longest_wait_for_clocks) {
        std::this_thread::sleep_for(shortest_pause);
    }
    return collector_.write_pairs(writer_);
}

// Timers outlive us, and what they keep for a scope that nobody collects they keep for ever: also for those whose records
// could not be written and stay in their ring.
void Drain::give_up_device_scopes() {
    const std::lock_guard<std::mutex> lock(round_mutex_);
    refresh_rings();
    for (const Watched& watched : watched_) {
        record::Ring& ring = *watched.ring;
        const std::uint64_t head = load_head(ring);
        for (std::uint64_t at = load_tail(ring); at != head; ++at) {
            collector_.give_up(ring.records()[at & (ring.capacity() - 1)]);
        }
    }
    collector_.give_up_pending();
}

// Who flushes has often just waited for the device: its last scopes are a moment away. What makes no progress is left.
Status Drain::collect_the_rest() {
    const auto begin = Clock::now();
    auto progress = begin;
    std::uint64_t left = collector_.unresolved();
    Status status;
    while (left != 0 && status.ok() && Clock::now() - progress < patience_without_progress &&
           Clock::now() - begin < longest_collection) {
        std::this_thread::sleep_for(shortest_pause);
        status = collector_.collect(writer_);
        const std::uint64_t now_left = collector_.unresolved();
        progress = now_left != left ? Clock::now() : progress;
        left = now_left;
    }
    return left != 0 || !status.ok() ? status : write_counters();
}

Status Drain::round(bool all) {
    const auto now = Clock::now();
    refresh_rings();
    Status status = write_descriptions();
    if (status.ok()) {
        status = write_names(); // at once: names that only memory knows are lost with the process
    }
    if (status.ok()) {
        status = write_kernels();
    }
    if (status.ok() && !rings_told_) {
        status = say_where_rings_lie();
    }
    next_pause_ = std::min<std::chrono::milliseconds>(
        pause_ * 2, std::min<std::chrono::milliseconds>(longest_pause, longest_wait_now()));
    for (Watched& watched : watched_) {
        if (status.ok()) {
            status = write_ring(watched, all, now);
        }
    }
    pause_ = next_pause_;
    if (status.ok() && collector_.active()) {
        status = collector_.collect(writer_);
    }
    if (status.ok() && now >= next_off_cpu_) {
        next_off_cpu_ = now + off_cpu_interval;
        status = write_off_cpu();
    }
    if (status.ok() && (all || now >= next_clock_pair_)) {
        next_clock_pair_ = now + clock_pair_interval;
        cpu_ns_ = static_cast<std::uint64_t>(base::thread_cpu_ns()) + collector_.feeds_cpu_ns();
        status = write_clock_pairs();
        if (status.ok()) {
            status = write_counters();
        }
        if (status.ok() && rings_.has_tiles()) {
            status = write_tiles();
        }
    }
    return status;
}

void Drain::refresh_rings() {
    std::vector<std::shared_ptr<record::Ring>> rings;
    if (!rings_.rings(rings_version_, rings)) {
        return;
    }
    for (std::size_t i = watched_.size(); i < rings.size(); ++i) {
        watched_.push_back(Watched{rings[i], 0, 0, {}, false});
    }
}

// The next pause: shorter where a ring filled by half since the last look, the same where it filled by an eighth.
void Drain::note_rate(std::uint64_t written, std::uint64_t capacity) {
    if (written > capacity / 2) {
        next_pause_ = shortest_pause;
    } else if (written > capacity / 8) {
        next_pause_ = std::min(next_pause_, pause_);
    }
}

Status Drain::write_ring(Watched& watched, bool all, Clock::time_point now) {
    record::Ring& ring = *watched.ring;
    const detail::RingState state = load_state(ring); // before head: a retired ring gets no record after this
    if (state == detail::RingState::free) {
        return {}; // empty, and about to be another thread's
    }
    const std::uint64_t head = load_head(ring);
    const std::uint64_t tail = load_tail(ring);
    const std::uint64_t waiting = head - tail;
    note_rate(head - watched.polled_head, ring.capacity());
    watched.polled_head = head;
    if (waiting != 0 && !watched.waiting) {
        watched.waiting = true;
        watched.oldest = now;
    }
    const bool ended = state == detail::RingState::retired;
    const bool due = waiting >= ring.capacity() / 4 || (watched.waiting && now - watched.oldest >= longest_wait_now());
    if (waiting != 0 && (all || ended || due)) {
        if (Status status = write_records(watched, tail, head); !status.ok()) {
            return status;
        }
        watched.waiting = false;
    }
    return ended ? retire(ring) : Status();
}

std::chrono::milliseconds Drain::longest_wait_now() const {
    return collector_.active() ? std::min<std::chrono::milliseconds>(longest_wait_, longest_wait_with_devices)
                               : longest_wait_;
}

Status Drain::retire(record::Ring& ring) {
    bool dropped = false;
    for (std::size_t i = 0; i < drop_reasons; ++i) {
        const std::uint64_t count = detail::drops_of(ring.header(), i).load(std::memory_order_relaxed);
        dropped = dropped || count != 0;
        retired_drops_[i] += count;
        detail::drops_of(ring.header(), i).store(0, std::memory_order_relaxed);
    }
    collector_.forget_host(ring.header().track);
    writer_.end_track(ring.header().track);
    tiles_.take_ended(ring); // the next thread of this ring has the same table
    // Before the ring is given up: a kill must not take these counts along.
    Status status = dropped ? write_counters() : Status();
    rings_.release(ring);
    return status;
}

Status Drain::say_where_rings_lie() {
    const std::string reason = rings_.reason();
    if (reason.empty()) {
        return {};
    }
    rings_told_ = true;
    if (options_.diagnose) {
        options_.diagnose("some threads record into ordinary memory (" + reason +
                          "): if this process is killed, their last records are lost; make room there");
    }
    return writer_.describe("not crash-safe", "some threads recorded into ordinary memory" +
                                                  (options_.redact ? std::string() : ": " + reason));
}

Status Drain::write_records(Watched& watched, std::uint64_t tail, std::uint64_t head) {
    if (Status status = announce(watched); !status.ok()) {
        return status;
    }
    record::Ring& ring = *watched.ring;
    while (tail != head) {
        const std::uint64_t index = tail & (ring.capacity() - 1);
        const std::uint64_t to_the_end = std::min(head - tail, ring.capacity() - index);
        const std::uint64_t count = std::min(to_the_end, writer_.most_at_once());
        const recording::RecordBatch batch{ring.header().track, tail, ring.records() + index, count};
        if (Status status = writer_.append(batch); !status.ok()) {
            return status;
        }
        collector_.scan(batch); // always: a queue may be made in the middle of a step
        tail += count;
        records_ += count;
        // Release: the producer may overwrite what is in the recording now.
        ring.header().tail.store(tail, std::memory_order_release);
    }
    return {};
}

Status Drain::announce(Watched& watched) {
    if (Status status = write_names(); !status.ok()) {
        return status; // a record's name comes before it
    }
    const detail::RingHeader& header = watched.ring->header();
    if (watched.announced_track == header.track) {
        return {};
    }
    recording::TrackInfo track;
    track.id = header.track;
    track.os_thread = header.os_thread;
    track.name = header.thread_name;
    const bool ranges = base::source_of(watched.ring->header()) == base::RingSource::nvtx;
    track.source = ranges ? base::nvtx_source : clock::source_of(options_.clock.kind);
    Status status = writer_.add_track(track);
    if (status.ok()) {
        watched.announced_track = header.track;
    }
    return status;
}

Status Drain::write_names() {
    const std::uint16_t end = record::names_end();
    if (next_name_ >= end) {
        return {};
    }
    for (const record::NameEntry& entry : record::names_from(next_name_)) {
        if (entry.id >= end) {
            break; // interned since: next time
        }
        if (Status status = writer_.add_name({entry.id, entry.category, entry.name}); !status.ok()) {
            return status;
        }
    }
    next_name_ = end;
    rings_.names_written(end);
    return {};
}

Status Drain::write_descriptions() {
    recording::Descriptions taken;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::swap(taken, descriptions_);
    }
    for (auto next = taken.all().begin(); next != taken.all().end(); ++next) {
        if (Status status = writer_.describe(next->first, next->second); !status.ok()) {
            recording::Descriptions left;
            const std::lock_guard<std::mutex> lock(mutex_);
            for (; next != taken.all().end(); ++next) {
                left.set(*next);
            }
            for (const recording::Description& newer : descriptions_.all()) {
                left.set(newer);
            }
            descriptions_ = std::move(left);
            return status;
        }
    }
    return {};
}

Status Drain::write_kernels() {
    std::vector<recording::KernelInfo> taken;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        taken.swap(kernels_);
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
        if (Status status = writer_.add_kernel(taken[i]); !status.ok()) {
            const std::lock_guard<std::mutex> lock(mutex_);
            kernels_.insert(kernels_.begin(), taken.begin() + static_cast<std::ptrdiff_t>(i), taken.end());
            return status;
        }
    }
    return {};
}

Status Drain::write_host_pair(const clock::ClockReading& reading) {
    recording::ClockPair pair;
    pair.ticks = reading.ticks.value;
    pair.monotonic_ns = reading.monotonic.value;
    pair.realtime_ns = reading.realtime.value;
    pair.uncertainty_ticks = reading.uncertainty_ticks;
    return writer_.add_clock_pair(pair);
}

Status Drain::write_clock_pairs() {
    Status status = write_host_pair(clock::read_clock_pair(options_.clock));
    return status.ok() && collector_.active() ? collector_.write_clock_pairs(writer_) : status;
}

Status Drain::write_counters() { return writer_.set_counters(counters()); }

Status Drain::write_tiles() {
    if (Status status = write_names(); !status.ok()) {
        return status; // a tile's name comes before it
    }
    return tiles_.write(rings_in_use(), writer_);
}

std::vector<std::shared_ptr<record::Ring>> Drain::rings_in_use() const {
    std::vector<std::shared_ptr<record::Ring>> rings;
    for (const Watched& watched : watched_) {
        if (load_state(*watched.ring) != detail::RingState::free) {
            rings.push_back(watched.ring);
        }
    }
    return rings;
}

/// The caller's own clock is not the kernel's: nothing to compare.
Status Drain::write_off_cpu() {
    if (options_.clock.kind == clock::HostClockKind::caller) {
        return {};
    }
    return off_cpu_.write(rings_in_use(), clock::read_clock_pair(options_.clock).monotonic.value, writer_);
}

recording::Counters Drain::counters() {
    std::uint64_t drops[drop_reasons];
    std::copy(std::begin(retired_drops_), std::end(retired_drops_), drops);
    for (const Watched& watched : watched_) {
        for (std::size_t i = 0; i < drop_reasons; ++i) {
            drops[i] += detail::drops_of(watched.ring->header(), i).load(std::memory_order_relaxed);
        }
    }
    recording::Counters result;
    if (options_.hardware != nullptr) {
        base::CounterTotals read = options_.hardware->read();
        result.hardware = std::move(read.totals);
        result.hardware_reason = std::move(read.reason);
    }
    std::copy(std::begin(retired_drops_), std::end(retired_drops_), result.ended_drops);
    for (std::size_t i = 0; i < drop_reasons; ++i) {
        if (drops[i] != 0) {
            result.drops.emplace_back(recording::drop_reason_text(static_cast<Drop>(i)), drops[i]);
        }
    }
    if (const std::uint64_t lost = rings_.drops_without_ring.load(std::memory_order_relaxed); lost != 0) {
        result.drops.emplace_back(
            "no ring to be had: its thread was ending, memory ran out, or too many threads ended at once", lost);
    }
    if (const std::uint64_t refused = record::refused_names(); refused != 0) {
        result.drops.emplace_back("name refused: it is empty, or the registry is full (kept as \"unnamed\")", refused);
    }
    if (const std::uint64_t lost = collector_.dropped_checks(); lost != 0) {
        result.drops.emplace_back("tensor not checked", lost);
    }
    result.drain_cpu_ns = cpu_ns_;
    result.records = records_;
    result.unresolved = collector_.unresolved();
    return result;
}

void Drain::note_failure(const Status& status) {
    if (status.ok()) {
        failing_ = false;
        return;
    }
    pause_ = pause_after_failure;
    if (!failing_ && options_.diagnose) {
        options_.diagnose(status.error().message);
    }
    failing_ = true;
}

} // namespace plumb::drain
