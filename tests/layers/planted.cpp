// SPDX-License-Identifier: Apache-2.0
// Sequences planned here, so that the layer of every kernel is known.
#include <string_view>

#include "layers/sequences.hpp"

namespace plumb {
namespace {

/// Appends kernels written as letters: A attention, n norm, M MLP, R router, g GEMM, E embedding, S sampling, . any other. Each letter
/// at each place of a text is a name of its own, so that the same text is the same kernels again.
class Plan {
  public:
    explicit Plan(std::string name) { sequence_.name = std::move(name); }

    /// `variant` makes another kernel of every letter in `varied`.
    Plan& put(std::string_view text, std::int32_t layer, std::uint32_t family, std::string_view varied = {},
              std::uint32_t variant = 0) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            SequenceKernel kernel;
            const bool varies = varied.find(text[i]) != std::string_view::npos;
            kernel.name = 1000 * family + static_cast<std::uint32_t>(i) + (varies ? 100 * variant : 0);
            kernel.anchor = anchor_of(text[i]);
            const std::int64_t duration = (text[i] == 'g'   ? 20'000
                                           : text[i] == 'A' ? 35'000
                                                            : 5'000) +
                                          std::uniform_int_distribution<std::int64_t>(0, 1'000)(random_);
            kernel.begin_ns = now_;
            kernel.end_ns = now_ += duration;
            now_ += std::uniform_int_distribution<std::int64_t>(500, 2'000)(random_);
            sequence_.kernels.push_back(kernel);
            sequence_.truth.push_back({layer});
        }
        if (layer >= 0) {
            sequence_.layers = std::max(sequence_.layers, static_cast<std::uint32_t>(layer) + 1);
        }
        return *this;
    }

    Plan& outside(std::string_view text, std::uint32_t family) { return put(text, in_no_layer, family); }
    Plan& wait(std::int64_t ns) {
        now_ += ns;
        return *this;
    }
    TruthSequence done() const { return sequence_; }

  private:
    static LayerAnchor anchor_of(char letter) {
        constexpr std::string_view letters = ".AnMRgES";
        return static_cast<LayerAnchor>(letters.find(letter));
    }

    TruthSequence sequence_;
    std::int64_t now_ = 1'000'000;
    std::mt19937 random_{7};
};

constexpr std::string_view dense_layer = "ng.nn..AgngMg.", moe_layer = "ng.nn..AgngRR.M.M...", tail = "ngS.";

} // namespace

std::vector<TruthSequence> planted_sequences() {
    std::vector<TruthSequence> planned;
    {
        Plan plan("dense");
        plan.outside("..E", 1);
        for (int layer = 0; layer < 32; ++layer) {
            plan.put(dense_layer, layer, 2);
        }
        planned.push_back(plan.outside(tail, 3).done());
    }
    {
        Plan plan("dense and MoE, as 3 + 58");
        plan.outside("E", 1);
        for (int layer = 0; layer < 3; ++layer) {
            plan.put("ng.nn..AgngMg.", layer, 2);
        }
        for (int layer = 3; layer < 61; ++layer) { // the first nine kernels are those of the dense layers
            plan.put("ng.nn..Ag", layer, 2).put("ngRR.M.M...", layer, 4);
        }
        planned.push_back(plan.outside(tail, 3).done());
    }
    {
        Plan plan("dense and MoE of one length, as 3 + 9"); // and both norms of a layer are the same kernel
        plan.outside("E", 1);
        for (int layer = 0; layer < 12; ++layer) {
            plan.put("n", layer, 2)
                .put("g.Ag", layer, 3)
                .put("n", layer, 2)
                .put(layer < 3 ? "gMg" : "RMM", layer, layer < 3 ? 4 : 5);
        }
        planned.push_back(plan.outside("gS", 6).done());
    }
    {
        Plan plan("alternating windows");
        plan.outside("E", 1);
        for (int layer = 0; layer < 36; ++layer) {
            plan.put(dense_layer, layer, 2, "A", static_cast<std::uint32_t>(layer % 2));
        }
        planned.push_back(plan.outside(tail, 3).done());
    }
    {
        Plan plan("another first layer");
        plan.outside(".........E.", 1);
        for (int layer = 0; layer < 28; ++layer) {
            plan.put(moe_layer, layer, 2, "n", layer == 0 ? 1 : 0);
        }
        planned.push_back(plan.outside("n..gSSSS....", 3).done());
    }
    {
        Plan plan("two micro-batches"); // attention of both, then MLP of both
        plan.outside("E", 1);
        for (int layer = 0; layer < 24; ++layer) {
            plan.put("ng.nn..Agng.nn..Ag", layer, 2).put("ngMg.ngMg.", layer, 4);
        }
        planned.push_back(plan.outside(tail, 3).done());
        planned.back().ambiguous = true;
    }
    return planned;
}

TruthSequence planted_passes() {
    Plan plan("the end of a pass, then three whole ones");
    for (int pass = 0; pass < 4; ++pass) {
        plan.wait(300'000);
        if (pass > 0) {
            plan.put("...E", pass, 1);
        }
        for (int layer = pass > 0 ? 0 : 15; layer < 20; ++layer) {
            plan.put(dense_layer, pass, 2);
        }
        plan.put("ngS..", pass, 3);
    }
    return plan.done();
}

} // namespace plumb
