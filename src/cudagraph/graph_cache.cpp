// SPDX-License-Identifier: Apache-2.0
// CudaGraphCache: keys, bounds, and what goes when.
#include "cudagraph/graph_cache.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cuda/capture_notes.hpp"

namespace plumb::cudagraph {

const char* reason_of(Absence absence) noexcept {
    switch (absence) {
    case Absence::never_captured:
        return "never captured";
    case Absence::evicted:
        return "evicted";
    case Absence::invalidated:
        return "invalidated";
    case Absence::context_gone:
        return "its CUDA context was destroyed";
    case Absence::lost:
        return "the CUDA context was lost";
    }
    return "unknown";
}

Cache::Cache(const cuda::Driver* driver, Error why_missing, CudaGraphOptions options, GraphHost* host,
             const HostClock* clock)
    : driver_(driver, std::move(why_missing)), options_(std::move(options)), host_(host), host_clock_(clock),
      states_(driver_, options_.max_batch, options_.state_slots),
      profile_(driver_, options_.profile_every, options_.profile_path) {}

Cache::~Cache() {
    std::unordered_map<std::thread::id, Capture> open;
    {
        std::lock_guard lock(captures_mutex_);
        open.swap(captures_);
    }
    for (const auto& [thread, capture] : open) {
        if (capture.begun && driver_.usable()) {
            const cuda::RelaxedCapture relaxed(driver_.calls());
            (void)end_stream(capture);
        }
        cuda::drop_capture_notes(capture.id);
    }
    invalidate_all();
    abandon();
    (void)profile_.flush(true);
    profile_.abandon();
    states_.abandon();
    for (int attempt = 0; attempt < 3 && driver_.usable(); ++attempt) {
        driver_.sweep();
    }
}

std::shared_ptr<CacheEntry> Cache::find(std::uint64_t key) const {
    std::shared_lock lock(map_);
    const auto found = entries_.find(key);
    return found != entries_.end() ? found->second : nullptr;
}

std::shared_ptr<CacheEntry> Cache::find_or_make(std::uint64_t key) {
    if (std::shared_ptr<CacheEntry> entry = find(key)) {
        return entry;
    }
    GraphLedger& ledger = host_ != nullptr ? host_->graph_ledger() : own_ledger_;
    std::shared_ptr<GraphAccount> account = ledger.account(key); // may wait, so not behind the map's lock
    std::unique_lock lock(map_);
    std::shared_ptr<CacheEntry>& entry = entries_[key];
    if (entry == nullptr) {
        entry = std::make_shared<CacheEntry>(key, std::move(account));
        if (entries_.size() > max_keys) {
            const std::shared_ptr<CacheEntry> keep = entry;
            forget_old_keys();
            return keep;
        }
    }
    return entry;
}

/// A sixteenth at once, so that a stream of new keys does not search every time. The newest one is in use here.
void Cache::forget_old_keys() {
    for (auto at = entries_.begin(); at != entries_.end() && entries_.size() > max_keys - max_keys / 16;) {
        const bool idle = at->second->live == nullptr && at->second.use_count() == 1;
        at = idle ? entries_.erase(at) : std::next(at);
    }
}

std::uint64_t Cache::live_bytes() const {
    std::uint64_t sum = 0;
    for (const std::shared_ptr<CacheEntry>& entry : live_) {
        sum += entry->bytes + entry->account->twin_bytes(); // a twin is built and dropped behind our back
    }
    return sum;
}

bool Cache::over_bounds() const {
    return (options_.max_graphs != 0 && live_.size() > options_.max_graphs) ||
           (options_.max_bytes != 0 && live_bytes() > options_.max_bytes);
}

std::shared_ptr<CacheEntry> Cache::least_recent(const CacheEntry* but) const {
    std::shared_ptr<CacheEntry> oldest;
    for (const std::shared_ptr<CacheEntry>& entry : live_) {
        if (entry.get() == but || entry->pinned) {
            continue;
        }
        if (oldest == nullptr ||
            entry->last_use.load(std::memory_order_relaxed) < oldest->last_use.load(std::memory_order_relaxed)) {
            oldest = entry;
        }
    }
    return oldest;
}

/// Takes an entry's graph out of the cache; the map lock is held.
std::shared_ptr<Executable> Cache::withdraw(CacheEntry& entry, Absence absence) {
    std::shared_ptr<Executable> exec = std::move(entry.live);
    entry.live = nullptr;
    entry.absence = absence;
    entry.bytes = 0;
    const auto at = std::find_if(live_.begin(), live_.end(), [&](const auto& held) { return held.get() == &entry; });
    if (at != live_.end()) {
        *at = live_.back();
        live_.pop_back();
    }
    return exec;
}

void Cache::publish(const std::shared_ptr<CacheEntry>& entry, std::shared_ptr<Executable> exec, std::uint64_t bytes) {
    std::vector<Victim> victims;
    std::shared_ptr<Executable> replaced; // freed behind the lock
    {
        std::unique_lock lock(map_);
        if (entry->live == nullptr) {
            live_.push_back(entry);
        }
        replaced = std::exchange(entry->live, std::move(exec));
        entry->bytes = bytes;
        entry->pinned = false;
        entry->last_use.store(use_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        victims = trim(entry.get());
    }
    dismiss(victims);
}

/// What has to go, out of the cache already; the map lock is held.
std::vector<Cache::Victim> Cache::trim(const CacheEntry* keep) {
    std::vector<Victim> victims;
    while (over_bounds()) {
        std::shared_ptr<CacheEntry> oldest = least_recent(keep);
        if (oldest == nullptr) {
            break; // all others are being captured anew, and each looks again when it is done
        }
        std::shared_ptr<Executable> exec = withdraw(*oldest, Absence::evicted);
        victims.push_back(Victim{std::move(oldest), std::move(exec)});
    }
    return victims;
}

void Cache::unpin(CacheEntry& entry) {
    std::vector<Victim> victims;
    {
        std::unique_lock lock(map_);
        entry.pinned = false;
        victims = trim(nullptr);
    }
    dismiss(victims);
}

void Cache::dismiss(const std::vector<Victim>& victims) {
    for (const Victim& victim : victims) {
        dismiss(*victim.entry, victim.exec, Absence::evicted);
    }
    if (!victims.empty() && driver_.usable()) {
        driver_.sweep();
    }
}

/// The profiler hears of it while the graph still exists; then whoever holds the executable last frees it.
void Cache::dismiss(CacheEntry& entry, const std::shared_ptr<Executable>& exec, Absence absence) {
    if (host_ != nullptr && !driver_.lost()) {
        std::lock_guard tell(entry.tell);
        if (entry.told == exec.get()) {
            entry.told = nullptr;
            host_->graph_dropped(entry.key);
        }
    }
    if (absence == Absence::evicted) {
        entry.account->change([](recording::GraphInfo& info) { ++info.evictions; });
    } else {
        entry.account->count_invalidation();
    }
}

/// False: there was no graph. The caller holds CacheEntry::life, or nobody else can be here.
bool Cache::drop(CacheEntry& entry, Absence absence) {
    std::shared_ptr<Executable> exec;
    {
        std::unique_lock lock(map_);
        if (entry.live == nullptr) {
            return false;
        }
        exec = withdraw(entry, absence);
    }
    dismiss(entry, exec, absence);
    return true;
}

bool Cache::invalidate(std::uint64_t key) {
    if (driver_.lost()) {
        abandon();
    }
    const std::shared_ptr<CacheEntry> entry = find(key);
    if (entry == nullptr) {
        return false;
    }
    std::lock_guard life(entry->life);
    return drop(*entry, Absence::invalidated);
}

void Cache::invalidate_all() {
    if (driver_.lost()) {
        abandon();
    }
    std::vector<std::shared_ptr<CacheEntry>> live;
    {
        std::shared_lock lock(map_);
        live = live_;
    }
    for (const std::shared_ptr<CacheEntry>& entry : live) {
        std::lock_guard life(entry->life);
        (void)drop(*entry, Absence::invalidated);
    }
    if (driver_.usable()) {
        driver_.sweep();
    }
}

/// After a sticky error: lets go of everything, without a driver call.
void Cache::abandon() {
    if (!driver_.lost() || abandoned_.exchange(true)) {
        return;
    }
    std::vector<std::shared_ptr<Executable>> left;
    {
        std::unique_lock lock(map_);
        for (const auto& [key, entry] : entries_) {
            if (entry->live != nullptr) {
                left.push_back(std::move(entry->live));
            }
            entry->live = nullptr;
            entry->absence = Absence::lost;
            entry->bytes = 0;
        }
        live_.clear();
    }
    left.clear();
    profile_.abandon();
    states_.abandon();
}

std::size_t Cache::size() const {
    std::shared_lock lock(map_);
    return live_.size();
}

std::uint64_t Cache::bytes() const {
    std::shared_lock lock(map_);
    return live_bytes();
}

std::vector<CudaGraphRow> Cache::rows() const {
    std::vector<std::shared_ptr<CacheEntry>> entries;
    {
        std::shared_lock lock(map_);
        for (const auto& [key, entry] : entries_) {
            entries.push_back(entry);
        }
    }
    std::vector<CudaGraphRow> rows;
    for (const std::shared_ptr<CacheEntry>& entry : entries) {
        CudaGraphRow row = entry->account->row();
        std::shared_lock lock(map_);
        row.live = entry->live != nullptr;
        if (!row.live) {
            row.bytes = Figure{std::nullopt, reason_of(entry->absence)};
        }
        rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return rows;
}

Status Cache::status() {
    if (driver_.lost()) {
        abandon();
    }
    const Status status = driver_.status();
    const std::string left = driver_.left_behind();
    if (status || !driver_.lost()) {
        return status;
    }
    return Error{status.error().code, "the CUDA context is lost, and the cache with it (" + status.error().message +
                                          "); left behind until the process ends: " +
                                          (left.empty() ? "nothing" : left) + ". Make a new context and a new cache."};
}

} // namespace plumb::cudagraph
