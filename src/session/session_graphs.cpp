// SPDX-License-Identifier: Apache-2.0
// The captured graphs of a Session: one set of probes, with its ledger, per graph API.
#include "asking/naming.hpp"
#include "session/session.hpp"

namespace plumb {
namespace {

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

} // namespace

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
    options.naming = asking::naming;
    options.host_clock = config_.clock;
    auto made = std::make_unique<cudagraph::GraphProbes>(recorder_, options);
    if (open_run() != nullptr) {
        run_->drain()->add_feed(*made);
    }
    // Release: whoever finds the probes finds them complete.
    probes_[static_cast<std::size_t>(api)].store(made.get(), std::memory_order_release);
    return *made.release();
}

Result<GraphProbe> Session::graph_captured(std::uint64_t key, CUgraph_st* graph) {
    Result<std::shared_ptr<cudagraph::Probe>> probe = probes(cudagraph::GraphApi::cuda).captured(key, graph);
    return probe.ok() ? Result<GraphProbe>(GraphProbe(cudagraph::share(*std::move(probe)))) : probe.error();
}

Result<HipGraphProbe> Session::hip_graph_captured(std::uint64_t key, void* graph) {
    Result<std::shared_ptr<cudagraph::Probe>> probe =
        probes(cudagraph::GraphApi::hip).captured(key, static_cast<CUgraph_st*>(graph));
    return probe.ok() ? Result<HipGraphProbe>(HipGraphProbe(cudagraph::share(*std::move(probe)))) : probe.error();
}

void Session::graph_evicted(std::uint64_t key) {
    for_known_probes([&](cudagraph::GraphProbes& probes) { probes.evicted(key); });
}

Status Session::graphs_evicted_all(std::chrono::milliseconds timeout) {
    Status all;
    for_known_probes([&](cudagraph::GraphProbes& probes) {
        if (Status one = probes.evicted_all(timeout); !one) {
            all = one;
        }
    });
    return all;
}

cudagraph::GraphLedger& Session::graph_ledger() { return probes(cudagraph::GraphApi::cuda).ledger(); }

void Session::graph_dropped(std::uint64_t key) { (void)probes(cudagraph::GraphApi::cuda).dropped(key); }

std::vector<drain::DeviceFeed*> Session::feeds() const {
    std::vector<drain::DeviceFeed*> feeds;
    for_known_probes([&](cudagraph::GraphProbes& probes) { feeds.push_back(&probes); });
    return feeds;
}

/// What captured graphs were counted so far is in the next round.
void Session::publish_graphs() const noexcept {
    for_known_probes([](cudagraph::GraphProbes& probes) { probes.publish_all(); });
}

} // namespace plumb
