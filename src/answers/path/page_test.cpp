// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <gtest/gtest.h>
#include <set>

#include "answers/path/path.hpp"
#include "answers/rendered_testing.hpp"

namespace plumb::answers {
namespace {

PathReport sample_path() {
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("step \"1\"\\\n-> x; }");
    node.kind = NodeKind::step;
    node.duration_ns = 5000;
    const NodeId step = builder.add(node);
    node.parent = step;
    node.name = builder.name("gemm");
    node.device = true;
    node.layer = 2;
    const NodeId kernel = builder.add_kernel(node, {{8, 4, 2}, {128, 2, 1}, 4096, 0xabc, 0, 0});
    node.name = builder.name("copy_h2d");
    node.begin_ns = 5000;
    const NodeId there = builder.add_transfer(node, {0, 0, 4096, TransferDirection::host_to_device});
    node.name = builder.name("copy_d2h");
    node.begin_ns = 20000;
    const NodeId back = builder.add_transfer(node, {0, 0, 4096, TransferDirection::device_to_host});
    node.timed = false;
    node.name = builder.name("untimed");
    const NodeId untimed = builder.add_kernel(node, {});
    node.timed = true;
    node.name = builder.name("task");
    node.duration_ns = 0;
    const NodeId task = builder.add_task(node, {5, 4});
    builder.depend(kernel, untimed);
    builder.depend(kernel, task);
    builder.depend(kernel, there);
    builder.depend(there, back);
    PathReport report;
    report.graph = *builder.build();
    report.analysis = report.graph.analyse();
    report.step = 1;
    report.phase = Phase::decode;
    report.candidates = 9;
    report.span_ns = report.host_ns = 25000;
    report.launches_per_token = {std::nullopt, "the step does not say how many tokens it had"};
    report.tracks = {"stream"};
    report.rows.resize(2);
    report.rows[0].name = "gemm";
    report.rows[0].gain_ns = {5000.0, {}};
    report.rows[1].gain_ns = {std::nullopt, "only worked out for the 16 that hold most of the path"};
    report.kernels.resize(2);
    report.kernels[0].layer = 2;
    report.kernels[0].kernels = {3.0, {}};
    report.kernels[1].kernels = {std::nullopt, "scopes of a queue are not broken down into kernels"};
    report.slowest = {{kernel, "kernels/gemm.cu", {0.5, {}}}};
    report.recorded = {{"gemm", 0xabc, "kernels/gemm.cu", 1}};
    report.ping_pong = report.graph.ping_pong(1'000'000);
    report.window_ns = 1e6;
    report.notes = {"a note"};
    return report;
}

TEST(PathText, says_path_gain_slack_and_what_came_back) {
    const std::string text = render_text(sample_path());
    EXPECT_TRUE(contains(text, "critical path  15.0 us, 60.0 % of the 25.0 us")) << text;
    EXPECT_TRUE(
        contains(text, "\nPING-PONG  copy_h2d came back as copy_d2h after 10.0 us, 4,096 bytes (nodes 2 and 3)\n"))
        << text;
    EXPECT_TRUE(contains(text, "n/a (the step does not say how many tokens it had)"));
    EXPECT_FALSE(contains(text, "\x1b"));
}

TEST(PathText, what_is_absent_has_its_reason_below_the_tables) {
    PathReport report = sample_path();
    report.rows[1].name = "noise";
    report.slowest[0].roofline_share = {std::nullopt, "the kernel has no work"};
    const std::string text = render_text(report);
    EXPECT_TRUE(contains(text, "\nn/a  noise: only worked out for the 16 that hold most of the path\n")) << text;
    EXPECT_TRUE(contains(text, "\nn/a  gemm: the kernel has no work\n")) << text;
    EXPECT_TRUE(contains(text, ": scopes of a queue are not broken down into kernels\n")) << text;
}

TEST(PathJson, follows_its_schema_and_every_key_is_documented) {
    const PathReport report = sample_path();
    expect_valid<PathReport>(PLUMB_TEST_SOURCE_DIR, {{}, report});
    expect_valid<PathRows>(PLUMB_TEST_SOURCE_DIR, {{}, {&report.graph}});
}

TEST(PathText, T11_a_slow_kernel_has_its_file_and_a_time_that_is_not_known_is_never_0) {
    const PathReport report = sample_path();
    const std::string text = render_text(report), tree = render_tree(report.graph, report.analysis);
    EXPECT_TRUE(contains(text, "kernels/gemm.cu")) << text;
    EXPECT_TRUE(contains(tree, "untimed  kernel on the device  n/a, slack")) << tree;
    EXPECT_TRUE(contains(render_dot(report.graph, report.analysis), "untimed, n/a"));
    const json csr = parsed(render_csr(report.graph));
    EXPECT_TRUE(csr["nodes"][4]["duration_ns"].contains("absent"));
    EXPECT_EQ(csr["nodes"][1]["code"], "0000000000000abc");
    EXPECT_EQ(csr["nodes"][5]["polls"], 5);
}

TEST(PathJson, a_buffer_is_there_only_where_it_is_known) {
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("copy_h2d");
    (void)builder.add_transfer(node, {0, 0x20, 4096, TransferDirection::host_to_device});
    const Result<ExecGraph> graph = builder.build();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    const json transfer = parsed(render_csr(*graph))["nodes"][0];
    EXPECT_EQ(transfer["target"], "0000000000000020");
    EXPECT_FALSE(transfer.contains("source"));
}

TEST(PathCsr, rows_lead_forward_and_their_nodes_exist) {
    const json value = parsed(render_csr(sample_path().graph));
    ASSERT_EQ(value["offsets"].size(), value["rows"].size() + 1);
    EXPECT_EQ(value["offsets"].back(), value["targets"].size());
    for (std::size_t row = 0; row < value["rows"].size(); ++row) {
        EXPECT_LT(value["rows"][row], value["nodes"].size());
        for (std::size_t e = value["offsets"][row]; e < value["offsets"][row + 1]; ++e) {
            EXPECT_GT(value["targets"][e], row);
        }
    }
}

/// The part of Graphviz's grammar that is needed: digraph ID { statements }, with attributes; quoted strings with escapes.
class DotReader {
  public:
    explicit DotReader(std::string text) : text_(std::move(text)) {}

