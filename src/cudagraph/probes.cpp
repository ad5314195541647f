// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/probes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "backends/cuda/capture_notes.hpp"
#include "backends/hip/driver.hpp"
#include "cudagraph/graph_content.hpp"
#include "cudagraph/graph_entry.hpp"
#include "cudagraph/named_scopes.hpp"
#include "cudagraph/probes_state.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

/// Notes that tell something, with parents and streams as the node map wants them. Frontiers become indexes.
std::vector<MappedScope> map_scopes(std::vector<ScopeNote>& notes, const GraphShape& shape) {
    std::vector<MappedScope> scopes;
    std::vector<ScopeNote> kept;
    std::vector<std::uint32_t> index_of(notes.size(), no_index); // of the kept one: itself, or what it was inside
    std::map<Stream, std::uint32_t> streams;
    const auto nodes_of = [&](const std::vector<GraphNode>& frontier, bool& known) {
        std::vector<std::uint32_t> nodes;
        for (const GraphNode node : frontier) {
            const auto found = shape.index_of.find(node);
            known &= found != shape.index_of.end();
            if (found != shape.index_of.end()) {
                nodes.push_back(found->second);
            }
        }
        return nodes;
    };
    for (std::size_t i = 0; i < notes.size(); ++i) {
        ScopeNote& note = notes[i];
        MappedScope scope;
        scope.parent = note.parent < i ? index_of[note.parent] : no_index;
        index_of[i] = scope.parent;
        bool known = note.ended && !note.lossy;
        scope.begin = nodes_of(note.begin_frontier, known);
        scope.end = nodes_of(note.end_frontier, known);
        if (!known) {
            continue;
        }
        scope.stream = streams.emplace(note.stream, static_cast<std::uint32_t>(streams.size())).first->second;
        index_of[i] = static_cast<std::uint32_t>(scopes.size());
        scopes.push_back(std::move(scope));
        note.begin_frontier.clear();
        note.end_frontier.clear();
        kept.push_back(std::move(note));
    }
    notes = std::move(kept);
    return scopes;
}

std::vector<recording::GraphSite> sites_of(const std::vector<ScopeNote>& notes, const std::vector<MappedScope>& scopes,
                                           const NodeMap& map) {
    std::vector<recording::GraphSite> sites(notes.size());
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint32_t> seen;
    for (std::size_t i = 0; i < notes.size(); ++i) {
        sites[i].name = notes[i].label.name;
        sites[i].layer_plus_one = notes[i].label.layer_plus_one;
        sites[i].lap = notes[i].label.lap;
        sites[i].occurrence = seen[{sites[i].name, sites[i].layer_plus_one}]++;
        if (scopes[i].parent != no_index) {
            sites[scopes[i].parent].leaf = false;
        }
    }
    for (const std::uint32_t owner : map.owner) {
        if (owner != no_index) {
            ++sites[owner].nodes;
        }
    }
    return sites;
}

std::vector<recording::NamedCount> unattributed_of(const GraphShape& shape, const NodeMap& map) {
    std::map<std::string, std::uint64_t> counts;
    for (std::size_t i = 0; i < map.owner.size(); ++i) {
        if (map.owner[i] == no_index) {
            ++counts[shape.names[shape.name_of[i]]];
        }
    }
    return {counts.begin(), counts.end()};
}

/// Those that lie in this graph: an older one may have had its handle.
std::shared_ptr<fingerprint::CapturedTensors> checks_of(const Recorder& recorder, Graph graph, std::uint64_t key,
                                                        const GraphShape& shape) {
    std::shared_ptr<fingerprint::CapturedTensors> checks = fingerprint::find_captured_tensors(&recorder, graph);
    if (checks == nullptr) {
        return nullptr;
    }
    for (const GraphNode node : checks->nodes()) {
        const auto found = shape.index_of.find(node);
        if (found == shape.index_of.end() || shape.types[found->second] != NodeType::kernel) {
            return nullptr;
        }
    }
    checks->set_key(key);
    return checks;
}

