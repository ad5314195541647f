// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_builder.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/loss_note.hpp"
#include "analysis/missing_bricks.hpp"
#include "analysis/path_graph.hpp"
#include "analysis/path_step.hpp"
#include "analysis/roofline.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

constexpr std::size_t rows_with_gain = 16; // each costs a pass over the graph
constexpr std::size_t most_kernels = 10;

std::vector<PathRow> rows_of(const ExecGraph& graph, const PathAnalysis& analysis,
                             const std::set<std::uint32_t>& not_waited_for) {
    struct Collected {
        PathRow row;
        NodeId first = no_node; // of the row's nodes
        bool unknown = false;   // some of them on a thread that something may have waited for
    };
    std::unordered_map<std::uint64_t, std::size_t> place;
    std::vector<Collected> collected;
    std::vector<bool> on_path(graph.size(), false);
    for (const NodeId id : analysis.path) {
        on_path[id] = true;
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
        const GraphNode& node = graph[id];
        if (node.container || !node.timed) { // its time is that of others
            continue;
        }
        const std::uint64_t key =
            (std::uint64_t{node.name} << 8) | (static_cast<std::uint64_t>(node.kind) << 1) | (node.device ? 1u : 0u);
        const auto [found, fresh] = place.emplace(key, collected.size());
        const auto slack = static_cast<double>(analysis.slack_ns[id]);
        if (fresh) {
            Collected& made = collected.emplace_back();
            made.first = id;
            made.row.name = graph.name_of(id);
            made.row.kind = node.kind;
            made.row.device = node.device;
            made.row.slack_ns = slack;
        }
        PathRow& row = collected[found->second].row;
        collected[found->second].unknown |= not_waited_for.contains(node.track);
        ++row.count;
        row.on_path += on_path[id] ? 1 : 0;
        row.total_ns += static_cast<double>(node.duration_ns);
        row.path_ns += on_path[id] ? static_cast<double>(node.duration_ns) : 0;
        row.slack_ns = std::min(row.slack_ns, slack);
    }
    std::stable_sort(collected.begin(), collected.end(), [](const Collected& a, const Collected& b) {
        return std::tuple(-a.row.path_ns, a.row.slack_ns, -a.row.total_ns) <
               std::tuple(-b.row.path_ns, b.row.slack_ns, -b.row.total_ns);
    });
    std::vector<PathRow> rows;
    for (std::size_t i = 0; i < collected.size(); ++i) {
        PathRow& row = collected[i].row;
        row.gain_ns = collected[i].unknown ? stats::absent("nothing says what waited for its thread")
                      : row.path_ns == 0   ? stats::measured(0)
                      : i < rows_with_gain ? stats::measured(static_cast<double>(
                                                 analysis.length_ns - graph.length_without(graph[collected[i].first])))
                                           : stats::absent("only worked out for the 16 that hold most of the path");
        rows.push_back(std::move(row));
    }
    return rows;
}

/// What code hashes stand for.
class KernelNames {
  public:
    explicit KernelNames(const std::vector<recording::KernelInfo>& kernels) {
        for (const recording::KernelInfo& kernel : kernels) {
            by_hash_.emplace(kernel.code_hash, &kernel);
        }
    }

    /// Of the kernel of that name; where a module has one entry only, of that one. Empty: not known, or not surely.
    [[nodiscard]] std::string file_of(const ExecGraph& graph, NodeId id) const {
        const LaunchShape* shape = graph.launch_of(id);
        if (shape == nullptr || shape->code_hash == 0) {
            return {};
        }
        const auto [first, last] = by_hash_.equal_range(shape->code_hash);
        const recording::KernelInfo* found = nullptr;
        std::size_t of_name = 0;
        for (auto entry = first; entry != last; ++entry) {
            if (entry->second->name == graph.name_of(id)) {
                found = entry->second;
                ++of_name;
            }
        }
        if (of_name == 0 && std::distance(first, last) == 1) {
            return first->second->file;
        }
        return of_name == 1 ? found->file : std::string();
    }

  private:
    std::multimap<std::uint64_t, const recording::KernelInfo*> by_hash_;
};

/// Of what was recorded and of captured graphs, which are told apart, and of the scopes of queues.
std::vector<KernelRow> kernel_rows(const PathGraph& graph) {
    std::map<PathGraph::KernelPlace, KernelRow> rows; // what is in no layer comes first
    const auto row_of = [&](const PathGraph::KernelPlace& place) -> KernelRow& {
        KernelRow& row = rows[place];
        row.layer = place.first;
        row.name = place.second;
        return row;
    };
    const auto add = [](KernelRow& row, std::uint64_t count) {
        row.kernels = stats::measured(row.kernels.value.value_or(0) + static_cast<double>(count));
    };
    for (const auto& [place, count] : graph.device_scopes()) {
        row_of(place).device_scopes = count;
    }
    for (const auto& [place, count] : graph.kernels()) {
        add(row_of(place), count);
    }
    for (const auto* captured : {&graph.captured_kernels(), &graph.captured_nodes()}) {
        for (const auto& [place, count] : *captured) {
            KernelRow& row = row_of(place);
            add(row, count);
            row.in_graphs += count;
        }
    }
    std::vector<KernelRow> result;
    for (auto& [place, row] : rows) {
        if (!row.kernels.value) {
            row.kernels = stats::absent("nobody recorded the kernels of this scope");
        }
        result.push_back(std::move(row));
    }
    return result;
}

