// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/node_label.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace plumb::attach::onnxruntime {
namespace {

struct Case {
    const char* name;
    const char* operation;
    const char* brick;
    int layer;
};

TEST(NodeLabel, comes_from_the_modules_in_the_name_and_from_the_operator) {
    const Case cases[] = {
        {"/model/embed_tokens/Gather", "Gather", "embedding", -1},
        {"/model/layers.3/input_layernorm/LayerNorm", "SimplifiedLayerNormalization", "rms_norm", 3},
        {"/model/layers.3/input_layernorm/LayerNorm", "LayerNormalization", "layer_norm", 3},
        {"/model/layers.3/input_layernorm/Pow", "Pow", "rms_norm", 3},
        {"/model/layers.3/attn/q_norm/LayerNorm", "SimplifiedLayerNormalization", "qk_norm", 3},
        {"/model/layers.3/attn/q_proj/MatMul", "MatMul", "qkv_projection", 3},
        {"/model/layers.3/attn/qkv_proj/MatMulNBits", "MatMulNBits", "qkv_projection", 3},
        {"/model/layers.3/attn/k_rotary/RotaryEmbedding", "RotaryEmbedding", "rope_embedding", 3},
        {"/model/layers.3/attn/GroupQueryAttention", "GroupQueryAttention", "attention", 3},
        {"/model/layers.3/self_attn/MatMul_1", "MatMul", "attention", 3},
        {"/model/layers.3/self_attn/Softmax", "Softmax", "attention", 3},
        {"/model/layers.3/self_attn/Concat_2", "Concat", "kv_append", 3},
        {"/model/layers.3/self_attn/Transpose", "Transpose", "onnx_Transpose", 3},
        {"/model/layers.3/attn/o_proj/MatMul", "MatMul", "output_projection", 3},
        {"/model/layers.3/Add", "Add", "residual_add", 3},
        {"/model/layers.3/Mul", "Mul", "onnx_Mul", 3},
        {"/model/layers.12/mlp/gate_proj/MatMul", "MatMul", "gate_projection", 12},
        {"/model/layers.12/mlp/up_proj/MatMul", "MatMul", "up_projection", 12},
        {"/model/layers.12/mlp/act_fn/Sigmoid", "Sigmoid", "activation", 12},
        {"/model/layers.12/mlp/Mul", "Mul", "activation", 12},
        {"/model/layers.12/mlp/down_proj/MatMul", "MatMul", "down_projection", 12},
        {"/transformer/h.5/attn/c_attn/Gemm", "Gemm", "qkv_projection", 5},
        {"/model/norm/LayerNorm", "SimplifiedLayerNormalization", "rms_norm", -1},
        {"/lm_head/MatMul", "MatMul", "lm_head", -1},
        {"node_linear_5", "MatMul", "onnx_MatMul", -1},
        {"", "Gelu", "activation", -1},
        {"/model/attn_mask_reformat/Gather", "Gather", "onnx_Gather", -1},
        {"/model/layers.99999999999/mlp/Mul", "Mul", "activation", -1},
    };
    for (const Case& one : cases) {
        const NodeLabel label = label_of(one.name, one.operation);
        EXPECT_EQ(label.brick, one.brick) << one.name << ' ' << one.operation;
        EXPECT_EQ(label.layer, one.layer) << one.name;
    }
}

ProfiledNode node(const char* operation, const char* inputs, const char* outputs, double activation, double parameter,
                  double output) {
    ProfiledNode made;
    made.operation = operation;
    made.inputs = inputs;
    made.outputs = outputs;
    made.activation_bytes = activation;
    made.parameter_bytes = parameter;
    made.output_bytes = output;
    return made;
}

TEST(NodeWork, a_product_has_the_bytes_of_a_weight_that_was_packed_and_is_not_told) {
    const Work packed = work_of(node("MatMul", R"([{"float":[1,2,64]}])", R"([{"float":[1,2,96]}])", 512, 0, 768));
    EXPECT_EQ(packed.bytes, 512 + 768 + 64 * 96 * 4);
    EXPECT_EQ(packed.flops, 2.0 * 2 * 64 * 96);
    const Work told = work_of(
        node("MatMul", R"([{"float":[1,2,64]},{"float":[64,96]}])", R"([{"float":[1,2,96]}])", 512, 24576, 768));
    EXPECT_EQ(told.bytes, packed.bytes);
    EXPECT_EQ(told.flops, packed.flops);
}

TEST(NodeWork, of_weights_in_few_bits_the_size_is_not_known_and_so_there_are_no_bytes) {
    const Work work = work_of(node("MatMulNBits", R"([{"float":[1,1,64]}])", R"([{"float":[1,1,96]}])", 256, 0, 384));
    EXPECT_TRUE(std::isnan(work.bytes));
    EXPECT_EQ(work.flops, 2.0 * 64 * 96);
}

TEST(NodeWork, what_reads_a_part_of_its_operands_has_no_bytes) {
    for (const char* operation : {"Gather", "GroupQueryAttention", "QMoE", "Reshape", "Gemm"}) {
        const Work work =
            work_of(node(operation, R"([{"float":[4096,64]}])", R"([{"float":[1,64]}])", 8, 1048576, 256));
        EXPECT_TRUE(std::isnan(work.bytes)) << operation;
        EXPECT_TRUE(std::isnan(work.flops)) << operation;
    }
    EXPECT_EQ(
        work_of(node("Add", R"([{"float":[1,64]},{"float":[1,64]}])", R"([{"float":[1,64]}])", 512, 0, 256)).bytes,
        768);
}

TEST(NodeWork, sizes_that_are_not_told_are_absent) {
    EXPECT_TRUE(std::isnan(work_of(node("Add", "", "", -1, 0, 256)).bytes));
    EXPECT_TRUE(std::isnan(work_of(node("MatMul", "", "", 8, 0, 256)).flops));
}

} // namespace
} // namespace plumb::attach::onnxruntime
