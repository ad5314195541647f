// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/replay_profile.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/json_writer.hpp"

namespace plumb::cudagraph {

using cuda::CuResult;

ReplayProfile::ReplayProfile(GuardedDriver& driver, std::uint64_t every, std::string path)
    : driver_(driver), every_(every), path_(std::move(path)) {}

ReplayProfile::~ReplayProfile() {
    (void)flush(true);
    abandon();
}

void ReplayProfile::abandon() {
    std::deque<ReplaySample> pending;
    std::vector<EventPair> pool;
    {
        std::lock_guard lock(mutex_);
        pending.swap(pending_);
        pool.swap(pool_);
    }
    for (const ReplaySample& sample : pending) {
        pool.push_back({sample.begin, sample.end, sample.context});
    }
    for (const EventPair& pair : pool) {
        driver_.release(Owned::event, pair.begin, pair.context);
        driver_.release(Owned::event, pair.end, pair.context);
    }
}

Status ReplayProfile::take_events(ReplaySample& sample, cuda::Stream stream) {
    const cuda::Driver& calls = driver_.calls();
    cuda::CaptureStatus capturing = cuda::CaptureStatus::none;
    if (Status status = driver_.check(calls.stream_is_capturing(stream, &capturing), "cuStreamIsCapturing"); !status) {
        return status;
    }
    if (capturing != cuda::CaptureStatus::none) {
        return Error{ErrorCode::unsupported, "this replay was captured into another graph"};
    }
    if (Status status = driver_.check(calls.context_of(stream, &sample.context), "cuStreamGetCtx"); !status) {
        return status;
    }
    {
        std::lock_guard lock(mutex_);
        for (EventPair& pair : pool_) {
            if (pair.context != sample.context) {
                continue;
            }
            sample.begin = pair.begin;
            sample.end = pair.end;
            pair = pool_.back();
            pool_.pop_back();
            return {};
        }
        if (pending_.size() >= max_pending) {
            return Error{ErrorCode::pending, "256 replays before it have not finished"};
        }
    }
    const cuda::CurrentContext current(calls, sample.context);
    Status status = driver_.check(current.status(), "cuCtxPushCurrent");
    if (status) {
        status = driver_.check(calls.event_create(&sample.begin, cuda::event_default), "cuEventCreate");
    }
    if (status) {
        status = driver_.check(calls.event_create(&sample.end, cuda::event_default), "cuEventCreate");
    }
    return status;
}

void ReplayProfile::give_events(ReplaySample& sample) {
    const EventPair pair{std::exchange(sample.begin, nullptr), std::exchange(sample.end, nullptr), sample.context};
    if (pair.begin != nullptr && pair.end != nullptr) {
        std::lock_guard lock(mutex_);
        pool_.push_back(pair);
        return;
    }
    driver_.release(Owned::event, pair.begin, pair.context);
    driver_.release(Owned::event, pair.end, pair.context);
}

ReplaySample ReplayProfile::begin(std::uint64_t key, std::uint64_t call, cuda::Stream stream) {
    ReplaySample sample;
    sample.key = key;
    sample.call = call;
    const cuda::RelaxedCapture relaxed(driver_.calls());
    Status status = take_events(sample, stream);
    if (status) {
        status = driver_.check(driver_.calls().event_record(sample.begin, stream), "cuEventRecord");
    }
    if (!status) {
        sample.reason = status.error().message;
        give_events(sample);
    }
    return sample;
}

void ReplayProfile::end(ReplaySample& sample, cuda::Stream stream) {
    if (sample.begin == nullptr || driver_.lost()) {
        return;
    }
    const cuda::RelaxedCapture relaxed(driver_.calls());
    // Reached already: the stream was empty, and waited for the launch inside the span.
    sample.includes_launch_wait = driver_.calls().event_query(sample.begin) == CuResult::success;
    const CuResult result = driver_.calls().event_record(sample.end, stream);
    if (Status status = driver_.check(result, "cuEventRecord"); !status) {
        sample.reason = status.error().message;
        give_events(sample);
    }
}

void ReplayProfile::drop(ReplaySample sample) { give_events(sample); }

void ReplayProfile::keep(ReplaySample sample) {
    {
        std::lock_guard lock(mutex_);
        pending_.push_back(std::move(sample));
    }
    (void)flush(false);
}

/// True when the sample is settled, with device time or with a reason.
bool ReplayProfile::resolve(ReplaySample& sample, double& device_ns) {
    if (sample.begin == nullptr) {
        return true;
    }
    if (!driver_.usable()) {
        sample.reason = "the CUDA context was lost";
        return true;
    }
    const cuda::Driver& calls = driver_.calls();
    const CuResult reached = calls.event_query(sample.end);
    if (reached == CuResult::not_ready) {
        return false;
    }
    float ms = 0;
    Status status = driver_.check(reached, "cuEventQuery");
    if (status) {
        status = driver_.check(calls.elapsed(&ms, sample.begin, sample.end), "cuEventElapsedTime");
    }
    if (!status) {
        sample.reason = status.error().message;
    } else {
        device_ns = static_cast<double>(ms) * 1e6;
    }
    return true;
}

Status ReplayProfile::flush(bool last) {
    std::unique_lock writing(writing_, std::defer_lock);
    if (last) {
        writing.lock();
    } else if (!writing.try_lock()) {
        return {}; // somebody else is at it
    }
    std::deque<ReplaySample> mine;
    {
        std::lock_guard lock(mutex_);
        if (pending_.empty()) {
            return file_status_;
        }
        mine.swap(pending_);
    }
    std::deque<ReplaySample> later;
    if (driver_.there()) {
        const cuda::RelaxedCapture relaxed(driver_.calls());
        for (ReplaySample& sample : mine) {
            double device_ns = -1;
            if (!resolve(sample, device_ns)) {
                if (!last) {
                    later.push_back(std::move(sample));
                    continue;
                }
                sample.reason = "the device had not finished when the cache ended";
            }
            if (Status status = write(sample, device_ns); !status) {
                file_status_ = status;
            }
            give_events(sample);
        }
    }
    if (file_.is_open()) {
        file_.flush();
    }
    std::lock_guard lock(mutex_);
    pending_.insert(pending_.begin(), std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
    return file_status_;
}

Status ReplayProfile::write(const ReplaySample& sample, double device_ns) {
    if (!file_.is_open()) {
        errno = 0;
        file_.open(path_, std::ios::app);
        if (!file_) {
            return Error{ErrorCode::permission, "cannot write replay records to " + path_ + ": " +
                                                    std::strerror(errno) + "; set CudaGraphOptions::profile_path."};
        }
    }
    std::string line;
    base::JsonWriter json(line);
    const auto field = [&json](const char* name, double value) {
        json.key(name);
        if (value < 0) {
            json.null();
        } else {
            json.value(value);
        }
    };
    // Without a wait the host's share and the device's may overlap: their sum is then an upper bound.
    const double host_ns = static_cast<double>(sample.launch_ns + (sample.upload_ns < 0 ? 0 : sample.upload_ns));
    const double total_ns = sample.sync_ns >= 0 ? host_ns + static_cast<double>(sample.sync_ns)
                            : device_ns >= 0    ? host_ns + device_ns
                                                : -1;
    json.begin_object();
    json.field("key", sample.key);
    json.field("call", sample.call);
    field("upload_ns", static_cast<double>(sample.upload_ns));
    field("launch_ns", static_cast<double>(sample.launch_ns));
    field("sync_ns", static_cast<double>(sample.sync_ns));
    field("device_ns", device_ns);
    field("total_ns", total_ns);
    json.field("includes_launch_wait", sample.includes_launch_wait);
    if (device_ns < 0) {
        json.field("reason", sample.reason);
    }
    json.end();
    line += '\n';
    file_ << line;
    if (!file_) {
        return Error{ErrorCode::no_space, "cannot write replay records to " + path_ +
                                              ": free space there, or set CudaGraphOptions::profile_path."};
    }
    return {};
}

} // namespace plumb::cudagraph
