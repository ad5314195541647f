# SPDX-License-Identifier: Apache-2.0
"""Writes a small decoder as an ONNX file, with nodes named as the usual exporters name them and weights that are the same each time.

usage: onnx_model.py FILE"""

import array
import math
import random
import struct
import sys

LAYERS, HEADS, HIDDEN, INNER, VOCABULARY, POSITIONS = 4, 8, 512, 1408, 4096, 512
FLOAT, INT32, INT64 = 1, 6, 7  # of TensorProto


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, kind, shape, data):
    return b"".join(number(1, size) for size in shape) + number(2, kind) + block(8, name) + block(9, data)


def attribute(name, value):
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    return block(1, name) + number(3, value) + number(20, 2)


def value(name, kind, shape):
    sizes = b"".join(block(1, number(1, size) if isinstance(size, int) else block(2, size)) for size in shape)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, sizes)))


class Model:
    """A graph that grows node by node."""

    def __init__(self):
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        noise = random.Random(1)
        self.noise = array.array("f", (noise.gauss(0, 1) for _ in range(65537)))

    def weight(self, name, *shape, ones=False):
        count = math.prod(shape)
        if ones:
            data = array.array("f", [1.0]) * count
        else:
            start = sum(map(ord, name)) * 31 % len(self.noise)
            scaled = array.array("f", (x * shape[0] ** -0.5 for x in self.noise))
            turned = scaled[start:] + scaled[:start]
            data = (turned * (count // len(turned) + 1))[:count]
        self.weights.append(tensor(name, FLOAT, shape, data.tobytes()))
        return name

    def table(self, name, shape, values):
        self.weights.append(tensor(name, FLOAT, shape, array.array("f", values).tobytes()))
        return name

    def node(self, name, operation, inputs, outputs=None, domain="", **attributes):
        outputs = outputs or [f"{name}/output_0"]
        made = b"".join(block(1, text) for text in inputs) + b"".join(block(2, text) for text in outputs)
        made += block(3, name) + block(4, operation) + b"".join(block(5, attribute(*pair)) for pair in attributes.items())
        self.nodes.append(made + (block(7, domain) if domain else b""))
        return outputs[0]

    def product(self, name, data, rows, columns):
        return self.node(f"{name}/MatMul", "MatMul", [data, self.weight(f"{name}.weight", rows, columns)])

    def norm(self, name, data):
        return self.node(f"{name}/LayerNorm", "SimplifiedLayerNormalization", [data, self.weight(f"{name}.weight", HIDDEN, ones=True)],
                         axis=-1 & (1 << 64) - 1, epsilon=1e-5)

    def write(self, path):
        graph = b"".join(block(1, node) for node in self.nodes) + block(2, "decoder") + b"".join(block(5, weight) for weight in self.weights)
        graph += b"".join(block(11, one) for one in self.inputs) + b"".join(block(12, one) for one in self.outputs)
        opsets = block(8, number(2, 17)) + block(8, block(1, "com.microsoft") + number(2, 1))
        with open(path, "wb") as file:
            file.write(number(1, 8) + block(2, "plumbline tests") + block(7, graph) + opsets)


def layer(model, index, data, cos, sin):
    at, size = f"/model/layers.{index}", HIDDEN // HEADS
    normed = model.norm(f"{at}/input_layernorm", data)
    queries, keys, values = (model.product(f"{at}/attn/{part}_proj", normed, HIDDEN, HIDDEN) for part in "qkv")
    cache = [f"past_key_values.{index}.key", f"past_key_values.{index}.value"]
    grown = [f"present.{index}.key", f"present.{index}.value"]
    model.inputs += [value(name, FLOAT, ["batch", HEADS, "past", size]) for name in cache]
    model.outputs += [value(name, FLOAT, ["batch", HEADS, "total", size]) for name in grown]
    attended = model.node(f"{at}/attn/GroupQueryAttention", "GroupQueryAttention",
                          [queries, keys, values, *cache, "seqlens_k", "total_sequence_length", cos, sin],
                          [f"{at}/attn/output_0", *grown], "com.microsoft", num_heads=HEADS, kv_num_heads=HEADS, do_rotary=1)
    data = model.node(f"{at}/Add", "Add", [data, model.product(f"{at}/attn/o_proj", attended, HIDDEN, HIDDEN)])
    normed = model.norm(f"{at}/post_attention_layernorm", data)
    gate = model.product(f"{at}/mlp/gate_proj", normed, HIDDEN, INNER)
    up = model.product(f"{at}/mlp/up_proj", normed, HIDDEN, INNER)
    gated = model.node(f"{at}/mlp/act_fn/Mul", "Mul", [gate, model.node(f"{at}/mlp/act_fn/Sigmoid", "Sigmoid", [gate])])
    inner = model.node(f"{at}/mlp/Mul", "Mul", [gated, up])
    return model.node(f"{at}/Add_1", "Add", [data, model.product(f"{at}/mlp/down_proj", inner, INNER, HIDDEN)])


def main():
    model = Model()
    model.inputs = [value("input_ids", INT64, ["batch", "length"]), value("attention_mask", INT64, ["batch", "total"]),
                    value("seqlens_k", INT32, ["batch"]), value("total_sequence_length", INT32, [])]
    model.outputs = [value("logits", FLOAT, ["batch", "length", VOCABULARY])]
    half = HIDDEN // HEADS // 2
    angles = [position * 10000 ** (-i / half) for position in range(POSITIONS) for i in range(half)]
    cos = model.table("cos_cache", (POSITIONS, half), map(math.cos, angles))
    sin = model.table("sin_cache", (POSITIONS, half), map(math.sin, angles))
    data = model.node("/model/embed_tokens/Gather", "Gather", [model.weight("model.embed_tokens.weight", VOCABULARY, HIDDEN), "input_ids"])
    for index in range(LAYERS):
        data = layer(model, index, data, cos, sin)
    data = model.norm("/model/norm", data)
    model.node("/lm_head/MatMul", "MatMul", [data, model.weight("lm_head.weight", HIDDEN, VOCABULARY)], ["logits"])
    model.write(sys.argv[1])


if __name__ == "__main__":
    main()