    [[nodiscard]] std::string problem() {
        if (word() != "digraph" || word().empty() || word() != "{") {
            return "no digraph";
        }
        for (std::string first = word(); first != "}"; first = word()) {
            if (first.empty()) {
                return "cut short";
            }
            if (std::string found = statement(first); !found.empty()) {
                return found;
            }
        }
        return word().empty() ? "" : "text after the end";
    }
    std::set<std::string> nodes;
    std::size_t edges = 0;

  private:
    std::string statement(const std::string& first) {
        std::string next = word();
        if (next == "=") {
            word();
            next = word();
        } else if (next == "->") {
            nodes.insert(first);
            nodes.insert(word());
            ++edges;
            next = word();
        } else if (first != "node") {
            nodes.insert(first);
        }
        while (next == "[") {
            do {
                if (word().empty() || word() != "=" || word().empty()) {
                    return "attribute of " + first;
                }
                next = word();
            } while (next == ",");
            if (next != "]") {
                return "no ] after " + first + " but " + next;
            }
            next = word();
        }
        return next == ";" ? "" : "no ; after " + first + " but " + next;
    }

    std::string word() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
            ++at_;
        }
        const std::size_t begin = at_;
        if (at_ == text_.size()) {
            return "";
        }
        if (text_[at_] == '"') {
            for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
                at_ += text_[at_] == '\\' ? 1 : 0;
            }
            return text_.substr(begin, ++at_ - begin);
        }
        if (text_.compare(at_, 2, "->") == 0) {
            at_ += 2;
        } else if (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) {
            while (at_ < text_.size() &&
                   (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
                ++at_;
            }
        } else {
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    std::string text_;
    std::size_t at_ = 0;
};

TEST(PathDot, T11_a_launch_has_two_shapes_of_three_and_names_cannot_break_out) {
    const PathReport report = sample_path();
    const std::string dot = render_dot(report.graph, report.analysis);
    EXPECT_TRUE(contains(dot, "grid 8x4x2 block 128x2x1 shared 4096 B")) << dot;
    DotReader reader(dot);
    EXPECT_EQ(reader.problem(), "") << dot;
    EXPECT_EQ(reader.nodes, (std::set<std::string>{"n0", "n1", "n2", "n3", "n4", "n5"}));
    EXPECT_EQ(reader.edges, 9u) << "five of containment, four of dependency";
}

TEST(PathTree, T11_a_tree_as_deep_as_it_is_large_is_printed_without_recursion) {
    ExecGraphBuilder builder;
    GraphNode node;
    node.name = builder.name("n");
    constexpr NodeId deep = 200'000;
    for (NodeId i = 0; i < deep; ++i) {
        node.parent = i == 0 ? no_node : i - 1;
        builder.add(node);
    }
    const auto graph = builder.build();
    ASSERT_TRUE(graph.ok());
    const std::string tree = render_tree(*graph, graph->analyse());
    EXPECT_EQ(static_cast<std::size_t>(std::count(tree.begin(), tree.end(), '\n')), deep + 1u);
}

TEST(PathTree, siblings_stand_in_the_order_of_their_begins_below_what_contains_them) {
    const PathReport report = sample_path();
    const std::string tree = render_tree(report.graph, report.analysis);
    EXPECT_LT(tree.find("  step"), tree.find("  * gemm")) << tree;
    EXPECT_LT(tree.find("  * gemm"), tree.find("  * copy_h2d"));
    EXPECT_LT(tree.find("  * copy_h2d"), tree.find("  * copy_d2h"));
}

} // namespace
} // namespace plumb::answers
