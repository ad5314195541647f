// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include <cstdio>

#include "base/os.hpp"
#include "record/nvtx_out.hpp"
#include "record/recorder_access.hpp"
#include "recording/format.hpp"
#include "recording/redact.hpp"
#include "recording/user_notes.hpp"
#include "session/metadata.hpp"

namespace plumb {

Session::Session(Recorder& recorder, Config config) : recorder_(recorder), config_(std::move(config)) {
    (void)base::pin_own_module(); // our thread outlives a dlclose of the library that holds it
    RecorderAccess::prepare(recorder_, session::stamps_for(config_));
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
    return run_ != nullptr ? run_->path() : "";
}

Status Session::enable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || !status_.ok()) {
        return closed_ ? Status(Error{ErrorCode::invalid_argument, "the profiler was closed; make a new one"})
                       : status_;
    }
    const bool resumed = open_run() != nullptr && !recorder_.enabled();
    if (open_run() == nullptr) {
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
    if (Status told = config_.nvtx ? record::tell_nvtx(recorder_) : Status(); !told.ok()) {
        diagnose(told.error().message); // the recording goes on without
    }
    run_ =
        std::make_unique<session::Run>(recorder_, config_, [this](const std::string& sentence) { diagnose(sentence); });
    return run_->open({descriptions_.all(), kernels_.all(), feeds()});
}

Status Session::close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    RecorderAccess::set_enabled(recorder_, false);
    closed_ = true;
    if (open_run() == nullptr) {
        return status_;
    }
    publish_graphs();
    return run_->close(feeds());
}

Status Session::flush(std::chrono::milliseconds timeout) {
    std::shared_ptr<drain::Drain> drain;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (open_run() == nullptr) {
            return status_;
        }
        publish_graphs();
        drain = run_->drain();
    }
    return drain->flush(timeout); // nobody else waits for our timeout
}

Result<asking::LiveRecording> Session::live() {
    std::shared_ptr<drain::Drain> drain;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        publish_graphs();
        drain = open_run() != nullptr ? run_->drain() : nullptr;
    }
    if (drain != nullptr) {
        if (Status status = drain->flush(std::chrono::seconds(5)); !status.ok()) {
            return status.error();
        }
    }
    const std::lock_guard<std::mutex> lock(mutex_); // it may have been closed meanwhile: all the better
    return run_ != nullptr ? run_->live() : Result<asking::LiveRecording>(session::Run::never_open());
}

// The analysis is asked for first: where there is none, nothing is made to flush.
Result<Report> Session::snapshot(const ReportOptions& options) {
    const Result<asking::AnalysisPointer> analysis = asking::analysis();
    if (!analysis.ok()) {
        return analysis.error();
    }
    const Result<asking::LiveRecording> recorded = live();
    return recorded.ok() ? (*analysis)->report_of_live(*recorded, options) : recorded.error();
}

Result<Answer> Session::ask(std::string_view name, const OptionValues& options) {
    const Result<asking::AnalysisPointer> analysis = asking::analysis();
    if (!analysis.ok()) {
        return analysis.error();
    }
    const Result<asking::LiveRecording> recorded = live();
    return recorded.ok() ? (*analysis)->ask_of_live(*recorded, name, options) : Result<Answer>(recorded.error());
}

void Session::reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (session::Run* const run = open_run(); run != nullptr) {
        run->reset();
        leave_mark(Mark::reset);
    }
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
    const std::string told = config_.redact ? recording::redacted_description(value) : value;
    const std::lock_guard<std::mutex> lock(mutex_);
    descriptions_.set({key, told});
    if (session::Run* const run = open_run(); run != nullptr) {
        run->drain()->describe(key, told);
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
    if (added.fresh != nullptr && open_run() != nullptr) {
        run_->drain()->add_kernel(*added.fresh);
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
    describe(recording::user_note_key + std::to_string(number), text);
}

Queue Session::add_queue(QueueTimer& timer, const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_run() != nullptr ? run_->add_queue(timer, name) : Queue{};
}

void Session::before_fork() noexcept {
    mutex_.lock();
    if (run_ != nullptr) {
        run_->before_fork();
    }
}

void Session::in_parent() noexcept {
    if (run_ != nullptr) {
        run_->in_parent();
    }
    mutex_.unlock();
}

// Allocates and frees nothing unless the child records: another thread of the parent may have been inside the allocator,
// and not every allocator mends its locks in a child (AddressSanitizer's does not).
void Session::in_child() noexcept {
    const bool recorded = recorder_.enabled();
    RecorderAccess::set_enabled(recorder_, false);
    for (std::atomic<cudagraph::GraphProbes*>& of_api : probes_) {
        if (cudagraph::GraphProbes* const probes = of_api.exchange(nullptr, std::memory_order_relaxed);
            probes != nullptr) {
            probes->abandon(); // its threads and the device's context are the parent's: it is left where it is
        }
    }
    if (run_ != nullptr && run_->abandon()) {
        (void)run_.release(); // left where it is
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

} // namespace plumb
