// SPDX-License-Identifier: Apache-2.0
#include "answers/timeline/timeline.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/path_builder.hpp"
#include "answers/reading.hpp"

namespace plumb {
namespace {

constexpr std::size_t most_spans = 20'000, most_spans_of_all = 2 * most_spans;
constexpr std::uint32_t not_kept = 0xffffffff;

void sort_by_begin(const ExecGraph& graph, std::vector<NodeId>& nodes) {
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
        return std::tuple(graph[a].begin_ns, -graph[a].duration_ns, a) <
               std::tuple(graph[b].begin_ns, -graph[b].duration_ns, b);
    });
}

std::vector<NodeId> timed_by_begin(const ExecGraph& graph) {
    std::vector<NodeId> timed;
    for (NodeId id = 0; id < graph.size(); ++id) {
        if (graph[id].timed) {
            timed.push_back(id);
        }
    }
    sort_by_begin(graph, timed);
    return timed;
}

/// Leaves the longest, by begin.
void keep(const ExecGraph& graph, std::vector<NodeId>& nodes, std::size_t most) {
    if (nodes.size() <= most) {
        return;
    }
    std::nth_element(
        nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(most), nodes.end(),
        [&](NodeId a, NodeId b) { return std::pair(-graph[a].duration_ns, a) < std::pair(-graph[b].duration_ns, b); });
    nodes.resize(most);
    sort_by_begin(graph, nodes);
}

class TimelineBuilder {
  public:
    TimelineBuilder(const PathReport& path, TimelineStep& out) : path_(path), graph_(path.graph), out_(out) {}

    void build(std::size_t most) {
        std::vector<NodeId> kept = timed_by_begin(graph_);
        out_.left_out = kept.size() - std::min(kept.size(), most);
        out_.untimed = graph_.size() - kept.size();
        index_.assign(graph_.size(), not_kept);
        for (const std::string& name : path_.tracks) {
            out_.lanes.push_back({name, false, 0, 0, {}});
        }
        for (const NodeId id : kept) {
            measure_lane(graph_[id], graph_[kept.front()].begin_ns);
        }
        keep(graph_, kept, most);
        for (std::size_t i = 0; i < kept.size(); ++i) {
            index_[kept[i]] = static_cast<std::uint32_t>(i);
            add(graph_[kept[i]], kept[i]);
        }
        for (const NodeId id : path_.analysis.path) {
            if (index_[id] != not_kept) {
                out_.path.push_back(index_[id]);
            }
        }
        add_arrows();
    }

  private:
    void add(const GraphNode& node, NodeId id) {
        TimelineSpans& spans = out_.spans;
        if (spans.names.empty()) {
            last_ns_ = node.begin_ns;
        }
        const auto [name, fresh] = names_.emplace(node.name, static_cast<std::uint32_t>(out_.names.size()));
        if (fresh) {
            out_.names.push_back(graph_.name_of(id));
        }
        spans.names.push_back(name->second);
        spans.lanes.push_back(node.track);
        spans.layers.push_back(node.layer ? static_cast<std::int64_t>(*node.layer) : -1);
        spans.begins_ns.push_back(node.begin_ns - last_ns_);
        spans.durations_ns.push_back(node.duration_ns);
        const char kind = "slbkto"[static_cast<std::size_t>(node.kind)];
        spans.kinds += node.container ? static_cast<char>(std::toupper(kind)) : kind;
        last_ns_ = node.begin_ns;
    }

    void add_arrows() {
        std::set<std::pair<std::uint32_t, std::uint32_t>> arrows;
        for (std::uint32_t row = 0; row < graph_.rows(); ++row) {
            const NodeId from = graph_.node_of_row(row);
            for (std::uint64_t i = graph_.offsets()[row]; i < graph_.offsets()[row + 1]; ++i) {
                const NodeId to = graph_.node_of_row(graph_.targets()[i]);
                if (graph_[from].track != graph_[to].track && index_[from] != not_kept && index_[to] != not_kept) {
                    arrows.emplace(index_[from], index_[to]);
                }
            }
        }
        for (const auto& [from, to] : arrows) {
            out_.from.push_back(from);
            out_.to.push_back(to);
        }
    }

    /// Of all nodes, by begin.
    void measure_lane(const GraphNode& node, std::int64_t first_ns) {
        while (out_.lanes.size() <= node.track) {
            out_.lanes.push_back({"lane " + std::to_string(out_.lanes.size()), false, 0, 0, {}});
        }
        TimelineLane& lane = out_.lanes[node.track];
        ++lane.spans;
        lane.device = lane.device || node.device;
        if (node.container) {
            return;
        }
        const std::int64_t begin = node.begin_ns - first_ns;
        if (lane.busy.empty() || lane.busy.back().second < begin) {
            lane.busy.emplace_back(begin, begin);
        }
        std::int64_t& end = lane.busy.back().second;
        const std::int64_t until = std::max(end, begin + node.duration_ns);
        lane.busy_ns += static_cast<double>(until - end);
        end = until;
    }

