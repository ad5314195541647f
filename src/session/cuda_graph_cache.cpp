// SPDX-License-Identifier: Apache-2.0
// How a CudaGraphCache is joined to its profiler.
#include <memory>
#include <utility>

#include "base/os.hpp"
#include "cudagraph/graph_cache.hpp"
#include "cudagraph/row_access.hpp"
#include "plumb/session.hpp"

namespace plumb {

namespace {

class ProfilerHost final : public cudagraph::GraphHost {
  public:
    explicit ProfilerHost(Profiler& profiler) : profiler_(profiler) {}
    Result<GraphProbe> captured(std::uint64_t key, CUgraph_st* graph) override {
        return profiler_.graph_captured(key, graph);
    }
    void evicted(std::uint64_t key) override { profiler_.graph_evicted(key); }
    void update(std::uint64_t key, const std::function<void(recording::GraphInfo&)>& change) override {
        cudagraph::RowAccess::change(profiler_, key, change);
    }

  private:
    Profiler& profiler_;
};

std::string profile_path(const Profiler* profiler) {
    const std::string recording = profiler != nullptr ? profiler->path() : "";
    return recording.empty() ? "plumb-replays-" + std::to_string(base::process_id()) + ".jsonl"
                             : recording + ".replays.jsonl";
}

std::unique_ptr<cudagraph::Cache> make_cache(Profiler* profiler, CudaGraphOptions options) {
    const Result<backends::cuda::Driver>& driver = backends::cuda::driver();
    std::unique_ptr<cudagraph::GraphHost> host;
    if (profiler != nullptr) {
        host = std::make_unique<ProfilerHost>(*profiler);
    }
    if (options.profile_path.empty()) {
        options.profile_path = profile_path(profiler);
    }
    const HostClock* const clock = profiler != nullptr ? profiler->config().clock : nullptr;
    return std::make_unique<cudagraph::Cache>(driver ? &*driver : nullptr, driver ? Error{} : driver.error(),
                                              std::move(options), std::move(host), clock);
}

} // namespace

CudaGraphOptions CudaGraphOptions::from_config(const Config& config) {
    CudaGraphOptions options;
    options.upload_each = config.graph.upload_each;
    options.sync = config.graph.sync;
    options.profile_every = config.graph.profile;
    return options;
}

CudaGraphCache::CudaGraphCache(Profiler* profiler)
    : CudaGraphCache(profiler,
                     profiler != nullptr ? CudaGraphOptions::from_config(profiler->config()) : CudaGraphOptions{}) {}

CudaGraphCache::CudaGraphCache(Profiler* profiler, CudaGraphOptions options)
    : cache_(make_cache(profiler, std::move(options))) {}

} // namespace plumb
