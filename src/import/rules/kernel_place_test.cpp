// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_place.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "import/rules/placing.hpp"

namespace plumb::imported {
namespace {

/// "norm gemm add …": short words for what names say.
KernelLabel kernel_label_of(const std::string& word) {
    static const std::map<std::string, std::pair<std::string_view, std::string_view>> words{
        {"norm", {"rms_norm", ""}},
        {"gemm", {"other_gemm", ""}},
        {"split_k", {"other_gemm", "split_k"}},
        {"add", {"elementwise", "add"}},
        {"mul", {"elementwise", "mul"}},
        {"neg", {"elementwise", "neg"}},
        {"cat", {"elementwise", "cat"}},
        {"mean", {"elementwise", "mean"}},
        {"rsqrt", {"elementwise", "rsqrt"}},
        {"copy", {"copy", ""}},
        {"softmax", {"sampling", "softmax"}},
        {"topk", {"sampling", "topk"}},
        {"gather", {"embedding", "gather"}},
        {"memset", {"fill", "memset"}},
        {"other", {"elementwise", ""}},
        {"pow", {"elementwise", "pow"}}};
    const auto found = words.find(word);
    if (word == "unknown") {
        return {};
    }
    KernelLabel label{found == words.end() ? std::string_view() : found->second.first,
                      {},
                      Certainty::strong,
                      Anchor::none,
                      LabelEvidence::name};
    if (found != words.end()) {
        label.piece = found->second.second;
        label.certainty = word == "norm" ? Certainty::strong : Certainty::weak;
    } else {
        static std::set<std::string> kept;
        label.brick = *kept.insert(word).first;
    }
    label.anchor = anchor_of(label.brick);
    return label;
}

/// Layers are in brackets.
struct Scene {
    std::vector<KernelLabel> pass;
    std::vector<PlaceInLayer> places;

