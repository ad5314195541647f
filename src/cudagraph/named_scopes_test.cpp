// SPDX-License-Identifier: Apache-2.0
// Graphs without scopes of the engine, with a namer that knows the truth: kernels are called "brick@layer#number".
#include "cudagraph/named_scopes.hpp"

#include <cstdlib>

#include "cudagraph/probe_testing.hpp"
#include "record/name_registry.hpp"

namespace plumb::cudagraph {
namespace {

int asked = 0; // how often the namer was

recording::NodeNames name_as_called(const std::vector<recording::NodeToName>& nodes) {
    ++asked;
    recording::NodeNames names;
    std::map<std::string, std::uint32_t> bricks;
    for (const recording::NodeToName& node : nodes) {
        const std::string name(node.name);
        const std::size_t at = name.find('@');
        const auto [found, is_new] =
            bricks.try_emplace(name.substr(0, at), static_cast<std::uint32_t>(names.bricks.size()));
        if (is_new) {
            names.bricks.push_back({found->first, Category::other});
        }
        names.brick_of.push_back(found->second);
        const bool in_layer = at != name.npos && name[at + 1] != '#';
        names.layer_of.push_back(
            in_layer ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(std::atoi(name.c_str() + at + 1)))
                     : std::nullopt);
        ++names.by_name;
    }
    names.layers = 2;
    return names;
}

ProbeOptions with(Result<recording::NameNodes> (*naming)()) {
    ProbeOptions options;
    options.naming = naming;
    return options;
}
ProbeOptions named() {
    return with([]() -> Result<recording::NameNodes> { return &name_as_called; });
}

std::string name_of(std::uint16_t id) {
    for (const record::NameEntry& entry : record::names_from(id)) {
        if (entry.id == id) {
            return std::string(entry.name);
        }
    }
    return "?";
}

/// "brick.layer x nodes" of each site; layer -: none.
record::Words words_of(const recording::GraphInfo& row) {
    record::Words words;
    for (const recording::GraphSite& site : row.sites) {
        words.push_back(name_of(site.name) + "." +
                        (site.layer_plus_one == 0 ? std::string("-") : std::to_string(site.layer_plus_one - 1)) +
                        " x " + std::to_string(site.nodes));
    }
    return words;
}

KnownGraph capture_model(ProbeBench& bench) {
    bench.begin_capture();
    bench.named_kernel("na_embed@#0", 20'000);
    for (const std::string layer : {"0", "1"}) {
        bench.named_kernel("na_norm@" + layer + "#1", 25'000);
        bench.named_kernel("na_qkv@" + layer + "#2", 40'000);
        bench.named_kernel("na_qkv@" + layer + "#3", 30'000);
        bench.named_kernel("na_attend@" + layer + "#4", 60'000);
    }
    bench.named_kernel("na_head@#5", 90'000);
    return bench.end_capture();
}

TEST(NamedScopes, give_a_graph_without_scopes_its_bricks_layers_and_times) {
    ProbeBench bench({}, named());
    const KnownGraph graph = capture_model(bench);
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(3, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 60; });
    const recording::GraphInfo row = bench.row(3);
    EXPECT_EQ(words_of(row), (record::Words{"na_embed.- x 1", "na_norm.0 x 1", "na_qkv.0 x 2", "na_attend.0 x 1",
                                            "na_norm.1 x 1", "na_qkv.1 x 2", "na_attend.1 x 1", "na_head.- x 1"}));
    EXPECT_TRUE(row.unattributed.empty());
    EXPECT_EQ(row.sites_told_by, "names of kernels (10 nodes) and their places (0), 2 layers");
    EXPECT_LE(std::abs(row.closure), 0.05);
    ASSERT_GE(bench.samples.size(), 60u);
    for (const drain::DeviceSample& sample : bench.samples) {
        std::int64_t begin = INT64_MAX, end = 0;
        for (const auto& [kernel, ran] : truth) {
            const std::string layer = sample.layer_plus_one == 0 ? "" : std::to_string(sample.layer_plus_one - 1);
            if (kernel.starts_with(name_of(sample.name) + "@" + layer + "#")) {
                begin = std::min(begin, ran.begin_ns);
                end = std::max(end, ran.end_ns);
            }
        }
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), static_cast<double>(end - begin),
                    near_truth)
            << name_of(sample.name);
    }
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(NamedScopes, are_not_asked_for_where_the_engine_opened_a_scope) {
    ProbeBench bench({}, named());
    bench.begin_capture();
    bench.scope([&] { bench.named_kernel("na_norm@0#10", 25'000); });
    bench.named_kernel("na_qkv@0#11", 25'000);
    const KnownGraph graph = bench.end_capture();
    const int before = asked;
    const auto probe = bench.captured(4, graph);
    EXPECT_EQ(asked, before);
    const recording::GraphInfo row = bench.row(4);
    EXPECT_EQ(row.sites.size(), 1u);
    EXPECT_EQ(row.unattributed, (std::vector<recording::NamedCount>{{"na_qkv@0#11", 1}}));
    EXPECT_EQ(row.sites_told_by, "");
}

TEST(NamedScopes, of_two_streams_lie_on_lanes_of_their_own) {
    ProbeBench bench({}, named());
    bench.begin_capture();
    bench.named_kernel("na_norm@0#20", 25'000);
    bench.fork([&] { bench.named_kernel("na_shared@0#21", 35'000, true); });
    bench.named_kernel("na_experts@0#22", 80'000);
    bench.named_kernel("na_experts@0#23", 20'000);
    bench.join();
    bench.named_kernel("na_experts@0#24", 30'000);
    const KnownGraph graph = bench.end_capture();
    const auto truth = bench.plain_truth(graph);
    const auto probe = bench.captured(5, graph);
    bench.replay_until(*probe, graph, 400, [&] { return bench.samples.size() >= 40; });
    const recording::GraphInfo row = bench.row(5);
    // What waits for another lane begins a scope of its own: the wait is not in the one before.
    record::Words words = words_of(row);
    std::sort(words.begin(), words.end());
    EXPECT_EQ(words, (record::Words{"na_experts.0 x 1", "na_experts.0 x 2", "na_norm.0 x 1", "na_shared.0 x 1"}));
    for (const drain::DeviceSample& sample : bench.samples) {
        if (name_of(sample.name) == "na_shared") {
            const Truth& ran = truth.at("na_shared@0#21");
            EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks),
                        static_cast<double>(ran.end_ns - ran.begin_ns), 3 * near_truth);
        }
    }
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(NamedScopes, that_cannot_be_had_are_absent_with_the_reason) {
    ProbeBench bench({}, with([]() -> Result<recording::NameNodes> {
                         return Error{ErrorCode::unavailable, "there is no such library; install it"};
                     }));
    const KnownGraph graph = capture_model(bench);
    const auto probe = bench.captured(6, graph);
    const recording::GraphInfo row = bench.row(6);
    EXPECT_TRUE(row.sites.empty());
    EXPECT_EQ(row.sites_told_by, "n/a: there is no such library; install it");
    EXPECT_EQ(row.unattributed.size(), 10u);
    EXPECT_TRUE(probe->launch(graph.exec, bench.stream).ok());
    vgpu::run_dry();
}

TEST(NamedScopes, of_a_graph_captured_anew_are_named_anew) {
    ProbeBench bench({}, named());
    const KnownGraph graph = capture_model(bench);
    auto probe = bench.captured(8, graph);
    EXPECT_EQ(bench.row(8).sites.size(), 8u);
    bench.begin_capture();
    bench.named_kernel("na_embed@#30", 20'000);
    const KnownGraph shorter = bench.end_capture();
    probe = bench.captured(8, shorter);
    EXPECT_EQ(words_of(bench.row(8)), record::Words{"na_embed.- x 1"});
}

} // namespace
} // namespace plumb::cudagraph
