// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <cstdio>
#include <cstdlib>
#include <random>

#include "analysis/report_builder.hpp"
#include "analysis/tiles.hpp"
#include "analysis/user_notes.hpp"
#include "base/os.hpp"
#include "base/processor_counters.hpp"
#include "fingerprint/cuda/cuda_tensors.hpp"
#include "plumb/selftest.hpp"
#include "record/recorder_access.hpp"
#include "recording/format.hpp"
#include "recording/reader.hpp"
#include "recording/redact.hpp"
#include "session/own_cost.hpp"
#include "session/recording_path.hpp"
#include "session/source_since_reset.hpp"

namespace plumb {
namespace {

/// CLOCK_MONOTONIC as an injected clock: for machines whose counter is not sound.
class MonotonicClock final : public HostClock {
  public:
    [[nodiscard]] std::uint64_t now_ticks() const noexcept override {
        return static_cast<std::uint64_t>(clock::monotonic_ns());
    }
    [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock::monotonic_ns(); }
    [[nodiscard]] std::int64_t thread_cpu_ns() const noexcept override { return base::thread_cpu_ns(); }
};

const HostClock* clock_for(const Config& config) {
    static const MonotonicClock monotonic;
    if (config.clock != nullptr) {
        return config.clock;
    }
    return clock::machine_clock().kind == clock::HostClockKind::monotonic ? &monotonic : nullptr;
}

StampOptions stamps_for(const Config& config) {
    StampOptions stamps;
    stamps.clock = clock_for(config);
    stamps.serialise = config.sync == SyncMode::immediate;
    stamps.serialise_layers = config.sync == SyncMode::per_layer;
    stamps.host_only = config.sync == SyncMode::none;
    stamps.device_every = config.device_every;
    stamps.tiles = config.tiles != 0;
    return stamps;
}

cudagraph::ProbeKind probe_kind(GraphStamps stamps) {
    switch (stamps) {
    case GraphStamps::events:
        return cudagraph::ProbeKind::event;
    case GraphStamps::kernels:
        return cudagraph::ProbeKind::stamp;
    case GraphStamps::off:
        return cudagraph::ProbeKind::off;
    case GraphStamps::cheapest:
        break;
    }
    return cudagraph::ProbeKind::automatic;
}

const char* name_of(SyncMode mode) {
    switch (mode) {
    case SyncMode::immediate:
        return "immediate";
    case SyncMode::per_layer:
        return "per_layer";
    case SyncMode::none:
        return "none";
    case SyncMode::deferred:
        break;
    }
    return "deferred";
}

/// The settings as the recording keeps them.
std::string recorded_spec(Config config) {
    if (config.redact) {
        config.out = "redacted";
        config.tensors.dump = config.tensors.dump.empty() ? "" : "redacted";
    }
    return config.spec();
}

} // namespace

Session::Session(Recorder& recorder, Config config) : recorder_(recorder), config_(std::move(config)) {
    (void)base::pin_own_module(); // our thread outlives a dlclose of the library that holds it
    RecorderAccess::prepare(recorder_, stamps_for(config_));
    record::add_fork_listener(*this);
}

Session::~Session() {
    (void)close();
    record::remove_fork_listener(*this);
    for_known_probes([](cudagraph::GraphProbes& probes) { delete &probes; });
    cudagraph::forget_recorder(recorder_);
}

void Session::fail(const Error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = error;
    diagnose(error.message);
}

void Session::diagnose(const std::string& sentence) const {
    if (config_.diagnostic != nullptr) {
        config_.diagnostic(sentence.c_str(), config_.diagnostic_user);
    } else {
        std::fprintf(stderr, "plumb: %s\n", sentence.c_str());
    }
}

Status Session::status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
}

std::string Session::path() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return path_;
}