/// Our own clone, with its nodes in the order of the shape. Empty and a reason where the driver will not.
std::string clone_source(Timeline& timeline, Graph graph, TwinSource& source) {
    const Driver& driver = timeline.driver();
    if (!source.shape.not_cloneable.empty()) {
        return source.shape.not_cloneable;
    }
    if (source.shape.nodes.empty()) {
        return "n/a (no nodes)";
    }
    CuResult result = driver.graph_clone(&source.graph, graph);
    if (result != CuResult::success) {
        source.graph = nullptr;
        return "n/a (cannot be cloned): " + timeline.failed(result, "cuGraphClone").message;
    }
    source.nodes.resize(source.shape.nodes.size());
    for (std::size_t i = 0; i < source.nodes.size() && result == CuResult::success; ++i) {
        result = driver.graph_node_find_in_clone(&source.nodes[i], source.shape.nodes[i], source.graph);
    }
    if (result != CuResult::success) {
        const std::string why = timeline.failed(result, "cuGraphNodeFindInClone").message;
        static_cast<void>(driver.graph_destroy(source.graph));
        source.graph = nullptr;
        return "n/a (cannot be cloned): " + why;
    }
    return "";
}

/// A thread that captures for several devices has any of them current.
backends::cuda::Context context_of(const CapturedGraph& captured) {
    const bool noted = !captured.notes.empty() && captured.notes.front().context != nullptr;
    return noted ? captured.notes.front().context : captured.source.shape.context;
}

bool several_contexts(const std::vector<ScopeNote>& notes) {
    return std::any_of(notes.begin(), notes.end(),
                       [&](const ScopeNote& note) { return note.context != notes.front().context; });
}

const Result<Driver>& driver_of(GraphApi api) {
    return api == GraphApi::hip ? backends::hip::driver() : backends::cuda::driver();
}

constexpr std::chrono::milliseconds longest_eviction{1000};

} // namespace

GraphProbes::GraphProbes(Recorder& recorder, ProbeOptions options)
    : ledger_(std::make_shared<GraphLedger>(options.max_rows)) {
    const Result<Driver>& loaded = driver_of(options.api);
    if (loaded) {
        state_ = std::make_shared<ProbesState>(recorder, options, *loaded, ledger_);
    } else {
        missing_ = loaded.error();
    }
}

GraphProbes::~GraphProbes() {
    if (state_ != nullptr) {
        state_->close();
    }
}

Result<std::shared_ptr<Probe>> GraphProbes::captured(std::uint64_t key, CUgraph_st* graph) {
    if (state_ == nullptr) {
        return missing_;
    }
    if (!state_->driver().no_graphs.empty()) {
        return Error{ErrorCode::unsupported, state_->driver().no_graphs};
    }
    if (graph == nullptr) {
        return Error{ErrorCode::invalid_argument, std::string("graph_captured was given no graph; pass the one that ") +
                                                      state_->driver().vendor->symbol_of("cuStreamEndCapture") +
                                                      " returned"};
    }
    if (state_->all_lost()) {
        return state_->status().error();
    }
    CapturedGraph captured;
    captured.key = key;
    captured.account = ledger_->account(key);
    if (!state_->recording() || !captured.account->recorded()) {
        captured.no_twin = state_->recording() ? "n/a (too many graph keys)" : "n/a (captured while recording was off)";
        captured.capture = captured.account->captured();
        captured.account->change_of(captured.capture,
                                    [&](recording::GraphInfo& info) { info.twin_reason = captured.no_twin; });
    } else if (Status status = look_at(graph, captured); !status) {
        return status.error();
    }
    auto entry = std::make_shared<GraphEntry>(state_, std::move(captured));
    state_->put(entry);
    return std::static_pointer_cast<Probe>(entry);
}

