// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/probes_state.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/os.hpp"
#include "cudagraph/graph_entry.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

constexpr std::chrono::milliseconds look_again{2};  // while a replay is unread
constexpr std::chrono::milliseconds look_idle{200}; // a wake-up that was missed
constexpr std::chrono::milliseconds longest_end{1000};
constexpr std::size_t most_samples = std::size_t{1} << 20; // that nobody collects

} // namespace

ProbesState::ProbesState(Recorder& recorder, const ProbeOptions& options, const Driver& driver,
                         std::shared_ptr<GraphLedger> ledger)
    : recorder_(recorder), options_(options), driver_(driver), clock_(clock::host_clock(options.host_clock)),
      ledger_(std::move(ledger)) {}

ProbesState::~ProbesState() = default;

Result<std::shared_ptr<GraphDevice>> ProbesState::device_of(backends::cuda::Context context) {
    std::optional<CurrentContext> current;
    if (context != nullptr) {
        current.emplace(driver_, context);
        if (current->status() != CuResult::success) {
            return error_of(driver_, current->status(), "cuCtxPushCurrent",
                            "hand a graph over while its context is there");
        }
    }
    Result<std::shared_ptr<Timeline>> timeline = timeline_of(driver_, nullptr, options_.host_clock);
    if (!timeline) {
        return timeline.error();
    }
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<GraphDevice>& device : devices_) {
        if (&device->timeline() == timeline->get()) {
            return device;
        }
    }
    const auto ended = [](const auto& device) {
        return device->timeline().ended(); // its graphs hold it as long as they need it
    };
    devices_.erase(std::remove_if(devices_.begin(), devices_.end(), ended), devices_.end());
    devices_.push_back(std::make_shared<GraphDevice>(*timeline));
    return devices_.back();
}

/// The caller holds mutex_.
void ProbesState::retire_locked(std::shared_ptr<GraphEntry> entry) {
    entry->retire();
    if (!entry->attended.exchange(true)) {
        arrivals_.push_back(entry);
    }
    retired_.push_back(std::move(entry));
}

void ProbesState::attend(GraphEntry& entry) {
    if (entry.attended.load()) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!entry.attended.exchange(true)) {
        arrivals_.push_back(entry.shared_from_this());
    }
}

void ProbesState::put(std::shared_ptr<GraphEntry> entry) {
    std::shared_ptr<GraphEntry> before;
    {
        const std::lock_guard lock(mutex_);
        before = std::exchange(current_[entry->key()], entry);
        if (before != nullptr) {
            retire_locked(before);
        }
    }
    {
        const std::lock_guard lock(worker_mutex_);
        if (!started_ && !stop_) {
            started_ = true;
            worker_ = std::thread([this] { run(); });
        }
    }
    if (before != nullptr) { // a new one wants nothing before its second replay
        wake();
    }
}

std::shared_ptr<GraphEntry> ProbesState::remove(std::uint64_t key) {
    std::shared_ptr<GraphEntry> entry;
    {
        const std::lock_guard lock(mutex_);
        const auto known = current_.find(key);
        if (known == current_.end()) {
            return nullptr;
        }
        entry = std::move(known->second);
        retire_locked(entry);
        current_.erase(known);
    }
    wake();
    return entry;
}

std::vector<std::uint64_t> ProbesState::keys() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> keys;
    for (const auto& [key, entry] : current_) {
        keys.push_back(key);
    }
    return keys;
}

std::vector<std::shared_ptr<GraphEntry>> ProbesState::retired() const {
    const std::lock_guard lock(mutex_);
    return retired_;
}