Status Session::enable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || !status_.ok()) {
        return closed_ ? Status(Error{ErrorCode::invalid_argument, "the profiler was closed; make a new one"})
                       : status_;
    }
    const bool resumed = drain_ != nullptr && !recorder_.enabled();
    if (drain_ == nullptr) {
        if (Status status = open_locked(); !status.ok()) {
            status_ = status;
            diagnose(status.error().message);
            return status;
        }
    }
    if (resumed) {
        leave_mark(Mark::resumed); // time while recording was off belongs to no step
    }
    RecorderAccess::set_enabled(recorder_, true);
    return {};
}

void Session::disable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    RecorderAccess::set_enabled(recorder_, false);
}

Status Session::open_locked() {
    if (Status status = config_.validate(); !status.ok()) {
        return status;
    }
    std::random_device random;
    cut_.clear();
    cleared_ = {};
    for (std::uint64_t& half : recording_id_) {
        half = (static_cast<std::uint64_t>(random()) << 32) | random();
    }
    const bool in_memory = config_.out == "none";
    path_ = in_memory ? std::string() : session::expand_path(config_.out);
    record::RingOptions ring_options;
    ring_options.bytes_per_ring = config_.ring_bytes;
    ring_options.recording_path = path_;
    ring_options.tiles = config_.tiles;
    std::copy(std::begin(recording_id_), std::end(recording_id_), ring_options.recording_id);
    std::string reason = in_memory ? "the recording is kept in memory (out=none)" : "";
    if (!in_memory) {
        const Result<std::string> directory = base::runtime_dir();
        if (directory.ok()) {
            ring_options.directory = *directory;
        } else {
            reason = directory.error().message;
        }
    }
    rings_ = std::make_unique<record::RingSet>(ring_options);
    rings_->warm_up();
    if (reason.empty()) {
        reason = rings_->reason();
    }
    Status status = open_writer(reason);
    if (status.ok()) {
        status = start_drain();
    }
    if (!status.ok()) {
        drain_.reset();
        writer_.reset();
        rings_->remove_file();
        rings_.reset();
        return status;
    }
    if (!in_memory && !reason.empty()) {
        diagnose("threads record into ordinary memory (" + reason +
                 "): if this process is killed, its last records are lost");
    }
    RecorderAccess::connect(recorder_, rings_.get());
    return {};
}

Status Session::start_drain() {
    drain::DrainOptions options;
    options.clock = clock::host_clock(config_.clock);
    options.device_every = config_.device_every;
    options.diagnose = [this](const std::string& sentence) {
        diagnose(sentence);
    };
    if (config_.counters) {
        counters_ = config_.counter_reader == nullptr ? base::open_processor_counters() : nullptr;
        options.hardware = config_.counter_reader == nullptr ? counters_.get() : config_.counter_reader;
    }
    drain_ = std::make_shared<drain::Drain>(*rings_, *writer_, std::move(options));
    for (const auto& [key, value] : descriptions_) {
        drain_->describe(key, value);
    }
    for (const recording::KernelInfo& kernel : kernels_.all()) {
        drain_->add_kernel(kernel);
    }
    for_known_probes([&](cudagraph::GraphProbes& probes) { drain_->add_feed(probes); });
    open_tensors();
    return drain_->start();
}

void Session::open_tensors() {
    if (config_.tensors.by_old_key) {
        diagnose("check= is called tensors= now; the next version will not know check= any more");
    }
    if (config_.tensors.level == TensorConfig::Level::off) {
        return;
    }
    std::vector<std::unique_ptr<fingerprint::DeviceTensors>> devices;
    devices.push_back(fingerprint::make_cuda_tensors());
    tensors_ = std::make_unique<fingerprint::TensorWatch>(config_.tensors, std::move(devices),
                                                          [this](const std::string& sentence) { diagnose(sentence); });
    drain_->add_feed(*tensors_);
    if (config_.tensors.level == TensorConfig::Level::nonfinite) {
        drain_->describe("checked", "tensors are looked at for NaN and Inf"); // replaced when the run ends well
    }
    RecorderAccess::connect_tensors(recorder_, tensors_.get());
}