    const PathReport& path_;
    const ExecGraph& graph_;
    TimelineStep& out_;
    std::vector<std::uint32_t> index_; // by node
    std::unordered_map<std::uint32_t, std::uint32_t> names_;
    std::int64_t last_ns_ = 0;
};

} // namespace

TimelineStep timeline_of(const PathReport& path, TimelineChoice choice, std::size_t most) {
    TimelineStep step;
    step.choice = choice;
    step.step = path.step;
    step.phase = path.phase;
    step.span_ns = path.span_ns;
    step.path_ns = static_cast<double>(path.analysis.length_ns);
    step.rows = path.rows;
    step.notes = path.notes;
    TimelineBuilder(path, step).build(most);
    return step;
}

namespace {

struct ChosenStep {
    TimelineChoice choice;
    std::uint32_t place;
    bool extra; // nothing is missing without it
    const analysis::PathReader* path;
};

/// The readers that found a step which none before them found.
Result<std::vector<ChosenStep>> found_by(const std::vector<ChosenStep>& readers) {
    std::vector<ChosenStep> found;
    std::set<std::uint64_t> steps;
    for (const ChosenStep& reader : readers) {
        if (const Status status = reader.path->status(); !status && !reader.extra) {
            return status.error();
        } else if (status && steps.insert(reader.path->step().step.id).second) {
            found.push_back(reader);
        }
    }
    return found;
}

Result<TimelineReport> take(const std::vector<ChosenStep>& readers) {
    const Result<std::vector<ChosenStep>> found = found_by(readers);
    if (!found) {
        return found.error();
    }
    std::vector<std::size_t> spans;
    for (const ChosenStep& reader : *found) {
        spans.push_back(reader.path->step().samples.size() + reader.path->step().nodes.size());
    }
    const std::vector<std::size_t> shares = shares_of_timelines(spans);
    TimelineReport report;
    for (std::size_t i = 0; i < found->size(); ++i) {
        const Result<PathReport> path = (*found)[i].path->take();
        if (!path.ok()) {
            return path.error();
        }
        TimelineStep& made = report.steps.emplace_back(timeline_of(*path, (*found)[i].choice, shares[i]));
        const resolve::ResolvedStep& step = (*found)[i].path->step().step;
        made.place = (*found)[i].place;
        made.period_ns = static_cast<double>(step.end_ns - step.period_begin_ns);
        made.before_ns = static_cast<double>(std::max<std::int64_t>(step.begin_ns - step.period_begin_ns, 0));
    }
    return report;
}

Result<answers::Pending<TimelineReport>> begin(answers::Reading& reading, const TimelineOptions& options) {
    std::vector<ChosenStep> readers;
    const auto join = [&](TimelineChoice choice, std::uint32_t slowest = 0, std::optional<Phase> phase = {}) {
        PathOptions path;
        path.step = options.step;
        path.slowest = slowest;
        path.phase = phase;
        readers.push_back(
            {choice, slowest, phase.has_value(), &reading.join<analysis::PathReader>(reading.facts(), path)});
    };
    if (options.step) {
        join(TimelineChoice::asked);
        return answers::Pending<TimelineReport>([readers] { return take(readers); });
    }
    join(TimelineChoice::median);
    if (!options.slowest) {
        join(TimelineChoice::slowest, 1);
    }
    for (const Phase phase : {Phase::decode, Phase::prefill, Phase::mixed, Phase::none}) {
        for (std::uint32_t slowest = 1; slowest <= options.slowest.value_or(0); ++slowest) {
            join(TimelineChoice::slowest, slowest, phase);
        }
    }
    return answers::Pending<TimelineReport>([readers] { return take(readers); });
}

} // namespace

std::vector<std::size_t> shares_of_timelines(const std::vector<std::size_t>& spans) {
    std::vector<std::size_t> shares(spans.size());
    std::vector<std::size_t> order(spans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return spans[a] < spans[b]; });
    std::size_t left = most_spans_of_all;
    for (std::size_t i = 0; i < order.size(); ++i) {
        shares[order[i]] = std::min(left / (order.size() - i), most_spans);
        left -= std::min(shares[order[i]], spans[order[i]]);
    }
    return shares;
}

Result<TimelineReport> read_timeline(const std::vector<std::string>& files, const TimelineOptions& options) {
    return answers::read_one<TimelineReport>(files.front(),
                                             [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& timeline_answer() {
    static const answers::Entry entry = answers::joining_entry<TimelineOptions, TimelineReport, begin>(
        "timeline", "Show what ran when in one step, lane by lane");
    return entry;
}

} // namespace plumb