std::size_t ProbesState::let_go(const std::vector<std::shared_ptr<GraphEntry>>& entries, Flight flight,
                                std::chrono::milliseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (true) {
        const auto left = end - std::chrono::steady_clock::now();
        const bool asked =
            open() && left.count() > 0 && settle(std::chrono::duration_cast<std::chrono::milliseconds>(left));
        const auto held = std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
            return entry->holds() && (flight == Flight::wait || !entry->waits_for_device());
        });
        if (held == 0 || !asked) {
            return static_cast<std::size_t>(held);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

void ProbesState::wake() noexcept {
    {
        const std::lock_guard lock(worker_mutex_);
        ++requests_;
    }
    to_worker_.notify_one();
}

void ProbesState::sample_pending() noexcept {
    if (!pending_.exchange(true, std::memory_order_relaxed)) {
        to_worker_.notify_one();
    }
}

void ProbesState::hand_over(std::vector<drain::DeviceSample> samples) {
    const std::lock_guard lock(mutex_);
    if (samples_.size() + samples.size() > most_samples) {
        return; // they stay among the unresolved
    }
    samples_.insert(samples_.end(), samples.begin(), samples.end());
}

void ProbesState::announce(drain::FeedTrack track) {
    const std::lock_guard lock(mutex_);
    tracks_.push_back(std::move(track));
}

void ProbesState::collect(drain::FeedRound& round, bool all) {
    if (!open()) {
        return;
    }
    static_cast<void>(read_samples());
    round.cpu_ns += worker_cpu_ns_.exchange(0);
    {
        const std::lock_guard lock(mutex_);
        unresolved.fetch_sub(samples_.size(), std::memory_order_relaxed);
        round.tracks.insert(round.tracks.end(), tracks_.begin(), tracks_.end());
        round.samples.insert(round.samples.end(), samples_.begin(), samples_.end());
        tracks_.clear();
        samples_.clear();
    }
    ledger_->collect(round.graphs, now_ns(), all);
}

std::vector<std::shared_ptr<GraphEntry>> ProbesState::entries() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<GraphEntry>> list = retired_;
    for (const auto& [key, entry] : current_) {
        list.push_back(entry);
    }
    return list;
}

std::vector<std::shared_ptr<GraphDevice>> ProbesState::devices() const {
    const std::lock_guard lock(mutex_);
    return devices_;
}

std::vector<std::shared_ptr<GraphEntry>> ProbesState::read_samples() {
    const std::lock_guard reading(reading_);
    {
        const std::lock_guard lock(mutex_);
        attended_.insert(attended_.end(), arrivals_.begin(), arrivals_.end());
        arrivals_.clear();
    }
    for (const std::shared_ptr<GraphEntry>& entry : attended_) {
        entry->read_samples();
    }
    return attended_;
}

/// Forgets those that are at rest. True: a replay of the others is unread.
bool ProbesState::let_rest() {
    const std::lock_guard reading(reading_);
    bool pending = false;
    const auto rests = [&](const std::shared_ptr<GraphEntry>& entry) {
        entry->attended.store(false); // before it is asked: whoever changes it after that attends to it again
        if (entry->at_rest()) {
            return true;
        }
        pending |= entry->has_pending();
        return entry->attended.exchange(true); // somebody was faster: it has arrived anew
    };
    attended_.erase(std::remove_if(attended_.begin(), attended_.end(), rests), attended_.end());
    return pending;
}

void ProbesState::forget_finished() {
    std::vector<std::shared_ptr<GraphEntry>> gone; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto alive =
        std::stable_partition(retired_.begin(), retired_.end(), [](const auto& entry) { return !entry->finished(); });
    gone.assign(std::make_move_iterator(alive), std::make_move_iterator(retired_.end()));
    retired_.erase(alive, retired_.end());
}

bool ProbesState::round() {
    bool more = false;
    pending_.store(false, std::memory_order_relaxed);
    full_.clear();
    for (const std::shared_ptr<GraphEntry>& entry : read_samples()) {
        more |= entry->work();
    }
    const bool pending = let_rest();
    forget_finished();
    tend_clocks();
    tend_memory();
    if (pending) {
        pending_.store(true, std::memory_order_relaxed);
    }
    return more;
}

