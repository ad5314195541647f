// SPDX-License-Identifier: Apache-2.0
// The working half of a Profiler: its settings, its state, and its Run, which the first enable() opens.
// Thread rule: methods from any thread, serialised by its own mutex; in_child() by the fork handler only.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudagraph/graph_host.hpp"
#include "cudagraph/probes.hpp"
#include "plumb/profiler.hpp"
#include "record/thread_registry.hpp"
#include "recording/descriptions.hpp"
#include "session/kernel_registry.hpp"
#include "session/run.hpp"

namespace plumb {

class Session final : public record::ForkListener, public cudagraph::GraphHost {
  public:
    Session(Recorder& recorder, Config config);
    ~Session() override;

    Status enable();
    void disable();
    Status close();
    Status flush(std::chrono::milliseconds timeout);
    Result<Report> snapshot(const ReportOptions& options);
    Result<Answer> ask(std::string_view name, const OptionValues& options);
    void reset();
    void describe(const std::string& key, const std::string& value);
    Result<std::uint64_t> register_kernel(const void* code, std::size_t size, const KernelSource& kernel);
    void note(const std::string& text);
    Queue add_queue(QueueTimer& timer, const std::string& name);
    Result<GraphProbe> graph_captured(std::uint64_t key, CUgraph_st* graph) override;
    Result<HipGraphProbe> hip_graph_captured(std::uint64_t key, void* graph);
    void graph_evicted(std::uint64_t key);
    Status graphs_evicted_all(std::chrono::milliseconds timeout);
    cudagraph::GraphLedger& graph_ledger() override;
    void graph_dropped(std::uint64_t key) override;
    [[nodiscard]] Status status() const;
    [[nodiscard]] const Config& config() const noexcept { return config_; } // never changes
    [[nodiscard]] std::string path() const;
    void fail(const Error& error);
    void before_fork() noexcept override;
    void in_parent() noexcept override;
    void in_child() noexcept override;

  private:
    Status open_locked();
    /// Null: nothing is being recorded. The caller holds the lock.
    [[nodiscard]] session::Run* open_run() const noexcept {
        return run_ != nullptr && run_->is_open() ? run_.get() : nullptr;
    }
    [[nodiscard]] std::vector<drain::DeviceFeed*> feeds() const;
    cudagraph::GraphProbes& probes(cudagraph::GraphApi api);
    // Acquire: pairs with the store in probes().
    [[nodiscard]] cudagraph::GraphProbes* known_probes(cudagraph::GraphApi api) const noexcept {
        return probes_[static_cast<std::size_t>(api)].load(std::memory_order_acquire);
    }
    template <class Use>
    void for_known_probes(Use use) const {
        for (const cudagraph::GraphApi api : {cudagraph::GraphApi::cuda, cudagraph::GraphApi::hip}) {
            if (cudagraph::GraphProbes* const probes = known_probes(api); probes != nullptr) {
                use(*probes);
            }
        }
    }
    void publish_graphs() const noexcept;
    /// What was recorded before the call. The analysis reads it without our lock: that takes seconds.
    Result<asking::LiveRecording> live();
    void leave_mark(Mark mark) noexcept;
    void diagnose(const std::string& sentence) const;

    Recorder& recorder_;
    Config config_;
    mutable std::mutex mutex_;
    Status status_;
    Status status_in_child_ = Error{
        ErrorCode::unavailable, "recording is off in a forked child; say fork=own to give it a recording of its own"};
    std::unique_ptr<session::Run> run_; // null until the first enable(); once closed it can still be read
    // Null: no graph was captured yet; made once. Owned, but found without mutex_: a replay must not wait for a snapshot.
    std::array<std::atomic<cudagraph::GraphProbes*>, 2> probes_{}; // by GraphApi
    recording::Descriptions descriptions_;
    session::KernelRegistry kernels_;
    std::size_t notes_ = 0;
    bool closed_ = false;
};

} // namespace plumb