Status GraphProbes::look_at(CUgraph_st* graph, CapturedGraph& captured) {
    const RelaxedCapture relaxed(state_->driver());
    captured.notes = take_capture_notes(&state_->recorder(), graph);
    Result<GraphShape> shape = read_shape(state_->driver(), graph);
    if (!shape) {
        return shape.error();
    }
    TwinSource& source = captured.source;
    source.shape = std::move(*shape);
    captured.checks = checks_of(state_->recorder(), graph, captured.key, source.shape);
    std::vector<MappedScope> scopes = map_scopes(captured.notes, source.shape);
    std::string told_by;
    if (scopes.empty() && state_->options().naming != nullptr) {
        const Result<recording::NameNodes> naming = state_->options().naming();
        NamedScopes named;
        if (naming) {
            named = scopes_by_name(source.shape, *naming, state_->recorder());
        } else {
            named.told_by = "n/a: " + naming.error().message;
        }
        captured.notes = std::move(named.notes);
        scopes = std::move(named.scopes);
        told_by = std::move(named.told_by);
    }
    source.map = map_nodes(source.shape, scopes);
    for (std::size_t i = 0; i < scopes.size(); ++i) {
        captured.places.push_back(ScopePlaces{source.map.begin_place[i], source.map.end_place[i], scopes[i].parent,
                                              captured.notes[i].label.layer_plus_one});
    }
    captured.leaves_beside_programmatic =
        std::any_of(source.shape.edges.begin(), source.shape.edges.end(),
                    [](const auto& edge) { return !edge.full; }) &&
        std::any_of(source.map.places.begin(), source.map.places.end(), [](const auto& at) { return !at.in_line; });
    captured.capture = captured.account->captured(
        source.shape, {sites_of(captured.notes, scopes, source.map), unattributed_of(source.shape, source.map),
                       content_of(source.shape, source.map), std::move(told_by)});
    if (state_->options().kind == ProbeKind::off) {
        captured.no_twin = "n/a (graph.stamps=off)";
    } else if (several_contexts(captured.notes)) {
        captured.no_twin = "n/a (captured on streams of several contexts)";
    } else if (Result<std::shared_ptr<GraphDevice>> device = state_->device_of(context_of(captured)); device) {
        captured.device = *device;
        // Here, on the engine's thread and before the first replay: what may wait for the device is not left to ours.
        (*device)->prepare(state_->options().kind, Twin::ring_bytes(source.map.places.size()),
                           (*device)->waiting.load(std::memory_order_relaxed) + 1);
        captured.no_twin = clone_source(captured.device->timeline(), graph, source);
    } else {
        captured.no_twin = "n/a: " + device.error().message;
    }
    captured.account->change_of(captured.capture,
                                [&](recording::GraphInfo& info) { info.twin_reason = captured.no_twin; });
    return {};
}

std::shared_ptr<GraphEntry> GraphProbes::take(std::uint64_t key) {
    std::shared_ptr<GraphEntry> entry = state_ != nullptr ? state_->remove(key) : nullptr;
    if (entry != nullptr) {
        ledger_->account(key)->dropped();
    }
    return entry;
}

bool GraphProbes::dropped(std::uint64_t key) { return take(key) != nullptr; }

void GraphProbes::evicted(std::uint64_t key) {
    if (const std::shared_ptr<GraphEntry> entry = take(key); entry != nullptr) {
        ledger_->account(key)->change([](recording::GraphInfo& info) { ++info.evictions; });
        static_cast<void>(state_->let_go({entry}, ProbesState::Flight::leave, longest_eviction));
    }
}

Status GraphProbes::evicted_all(std::chrono::milliseconds timeout) {
    if (state_ == nullptr) {
        return {};
    }
    for (const std::uint64_t key : state_->keys()) {
        if (take(key) != nullptr) {
            ledger_->account(key)->change([](recording::GraphInfo& info) { ++info.evictions; });
        }
    }
    const std::size_t left = state_->let_go(state_->retired(), ProbesState::Flight::wait, timeout);
    return left == 0
               ? Status()
               : Error{ErrorCode::pending,
                       std::to_string(left) + (left == 1 ? " captured graph is" : " captured graphs are") +
                           " still held, most likely by a replay in flight; let the device finish, and ask again"};
}

void GraphProbes::collect(drain::FeedRound& round) {
    const bool all = publish_all_.exchange(false, std::memory_order_relaxed);
    if (state_ != nullptr) {
        state_->collect(round, all);
    } else {
        ledger_->collect(round.graphs, clock::monotonic_ns(), all);
    }
}

void GraphProbes::publish_all() noexcept { publish_all_.store(true, std::memory_order_relaxed); }

std::uint64_t GraphProbes::unresolved() const noexcept {
    return state_ != nullptr ? state_->unresolved.load(std::memory_order_relaxed) : 0;
}

bool GraphProbes::lost() const noexcept { return state_ != nullptr && state_->lost(); }

Status GraphProbes::status() const { return state_ != nullptr ? state_->status() : Status(missing_); }

bool GraphProbes::settle(std::chrono::milliseconds timeout) { return state_ == nullptr || state_->settle(timeout); }

void GraphProbes::abandon() noexcept {
    if (state_ != nullptr) {
        state_->abandon();
    }
}

void forget_recorder(const Recorder& recorder) { backends::cuda::drop_capture_notes(&recorder); }

} // namespace plumb::cudagraph
