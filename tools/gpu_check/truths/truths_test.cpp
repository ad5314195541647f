// SPDX-License-Identifier: Apache-2.0
// Every truth on the virtual GPU in virtual time, one test each, and that table, tests and documentation agree.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "truths/truth.hpp"
#include "truths/virtual_kernels.hpp"
#include "virtual_gpu/control.hpp"

namespace gpu_check {
namespace {

namespace vgpu = plumb::vgpu;

std::int64_t virtual_now() { return vgpu::now_ns(); }
void virtual_sleep(std::int64_t ns) { vgpu::advance(ns); }
constexpr HostTime virtual_time{virtual_now, virtual_sleep};

// Truths that no driver can be asked for; what the virtual GPU does in their place.
bool node_order_is_unspecified_here() {
    Gpu gpu(virtual_time);
    const OwnedGraph graph = make_graph(gpu);
    std::vector<GraphNode> made;
    for (int i = 0; i < 20; ++i) {
        made.push_back(add_empty_kernel(gpu, graph, made.empty() ? nullptr : made.back()));
    }
    const auto first = nodes_of(gpu, graph), second = nodes_of(gpu, graph);
    return first != made && first != second && std::is_permutation(first.begin(), first.end(), made.begin());
}

bool frontier_array_goes_stale_here() {
    Gpu gpu(virtual_time);
    Capturing capturing(gpu, gpu.stream);
    gpu.launch_empty(gpu.stream);
    CaptureStatus status{};
    const GraphNode* nodes = nullptr;
    const EdgeData* edges = nullptr;
    std::size_t count = 0;
    gpu.must(gpu.d.capture_info(gpu.stream, &status, nullptr, nullptr, &nodes, &edges, &count), "capture information");
    const GraphNode copied = nodes[0];
    gpu.launch_empty(gpu.stream);
    NodeType type{};
    const bool copy_is_good = gpu.d.graph_node_get_type(copied, &type) == CuResult::success && vgpu::errors().empty();
    const bool array_is_not =
        nodes[0] != copied && gpu.d.graph_node_get_type(nodes[0], &type) == CuResult::invalid_value;
    return copy_is_good && array_is_not && vgpu::errors().size() == 1;
}

void check_one(const Truth& truth) {
    SCOPED_TRACE(truth.id);
    try {
        if (truth.needs_fresh_process()) {
            Gpu gpu(not_ready);
            truth.check(gpu);
        } else {
            Gpu gpu(virtual_time);
            truth.check(gpu);
        }
        const std::size_t expected = truth.id == "sticky_error_stays" ? 1 : 0; // it reads where nothing is
        EXPECT_EQ(vgpu::errors().size(), expected) << (vgpu::errors().empty() ? "" : vgpu::errors().back());
    } catch (const Failure& failure) {
        ADD_FAILURE() << failure.sentence << "; " << take_said();
    } catch (const NotApplicable& reason) {
        vgpu::reset();
        teach_virtual_kernels();
        const bool holds = truth.id == "node_order_is_unspecified"   ? node_order_is_unspecified_here()
                           : truth.id == "frontier_array_goes_stale" ? frontier_array_goes_stale_here()
                                                                     : false;
        EXPECT_TRUE(holds) << reason.reason;
    }
}

/// On a device with whole numbers for everything, and on one with coarse ticks whose clock drifts.
void check_truth(const Truth& truth) {
    vgpu::Config coarse;
    coarse.event_tick_ns = 500;
    coarse.globaltimer_tick_ns = 1'024;
    coarse.clock_drift_ppm = 24;
    coarse.event_ns = 40;
    for (const vgpu::Config& config : {vgpu::Config{}, coarse}) {
        vgpu::reset(config);
        teach_virtual_kernels();
        check_one(truth);
    }
}

#define PLUMB_GPU_TRUTH_TEST(id, source, sentence) \
    TEST(Truth, id) { check_truth({#id, source, truth_##id}); }
PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_TEST)
#undef PLUMB_GPU_TRUTH_TEST

TEST(TruthTable, every_truth_has_a_test_and_every_test_its_truth) {
    std::set<std::string> wanted, there;
    for (const Truth& truth : truths) {
        wanted.emplace(truth.id);
    }
    EXPECT_EQ(wanted.size(), std::size(truths)) << "two truths have one name";
    const auto& all = *testing::UnitTest::GetInstance();
    for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
        const testing::TestSuite& tests = *all.GetTestSuite(suite);
        for (int i = 0; std::string(tests.name()) == "Truth" && i < tests.total_test_count(); ++i) {
            there.insert(tests.GetTestInfo(i)->name());
        }
    }
    EXPECT_EQ(there, wanted);
}

TEST(TruthTable, is_what_the_documentation_says) {
    std::ifstream file(PLUMB_VGPU_DOCUMENT);
    const std::string page{std::istreambuf_iterator<char>(file), {}};
#define PLUMB_GPU_TRUTH_ROW(id, source, sentence) \
    EXPECT_NE(page.find("| " sentence " | " source " | `Truth." #id "` |"), std::string::npos) << #id;
    PLUMB_GPU_TRUTHS(PLUMB_GPU_TRUTH_ROW)
#undef PLUMB_GPU_TRUTH_ROW
}

TEST(TruthTable, a_truth_that_does_not_hold_is_found) {
    vgpu::Config config;
    config.event_node_ns = 0;
    vgpu::reset(config);
    teach_virtual_kernels();
    Gpu gpu(virtual_time);
    EXPECT_THROW(truth_inline_event_node_costs_time(gpu), Failure);
}

} // namespace
} // namespace gpu_check
