// SPDX-License-Identifier: Apache-2.0
// What a question to an execution graph costs: building it, path and slack, its memory; and whether a node costs the same
// in a large graph as in a small one (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <random>

#include "execgraph/allocations.hpp"
#include "plumb/execgraph.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;
using plumb::ExecGraphBuilder;
using plumb::GraphNode;
using plumb::NodeId;

constexpr std::size_t small = 10'000, large = 1'000'000;
constexpr std::size_t edges_per_node = 4;
constexpr std::size_t bricks_per_layer = 10, layers_per_step = 24;

/// CPU time: nothing here waits, and a thread that others push aside has not become slower.
double now_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Steps of layers of bricks, as they ran; each brick waits for the four before it.
void add_steps(ExecGraphBuilder& builder, std::size_t nodes) {
    const std::uint32_t names[] = {builder.name("step"), builder.name("layer"), builder.name("brick")};
    NodeId step = plumb::no_node, layer = plumb::no_node;
    std::size_t bricks = 0;
    NodeId last[edges_per_node] = {};
    while (builder.nodes() < nodes) {
        GraphNode node;
        node.duration_ns = static_cast<std::int64_t>(100 + bricks % 37);
        if (bricks % (bricks_per_layer * layers_per_step) == 0) {
            node.name = names[0];
            node.kind = plumb::NodeKind::step;
            step = builder.add(node);
        }
        if (bricks % bricks_per_layer == 0) {
            node.name = names[1];
            node.parent = step;
            node.kind = plumb::NodeKind::layer;
            layer = builder.add(node);
        }
        node.name = names[2];
        node.parent = layer;
        node.kind = plumb::NodeKind::brick;
        const NodeId brick = builder.add(node);
        for (std::size_t i = 0; i < std::min(bricks, edges_per_node); ++i) {
            builder.depend(last[i], brick);
        }
        last[bricks++ % edges_per_node] = brick;
    }
}

/// Any node may wait for any other that comes before it in an order that its number does not tell.
void add_random(ExecGraphBuilder& builder, std::size_t nodes) {
    std::mt19937_64 random(7);
    std::vector<NodeId> order(nodes);
    for (NodeId id = 0; id < nodes; ++id) {
        GraphNode node;
        node.name = builder.name("node");
        node.duration_ns = static_cast<std::int64_t>(random() % 1000);
        order[id] = builder.add(node);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < nodes * edges_per_node; ++i) {
        const std::size_t a = random() % nodes, b = random() % nodes;
        if (a != b) {
            builder.depend(order[std::min(a, b)], order[std::max(a, b)]);
        }
    }
}

using Fill = void (*)(ExecGraphBuilder&, std::size_t);

struct Cost {
    double build_ns = 0, answer_ns = 0, bytes = 0; // of all nodes
    std::int64_t length = 0;
};

Cost cost_of(Fill fill, std::size_t nodes) {
    Cost cost;
    const auto before = static_cast<double>(allocations::held());
    allocations::forget_peak();
    ExecGraphBuilder builder;
    builder.reserve(nodes, nodes * edges_per_node);
    fill(builder, nodes);
    const double begin = now_ns();
    const auto graph = builder.build();
    cost.build_ns = now_ns() - begin;
    if (!graph.ok()) {
        fmt::print(stderr, "{}\n", graph.error().message);
        std::exit(1);
    }
    const double asked = now_ns();
    const plumb::PathAnalysis answer = graph->analyse();
    cost.answer_ns = now_ns() - asked;
    cost.length = answer.length_ns;
    cost.bytes = static_cast<double>(allocations::peak()) - before;
    return cost;
}

struct Series {
    std::vector<double> build_ms, answer_ms, bytes, build_growth, answer_growth;
};

/// Of the small graph so many are asked one after another as make a large one.
void measure_round(Fill fill, Series& series) {
    Cost together;
    for (std::size_t i = 0; i < large / small; ++i) {
        const Cost one = cost_of(fill, small);
        together.build_ns += one.build_ns;
        together.answer_ns += one.answer_ns;
    }
    const Cost whole = cost_of(fill, large);
    series.build_ms.push_back(whole.build_ns * 1e-6);
    series.answer_ms.push_back(whole.answer_ns * 1e-6);
    series.bytes.push_back(whole.bytes / static_cast<double>(large));
    series.build_growth.push_back(whole.build_ns / together.build_ns);
    series.answer_growth.push_back(whole.answer_ns / together.answer_ns);
}

void show(Board& board, const std::string& key, const std::string& title, const Cost& fresh, const Series& series,
          double growth) {
    const auto row = [&](const char* label, const std::string& name, const std::vector<double>& values, int digits,
                         double limit) {
        const Spread spread = spread_of(values);
        board.put(key + "." + name, spread);
        board.row(label, {text(spread.median, digits), range(spread, digits)}, key + "." + name,
                  Target{Bound::at_most, limit});
    };
    board.table(title, {"value", "quartiles"});
    row("build, ms", "build_ms", series.build_ms, 1, 500);
    row("critical path and slack, ms", "answer_ms", series.answer_ms, 1, 100);
    board.put(key + ".fresh_ms", (fresh.build_ns + fresh.answer_ns) * 1e-6);
    board.row("both, in memory fresh from the system, ms", {text((fresh.build_ns + fresh.answer_ns) * 1e-6, 1), ""});
    row("memory at its peak, bytes per node", "bytes_per_node", series.bytes, 1, 160);
    row("build: time per node, 10^6 ÷ 10^4", "build_growth", series.build_growth, 2, growth);
    row("path and slack: the same", "answer_growth", series.answer_growth, 2, growth);
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options =
        parse_options(argc, argv, "What a question to an execution graph costs.", {{"--rounds", "N    (default 9)"}});
    const int rounds = std::max(3, std::atoi(options.value("--rounds", "9").c_str()));
    Board board(options);
    board.say(fmt::format("{} nodes, {} edges each; {} rounds, small and large graphs by turns", large, edges_per_node,
                          rounds));
    const Cost fresh_steps = cost_of(add_steps, large), fresh_random = cost_of(add_random, large);
    // The system clears fresh pages, and only large graphs need them: growth is to be that of the graph.
    allocations::keep_memory();
    Series steps, random;
    measure_round(add_steps, steps);
    measure_round(add_random, random);
    steps = random = {};
    for (int round = 0; round < rounds; ++round) {
        measure_round(add_steps, steps);
        measure_round(add_random, random);
    }
    show(board, "steps", "Graphs shaped like steps", fresh_steps, steps, 1.5);
    show(board, "random", "Random graphs", fresh_random, random, 4);
    return board.finish();
}
