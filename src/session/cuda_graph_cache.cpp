// SPDX-License-Identifier: Apache-2.0
// How a CudaGraphCache is joined to its profiler.
#include <utility>

#include "base/os.hpp"
#include "cudagraph/graph_cache.hpp"
#include "plumb/profiler.hpp"
#include "recording/store.hpp"
#include "session/session.hpp"

namespace plumb {

namespace {

std::string profile_path(const Profiler* profiler) {
    const std::string path = profiler != nullptr ? profiler->path() : "";
    return path.empty() ? "plumb-replays-" + std::to_string(base::process_id()) + ".jsonl"
                        : path + recording::replays_beside;
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

CudaGraphCache::CudaGraphCache(Profiler* profiler, CudaGraphOptions options) {
    const Result<backends::cuda::Driver>& driver = backends::cuda::driver();
    if (options.profile_path.empty()) {
        options.profile_path = profile_path(profiler);
    }
    cudagraph::GraphHost* const graph_host = profiler != nullptr ? profiler->session_ : nullptr;
    const HostClock* const clock = profiler != nullptr ? profiler->config().clock : nullptr;
    cache_ = new cudagraph::Cache(driver ? &*driver : nullptr, driver ? Error{} : driver.error(), std::move(options),
                                  graph_host, clock);
}

} // namespace plumb