void Session::close_tensors() {
    if (tensors_ == nullptr) {
        return;
    }
    RecorderAccess::connect_tensors(recorder_, nullptr);
    drain_->remove_feed(*tensors_);
    // By now all that came is counted; the drain has ended, so the writer is ours.
    (void)writer_->describe("checked", tensors_->summary());
    if (config_.tensors.level == TensorConfig::Level::nonfinite) {
        (void)writer_->describe("nonfinite", std::to_string(tensors_->nonfinite()));
    }
}

Status Session::open_writer(const std::string& ring_reason) {
    recording::WriterOptions options;
    options.path = path_;
    options.max_bytes = config_.max_bytes;
    options.keep_ns = static_cast<std::int64_t>(config_.keep_seconds * 1e9);
    Result<std::unique_ptr<recording::Writer>> writer = recording::Writer::create(options, metadata(ring_reason));
    if (!writer.ok()) {
        return writer.error();
    }
    writer_ = *std::move(writer);
    return {};
}

recording::Metadata Session::metadata(const std::string& ring_reason) const {
    recording::Metadata m;
    std::copy(std::begin(recording_id_), std::end(recording_id_), m.recording_id);
    m.start_realtime_ns = clock::realtime_ns();
    m.host = base::host_name();
    m.pid = base::process_id();
    const Result<std::uint64_t> start = base::process_start_time(m.pid);
    m.process_start = start.ok() ? *start : 0;
    m.boot_id = base::boot_id();
    const char* rank = session::rank_variable();
    m.rank = rank != nullptr ? rank : "";
    m.ring_path = rings_->file_path();
    m.ring_reason = m.ring_path.empty() ? ring_reason : rings_->reason();
    m.config = recorded_spec(config_);
    m.sync_mode = name_of(config_.sync);
    m.warmup_steps = config_.warmup_steps;
    m.identity.emplace_back("command", base::command_line());
    m.identity.emplace_back("plumb", PLUMB_BUILD_VERSION);
    // Momentary: shown beside a comparison, never part of what must be equal.
    for (const auto& [key, value] : base::cpu_conditions()) {
        m.identity.emplace_back(key, value);
    }
    m.comparability.emplace_back("cpu", base::cpu_model());
    m.comparability.emplace_back("cpus", std::to_string(base::usable_cpus()));
    m.comparability.emplace_back("sync", m.sync_mode);
    m.comparability.emplace_back("tensors", config_.tensors.spec());
    const clock::HostClockSource source = clock::host_clock(config_.clock);
    m.clocks.push_back({0, clock::name_of(source.kind)});
    m.costs = session::measure_own_cost(stamps_for(config_), config_.clock != nullptr);
    // Never measured here: that takes all cores for seconds. Durations of an injected clock are not this machine's.
    if (Result<std::vector<Peaks>> peaks = stored_peaks(); config_.clock == nullptr && peaks.ok()) {
        m.peaks = *std::move(peaks);
    }
    if (config_.redact) {
        recording::redact(m);
    }
    return m;
}

Status Session::close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    RecorderAccess::set_enabled(recorder_, false);
    closed_ = true;
    if (drain_ == nullptr) {
        return status_;
    }
    for_known_probes([](cudagraph::GraphProbes& probes) { probes.publish_all(); });
    Status status = drain_->stop();
    close_tensors();
    for_known_probes([&](cudagraph::GraphProbes& probes) { drain_->remove_feed(probes); });
    drain_.reset();
    if (Status closed = writer_->close(); status.ok()) {
        status = closed;
    }
    if (status.ok()) {
        rings_->remove_file();
    } else if (!rings_->file_path().empty()) {
        diagnose("some records did not reach " + path_ + "; they are kept in " + rings_->file_path() +
                 ": make room, then run plumb recover " + path_);
    }
    // Rings and recorder stay connected: a thread may be in the middle of a scope.
    return status;
}

Status Session::flush(std::chrono::milliseconds timeout) {
    std::shared_ptr<drain::Drain> drain;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (drain_ == nullptr) {
            return status_;
        }
        for_known_probes([](cudagraph::GraphProbes& probes) { probes.publish_all(); });
        drain = drain_;
    }
    return drain->flush(timeout); // nobody else waits for our timeout
}

