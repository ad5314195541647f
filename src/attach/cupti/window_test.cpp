// SPDX-License-Identifier: Apache-2.0
#include "attach/cupti/window.hpp"

#include <gtest/gtest.h>

#include <map>

namespace plumb::attach::cupti {
namespace {

using backends::cuda::TracedKernel;
using Steps = std::map<std::uint64_t, std::vector<std::uint32_t>>; // step -> correlations of its kernels

/// Launches and what came of them; a launch has its number as its correlation.
struct Seen {
    std::vector<KernelLaunch> launches;
    std::vector<TracedKernel> kernels;

    void launch(std::uint64_t step, std::uint64_t thread = 1, std::uint32_t graph = 0, int its_kernels = 1) {
        const auto correlation = static_cast<std::uint32_t>(launches.size() + 1);
        launches.push_back({correlation, thread, step});
        for (int i = 0; i < its_kernels; ++i) {
            TracedKernel kernel;
            kernel.begin_ns = kernels.size() * 10;
            kernel.end_ns = kernel.begin_ns + 5;
            kernel.correlation = correlation;
            kernel.graph = graph;
            kernels.push_back(kernel);
        }
    }
    [[nodiscard]] WindowKernels arranged(WindowGaps gaps = {}) const {
        gaps.closing = gaps.closing == 0 ? launches.size() : gaps.closing;
        return arrange(kernels, launches, gaps);
    }
    [[nodiscard]] Steps steps(const WindowKernels& window) const {
        Steps made;
        for (const KernelSequence& sequence : window.sequences) {
            for (const std::uint32_t kernel : sequence.kernels) {
                made[sequence.step_plus_one].push_back(kernels[kernel].correlation);
            }
        }
        return made;
    }
};

TEST(Window, C23_steps_that_its_edges_cut_have_no_kernels_and_count_as_slowed) {
    Seen seen;
    for (const std::uint64_t step : {7, 7, 8, 8, 9, 9, 10}) {
        seen.launch(step);
    }
    const WindowKernels window = seen.arranged();
    EXPECT_EQ(seen.steps(window), (Steps{{0, {1, 2, 7}}, {8, {3, 4}}, {9, {5, 6}}}));
    EXPECT_EQ(window.slowed, (std::vector<std::uint64_t>{7, 8, 9, 10}));
}

TEST(Window, C23_a_step_is_whole_on_every_thread_or_not_at_all) {
    Seen seen;
    seen.launch(7, 1);
    seen.launch(8, 1);
    seen.launch(8, 2); // a helper's first launch: who knows what it launched before
    seen.launch(9, 1);
    seen.launch(10, 2);
    seen.launch(10, 1);
    EXPECT_EQ(seen.steps(seen.arranged()), (Steps{{0, {1, 2, 3, 5, 6}}, {9, {4}}}));
}

TEST(Window, C23_what_was_launched_behind_its_end_may_lack_kernels) {
    Seen seen;
    for (const std::uint64_t step : {7, 8, 9, 9, 10}) {
        seen.launch(step);
    }
    const WindowKernels window = seen.arranged({0, 3, {}, false});
    EXPECT_EQ(seen.steps(window), (Steps{{0, {1, 3, 4, 5}}, {8, {2}}}));
}

TEST(Window, C23_what_was_launched_before_kernels_were_traced_may_lack_some) {
    Seen seen;
    for (const std::uint64_t step : {7, 8, 9, 10, 11}) {
        seen.launch(step);
    }
    EXPECT_EQ(seen.steps(seen.arranged({2, 0, {}, false})), (Steps{{0, {1, 2, 5}}, {9, {3}}, {10, {4}}}));
}

TEST(Window, C23_a_step_or_a_replay_with_a_kernel_that_has_no_time_is_not_whole) {
    Seen seen;
    for (const std::uint64_t step : {7, 8, 9, 10, 11}) {
        seen.launch(step, 1, 4, 2);
    }
    const WindowKernels window = seen.arranged({0, 0, {3, 77}, false});
    EXPECT_EQ(seen.steps(window), (Steps{{0, {1, 1, 3, 3, 5, 5}}, {8, {2, 2}}, {10, {4, 4}}}));
    EXPECT_EQ(window.sequences.size(), 6u); // the kernels of the third stand alone
}

TEST(Window, C23_a_device_that_lags_behind_ends_it_where_it_is) {
    Seen seen;
    for (const std::uint64_t step : {7, 8, 9, 10, 11}) {
        seen.launch(step);
    }
    EXPECT_EQ(ended_launches(seen.launches, seen.kernels), 5u);
    seen.kernels.resize(3);
    EXPECT_EQ(ended_launches(seen.launches, seen.kernels), 3u);
    seen.kernels.clear();
    EXPECT_EQ(ended_launches(seen.launches, seen.kernels), 0u);
}

TEST(Window, where_a_kernel_may_be_lost_no_step_is_whole) {
    Seen seen;
    for (const std::uint64_t step : {7, 8, 9}) {
        seen.launch(step, 1, 4, 2);
    }
    const WindowKernels window = seen.arranged({0, 0, {}, true});
    EXPECT_EQ(seen.steps(window), (Steps{{0, {1, 1, 2, 2, 3, 3}}}));
    EXPECT_EQ(window.sequences.size(), 6u); // each alone
    EXPECT_EQ(window.slowed.size(), 3u);
}

TEST(Window, a_replay_outside_of_steps_is_one_sequence_and_an_eager_kernel_stands_alone) {
    Seen seen;
    seen.launch(0, 1, 4, 3);
    seen.launch(0, 1, 0, 1);
    seen.launch(0, 1, 4, 3);
    TracedKernel unknown; // of a launch that was not told
    unknown.begin_ns = 1'000;
    unknown.correlation = 99;
    unknown.graph = 4;
    seen.kernels.push_back(unknown);
    const WindowKernels window = seen.arranged();
    ASSERT_EQ(window.sequences.size(), 4u);
    EXPECT_EQ(window.sequences[0].kernels, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(window.sequences[1].kernels, (std::vector<std::uint32_t>{3}));
    EXPECT_EQ(window.sequences[2].kernels, (std::vector<std::uint32_t>{4, 5, 6}));
    EXPECT_EQ(window.sequences[3].kernels, (std::vector<std::uint32_t>{7}));
    EXPECT_TRUE(window.slowed.empty());
}

TEST(Window, work_between_steps_is_of_no_step_and_lets_the_next_one_be_whole) {
    Seen seen;
    for (const std::uint64_t step : {0, 8, 0, 9}) {
        seen.launch(step);
    }
    EXPECT_EQ(seen.steps(seen.arranged()), (Steps{{0, {1, 3, 4}}, {8, {2}}}));
}

} // namespace
} // namespace plumb::attach::cupti