void add_step(PathReport& report, const PathStep& step) {
    report.step = step.step.id;
    report.phase = step.step.phase;
    report.candidates = step.candidates;
    report.host_ns = static_cast<double>(step.step.host_end_ns - step.step.begin_ns);
    report.tokens = std::uint64_t{step.step.prefill_tokens} + step.step.decode_tokens;
    if (step.only_timed) {
        report.notes.push_back("The device was timed in some steps only: the median is taken of those.");
    } else if (step.step.left_out) {
        report.notes.push_back("Profiling made this step different (sampled): its length is not that of the others.");
    }
}

/// By the host, and by the device inside captured graphs.
void add_launches(PathReport& report, const PathGraph& graph) {
    report.host_launches = graph.launches();
    report.graph_launches = graph.graphs_launched();
    for (const auto& [place, count] : graph.captured_kernels()) {
        report.graph_kernels += count;
    }
    report.launches = report.host_launches + report.graph_kernels;
    const auto per_token = [&report](std::uint64_t count) {
        return report.tokens == 0 ? stats::absent("the step does not say how many tokens it had")
                                  : stats::measured(static_cast<double>(count) / static_cast<double>(report.tokens));
    };
    report.launches_per_token = per_token(report.launches);
    report.host_launches_per_token = per_token(report.host_launches);
}

/// Share of the roofline of the place where it ran.
Figure roofline_share(const GraphNode& node, const LaunchShape* shape, const recording::RunFacts& facts,
                      const std::vector<Peaks>& peaks, const PathGraph::Origin& origin) {
    RoofInput work;
    work.f32_only = is_f32_model(facts.descriptions);
    if (shape != nullptr && !std::isnan(shape->bytes)) {
        work.bytes = shape->bytes;
    }
    if (shape != nullptr && !std::isnan(shape->flops)) {
        work.flops = shape->flops;
    }
    work.duration_ns = static_cast<double>(node.duration_ns);
    return roofline(work, peaks_of(peaks, node.device, origin.source, origin.place)).share;
}

std::vector<SlowKernel> slowest_kernels(const ExecGraph& graph, const KernelNames& names,
                                        const recording::RunFacts& facts,
                                        const std::vector<PathGraph::Origin>& origins) {
    const std::vector<Peaks> peaks = peaks_of_run(facts);
    std::vector<SlowKernel> rows;
    for (const NodeId id : graph.slowest_kernels(most_kernels)) {
        SlowKernel row;
        row.node = id;
        row.file = names.file_of(graph, id);
        row.roofline_share = roofline_share(graph[id], graph.launch_of(id), facts, peaks, origins[graph[id].track]);
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<RecordedKernel> recorded_kernels(const ExecGraph& graph, const KernelNames& names) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, RecordedKernel> by_name;
    for (NodeId id = 0; id < graph.size(); ++id) {
        if (graph[id].kind != NodeKind::kernel) {
            continue;
        }
        const LaunchShape* shape = graph.launch_of(id);
        const std::uint64_t hash = shape == nullptr ? 0 : shape->code_hash;
        RecordedKernel& row = by_name[{graph[id].name, hash}];
        if (row.launches++ == 0) {
            row.name = graph.name_of(id);
            row.code_hash = hash;
            row.file = names.file_of(graph, id);
        }
    }
    std::vector<RecordedKernel> rows;
    for (auto& [key, row] : by_name) {
        rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const RecordedKernel& a, const RecordedKernel& b) { return a.launches > b.launches; });
    return rows;
}

Status check_options(const PathOptions& options) {
    if (options.window_ns < 0) {
        return Error{ErrorCode::invalid_argument, "the window for transfers is negative; give it in us from 0 on"};
    }
    return {};
}

} // namespace

Result<PathReport> PathReader::take() const {
    if (Status valid = check_options(options_); !valid.ok()) {
        return valid.error();
    }
    if (Status found = status(); !found.ok()) {
        return found.error();
    }
    PathReport report;
    report.notes = facts_.notes;
    add_loss_note(lost_of(facts_), report.notes);
    add_step(report, step());
    std::optional<PathGraph> made(std::in_place, facts_, step());
    Result<ExecGraph> built = made->build();
    if (!built.ok() && !made->ordered_by_time()) { // the edges of a graph may contradict what else is known
        made.emplace(facts_, step(), PathGraph::ReplayOrder::time);
        built = made->build();
        report.notes.emplace_back(
            "The edges of captured graphs contradict the rest: their scopes are in order of time.");
    }
    if (!built.ok()) {
        return built.error();
    }
    PathGraph& graph = *made;
    report.graph = std::move(*built);
    report.analysis = report.graph.analyse();
    report.span_ns = static_cast<double>(graph.span_ns());
    report.tracks = graph.tracks();
    report.notes.insert(report.notes.end(), graph.notes().begin(), graph.notes().end());
    const std::vector<std::string> missing = missing_bricks(report.graph);
    report.notes.insert(report.notes.end(), missing.begin(), missing.end());
    report.rows = rows_of(report.graph, report.analysis, graph.not_waited_for());
    add_launches(report, graph);
    report.kernels = kernel_rows(graph);
    const KernelNames names(facts_.kernels);
    report.slowest = slowest_kernels(report.graph, names, facts_, graph.origins());
    report.recorded = recorded_kernels(report.graph, names);
    report.window_ns = static_cast<double>(options_.window_ns);
    report.ping_pong = report.graph.ping_pong(options_.window_ns);
    return report;
}

Result<PathReport> build_path(const recording::RecordedRun& run, const PathOptions& options) {
    if (Status valid = check_options(options); !valid.ok()) {
        return valid.error();
    }
    PathReader reader(*run.facts, options);
    if (Status read = read::read(run, {&reader}); !read.ok()) {
        return read.error();
    }
    return reader.take();
}

} // namespace plumb::analysis
