// SPDX-License-Identifier: Apache-2.0
#include "session/run.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sys/random.h>

#include "base/os.hpp"
#include "base/processor_counters.hpp"
#include "fingerprint/cuda/cuda_tensors.hpp"
#include "record/recorder_access.hpp"
#include "session/metadata.hpp"
#include "session/rank_identity.hpp"
#include "session/recording_path.hpp"

namespace plumb::session {

Run::Run(Recorder& recorder, const Config& config, Diagnose diagnose)
    : recorder_(recorder), config_(config), diagnose_(std::move(diagnose)) {}

Status Run::open(const Start& start) {
    if (getentropy(&recording_id_, sizeof recording_id_) != 0) {
        return Error{ErrorCode::unavailable, "the system has no random numbers to name the recording by"};
    }
    const clock::ClockReading opened = clock::read_clock_pair(clock::host_clock(config_.clock));
    const bool in_memory = config_.out == "none";
    path_ = in_memory ? std::string() : expand_path(config_.out, rank_identity(config_.rank).rank);
    const std::string reason = open_rings();
    Status status = open_writer(reason);
    if (status.ok()) {
        status = start_drain(start, opened);
    }
    if (!status.ok()) {
        drain_.reset();
        writer_.reset();
        metrics_.reset();
        rings_->remove_file();
        rings_.reset();
        return status;
    }
    if (!in_memory && !reason.empty()) {
        diagnose_("threads record into ordinary memory (" + reason +
                  "): if this process is killed, its last records are lost");
    }
    RecorderAccess::connect(recorder_, rings_.get());
    return {};
}

/// Returns why records would not survive a kill; empty: they do.
std::string Run::open_rings() {
    record::RingOptions options;
    options.bytes_per_ring = config_.ring_bytes;
    options.recording_path = path_;
    options.tiles = config_.tiles;
    std::copy(std::begin(recording_id_), std::end(recording_id_), options.recording_id);
    std::string reason = path_.empty() ? "the recording is kept in memory (out=none)" : "";
    if (!path_.empty()) {
        const Result<std::string> directory = base::runtime_dir();
        if (directory.ok()) {
            options.directory = *directory;
        } else {
            reason = directory.error().message;
        }
    }
    rings_ = std::make_unique<record::RingSet>(options);
    rings_->warm_up();
    return reason.empty() ? rings_->reason() : reason;
}

Status Run::open_writer(const std::string& ring_reason) {
    recording::WriterOptions options;
    options.path = path_;
    options.max_bytes = config_.max_bytes;
    options.keep_ns = static_cast<std::int64_t>(config_.keep_seconds * 1e9);
    const std::string& file = rings_->file_path();
    const RingFilePath ring_file{file, file.empty() ? ring_reason : rings_->reason()};
    const recording::Metadata metadata = metadata_of(config_, recording_id_, ring_file);
    open_metrics(metadata);
    options.observer = metrics_.get();
    Result<std::unique_ptr<recording::Writer>> writer = recording::Writer::create(options, metadata);
    if (!writer.ok()) {
        return writer.error();
    }
    writer_ = *std::move(writer);
    return {};
}

void Run::open_metrics(const recording::Metadata& metadata) {
    if (config_.metrics.empty()) {
        return;
    }
    const bool file = config_.metrics.ends_with(".prom");
    const std::string rank = rank_identity(config_.rank).rank;
    Result<std::unique_ptr<metrics::Exporter>> started =
        metrics::start({file ? expand_path(config_.metrics, rank) : expand_words(config_.metrics, rank), config_.redact,
                        &metadata, diagnose_});
    if (started.ok()) {
        metrics_ = *std::move(started);
    } else {
        diagnose_("this run has no live metrics: " + started.error().message);
    }
}

Status Run::start_drain(const Start& start, const clock::ClockReading& opened) {
    drain::DrainOptions options;
    options.clock = clock::host_clock(config_.clock);
    options.opened = opened;
    options.device_every = config_.device_every;
    options.diagnose = diagnose_;
    options.redact = config_.redact;
    if (config_.counters) {
        counters_ = config_.counter_reader == nullptr ? base::open_processor_counters() : nullptr;
        options.hardware = config_.counter_reader == nullptr ? counters_.get() : config_.counter_reader;
    }
    drain_ = std::make_shared<drain::Drain>(*rings_, *writer_, std::move(options));
    for (const auto& [key, value] : start.descriptions) {
        drain_->describe(key, value);
    }
    for (const recording::KernelInfo& kernel : start.kernels) {
        drain_->add_kernel(kernel);
    }
    for (drain::DeviceFeed* const feed : start.feeds) {
        drain_->add_feed(*feed);
    }
    open_tensors();
    return drain_->start();
}

void Run::open_tensors() {
    if (config_.tensors.by_old_key) {
        diagnose_("check= is called tensors= now; the next version will not know check= any more");
    }
    if (config_.tensors.level == TensorConfig::Level::off) {
        return;
    }
    std::vector<std::unique_ptr<fingerprint::DeviceTensors>> devices;
    devices.push_back(fingerprint::make_cuda_tensors());
    tensors_ = std::make_unique<fingerprint::TensorWatch>(config_.tensors, std::move(devices), diagnose_);
    drain_->add_feed(*tensors_);
    if (config_.tensors.level == TensorConfig::Level::nonfinite) {
        drain_->describe("checked", "tensors are looked at for NaN and Inf"); // replaced when the run ends well
    }
    RecorderAccess::connect_tensors(recorder_, tensors_.get());
}

void Run::close_tensors() {
    if (tensors_ == nullptr) {
        return;
    }
    RecorderAccess::connect_tensors(recorder_, nullptr);
    drain_->remove_feed(*tensors_);
    // By now all that came is counted; the drain has ended, so the writer is ours.
    (void)writer_->describe("checked", tensors_->summary());
    (void)writer_->describe("nonfinite", std::to_string(tensors_->nonfinite()));
}

Status Run::close(const std::vector<drain::DeviceFeed*>& feeds) {
    Status status = drain_->stop();
    close_tensors();
    for (drain::DeviceFeed* const feed : feeds) {
        drain_->remove_feed(*feed);
    }
    drain_.reset();
    if (Status closed = writer_->close(); status.ok()) {
        status = closed;
    }
    metrics_.reset();                                                 // a closed writer tells nobody anything
    if (status.ok() || status.error().code == ErrorCode::not_found) { // it was removed: there is nothing to recover
        rings_->remove_file();
    } else if (!rings_->file_path().empty()) {
        const bool full = status.error().code == ErrorCode::no_space;
        diagnose_("some records did not reach " + path_ + "; they are kept in " + rings_->file_path() + ": " +
                  (full ? "make room, then run" : "run") + " plumb recover " + path_);
    }
    return status;
}

Queue Run::add_queue(QueueTimer& timer, const std::string& name) {
    recording::TrackInfo track;
    track.id = rings_->new_track();
    track.kind = recording::TrackKind::device_queue;
    track.name = name;
    drain_->add_queue(timer, track);
    return Queue{&timer, track.id};
}

void Run::reset() {
    (void)drain_->flush(std::chrono::seconds(5)); // device scopes ended before now count as before
    cut_ = rings_->heads();
    for (const auto& [track, records] : drain_->device_heads()) {
        cut_[track] = records;
    }
    cleared_ = drain_->totals();
    drain_->reset_tiles();
}

Error Run::never_open() { return {ErrorCode::not_found, "nothing is being recorded; call enable() before snapshot()"}; }

Result<asking::LiveRecording> Run::live() {
    if (writer_ == nullptr) {
        return never_open();
    }
    asking::LiveRecording live{path_, nullptr, cut_, cleared_};
    const auto copy = [&](const recording::Writer& writer) {
        live.bytes = writer.snapshot();
    };
    if (drain_ == nullptr) {
        copy(*writer_);
    } else if (path_.empty()) {
        drain_->between_rounds(copy);
    }
    return live;
}

void Run::before_fork() noexcept {
    if (drain_ != nullptr) {
        drain_->before_fork();
    }
    if (metrics_ != nullptr) {
        metrics_->before_fork();
    }
}

void Run::in_parent() noexcept {
    if (metrics_ != nullptr) {
        metrics_->after_fork(false);
    }
    if (drain_ != nullptr) {
        drain_->after_fork(false);
    }
}

bool Run::abandon() noexcept {
    RecorderAccess::connect_tensors(recorder_, nullptr);
    (void)tensors_.release(); // its locks may be held by threads that do not exist here, its devices are the parent's
    if (drain_ == nullptr) {
        return false;
    }
    if (metrics_ != nullptr) {
        metrics_->after_fork(true);
    }
    drain_->after_fork(true);
    drain_->abandon();
    writer_->forget();
    RecorderAccess::connect(recorder_, nullptr);
    return true;
}

} // namespace plumb::session
