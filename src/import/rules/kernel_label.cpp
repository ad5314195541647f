// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_label.hpp"

#include <utility>

namespace plumb::imported {

const char* evidence_word(LabelEvidence evidence) noexcept {
    static constexpr const char* words[] = {"unknown", "place", "name", "capture", "stack", "annotation"};
    return words[static_cast<std::size_t>(evidence)];
}

Anchor anchor_of(std::string_view brick) noexcept {
    // A qk_norm stands inside a layer's attention, so it is no norm to find layers by.
    static constexpr std::pair<std::string_view, Anchor> known[] = {
        {"attention", Anchor::attention}, {"linear_attention", Anchor::attention},
        {"rms_norm", Anchor::norm},       {"layer_norm", Anchor::norm},
        {"activation", Anchor::mlp},      {"moe_dispatch", Anchor::mlp},
        {"moe_experts", Anchor::mlp},     {"moe_combine", Anchor::mlp},
        {"moe_router", Anchor::router},   {"embedding", Anchor::embedding},
        {"sampling", Anchor::sampling},   {"other_gemm", Anchor::gemm},
    };
    for (const auto& [name, anchor] : known) {
        if (name == brick) {
            return anchor;
        }
    }
    return Anchor::none;
}

} // namespace plumb::imported