Result<recording::Reader> Session::read_live() {
    if (writer_ == nullptr) {
        return Error{ErrorCode::not_found, "nothing is being recorded; call enable() before snapshot()"};
    }
    std::shared_ptr<const recording::Bytes> bytes;
    const auto copy = [&](const recording::Writer& writer) {
        bytes = writer.snapshot();
    };
    for_known_probes([](cudagraph::GraphProbes& probes) { probes.publish_all(); });
    if (drain_ == nullptr) {
        copy(*writer_);
    } else if (Status status = drain_->flush(std::chrono::seconds(5)); !status.ok()) {
        return status.error();
    } else if (path_.empty()) {
        drain_->between_rounds(copy);
    }
    recording::ReadOptions read;
    read.merge_ring = false;                  // flushed: all of it is in the recording
    read.ahead = recording::ReadAhead::never; // the other cores belong to the run
    return path_.empty() ? recording::Reader::from_bytes(bytes) : recording::Reader::open(path_, read);
}

Result<Report> Session::snapshot(const ReportOptions& options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Result<recording::Reader> reader = read_live();
    if (!reader.ok()) {
        return reader.error();
    }
    session::SourceSinceReset source(*reader, cleared_);
    return analysis::build_report(source, options, cut_);
}

Result<TileReport> Session::tiles(const TileOptions& options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Result<recording::Reader> reader = read_live();
    return reader.ok() ? Result<TileReport>(analysis::build_tiles(analysis::tiles_of(*reader), options))
                       : reader.error();
}

void Session::reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (drain_ == nullptr) {
        return;
    }
    (void)drain_->flush(std::chrono::seconds(5)); // device scopes ended before now count as before
    cut_ = rings_->heads();
    for (const auto& [track, records] : drain_->device_heads()) {
        cut_[track] = records;
    }
    cleared_ = drain_->totals();
    drain_->reset_tiles();
    leave_mark(Mark::reset);
}

// The mark goes where this thread's records go, also while recording is off.
void Session::leave_mark(Mark mark) noexcept {
    detail::ThreadRecorder* pen = recorder_.thread();
    if (pen == nullptr) {
        return;
    }
    if (!pen->push(recorder_.plain_stamp(), pack(RecordKind::mark, static_cast<std::uint16_t>(mark)))) {
        pen->drop(Drop::ring_full);
    }
}

void Session::describe(const std::string& key, const std::string& value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    descriptions_.emplace_back(key, value);
    if (drain_ != nullptr) {
        drain_->describe(key, value);
    }
}

Result<std::uint64_t> Session::register_kernel(const void* code, std::size_t size, const KernelSource& given) {
    if (code == nullptr && size != 0) {
        return Error{ErrorCode::invalid_argument, "the kernel has no code: give its PTX or binary, and its size"};
    }
    recording::KernelInfo kernel;
    kernel.code_hash = code_hash(code, size);
    kernel.name = given.name;
    kernel.code_bytes = size;
    kernel.code_checksum = recording::checksum(code, size);
    kernel.source_bytes = given.source.size();
    kernel.file = given.file;
    kernel.source = given.source;
    if (config_.redact) {
        recording::redact(kernel);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const session::KernelRegistry::Added added = kernels_.add(std::move(kernel));
    if (added.fresh != nullptr && drain_ != nullptr) {
        drain_->add_kernel(*added.fresh);
    }
    return added.status.ok() ? Result<std::uint64_t>(added.code_hash) : added.status.error();
}

void Session::note(const std::string& text) {
    constexpr std::size_t most_notes = 4096;
    std::size_t number = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (notes_ == most_notes) {
            return;
        }
        number = ++notes_;
    }
    describe(analysis::user_note_key + std::to_string(number), text);
}

Queue Session::add_queue(QueueTimer& timer, const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (drain_ == nullptr) {
        return Queue{};
    }
    recording::TrackInfo track;
    track.id = rings_->new_track();
    track.kind = recording::TrackKind::device_queue;
    track.name = name;
    drain_->add_queue(timer, track);
    return Queue{&timer, track.id};
}

