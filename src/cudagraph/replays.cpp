// SPDX-License-Identifier: Apache-2.0
// CudaGraphCache: replays, and the steps that ran without.
#include <utility>

#include "clock/host_clock.hpp"
#include "cudagraph/graph_cache.hpp"

namespace plumb::cudagraph {

using cuda::CuResult;

std::int64_t Cache::now_ns() const noexcept {
    return host_clock_ != nullptr ? host_clock_->now_ns() : clock::monotonic_ns();
}

Result<bool> Cache::replay(std::uint64_t key, cuda::Stream stream) {
    if (!driver_.usable()) {
        abandon();
        return missing(*find_or_make(key), Absence::lost);
    }
    std::shared_ptr<CacheEntry> entry;
    std::shared_ptr<Executable> exec;
    Absence absence = Absence::never_captured;
    {
        std::shared_lock lock(map_);
        const auto found = entries_.find(key);
        if (found != entries_.end()) {
            entry = found->second;
            exec = entry->live;
            absence = entry->absence;
        }
    }
    if (exec == nullptr) {
        return missing(entry != nullptr ? *entry : *find_or_make(key), absence);
    }
    entry->last_use.store(use_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);

    Launched launched = launch(*entry, *exec, stream);
    if (!launched.status) {
        if (launched.profiled) {
            profile_.drop(std::move(launched.sample));
        }
        launch_failed(*entry, *exec);
        return launched.status.error();
    }
    // No lock is held any more: a wait for the device is this thread's own.
    const Status waited = options_.sync ? wait(stream, launched) : Status();
    if (launched.upload_ns >= 0) {
        entry->account->measure([&launched](recording::GraphInfo& row) {
            ++row.uploads;
            add(row.upload_ns, static_cast<double>(launched.upload_ns));
        });
    }
    if (launched.profiled) {
        profile_.keep(std::move(launched.sample));
    }
    if (!waited) {
        return waited.error();
    }
    return true;
}

bool Cache::missing(CacheEntry& entry, Absence absence) {
    entry.account->count_eager(driver_.there() ? reason_of(absence) : "no CUDA driver");
    return false;
}

/// A replay may become part of a greater capture: uploads and waits have no place there.
bool Cache::captured(cuda::Stream stream) const noexcept {
    cuda::CaptureStatus status = cuda::CaptureStatus::none;
    return driver_.calls().stream_is_capturing(stream, &status) == CuResult::success &&
           status != cuda::CaptureStatus::none;
}

Cache::Launched Cache::launch(CacheEntry& entry, Executable& exec, cuda::Stream stream) {
    const cuda::Driver& calls = driver_.calls();
    Launched launched;
    std::lock_guard lock(exec.mutex);
    if (options_.upload_each && !captured(stream)) {
        const std::int64_t begin = now_ns();
        launched.status = driver_.check(calls.graph_upload(exec.exec.get(), stream), "cuGraphUpload");
        launched.upload_ns = now_ns() - begin;
        if (!launched.status) {
            return launched;
        }
    }
    const std::uint64_t call = entry.account->replays() + 1; // it is counted below, behind the same lock
    if (profile_.due(call)) {
        launched.profiled = true;
        launched.sample = profile_.begin(entry.key, call, stream);
    }
    const std::int64_t begin = now_ns();
    launched.status = exec.probed ? exec.probe.launch(exec.exec.get(), stream)
                                  : driver_.check(calls.graph_launch(exec.exec.get(), stream), "cuGraphLaunch");
    launched.launch_ns = now_ns() - begin;
    if (!exec.probed && launched.status) {
        entry.account->count_launch(launched.launch_ns); // else the probe has counted it
    }
    if (launched.profiled && launched.status) {
        launched.sample.upload_ns = launched.upload_ns;
        launched.sample.launch_ns = launched.launch_ns;
        profile_.end(launched.sample, stream);
    }
    return launched;
}

Status Cache::wait(cuda::Stream stream, Launched& launched) {
    if (captured(stream)) {
        return {};
    }
    const std::int64_t begin = now_ns();
    Status status = driver_.check(driver_.calls().stream_synchronize(stream), "cuStreamSynchronize",
                                  "the replay was launched; graph.sync=off does not wait for it");
    if (status) {
        launched.sample.sync_ns = now_ns() - begin;
    }
    return status;
}

/// The probe's answer has no code: whether the context still works is asked for.
void Cache::launch_failed(CacheEntry& entry, const Executable& exec) {
    driver_.look();
    if (driver_.lost()) {
        abandon();
        return;
    }
    CuResult current = CuResult::success;
    {
        const cuda::CurrentContext context(driver_.calls(), exec.context);
        current = context.status();
    }
    if (!context_gone(current)) {
        return;
    }
    std::lock_guard life(entry.life);
    (void)drop(entry, Absence::context_gone);
}

void Cache::note_eager(std::uint64_t key, const std::string& reason) {
    find_or_make(key)->account->count_eager(reason);
}

void Cache::note_padding(std::uint64_t key, std::uint64_t used, std::uint64_t padded) {
    find_or_make(key)->account->measure([used, padded](recording::GraphInfo& row) {
        row.rows_used += used;
        row.rows_padded += padded;
    });
}

} // namespace plumb::cudagraph