/// Samples are placed by the anchor next to them; where all work is in graphs nobody else sees to those.
void ProbesState::tend_clocks() {
    if (!recording()) {
        return;
    }
    for (const std::shared_ptr<GraphDevice>& device : devices()) {
        Timeline& timeline = device->timeline();
        timeline.tend(clock::now_ns(timeline.host_clock()).value, true);
    }
}

void ProbesState::run() {
    std::unique_lock lock(worker_mutex_);
    while (!stop_) {
        const std::uint64_t seen = requests_;
        lock.unlock();
        const std::int64_t before = base::thread_cpu_ns();
        const bool more = round();
        if (recording()) {
            worker_cpu_ns_.fetch_add(static_cast<std::uint64_t>(base::thread_cpu_ns() - before));
        }
        lock.lock();
        if (more) {
            continue;
        }
        answered_ = seen;
        from_worker_.notify_all();
        const auto pause = pending_.load(std::memory_order_relaxed) ? look_again : look_idle;
        to_worker_.wait_for(lock, pause, [&] {
            return stop_ || requests_ != seen || (pause == look_idle && pending_.load(std::memory_order_relaxed));
        });
    }
}

bool ProbesState::settle(std::chrono::milliseconds timeout) {
    std::unique_lock lock(worker_mutex_);
    if (!started_) {
        return true;
    }
    const std::uint64_t asked = ++requests_;
    to_worker_.notify_one();
    return from_worker_.wait_for(lock, timeout, [&] { return answered_ >= asked; });
}

void ProbesState::leaked(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (leaked_.size() < 100) {
        leaked_.push_back(what);
    }
}

bool ProbesState::lost() const {
    const std::lock_guard lock(mutex_);
    return std::any_of(devices_.begin(), devices_.end(), [](const auto& device) { return device->timeline().lost(); });
}

bool ProbesState::all_lost() const {
    const std::lock_guard lock(mutex_);
    std::size_t left = 0;
    for (const std::shared_ptr<GraphDevice>& device : devices_) {
        left += device->timeline().ended() ? 0 : 1;
        if (!device->timeline().lost()) {
            return false;
        }
    }
    return left != 0;
}

Status ProbesState::status() const {
    const std::lock_guard lock(mutex_);
    Error error{ErrorCode::unavailable, ""};
    for (const std::shared_ptr<GraphDevice>& device : devices_) {
        if (device->timeline().lost()) {
            error.message = device->timeline().status().error().message;
        }
    }
    if (!leaked_.empty()) {
        error.message += std::string(error.message.empty() ? "" : "; ") + "left behind by graph probes: ";
        for (std::size_t i = 0; i < leaked_.size(); ++i) {
            error.message += (i == 0 ? "" : ", ") + leaked_[i];
        }
    }
    return error.message.empty() ? Status() : Status(error);
}

void ProbesState::close() {
    if (!open_.exchange(false, std::memory_order_acq_rel)) {
        return;
    }
    {
        const std::lock_guard lock(worker_mutex_);
        stop_ = true;
    }
    to_worker_.notify_one();
    if (worker_.joinable()) {
        worker_.join();
    }
    {
        const std::lock_guard lock(mutex_);
        for (auto& [key, entry] : current_) {
            retire_locked(std::move(entry));
        }
        current_.clear();
    }
    const auto end = std::chrono::steady_clock::now() + longest_end;
    while (round(), !entries().empty() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    for (const std::shared_ptr<GraphEntry>& entry : entries()) {
        entry->give_up();
    }
    for (const std::shared_ptr<GraphDevice>& device : devices_) {
        std::optional<OurThread> ours;
        if (!device->timeline().lost()) {
            ours.emplace(device->timeline());
        }
        if (!device->close()) {
            leaked("memory of stamp rings");
        }
    }
}

void ProbesState::abandon() noexcept {
    open_.store(false, std::memory_order_release);
    abandoned_ = shared_from_this(); // its end would join a thread that is not here and call the driver
}

} // namespace plumb::cudagraph
