// SPDX-License-Identifier: Apache-2.0
#include "lookalike/model.hpp"

#include <algorithm>

namespace lookalike {

namespace {
constexpr std::size_t memory = 4096 * sizeof(ggml_tensor);
constexpr std::int64_t cache_length = 4096;

// Rows of a cache of F16 that lie by position: a part of each is seen.
ggml_tensor* by_position(ggml_tensor* made) {
    made->nb[1] = cache_length * 2;
    made->nb[2] = made->nb[1] * static_cast<std::size_t>(made->ne[1]);
    made->nb[3] = made->nb[2] * static_cast<std::size_t>(made->ne[2]);
    return made;
}
} // namespace

Graph::Graph(const llama_model& model) : model_(model), context_(ggml_init({memory, nullptr, true})) {}
Graph::~Graph() { ggml_free(context_); }

ggml_tensor* Graph::weight(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t count) {
    const bool vector = out == 0;
    return ggml_set_name(
        ggml_new_tensor_3d(context_, vector ? GGML_TYPE_F32 : GGML_TYPE_Q8_0, in, vector ? 1 : out, count),
        name.c_str());
}

ggml_tensor* Graph::node(const std::string& name, ggml_op op, const char* brick, double ns,
                         std::vector<ggml_tensor*> sources, ggml_type type, std::int64_t ne0, std::int64_t ne1,
                         std::int64_t ne2) {
    ggml_tensor* made = ggml_new_tensor_3d(context_, type, ne0, ne1, ne2);
    made->op = op;
    std::copy(sources.begin(), sources.end(), made->src);
    ggml_set_name(made, name.empty() ? ("node_" + std::to_string(ggml_graph_n_nodes(graph_))).c_str() : name.c_str());
    // Layers differ, so that a node which is taken for another layer's is seen.
    planted_.push_back(
        {brick, layer_, static_cast<std::int64_t>(ns * model_.scale * (1 + 0.1 * layer_)), 0, 0, nullptr});
    made->extra = &planted_.back();
    ggml_build_forward_expand(graph_, made);
    working_ += op != GGML_OP_VIEW && op != GGML_OP_RESHAPE && op != GGML_OP_PERMUTE && op != GGML_OP_TRANSPOSE ? 1 : 0;
    return made;
}
ggml_tensor* Graph::like(const std::string& name, ggml_op op, const char* brick, double ns,
                         std::vector<ggml_tensor*> sources) {
    const ggml_tensor* first = sources[0];
    return node(name, op, brick, ns, std::move(sources), GGML_TYPE_F32, first->ne[0], first->ne[1], first->ne[2]);
}
ggml_tensor* Graph::view(const std::string& name, ggml_op op, ggml_tensor* of) {
    ggml_tensor* made = node(name, op, "", 0, {of}, of->type, of->ne[0], of->ne[1], of->ne[2]);
    made->view_src = of;
    std::copy(of->nb, of->nb + 4, made->nb);
    return made;
}
ggml_tensor* Graph::product(const std::string& name, const char* brick, double ns, ggml_tensor* weight,
                            ggml_tensor* input) {
    ggml_tensor* made =
        node(name, GGML_OP_MUL_MAT, brick, ns, {weight, input}, GGML_TYPE_F32, weight->ne[1], input->ne[1]);
    planted(made)->bytes = static_cast<double>(ggml_nbytes(weight) + ggml_nbytes(input) + ggml_nbytes(made));
    planted(made)->flops = 2.0 * static_cast<double>(weight->ne[0] * ggml_nelements(made));
    return made;
}
ggml_tensor* Graph::norm(const std::string& name, const char* brick, ggml_tensor* input,
                         const std::string& weight_name) {
    ggml_tensor* normed = like(layer_ < 0 ? "norm" : at("norm"), GGML_OP_RMS_NORM, brick, 3'000, {input});
    return like(name, GGML_OP_MUL, brick, 1'000, {normed, weight(weight_name, input->ne[0], 0)});
}

ggml_tensor* Graph::projected(const std::string& name, const std::string& weight_name, ggml_tensor* input,
                              std::int64_t out, bool rotated) {
    ggml_tensor* made = product(name, "qkv_projection", 12'000,
                                weight(of_layer((weight_name + ".weight").c_str()), model_.width, out), input);
    if (model_.bias) {
        made = like(name, GGML_OP_ADD, "qkv_projection", 1'500,
                    {made, weight(of_layer((weight_name + ".bias").c_str()), out, 0)});
    }
    made = view(name + " (reshaped)", GGML_OP_RESHAPE, made);
    if (rotated && model_.qk_norm) {
        made = norm(name + "_normed", "qk_norm", made, of_layer((weight_name + "_norm.weight").c_str()));
    }
    return rotated ? like(name, GGML_OP_ROPE, "rope_embedding", 2'500,
                          {made, ggml_set_name(ggml_new_tensor_1d(context_, GGML_TYPE_I32, tokens_), "inp_pos")})
                   : made;
}

ggml_tensor* Graph::attention(ggml_tensor* input) {
    const std::int64_t kv_width = model_.head() * model_.kv_heads;
    ggml_tensor* q = projected(at("Qcur"), "attn_q", input, model_.width, true);
    ggml_tensor* v = projected(at("Vcur"), "attn_v", input, kv_width, false);
    ggml_tensor* k = projected(at("Kcur"), "attn_k", input, kv_width, true);
    const auto cached = [&](const char* name, ggml_tensor* fresh) {
        ggml_tensor* cache = ggml_set_name(ggml_new_tensor_2d(context_, GGML_TYPE_F16, kv_width, cache_length), name);
        const std::string viewed = std::string(name) + " (view)";
        ggml_tensor* rows = ggml_set_name(ggml_new_tensor_1d(context_, GGML_TYPE_I64, tokens_), "inp_rows");
        ggml_tensor* appended = node(viewed, GGML_OP_SET_ROWS, "kv_append", 2'000, {fresh, rows, cache}, GGML_TYPE_F16,
                                     kv_width, cache_length);
        appended->view_src = cache;
        planted(appended)->bytes = static_cast<double>(tokens_ * ((4 + 2) * kv_width + 8));
        ggml_tensor* seen = node(viewed, GGML_OP_VIEW, "", 0, {cache}, GGML_TYPE_F16, kv_width, kv_padded_);
        seen->view_src = cache;
        return view(viewed + " (permuted)", GGML_OP_PERMUTE, seen);
    };
    const std::string number = std::to_string(layer_);
    // Without flash attention values lie by position, so that what is written and what is read is in pieces.
    const auto cached_by_position = [&](const char* name, ggml_tensor* fresh) {
        ggml_tensor* cache = ggml_set_name(ggml_new_tensor_2d(context_, GGML_TYPE_F16, kv_width, cache_length), name);
        const std::string viewed = std::string(name) + " (view)";
        ggml_tensor* turned =
            node(at("Vcur") + " (transposed)", GGML_OP_TRANSPOSE, "", 0, {fresh}, GGML_TYPE_F32, tokens_, kv_width);
        turned->nb[1] = turned->nb[0];
        turned->nb[0] = fresh->nb[1];
        ggml_tensor* place = by_position(node(viewed, GGML_OP_VIEW, "", 0, {cache}, GGML_TYPE_F16, tokens_, kv_width));
        ggml_tensor* appended = by_position(node(viewed + " (copy of " + turned->name + ")", GGML_OP_CPY, "kv_append",
                                                 2'000, {turned, place}, GGML_TYPE_F16, tokens_, kv_width));
        planted(appended)->bytes = static_cast<double>(tokens_ * (4 + 2) * kv_width);
        ggml_tensor* seen = by_position(
            node(viewed, GGML_OP_VIEW, "", 0, {cache}, GGML_TYPE_F16, kv_padded_, model_.head(), model_.kv_heads));
        return view(viewed + " (permuted)", GGML_OP_PERMUTE, seen);
    };
    ggml_tensor* keys = cached(("cache_k_l" + number).c_str(), k);
    const std::string values_name = "cache_v_l" + number;
    ggml_tensor* values = model_.flash ? cached(values_name.c_str(), v) : cached_by_position(values_name.c_str(), v);
    const auto query = static_cast<double>(model_.width * tokens_);
    const auto key = static_cast<double>(2 * kv_width); // or value, of one position
    const auto scores = static_cast<double>(model_.heads * tokens_);
    ggml_tensor* mask =
        ggml_set_name(ggml_new_tensor_2d(context_, GGML_TYPE_F16, kv_padded_, tokens_), "attn_inp_kq_mask");
    if (model_.flash) {
        ggml_tensor* attended = node("__fattn__-" + number, GGML_OP_FLASH_ATTN_EXT, "attention", 15'000,
                                     {view(at("Qcur") + " (permuted)", GGML_OP_PERMUTE, q), keys, values, mask},
                                     GGML_TYPE_F32, model_.width, tokens_);
        by_length_.push_back({planted(attended), 8 * query, 2 * key + 2 * static_cast<double>(tokens_), 4 * query});
        return view(at("kqv_out"), GGML_OP_RESHAPE, attended);
    }
    ggml_tensor* kq = node(at("kq"), GGML_OP_MUL_MAT, "attention", 8'000, {keys, q}, GGML_TYPE_F32, kv_padded_, tokens_,
                           model_.heads);
    ggml_tensor* weights = like(at("kq_soft_max"), GGML_OP_SOFT_MAX, "attention", 4'000, {kq, mask});
    ggml_tensor* kqv = node(at("kqv"), GGML_OP_MUL_MAT, "attention", 6'000, {values, weights}, GGML_TYPE_F32,
                            model_.head(), tokens_, model_.heads);
    by_length_.push_back({planted(kq), 4 * query, key + 4 * scores, 2 * query});
    by_length_.push_back({planted(weights), 0, 0, scores});
    by_length_.push_back({planted(kqv), 4 * query, key + 4 * scores, 2 * query});
    return node(at("kqv_out"), GGML_OP_CONT, "attention|ggml_cont", 1'500,
                {view(at("kqv_merged"), GGML_OP_PERMUTE, kqv)}, GGML_TYPE_F32, model_.width, tokens_);
}

ggml_tensor* Graph::feed_forward(ggml_tensor* input) {
    const std::int64_t width = model_.width, inner = model_.inner;
    ggml_tensor* gate =
        product(at("ffn_gate"), "gate_projection", 20'000, weight(of_layer("ffn_gate.weight"), width, inner), input);
    ggml_tensor* up =
        product(at("ffn_up"), "up_projection", 18'000, weight(of_layer("ffn_up.weight"), width, inner), input);
    ggml_tensor* active = like(at("ffn_swiglu"), GGML_OP_GLU, "activation", 3'000, {gate, up});
    return product(at("ffn_out"), "down_projection", 22'000, weight(of_layer("ffn_down.weight"), inner, width), active);
}

ggml_tensor* Graph::experts(ggml_tensor* input) {
    const std::int64_t width = model_.width, inner = model_.inner, used = model_.used_experts, rows = input->ne[1];
    ggml_tensor* logits = product(at("ffn_moe_logits"), "moe_router", 5'000,
                                  weight(of_layer("ffn_gate_inp.weight"), width, model_.experts), input);
    ggml_tensor* probabilities =
        like(at("ffn_moe_probs"), GGML_OP_SOFT_MAX, "moe_router|ggml_soft_max", 2'000, {logits});
    ggml_tensor* sorted = node(at("ffn_moe_argsort"), GGML_OP_ARGSORT, "moe_router|ggml_argsort", 2'000,
                               {probabilities}, GGML_TYPE_I32, model_.experts, rows);
    ggml_tensor* chosen = view(at("ffn_moe_topk"), GGML_OP_VIEW, sorted);
    ggml_tensor* weights = node(at("ffn_moe_weights"), GGML_OP_GET_ROWS, "moe_router|moe_combine|ggml_get_rows", 1'500,
                                {probabilities, chosen}, GGML_TYPE_F32, 1, used, rows);
    const auto by_expert = [&](const char* name, const char* weight_name, std::int64_t in, std::int64_t out,
                               ggml_tensor* from) {
        ggml_tensor* all = weight(of_layer(weight_name), in, out, model_.experts);
        ggml_tensor* made = node(at(name), GGML_OP_MUL_MAT_ID, "moe_experts", 16'000, {all, from, chosen},
                                 GGML_TYPE_F32, out, used, rows);
        planted(made)->flops = 2.0 * static_cast<double>(in * ggml_nelements(made));
        return made;
    };
    ggml_tensor* gate = by_expert("ffn_moe_gate", "ffn_gate_exps.weight", width, inner, input);
    ggml_tensor* up = by_expert("ffn_moe_up", "ffn_up_exps.weight", width, inner, input);
    ggml_tensor* active = like(at("ffn_moe_swiglu"), GGML_OP_GLU, "activation|moe_experts", 3'000, {gate, up});
    ggml_tensor* down = by_expert("ffn_moe_down", "ffn_down_exps.weight", inner, width, active);
    ggml_tensor* weighted = like(at("ffn_moe_weighted"), GGML_OP_MUL, "moe_combine|ggml_mul", 2'000, {down, weights});
    return node(at("ffn_moe_out"), GGML_OP_ADD, "moe_combine|ggml_add", 2'000, {weighted}, GGML_TYPE_F32, width, rows);
}

bool Graph::build(std::int64_t tokens, std::int64_t outputs, std::int64_t kv_padded) {
    if (tokens == tokens_ && outputs == outputs_ && kv_padded == kv_padded_) {
        return false;
    }
    tokens_ = tokens;
    outputs_ = outputs;
    kv_padded_ = kv_padded;
    ggml_reset(context_);
    planted_.clear();
    by_length_.clear();
    working_ = 0;
    layer_ = -1;
    graph_ = ggml_new_graph_custom(context_, 8192, false);
    ggml_tensor* ids = ggml_set_name(ggml_new_tensor_1d(context_, GGML_TYPE_I32, tokens), "inp_tokens");
    ggml_tensor* in = node("embd", GGML_OP_GET_ROWS, "embedding", 3'000,
                           {weight("token_embd.weight", model_.width, model_.vocab.tokens), ids}, GGML_TYPE_F32,
                           model_.width, tokens);
    planted(in)->bytes = static_cast<double>(
        static_cast<std::size_t>(tokens) * (ggml_row_size(GGML_TYPE_Q8_0, model_.width) + 4) + ggml_nbytes(in));
    for (layer_ = 0; layer_ < model_.layers; ++layer_) {
        ggml_tensor* attended = attention(norm(at("attn_norm"), "rms_norm", in, of_layer("attn_norm.weight")));
        ggml_tensor* out = product(at("attn_out"), "output_projection", 14'000,
                                   weight(of_layer("attn_output.weight"), model_.width, model_.width), attended);
        if (layer_ == model_.layers - 1 && outputs < tokens) { // the rest of the tokens is not needed any more
            ggml_tensor* rows = ggml_set_name(ggml_new_tensor_1d(context_, GGML_TYPE_I32, outputs), "inp_out_ids");
            out = node("", GGML_OP_GET_ROWS, "ggml_get_rows", 1'000, {out, rows}, GGML_TYPE_F32, model_.width, outputs);
            in = node("", GGML_OP_GET_ROWS, "ggml_get_rows", 1'000, {in, rows}, GGML_TYPE_F32, model_.width, outputs);
        }
        ggml_tensor* inner_in = like(at("ffn_inp"), GGML_OP_ADD, "residual_add", 2'000, {out, in});
        ggml_tensor* normed = norm(at("ffn_norm"), "rms_norm", inner_in, of_layer("ffn_norm.weight"));
        in = like(at("l_out"), GGML_OP_ADD, "residual_add", 2'000,
                  {model_.moe ? experts(normed) : feed_forward(normed), inner_in});
    }
    layer_ = -1;
    product("result_output", "lm_head", 80'000, weight("output.weight", model_.width, model_.vocab.tokens),
            norm("result_norm", "rms_norm", in, "output_norm.weight"));
    return true;
}

void Graph::prepare(Step* step, std::int64_t kv_length) {
    graph_->step = step;
    for (Planted& one : planted_) {
        one.step = step;
    }
    const auto positions = static_cast<double>(kv_length);
    for (const ByLength& one : by_length_) {
        one.planted->bytes = kv_length > 0 && one.bytes > 0 ? one.bytes + one.bytes_per_position * positions : 0;
        one.planted->flops = one.flops_per_position * positions;
    }
}

} // namespace lookalike
