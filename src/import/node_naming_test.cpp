// SPDX-License-Identifier: Apache-2.0
// Nodes of a captured graph by names and places alone, against what was planned and against the same kernels as a trace.
#include "import/rules/node_naming.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

#include "import/formats.hpp"
#include "import/labels.hpp"
#include "import/planted_trace_testing.hpp"

namespace plumb::imported {
namespace {

using recording::CapturedWork;
using recording::NodeNames;
using recording::NodeToName;

KernelRules rules() {
    Result<KernelRules> loaded = KernelRules::load({});
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return *std::move(loaded);
}

CapturedWork work_of(DeviceOpKind kind) {
    return kind == DeviceOpKind::memcpy   ? CapturedWork::copy
           : kind == DeviceOpKind::memset ? CapturedWork::fill
                                          : CapturedWork::kernel;
}

class PlannedGraphs : public testing::TestWithParam<PlannedRun> {};

TEST_P(PlannedGraphs, have_the_bricks_and_layers_that_were_planned) {
    const PlannedTrace planned = plan(GetParam());
    std::vector<NodeToName> nodes;
    std::vector<const PlannedOp*> truth;
    for (const PlannedOp& op : planned.ops) {
        if (op.step == 0) {
            nodes.push_back({op.name, static_cast<std::uint32_t>(op.stream), work_of(op.kind)});
            truth.push_back(&op);
        }
    }
    ASSERT_GT(nodes.size(), 20u);
    KernelRules loaded = rules();
    const NodeNames names = name_nodes(nodes, loaded);
    ASSERT_EQ(names.brick_of.size(), nodes.size());
    EXPECT_EQ(names.layers, static_cast<std::uint32_t>(GetParam().layers + GetParam().moe_layers));
    EXPECT_TRUE(names.doubts.empty()) << names.doubts.front();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].work == CapturedWork::kernel) {
            EXPECT_EQ(names.bricks[names.brick_of[i]].name, truth[i]->brick) << i << " " << nodes[i].name;
        }
        EXPECT_EQ(names.layer_of[i] ? static_cast<int>(*names.layer_of[i]) : -1, truth[i]->layer)
            << i << " " << nodes[i].name;
    }
    EXPECT_EQ(names.by_name + names.by_place + names.unknown, nodes.size());
    EXPECT_GT(names.by_place, 0u) << "GEMMs are known by their places";
}

INSTANTIATE_TEST_SUITE_P(Planned, PlannedGraphs,
                         testing::Values(PlannedRun{}, PlannedRun{.layers = 24},
                                         PlannedRun{.layers = 3, .moe_layers = 9},
                                         PlannedRun{.layers = 8, .side_stream = true}));

TEST(NodeNaming, a_name_is_read_as_compilers_mangle_it) {
    KernelRules loaded = rules();
    const NodeNames names = name_nodes({{"_ZN4vllm15rms_norm_kernelIfEEvPT_PKS1_", 0, CapturedWork::kernel},
                                        {"_ZN4mine7unknownIfEEvPT_", 0, CapturedWork::kernel},
                                        {"_Z", 0, CapturedWork::kernel},
                                        {"", 0, CapturedWork::kernel},
                                        {"memcpy", 0, CapturedWork::copy}},
                                       loaded);
    ASSERT_EQ(names.brick_of.size(), 5u);
    EXPECT_EQ(names.bricks[names.brick_of[0]].name, "rms_norm");
    EXPECT_EQ(names.bricks[names.brick_of[0]].category, Category::norm);
    EXPECT_EQ(names.bricks[names.brick_of[1]].name, "mine::unknown");
    EXPECT_EQ(names.bricks[names.brick_of[2]].name, "_Z");
    EXPECT_EQ(names.bricks[names.brick_of[3]].name, "unnamed");
    EXPECT_EQ(names.bricks[names.brick_of[4]].name, "copy");
    EXPECT_EQ(names.bricks[names.brick_of[4]].category, Category::transfer);
    EXPECT_EQ(names.layers, 0u);
    EXPECT_EQ(names.unknown, 3u);
}

TEST(NodeNaming, an_empty_graph_has_nothing_to_name) {
    KernelRules loaded = rules();
    EXPECT_TRUE(name_nodes({}, loaded).brick_of.empty());
}

TEST(NodeNaming, the_rules_of_this_machine_are_found) {
    const NodeNames names = name_nodes({{"rms_norm_kernel", 0, CapturedWork::kernel}});
    ASSERT_EQ(names.brick_of.size(), 1u);
    EXPECT_EQ(names.bricks[0].name, "rms_norm");
}

// ---- replays of real traces, as nodes and as a trace

class PublicReplays : public testing::TestWithParam<const char*> {};

TEST_P(PublicReplays, have_as_nodes_the_labels_of_the_trace) {
    const char* const folder = std::getenv("PLUMB_TRACES");
    if (folder == nullptr) {
        GTEST_SKIP() << "PLUMB_TRACES names no folder of public traces (docs/internals/layer_detection.md lists them)";
    }
    Result<Trace> trace = read_trace(std::filesystem::path(folder) / GetParam(), {});
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    KernelRules loaded = rules();
    StepOptions options;
    options.annotations = false;
    options.attention = attention_names(*trace, loaded);
    const EngineSteps steps = find_steps(*trace, options);
    const Labels labels = label_operations(*trace, steps, loaded);
    std::size_t replays = 0, all = 0, bricks = 0, layers = 0;
    std::map<std::string, std::size_t> differ;
    for (const Replay& replay : steps.replays) {
        if (replay.cut || replay.step == no_step || replay.ops.size() < 100) {
            continue;
        }
        ++replays;
        std::vector<NodeToName> nodes;
        for (const std::uint32_t op : replay.ops) {
            const DeviceOp& one = trace->ops[op];
            nodes.push_back({trace->names[one.name], one.stream, work_of(one.kind)});
        }
        const NodeNames names = name_nodes(nodes, loaded);
        ASSERT_EQ(names.brick_of.size(), nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const std::uint32_t op = replay.ops[i];
            const std::string& ours = names.bricks[names.brick_of[i]].name;
            const std::string& theirs = labels.bricks[labels.brick_of[op]].name;
            const bool same = ours == theirs || nodes[i].work == CapturedWork::copy;
            ++all;
            bricks += same ? 1 : 0;
            layers += (names.layer_of[i] ? *names.layer_of[i] + 1 : 0) == labels.layer_of[op] ? 1 : 0;
            if (!same) {
                ++differ[ours + " for " + theirs];
            }
        }
    }
    std::printf("%s: %zu replays, %zu nodes, same brick %zu, same layer %zu\n", GetParam(), replays, all, bricks,
                layers);
    EXPECT_GT(replays, 0u);
    EXPECT_EQ(bricks, all) << (differ.empty() ? "" : differ.begin()->first);
    EXPECT_EQ(layers, all);
}

INSTANTIATE_TEST_SUITE_P(Public, PublicReplays,
                         testing::Values("deepseek_v3_h200_ep8/base/rank0.pt.trace.json.gz",
                                         "deepseek_v3_h200_ep8/deepgemm_align/rank3.pt.trace.json.gz",
                                         "mixtral_8x7b_mi300x_tp8/rank0.rpd.gz",
                                         "qwen3_8b_mi300x_sglang/decode.json.gz"));

} // namespace
} // namespace plumb::imported
