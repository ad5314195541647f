// SPDX-License-Identifier: Apache-2.0
#include "answers/path/path.hpp"

#include "analysis/path_builder.hpp"
#include "answers/reading.hpp"
#include "base/hex.hpp"

namespace plumb {

std::string hex_or_empty(std::uint64_t value) { return value != 0 ? base::hex_digits(value) : std::string(); }

PathNode::PathNode(const ExecGraph& graph, NodeId id)
    : node(id), name(graph.name_of(id)), kind(graph[id].kind), device(graph[id].device), begin_ns(graph[id].begin_ns) {
    const GraphNode& from = graph[id];
    layer = from.layer;
    if (from.parent != no_node) {
        parent = from.parent;
    }
    duration_ns = from.timed ? Figure{static_cast<double>(from.duration_ns), {}}
                             : Figure{std::nullopt, "it was not timed by itself"};
    const auto copy = [](const auto* shape, auto& into) {
        if (shape != nullptr) {
            into = *shape;
        }
    };
    copy(graph.launch_of(id), launch);
    copy(graph.transfer_of(id), transfer);
    copy(graph.task_of(id), task);
}

namespace {

PathNode node_of(const PathReport& report, NodeId id) {
    PathNode node(report.graph, id);
    const std::uint32_t track = report.graph[id].track;
    node.track = track < report.tracks.size() ? report.tracks[track] : std::string();
    return node;
}

} // namespace

std::vector<PathNode> path_nodes(const PathReport& report) {
    std::vector<PathNode> nodes;
    for (const NodeId id : report.analysis.path) {
        nodes.push_back(node_of(report, id));
    }
    return nodes;
}

std::vector<PathKernel> slowest_kernels(const PathReport& report) {
    std::vector<PathKernel> kernels;
    for (const SlowKernel& kernel : report.slowest) {
        kernels.push_back({node_of(report, kernel.node), &kernel});
    }
    return kernels;
}

std::vector<CsrNode> csr_nodes(const ExecGraph& graph) {
    std::vector<CsrNode> nodes;
    for (NodeId id = 0; id < graph.size(); ++id) {
        nodes.push_back({PathNode(graph, id)});
    }
    return nodes;
}

std::vector<NodeId> csr_rows(const ExecGraph& graph) {
    std::vector<NodeId> rows;
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        rows.push_back(graph.node_of_row(row));
    }
    return rows;
}

std::string render_csr(const ExecGraph& graph) {
    const PathRows rows{&graph};
    return page::json_of(schema_of(rows), rows, 0);
}

namespace {

Result<answers::Pending<PathReport>> begin_with(answers::Reading& reading, const PathOptions& options) {
    if (options.window_ns < 0) {
        return Error{ErrorCode::invalid_argument, "the window for transfers is negative; give it in us from 0 on"};
    }
    auto& path = reading.join<analysis::PathReader>(reading.facts(), options);
    return answers::Pending<PathReport>([&path] { return path.take(); });
}

} // namespace

Result<PathReport> path_recording(const std::string& recording, const PathOptions& options) {
    return answers::read_one<PathReport>(recording,
                                         [&](answers::Reading& reading) { return begin_with(reading, options); });
}

namespace {

/// The graph alone: text that stands as it is, in whatever form it was asked for.
class Drawing final : public answers::PagedAnswer {
  public:
    explicit Drawing(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] page::Page page(const TextOptions&) const override {
        page::Page page;
        page.verbatim(text_);
        return page;
    }
    [[nodiscard]] std::string json() const override { return text_; }
    [[nodiscard]] Outcome outcome() const noexcept override { return Outcome::pass; }

  private:
    std::string text_;
};

Result<answers::AnswerPointer> drawn(std::string text) {
    return answers::AnswerPointer(std::make_unique<Drawing>(std::move(text)));
}

Result<answers::Pending<answers::AnswerPointer>> begin(answers::Reading& reading, const OptionValues& values) {
    const Result<PathQuestion> question = answers::options_from<PathQuestion>(values);
    if (!question.ok()) {
        return question.error();
    }
    PathOptions options;
    options.step = question->step;
    if (question->window_us) {
        options.window_ns = static_cast<std::int64_t>(*question->window_us) * 1000;
    }
    const Result<answers::Pending<PathReport>> pending = begin_with(reading, options);
    if (!pending.ok()) {
        return pending.error();
    }
    return answers::Pending<answers::AnswerPointer>(
        [take = *pending, asked = *question]() -> Result<answers::AnswerPointer> {
            Result<PathReport> report = take();
            if (!report.ok()) {
                return report.error();
            }
            return asked.tree  ? drawn(render_tree(report->graph, report->analysis))
                   : asked.dot ? drawn(render_dot(report->graph, report->analysis))
                   : asked.csr ? drawn(render_csr(report->graph))
                               : answers::answer_of(std::move(report));
        });
}

} // namespace

const answers::Entry& path_answer() {
    static const answers::Entry entry = [] {
        answers::Entry made = answers::entry_for<PathQuestion, PathReport>(
            "path", "Show the critical path of a step, what has slack and what to shorten");
        made.begin = begin;
        made.documents.push_back(answers::document_of<PathRows>());
        made.info.schemas.emplace_back(made.documents.back().schema);
        return made;
    }();
    return entry;
}

} // namespace plumb
