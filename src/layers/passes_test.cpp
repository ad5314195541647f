// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "layers/sequences.hpp"

namespace plumb {
namespace {

TEST(Passes, begin_before_the_embedding_and_after_sampling) {
    const TruthSequence sequence = planted_passes();
    const std::vector<PassRange> passes = find_passes(sequence.kernels);
    ASSERT_EQ(passes.size(), 4u);
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
        for (std::size_t i = passes[pass].begin; i < passes[pass].end; ++i) {
            ASSERT_EQ(sequence.truth[i].layer, static_cast<std::int32_t>(pass)) << "kernel " << i;
        }
        EXPECT_EQ(passes[pass].cut, pass == 0);
    }
}

TEST(Passes, a_single_pass_is_one) {
    for (const TruthSequence& sequence : planted_sequences()) {
        EXPECT_EQ(find_passes(sequence.kernels).size(), 1u) << sequence.name;
    }
    EXPECT_TRUE(find_passes({}).empty());
}

TEST(Passes, whole_passes_that_repeat_are_cut_at_the_embedding) {
    TruthSequence all;
    const TruthSequence pass = planted_passes();
    std::int64_t later = 0;
    for (int round = 0; round < 12; ++round) { // of short passes: the pass itself is the unit
        for (std::size_t i = 0; i < pass.kernels.size(); ++i) {
            if (pass.truth[i].layer == 1) {
                SequenceKernel kernel = pass.kernels[i];
                kernel.name += kernel.name >= 2000 && kernel.name < 3000 ? 10'000u * static_cast<std::uint32_t>(i) : 0;
                *kernel.begin_ns += later;
                *kernel.end_ns += later;
                all.kernels.push_back(kernel);
            }
        }
        later += 5'000'000;
    }
    const std::vector<PassRange> passes = find_passes(all.kernels);
    ASSERT_EQ(passes.size(), 12u);
    for (const PassRange& range : passes) {
        EXPECT_EQ(range.end - range.begin, all.kernels.size() / 12);
    }
}

} // namespace
} // namespace plumb
