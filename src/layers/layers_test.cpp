// SPDX-License-Identifier: Apache-2.0
#include "layers/layers.hpp"

#include <gtest/gtest.h>

#include "layers/sequences.hpp"

namespace plumb {
namespace {

TruthSequence planted(const std::string& name) {
    for (TruthSequence& sequence : planted_sequences()) {
        if (sequence.name == name) {
            return sequence;
        }
    }
    ADD_FAILURE() << "nothing is planted as " << name;
    return {};
}

/// Without kernels [first, first + count); the times of the others stay.
void lose(TruthSequence& sequence, std::size_t first, std::size_t count) {
    const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(first + count);
    sequence.kernels.erase(sequence.kernels.begin() + begin, sequence.kernels.begin() + end);
    sequence.truth.erase(sequence.truth.begin() + begin, sequence.truth.begin() + end);
}

std::string doubts_of(const LayerFindings& findings) {
    std::string all;
    for (const std::string& doubt : findings.doubts) {
        all += doubt + "\n";
    }
    return all;
}

TEST(Layers, planted_sequences_are_right_and_certain) {
    for (const TruthSequence& sequence : planted_sequences()) {
        const LayerFindings found = find_layers(sequence.kernels);
        EXPECT_TRUE(is_right(found, sequence)) << sequence.name << ": " << found.layers << "\n" << doubts_of(found);
        EXPECT_EQ(found.certain, !sequence.ambiguous) << sequence.name << "\n" << doubts_of(found);
    }
}

TEST(Layers, each_witness_is_counted) {
    const LayerFindings found = find_layers(planted("dense and MoE, as 3 + 58").kernels);
    EXPECT_EQ(found.witnesses.repeats, 61u);
    EXPECT_EQ(found.witnesses.anchors, 61u);
    EXPECT_EQ(found.witnesses.holes, 61u);
    EXPECT_EQ(found.witnesses.replays, std::nullopt);
    ASSERT_EQ(found.units.size(), 2u);
    EXPECT_EQ(found.units[0].copies, 3u);
    EXPECT_EQ(found.units[1].copies, 58u);
    EXPECT_EQ(found.units[1].names.size(), 20u);
}

TEST(Layers, a_slot_is_the_same_kernel_in_every_layer) {
    const TruthSequence sequence = planted("dense");
    const LayerFindings found = find_layers(sequence.kernels);
    for (std::size_t i = 0; i < sequence.kernels.size(); ++i) {
        if (found.places[i].slot) {
            EXPECT_EQ(sequence.kernels[i].name, found.units[0].names[*found.places[i].slot]);
        }
    }
}

TEST(Layers, two_micro_batches_are_decided_by_the_number_of_layers) {
    const TruthSequence sequence = planted("two micro-batches");
    EXPECT_NE(doubts_of(find_layers(sequence.kernels)).find("micro-batches"), std::string::npos);
    const LayerFindings as_one = find_layers(sequence.kernels, {.layers = 24});
    EXPECT_TRUE(as_one.certain) << doubts_of(as_one);
    EXPECT_EQ(as_one.layers, 24u);
    const LayerFindings as_two = find_layers(sequence.kernels, {.layers = 48});
    EXPECT_TRUE(as_two.certain) << doubts_of(as_two);
    EXPECT_EQ(as_two.layers, 48u);
    EXPECT_FALSE(find_layers(sequence.kernels, {.layers = 30}).certain);
}

TEST(Layers, a_lost_layer_leaves_a_hole_in_time) {
    TruthSequence sequence = planted("dense");
    lose(sequence, 3 + 14 * 9, 14);
    const LayerFindings found = find_layers(sequence.kernels);
    EXPECT_EQ(found.layers, 31u);
    EXPECT_FALSE(found.certain);
    EXPECT_EQ(found.witnesses.holes, 32u);
    EXPECT_NE(doubts_of(found).find("time enough for 1 lost layer\n"), std::string::npos) << doubts_of(found);
}

TEST(Layers, a_device_that_was_idle_for_hours_has_time_for_more_layers_than_32_bits_count) {
    TruthSequence sequence = planted("dense");
    for (std::size_t i = 3 + 14 * 9; i < sequence.kernels.size(); ++i) {
        *sequence.kernels[i].begin_ns += std::int64_t{1} << 60;
        *sequence.kernels[i].end_ns += std::int64_t{1} << 60;
    }
    const LayerFindings found = find_layers(sequence.kernels);
    EXPECT_EQ(found.layers, 32u);
    EXPECT_GT(found.witnesses.holes, std::uint64_t{1} << 40);
    EXPECT_NE(doubts_of(found).find("time enough for " + std::to_string(*found.witnesses.holes - 32) + " lost layers"),
              std::string::npos)
        << doubts_of(found);
}

TEST(Layers, a_hole_is_none_where_every_launch_is_there) {
    TruthSequence sequence = planted("dense");
    for (std::size_t i = 0; i < sequence.kernels.size(); ++i) {
        sequence.kernels[i].launch = 100 + 3 * i;
        if (i >= 3 + 14 * 9) {
            *sequence.kernels[i].begin_ns += 500'000;
            *sequence.kernels[i].end_ns += 500'000;
        }
    }
    EXPECT_TRUE(find_layers(sequence.kernels).certain);
    lose(sequence, 3 + 14 * 20, 14);
    EXPECT_FALSE(find_layers(sequence.kernels).certain);
}

TEST(Layers, a_layer_lost_at_either_end_is_missed) {
    for (const bool at_end : {false, true}) {
        TruthSequence sequence = planted("dense");
        const std::size_t count = at_end ? 14 + 4 : 3 + 14;
        lose(sequence, at_end ? sequence.kernels.size() - count : 0, count);
        const LayerFindings found = find_layers(sequence.kernels);
        EXPECT_EQ(found.layers, 31u);
        EXPECT_FALSE(found.certain);
        EXPECT_NE(doubts_of(found).find(at_end ? "nothing stands after" : "nothing stands before"), std::string::npos);
    }
}

TEST(Layers, kernels_of_the_first_layer_that_stand_before_it_are_told) {
    TruthSequence sequence = planted("another first layer");
    for (const std::size_t first : {11U, 13U}) { // the first layer begins at 11, with a norm of its own
        std::swap(sequence.kernels[first].name, sequence.kernels[first + 1].name);
        std::swap(sequence.kernels[first].anchor, sequence.kernels[first + 1].anchor);
    }
    const LayerFindings found = find_layers(sequence.kernels);
    EXPECT_TRUE(!found.certain || is_right(found, sequence)) << doubts_of(found);
    EXPECT_NE(doubts_of(found).find("what stands before the first layer may belong to it"), std::string::npos);
}

TEST(Layers, without_times_only_a_complete_sequence_is_certain) {
    TruthSequence sequence = planted("dense");
    for (SequenceKernel& kernel : sequence.kernels) {
        kernel.begin_ns = kernel.end_ns = std::nullopt;
    }
    EXPECT_FALSE(find_layers(sequence.kernels).certain);
    EXPECT_TRUE(find_layers(sequence.kernels, {.complete = true}).certain);
}

TEST(Layers, without_attention_nothing_confirms_the_repeats) {
    TruthSequence sequence = planted("dense");
    for (SequenceKernel& kernel : sequence.kernels) {
        kernel.anchor = LayerAnchor::none;
    }
    const LayerFindings found = find_layers(sequence.kernels);
    EXPECT_EQ(found.layers, 32u);
    EXPECT_FALSE(found.certain);
    EXPECT_EQ(found.witnesses.anchors, std::nullopt);
}

TEST(Layers, replays_of_one_graph_are_witnesses_of_each_other) {
    const TruthSequence whole = planted("dense");
    TruthSequence damaged = whole;
    lose(damaged, 3 + 14 * 9, 14);
    const TruthSequence* const replays[] = {&whole, &damaged, &whole, &whole};
    const std::vector<LayerFindings> found = find_layers(4, [&](std::size_t i) { return replays[i]->kernels; });
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[2].like, std::nullopt);
    EXPECT_EQ(found[3].like, 2u);
    EXPECT_EQ(found[3].witnesses.replays, 32u);
    EXPECT_TRUE(found[0].certain);
    EXPECT_EQ(found[0].witnesses.replays, 32u);
    EXPECT_NE(doubts_of(found[1]).find("other replays of the same graph have 32 layers, this one 31"),
              std::string::npos);
}

TEST(Layers, kernels_of_another_stream_are_where_the_main_stream_was) {
    TruthSequence sequence = planted("dense");
    std::vector<SequenceKernel> kernels;
    std::vector<TrueLayer> truth;
    for (std::size_t i = 0; i < sequence.kernels.size(); ++i) {
        kernels.push_back(sequence.kernels[i]);
        truth.push_back(sequence.truth[i]);
        if (sequence.kernels[i].anchor == LayerAnchor::attention) { // beside it
            SequenceKernel side = sequence.kernels[i];
            side.name = 77;
            side.stream = 9;
            side.anchor = LayerAnchor::none;
            *side.begin_ns += 1'000;
            kernels.push_back(side);
            truth.push_back(sequence.truth[i]);
        }
    }
    sequence.kernels = kernels;
    sequence.truth = truth;
    const LayerFindings found = find_layers(sequence.kernels);
    EXPECT_TRUE(is_right(found, sequence));
    EXPECT_TRUE(found.certain) << doubts_of(found);
}

TEST(Layers, few_kernels_have_no_layers) {
    EXPECT_EQ(find_layers(std::span<const SequenceKernel>{}).layers, 0u);
    std::vector<SequenceKernel> one(1);
    const LayerFindings found = find_layers(one);
    EXPECT_EQ(found.layers, 0u);
    EXPECT_FALSE(found.certain);
    EXPECT_EQ(found.places.size(), 1u);
}

TEST(Layers, noise_never_makes_them_certain_and_wrong) {
    for (const TruthSequence& sequence : planted_sequences()) {
        for (int kind = 1; kind < 6; ++kind) {
            std::mt19937 random(static_cast<unsigned>(kind));
            const TruthSequence noisy = with_noise(sequence, static_cast<Noise>(kind), random);
            const LayerFindings found = find_layers(noisy.kernels);
            EXPECT_TRUE(!found.certain || is_right(found, noisy)) << sequence.name << ", noise " << kind;
        }
    }
}

} // namespace
} // namespace plumb
