// SPDX-License-Identifier: Apache-2.0
// One open recording: its rings, file and drain, the tensors checked into it, and what reset() cut off. Opened once and
// closed once; what was recorded can be read afterwards.
// Owned by a Session. A forked child abandons it as a whole: see abandon().
// Thread rule: one function at a time (the Session's mutex). The drain may be flushed without.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "asking/analysis_table.hpp"
#include "drain/drain.hpp"
#include "fingerprint/tensor_watch.hpp"
#include "metrics/metrics.hpp"
#include "plumb/profiler.hpp"
#include "record/ring_set.hpp"
#include "recording/writer.hpp"

namespace plumb::session {

class Run {
  public:
    using Diagnose = std::function<void(const std::string&)>;
    /// What is known before the recording begins.
    struct Start {
        const std::vector<std::pair<std::string, std::string>>& descriptions;
        const std::vector<recording::KernelInfo>& kernels;
        const std::vector<drain::DeviceFeed*>& feeds;
    };

    /// All outlive the run.
    Run(Recorder& recorder, const Config& config, Diagnose diagnose);
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    /// Error: nothing is open, and nothing is left behind.
    Status open(const Start& start);
    /// Writes what is left. Rings and recorder stay connected: a thread may be in the middle of a scope.
    /// REQUIRES: it is open; `feeds` are all that were added.
    Status close(const std::vector<drain::DeviceFeed*>& feeds);
    [[nodiscard]] bool is_open() const noexcept { return drain_ != nullptr; }
    /// Empty: in memory, or never opened.
    [[nodiscard]] std::string path() const { return writer_ != nullptr ? path_ : std::string(); }
    /// Null: it is not open. Shared with flush(), which waits without the Session's lock.
    [[nodiscard]] const std::shared_ptr<drain::Drain>& drain() const noexcept { return drain_; }

    /// REQUIRES of both: it is open.
    Queue add_queue(QueueTimer& timer, const std::string& name);
    void reset();

    /// All that is in the recording, for the analysis to read; flush the drain before. Error not_found: it was never open.
    Result<asking::LiveRecording> live();
    [[nodiscard]] static Error never_open();

    void before_fork() noexcept;
    void in_parent() noexcept;
    /// In a forked child: drain thread, rings and file are the parent's. Nothing here may be destroyed in the usual way:
    /// that would join a thread that does not exist, take locks that such a thread holds, and finish a file that is not
    /// ours. Allocates and frees nothing. True: it was open, and the owner lets go of it without destroying it; false: it
    /// was closed, and can still be read.
    [[nodiscard]] bool abandon() noexcept;

  private:
    std::string open_rings();
    Status open_writer(const std::string& ring_reason);
    Status start_drain(const Start& start, const clock::ClockReading& opened);
    void open_metrics(const recording::Metadata& metadata);
    void open_tensors();
    void close_tensors();

    Recorder& recorder_;
    const Config& config_;
    const Diagnose diagnose_;
    std::string path_;
    std::uint64_t recording_id_[2] = {0, 0};
    std::unique_ptr<record::RingSet> rings_;
    std::unique_ptr<metrics::Exporter> metrics_; // null: not asked for, or not to be had; follows writer_
    std::unique_ptr<recording::Writer> writer_;
    std::unique_ptr<base::CounterReader>
        counters_; // null: counters=off, or the reader is the caller's; outlives drain_
    std::shared_ptr<drain::Drain> drain_;
    std::unique_ptr<fingerprint::TensorWatch>
        tensors_;                                // null: tensors=off; stays until we end, as threads may be inside
    std::map<std::uint32_t, std::uint64_t> cut_; // track -> first sequence that counts
    recording::Counters cleared_;                // what the last reset() cleared
};

} // namespace plumb::session