// Made by the first captured graph. Probes that were given out may outlive it.
cudagraph::GraphProbes& Session::probes(cudagraph::GraphApi api) {
    if (cudagraph::GraphProbes* const known = known_probes(api); known != nullptr) {
        return *known;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (cudagraph::GraphProbes* const known = known_probes(api); known != nullptr) {
        return *known;
    }
    cudagraph::ProbeOptions options;
    options.api = api;
    options.kind = probe_kind(config_.graph.stamps);
    options.every = config_.graph.every;
    options.host_clock = config_.clock;
    auto made = std::make_unique<cudagraph::GraphProbes>(recorder_, options);
    if (drain_ != nullptr) {
        drain_->add_feed(*made);
    }
    // Release: whoever finds the probes finds them complete.
    probes_[static_cast<std::size_t>(api)].store(made.get(), std::memory_order_release);
    return *made.release();
}

Result<GraphProbe> Session::graph_captured(std::uint64_t key, CUgraph_st* graph) {
    Result<std::shared_ptr<cudagraph::Probe>> probe = probes(cudagraph::GraphApi::cuda).captured(key, graph);
    return probe.ok() ? Result<GraphProbe>(GraphProbe(*std::move(probe))) : probe.error();
}

Result<HipGraphProbe> Session::hip_graph_captured(std::uint64_t key, void* graph) {
    Result<std::shared_ptr<cudagraph::Probe>> probe =
        probes(cudagraph::GraphApi::hip).captured(key, static_cast<CUgraph_st*>(graph));
    return probe.ok() ? Result<HipGraphProbe>(HipGraphProbe(*std::move(probe))) : probe.error();
}

void Session::graph_evicted(std::uint64_t key) {
    for_known_probes([&](cudagraph::GraphProbes& probes) { probes.evicted(key); });
}

cudagraph::GraphLedger& Session::graph_ledger() { return probes(cudagraph::GraphApi::cuda).ledger(); }

void Session::graph_dropped(std::uint64_t key) { (void)probes(cudagraph::GraphApi::cuda).dropped(key); }

void Session::before_fork() noexcept {
    mutex_.lock();
    if (drain_ != nullptr) {
        drain_->before_fork();
    }
}

void Session::in_parent() noexcept {
    if (drain_ != nullptr) {
        drain_->after_fork(false);
    }
    mutex_.unlock();
}

// Allocates and frees nothing unless the child records: another thread of the parent may have been inside the allocator,
// and not every allocator mends its locks in a child (AddressSanitizer's does not).
void Session::in_child() noexcept {
    const bool recorded = recorder_.enabled();
    RecorderAccess::set_enabled(recorder_, false);
    RecorderAccess::connect_tensors(recorder_, nullptr);
    (void)tensors_.release(); // its locks may be held by threads that do not exist here, its devices are the parent's
    for (std::atomic<cudagraph::GraphProbes*>& of_api : probes_) {
        if (cudagraph::GraphProbes* const probes = of_api.exchange(nullptr, std::memory_order_relaxed);
            probes != nullptr) {
            probes->abandon(); // its threads and the device's context are the parent's: it is left where it is
        }
    }
    if (drain_ != nullptr) {
        drain_->after_fork(true);
        forget_parent();
        if (config_.follow_fork) {
            if (!recorded) {
                // off as in the parent: enable() opens a recording of its own
            } else if (Status status = open_locked(); status.ok()) {
                RecorderAccess::set_enabled(recorder_, true);
            } else {
                status_ = status;
                diagnose(status.error().message);
            }
        } else {
            std::swap(status_, status_in_child_);
        }
    }
    mutex_.unlock();
}

void Session::forget_parent() noexcept {
    // The drain thread, the rings and the file belong to the parent. Nothing here may be destroyed in the usual way:
    // that would join a thread that does not exist and finish a file that is not ours.
    drain_->abandon();
    drain_.reset();
    writer_.release()->forget();
    (void)rings_.release();
    RecorderAccess::connect(recorder_, nullptr);
    path_.clear();
}

} // namespace plumb