    explicit Scene(const std::string& text) {
        std::istringstream words(text);
        std::uint32_t layer = 0;
        std::uint32_t slot = PlaceInLayer::none;
        for (std::string word; words >> word;) {
            if (word == "[") {
                slot = 0;
            } else if (word == "]") {
                slot = PlaceInLayer::none;
                ++layer;
            } else {
                const bool inside = slot != PlaceInLayer::none;
                pass.push_back(kernel_label_of(word));
                places.push_back(
                    {inside ? layer : PlaceInLayer::none, inside ? 0 : PlaceInLayer::none, inside ? slot++ : slot, 10});
            }
        }
    }
    std::string bricks() const {
        std::string text;
        for (const KernelLabel& label : pass) {
            text += (text.empty() ? "" : " ") + std::string(label.brick);
        }
        return text;
    }
};

std::string placed(const std::string& text) {
    Scene scene(text);
    read_neighbours(scene.pass);
    read_places(scene.pass, scene.places);
    return scene.bricks();
}

TEST(KernelPlace, TellsTheProjectionsOfADenseLayer) {
    EXPECT_EQ(
        placed("[ norm gemm rope_embedding attention gemm add norm gemm activation gemm add ]"),
        "rms_norm qkv_projection rope_embedding attention output_projection residual_add rms_norm gate_up_projection "
        "activation down_projection residual_add");
    EXPECT_EQ(
        placed("[ norm gemm gemm gemm attention gemm norm gemm gemm activation mul gemm ]"),
        "rms_norm qkv_projection qkv_projection qkv_projection attention output_projection rms_norm gate_projection "
        "up_projection activation activation down_projection");
    EXPECT_EQ(placed("[ norm gemm attention gemm norm gemm gemm gemm gemm activation gemm ]"),
              "rms_norm qkv_projection attention output_projection rms_norm gate_up_projection gate_up_projection "
              "gate_up_projection gate_up_projection activation down_projection");
}

TEST(KernelPlace, TellsTheParallelLayerWithoutASecondNorm) {
    EXPECT_EQ(placed("[ norm gemm attention gemm gemm activation gemm ]"),
              "rms_norm qkv_projection attention output_projection gate_up_projection activation down_projection");
}

TEST(KernelPlace, TellsTheLayerWhoseNormsAreInItsReductions) {
    EXPECT_EQ(
        placed("[ gemm attention gemm all_reduce gemm activation gemm all_reduce ]"),
        "qkv_projection attention output_projection all_reduce gate_up_projection activation down_projection all_reduce");
    EXPECT_EQ(
        placed("[ gemm attention gemm all_reduce gemm moe_router moe_experts activation moe_experts all_reduce ]"),
        "qkv_projection attention output_projection all_reduce moe_router moe_router moe_experts activation moe_experts "
        "all_reduce");
}

TEST(KernelPlace, WhatClearsMemoryForAGemmIsThatGemms) {
    EXPECT_EQ(placed("[ norm memset gemm memset attention memset memset gemm norm gemm activation gemm ]"),
              "rms_norm qkv_projection qkv_projection fill attention fill output_projection output_projection rms_norm "
              "gate_up_projection activation down_projection");
}

TEST(KernelPlace, TellsNormsOfQueriesAndKeysFromThoseOfTheLayer) {
    EXPECT_EQ(
        placed("[ norm gemm norm norm rope_embedding attention gemm norm gemm activation gemm ]"),
        "rms_norm qkv_projection qk_norm qk_norm rope_embedding attention output_projection rms_norm gate_up_projection "
        "activation down_projection");
}

TEST(KernelPlace, ReadsEachAttentionOfALayerThatHasTwo) {
    EXPECT_EQ(placed("[ norm gemm norm attention gemm norm gemm attention gemm norm gemm activation gemm ]"),
              "rms_norm qkv_projection qk_norm attention output_projection rms_norm qkv_projection attention "
              "output_projection rms_norm gate_up_projection activation down_projection");
    EXPECT_EQ(
        placed("[ norm gemm norm attention gemm norm gemm activation gemm norm gemm norm attention gemm norm gemm "
               "activation gemm ]"),
        "rms_norm qkv_projection qk_norm attention output_projection rms_norm gate_up_projection activation "
        "down_projection rms_norm qkv_projection qk_norm attention output_projection rms_norm gate_up_projection "
        "activation down_projection");
    EXPECT_EQ(placed("[ norm gemm attention other attention gemm norm gemm activation gemm ]"),
              "rms_norm qkv_projection attention elementwise attention output_projection rms_norm gate_up_projection "
              "activation down_projection");
}

TEST(KernelPlace, TellsTheProjectionsOfTwoMicroBatches) {
    const std::string attention = "norm gemm rope_embedding attention gemm ",
                      read = "rms_norm qkv_projection rope_embedding attention output_projection ";
    EXPECT_EQ(placed("[ " + attention + attention + "norm gemm activation gemm norm gemm activation gemm ]"),
              read + read +
                  "rms_norm gate_up_projection activation down_projection rms_norm gate_up_projection activation "
                  "down_projection");
    EXPECT_EQ(placed("[ " + attention + attention + "norm gemm gemm activation gemm norm gemm gemm activation gemm ]"),
              read + read +
                  "rms_norm gate_projection up_projection activation down_projection rms_norm gate_projection "
                  "up_projection activation down_projection");
    EXPECT_EQ(placed("[ " + attention + attention + "norm norm gemm gemm activation activation gemm gemm ]"),
              read + read +
                  "rms_norm rms_norm gate_up_projection gate_up_projection activation activation down_projection "
                  "down_projection");
}

TEST(KernelPlace, TellsTheExpertsOfTwoMicroBatches) {
    const std::string attention = "norm gemm attention gemm ",
                      read = "rms_norm qkv_projection attention output_projection ";
    const std::string experts = "moe_dispatch moe_experts activation moe_experts moe_combine ";
    EXPECT_EQ(placed("[ " + attention + attention + "norm gemm moe_router " + experts + "add norm gemm moe_router " +
                     experts + "add ]"),
              read + read + "rms_norm moe_router moe_router " + experts +
                  "residual_add rms_norm moe_router moe_router " + experts + "residual_add");
    // The experts of the first run while the second has its attention.
    EXPECT_EQ(
        placed("[ " + attention + "norm gemm moe_router moe_dispatch fused " + attention +
               "norm gemm moe_router moe_experts activation moe_experts moe_dispatch moe_combine moe_experts "
               "activation moe_experts moe_combine ]"),
        read + "rms_norm moe_router moe_router moe_dispatch fused " + read +
            "rms_norm moe_router moe_router moe_experts activation moe_experts moe_dispatch moe_combine moe_experts "
            "activation moe_experts moe_combine");
    EXPECT_EQ(placed("[ " + attention + attention +
                     "norm gemm activation gemm gemm moe_router moe_experts norm gemm activation gemm gemm moe_router "
                     "moe_experts ]"),
              read + read +
                  "rms_norm shared_expert activation shared_expert moe_router moe_router moe_experts rms_norm "
                  "shared_expert activation shared_expert moe_router moe_router moe_experts");
}

TEST(KernelPlace, TellsTheMicroBatchesOfALayerWhoseNormsAreInItsReductions) {
    const std::string attention = "gemm attention gemm all_reduce ",
                      read = "qkv_projection attention output_projection all_reduce ";
    EXPECT_EQ(
        placed("[ " + attention + attention + "gemm activation gemm all_reduce gemm activation gemm all_reduce ]"),
        read + read +
            "gate_up_projection activation down_projection all_reduce gate_up_projection activation "
            "down_projection all_reduce");
}

TEST(KernelPlace, LeavesGemmsOfMicroBatchesThatNothingPartsWithoutARole) {
    // Output and projections, or pieces of one attention? Down and up of as many as stand at the ends.
    EXPECT_EQ(placed("[ gemm attention gemm gemm attention gemm fused gemm activation gemm gemm activation gemm ]"),
              "qkv_projection attention other_gemm other_gemm attention output_projection fused gate_up_projection "
              "activation down_projection gate_up_projection activation down_projection");
    EXPECT_EQ(
        placed("[ norm gemm attention gemm norm gemm activation gemm gemm gemm activation gemm ]"),
        "rms_norm qkv_projection attention output_projection rms_norm other_gemm activation other_gemm other_gemm "
        "other_gemm activation other_gemm");
}

TEST(KernelPlace, ALinearAttentionHasANormBeforeItsOutput) {
    EXPECT_EQ(placed("[ norm gemm linear_attention linear_attention norm gemm norm gemm activation gemm ]"),
              "rms_norm qkv_projection linear_attention linear_attention rms_norm output_projection rms_norm "
              "gate_up_projection activation down_projection");
}

TEST(KernelPlace, TellsRouterAndSharedExpertFromExperts) {
    EXPECT_EQ(
        placed("[ norm gemm attention gemm norm gemm activation gemm gemm split_k moe_router moe_dispatch moe_experts "
               "activation moe_experts moe_combine mul add ]"),
        "rms_norm qkv_projection attention output_projection rms_norm shared_expert activation shared_expert moe_router "
        "moe_router moe_router moe_dispatch moe_experts activation moe_experts moe_combine moe_combine residual_add");
    EXPECT_EQ(
        placed("[ norm gemm attention gemm norm gemm moe_router gemm gemm ]"),
        "rms_norm qkv_projection attention output_projection rms_norm moe_router moe_router moe_experts moe_experts");
}

TEST(KernelPlace, PutsTheRopeOfAnEagerProgramTogether) {
    EXPECT_EQ(
        placed("[ norm gemm mul neg cat mul add copy attention gemm add norm gemm activation gemm ]"),
        "rms_norm qkv_projection rope_embedding rope_embedding rope_embedding rope_embedding rope_embedding copy attention "
        "output_projection residual_add rms_norm gate_up_projection activation down_projection");
}

TEST(KernelPlace, TakesNoBiasForTheResidual) {
    EXPECT_EQ(placed("[ add norm mul gemm add rope_embedding attention gemm add norm gemm activation gemm add ]"),
              "residual_add rms_norm elementwise qkv_projection elementwise rope_embedding attention output_projection "
              "residual_add rms_norm gate_up_projection activation down_projection residual_add");
}

TEST(KernelPlace, JoinsThePiecesOfAnEagerNorm) {
    Scene scene("copy pow mean add rsqrt mul copy mul gemm");
    read_neighbours(scene.pass);
    EXPECT_EQ(scene.bricks(), "rms_norm rms_norm rms_norm rms_norm rms_norm rms_norm rms_norm rms_norm other_gemm");
    EXPECT_EQ(std::count_if(scene.pass.begin(), scene.pass.end(),
                            [](const KernelLabel& label) { return label.anchor == Anchor::norm; }),
              1)
        << "one norm, one anchor";
    EXPECT_EQ(placed("[ norm gemm copy pow mean add rsqrt mul copy mul attention gemm ]"),
              "rms_norm qkv_projection qk_norm qk_norm qk_norm qk_norm qk_norm qk_norm qk_norm qk_norm attention "
              "output_projection");
}

TEST(KernelPlace, FindsAttentionThatNoKernelIsNamedAfter) {
    EXPECT_EQ(placed("norm gemm other gemm softmax copy gemm copy gemm"),
              "rms_norm other_gemm elementwise attention attention attention attention copy other_gemm");
    EXPECT_EQ(placed("gemm softmax gemm attention"), "other_gemm sampling other_gemm attention");
}

TEST(KernelPlace, TakesSoftmaxAndTopKInEveryLayerForARouter) {
    EXPECT_EQ(
        placed("attention gemm topk softmax gemm attention gemm topk other softmax"),
        "attention other_gemm moe_router moe_router other_gemm attention other_gemm moe_router moe_router moe_router");
    EXPECT_EQ(
        placed("attention norm gemm topk softmax attention norm gemm topk softmax norm gemm softmax topk"),
        "attention rms_norm other_gemm moe_router moe_router attention rms_norm other_gemm moe_router moe_router rms_norm "
        "other_gemm sampling sampling");
    EXPECT_EQ(placed("attention gemm attention gemm attention gemm attention gemm softmax topk"),
              "attention other_gemm attention other_gemm attention other_gemm attention other_gemm sampling sampling");
}

TEST(KernelPlace, TellsWhatStandsAroundTheLayers) {
    Scene scene(
        "gather copy [ norm gemm attention gemm norm gemm activation gemm gather ] norm gather gemm gemm split_k copy topk "
        "gather other");
    scene.places[13].ns = 500;
    read_places(scene.pass, scene.places);
    EXPECT_EQ(
        scene.bricks(),
        "embedding copy rms_norm qkv_projection attention output_projection rms_norm gate_up_projection "
        "activation down_projection elementwise rms_norm elementwise lm_head other_gemm other_gemm sampling sampling "
        "embedding elementwise");
}

TEST(KernelPlace, ASlotThatMostLayersKnowIsKnownInAll) {
    Scene scene("[ rms_norm attention ] [ unknown attention ] [ rms_norm attention ] [ unknown attention ]");
    read_places(scene.pass, scene.places);
    EXPECT_EQ(scene.bricks(), "rms_norm attention rms_norm attention rms_norm attention rms_norm attention");
    EXPECT_EQ(scene.pass[2].evidence, LabelEvidence::place);
    EXPECT_EQ(scene.pass[0].evidence, LabelEvidence::name);
}

TEST(KernelPlace, ALayerThatLostAKernelTakesTheRolesOfTheOthers) {
    Scene scene("[ norm gemm attention gemm norm gemm gemm activation gemm ] [ norm gemm attention gemm norm gemm gemm "
                "activation gemm ] [ norm gemm attention gemm norm gemm activation gemm ]");
    for (std::size_t i = 24; i < 26; ++i) {
        ++scene.places[i].slot; // the up projection is the one that is missing
    }
    read_places(scene.pass, scene.places);
    EXPECT_EQ(scene.pass[23].brick, "gate_projection");
    EXPECT_EQ(scene.pass[25].brick, "down_projection");
}

TEST(KernelPlace, KernelsOfALayerMayStandBetweenThoseOfAnother) {
    Scene scene(
        "[ norm gemm attention gemm norm gemm moe_router moe_experts moe_combine ] [ norm gemm attention gemm ]");
    std::swap(scene.pass[8], scene.pass[9]); // a side stream ends late
    std::swap(scene.places[8], scene.places[9]);
    read_places(scene.pass, scene.places);
    EXPECT_EQ(scene.bricks(),
              "rms_norm qkv_projection attention output_projection rms_norm moe_router moe_router moe_experts "
              "rms_norm moe_combine qkv_projection attention output_projection");
}

TEST(KernelPlace, TakesAnyOrderAndAnyPlaces) {
    const std::vector<std::string> words{"norm",       "gemm",        "split_k", "add",     "mul",
                                         "rsqrt",      "copy",        "neg",     "softmax", "attention",
                                         "moe_router", "moe_experts", "gather",  "unknown"};
    std::mt19937 engine(17);
    const auto random = [&](std::uint32_t below) {
        return static_cast<std::uint32_t>(engine() % below);
    };
    for (int trial = 0; trial < 2000; ++trial) {
        Scene scene("");
        for (std::uint32_t n = random(40); n > 0; --n) {
            scene.pass.push_back(kernel_label_of(words[random(14)]));
            scene.places.push_back({random(3) == 0 ? PlaceInLayer::none : random(3), random(2), random(5), 1});
        }
        read_neighbours(scene.pass);
        read_places(scene.pass, scene.places);
        for (const KernelLabel& label : scene.pass) {
            ASSERT_FALSE(label.brick.empty());
        }
    }
    std::vector<KernelLabel> nothing;
    read_neighbours(nothing);
    read_places(nothing, {});
}

} // namespace
} // namespace plumb::imported
