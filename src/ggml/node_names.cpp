// SPDX-License-Identifier: Apache-2.0
#include "ggml/node_names.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace plumb::ggml {
namespace {

struct Rule {
    std::string_view part;
    Brick brick;
};

template <std::size_t Count>
std::optional<Brick> first_in(std::string_view text, const Rule (&rules)[Count]) {
    for (const Rule& rule : rules) {
        if (text.find(rule.part) != text.npos) {
            return rule.brick;
        }
    }
    return std::nullopt;
}

// By parts of the name of a weight or bias. The first that fits: what contains another stands before it.
constexpr Rule of_weights[] = {
    {"attn_q_norm", Brick::qk_norm},
    {"attn_k_norm", Brick::qk_norm},
    {"norm", Brick::rms_norm},
    {"attn_output", Brick::output_projection},
    {"attn_qkv", Brick::qkv_projection},
    {"attn_q", Brick::qkv_projection},
    {"attn_k", Brick::qkv_projection},
    {"attn_v", Brick::qkv_projection},
    {"ffn_gate_inp", Brick::moe_router},
    {"exp_probs", Brick::moe_router},
    {"exps", Brick::moe_experts},
    {"ffn_gate_up", Brick::gate_up_projection},
    {"ffn_gate", Brick::gate_projection},
    {"ffn_up", Brick::up_projection},
    {"ffn_down", Brick::down_projection},
    {"ssm_", Brick::linear_attention},
    {"rope_freqs", Brick::rope_embedding},
};

// By parts of the node's own name, for nodes of a mixture of experts.
constexpr Rule of_experts[] = {
    {"ffn_moe_logits", Brick::moe_router},  {"ffn_moe_probs", Brick::moe_router},
    {"ffn_moe_argsort", Brick::moe_router}, {"ffn_moe_topk", Brick::moe_router},
    {"ffn_moe_weights", Brick::moe_router}, {"ffn_moe_weighted", Brick::moe_combine},
    {"ffn_moe_out", Brick::moe_combine},
};

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<std::int32_t> number_at(std::string_view text, std::size_t at, bool to_the_end) {
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    const bool whole = !to_the_end || end == text.data() + text.size();
    return error == std::errc{} && value >= 0 && whole ? std::optional(value) : std::nullopt;
}

} // namespace

std::optional<Brick> brick_of(const NodeWords& node) {
    const std::string_view operation = node.operation;
    if (node.weight == "token_embd.weight" || one_of(node.weight, {"output.weight", "output.bias"})) {
        return operation == "GET_ROWS" ? Brick::embedding : Brick::lm_head;
    }
    if (!node.weight.empty()) {
        if (node.weight.ends_with("norm.bias")) {
            return Brick::layer_norm;
        }
        if (const std::optional<Brick> brick = first_in(node.weight, of_weights)) {
            return brick;
        }
    }
    if (const std::optional<Brick> brick = first_in(node.name, of_experts)) {
        return brick;
    }
    if (operation == "FLASH_ATTN_EXT" || node.name.starts_with("kq")) { // kq, kq_soft_max, kqv, kqv_out

        return Brick::attention;
    }
    if (operation == "ROPE") {
        return Brick::rope_embedding;
    }
    if (one_of(operation, {"SET_ROWS", "CPY"}) &&
        (node.name.starts_with("cache_") || node.name.starts_with("k_cache_view") ||
         node.name.starts_with("v_cache_view"))) {
        return Brick::kv_append;
    }
    if (operation == "RMS_NORM") {
        return Brick::rms_norm;
    }
    if (operation == "NORM") {
        return Brick::layer_norm;
    }
    if (operation == "ADD" && (node.name.starts_with("ffn_inp") || node.name.starts_with("l_out"))) {
        return Brick::residual_add;
    }
    if (one_of(operation, {"SWIGLU", "SWIGLU_OAI", "GEGLU", "GEGLU_ERF", "GEGLU_QUICK", "REGLU", "SILU", "GELU",
                           "GELU_ERF", "GELU_QUICK", "RELU"}) ||
        node.name.starts_with("ffn_gate_par") || node.name.starts_with("ffn_swiglu")) {
        return Brick::activation;
    }
    return std::nullopt;
}

std::string other_name(std::string_view operation) {
    std::string name = "ggml_";
    for (const char c : operation) {
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return name;
}

std::optional<std::int32_t> layer_in(std::string_view name) {
    if (name.starts_with("blk.")) {
        return number_at(name, 4, false);
    }
    if (name.starts_with("cache_")) {
        const std::size_t at = name.find("_l");
        return at != name.npos ? number_at(name, at + 2, false) : std::nullopt;
    }
    const std::size_t dash = name.find_last_of('-');
    return dash != name.npos ? number_at(name, dash + 1, true) : std::nullopt;
}

std::int32_t layer_of(const NodeWords& node, std::int32_t before) {
    const std::optional<std::int32_t> of_weight = layer_in(node.weight);
    const std::optional<std::int32_t> stated = of_weight ? of_weight : layer_in(node.name);
    const bool after_layers = node.name.starts_with("result_") || node.name == "norm";
    return stated ? *stated : after_layers ? -1 : before;
}

bool is_norm_with_weight(const NodeWords& node) {
    return one_of(node.operation, {"RMS_NORM", "NORM"}) && (node.name == "norm" || node.name.starts_with("norm-"));
}

bool computes_nothing(std::string_view operation) {
    return one_of(operation, {"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE"});
}

} // namespace plumb::ggml
