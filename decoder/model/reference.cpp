// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "decoder/gguf/reader.hpp"
#include "decoder/model/reference_values.hpp"

namespace plumb::decoder::reference {
namespace {

using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

/// A file whose tensors are unpacked when they are first asked for.
struct Model {
    gguf::File file;
    std::string arch;
    mutable std::map<std::string, Vector, std::less<>> unpacked;

    const gguf::Value* find(const std::string& key) const { return file.contents().find(arch + "." + key); }
    std::size_t count(const std::string& key) const {
        return static_cast<std::size_t>(find(key)->as_unsigned().value());
    }
    std::size_t count(const std::string& key, std::size_t otherwise) const {
        return find(key) ? count(key) : otherwise;
    }
    double real(const std::string& key) const { return find(key)->as_number().value(); }
    std::string text(const std::string& key) const {
        return find(key) ? std::string(find(key)->as_string().value()) : std::string();
    }

    bool has(const std::string& name) const { return file.contents().tensor(name) != nullptr; }
    const Vector& values(const std::string& name) const {
        Vector& out = unpacked[name];
        if (out.empty()) {
            const gguf::TensorInfo& tensor = *file.contents().tensor(name);
            out = values_of(tensor.type, tensor.data, static_cast<std::size_t>(tensor.elements));
        }
        return out;
    }

    /// Matrix `expert` of a tensor that may hold several, times x.
    Vector product(const std::string& name, const Vector& x, std::size_t expert = 0) const {
        const Vector& w = values(name + ".weight");
        const bool biased = has(name + ".bias");
        Vector y(file.contents().tensor(name + ".weight")->size[1]);
        for (std::size_t o = 0; o < y.size(); ++o) {
            double sum = biased ? values(name + ".bias")[o] : 0.0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                sum += w[(expert * y.size() + o) * x.size() + i] * x[i];
            }
            y[o] = sum;
        }
        return y;
    }

    /// Each run of as many values as there are weights by itself.
    Vector norm(const std::string& name, const Vector& x) const {
        const Vector& w = values(name + ".weight");
        Vector y(x.size());
        for (std::size_t begin = 0; begin < x.size(); begin += w.size()) {
            double squares = 0;
            for (std::size_t i = 0; i < w.size(); ++i) {
                squares += x[begin + i] * x[begin + i];
            }
            const double root =
                std::sqrt(squares / static_cast<double>(w.size()) + real("attention.layer_norm_rms_epsilon"));
            for (std::size_t i = 0; i < w.size(); ++i) {
                y[begin + i] = x[begin + i] / root * w[i];
            }
        }
        return y;
    }
};

/// The angle by which pair i of `pairs` turns from one position to the next, and the length that it gets.
struct RotaryTurn {
    double angle;
    double length;
};

RotaryTurn turn_of(const Model& model, std::size_t i, std::size_t pairs) {
    const double base = model.real("rope.freq_base");
    double angle = std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
    if (model.has("rope_freqs.weight")) {
        angle /= model.values("rope_freqs.weight")[i];
    }
    const std::string kind = model.text("rope.scaling.type");
    if (kind.empty()) {
        return {angle, 1};
    }
    const double factor = model.real("rope.scaling.factor");
    if (kind == "linear") {
        return {angle / factor, 1};
    }
    // YaRN: pairs that turn more than 32 times in the first context stay, those below one turn are slowed down.
    const double context = model.real("rope.scaling.original_context_length");
    const auto pair_of = [&](double turns) {
        return static_cast<double>(pairs) * std::log(context / (turns * 2 * std::acos(-1.0))) / std::log(base);
    };
    const double low = std::max(0.0, std::floor(pair_of(32)));
    const double high = std::min(2.0 * static_cast<double>(pairs) - 1, std::ceil(pair_of(1)));
    const double slowed = std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / (high - low)));
    return {angle * (1 - slowed) + angle / factor * slowed, 1 + 0.1 * std::log(factor)};
}

/// Turns each head of `x` by the angles of `position`: neighbours for llama, halves for the others.
void turn(const Model& model, Vector& x, std::size_t head_size, std::size_t position) {
    const bool halves = model.arch != "llama";
    for (std::size_t i = 0; i < head_size / 2; ++i) {
        const RotaryTurn by = turn_of(model, i, head_size / 2);
        const double angle = static_cast<double>(position) * by.angle;
        for (std::size_t head = 0; head < x.size(); head += head_size) {
            double& a = x[head + (halves ? i : 2 * i)];
            double& b = x[head + (halves ? i + head_size / 2 : 2 * i + 1)];
            const double before = a;
            a = by.length * (before * std::cos(angle) - b * std::sin(angle));
            b = by.length * (before * std::sin(angle) + b * std::cos(angle));
        }
    }
}

/// Attention of the query at `position` over the keys and values that it sees.
Vector attend(const Vector& query, const Rows& keys, const Rows& values, std::size_t position, std::size_t head_size,
              std::size_t group, std::size_t window) {
    Vector out(query.size(), 0.0);
    for (std::size_t head = 0; head < query.size() / head_size; ++head) {
        const std::size_t kv = head / group * head_size;
        Vector weight(position + 1, 0.0);
        double sum = 0;
        for (std::size_t p = 0; p <= position; ++p) {
            if (window != 0 && position - p >= window) {
                continue;
            }
            double score = 0;
            for (std::size_t i = 0; i < head_size; ++i) {
                score += query[head * head_size + i] * keys[p][kv + i];
            }
            weight[p] = std::exp(score / std::sqrt(static_cast<double>(head_size)));
            sum += weight[p];
        }
        for (std::size_t p = 0; p <= position; ++p) {
            for (std::size_t i = 0; i < head_size; ++i) {
                out[head * head_size + i] += weight[p] / sum * values[p][kv + i];
            }
        }
    }
    return out;
}

void add(Vector& x, const Vector& y, double factor = 1) {
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] += factor * y[i];
    }
}

/// The gated network whose tensors are called so, or one expert's.
Vector feed_forward(const Model& model, const std::string& block, const std::string& suffix, const Vector& x,
                    std::size_t expert = 0) {
    Vector gate = model.product(block + "ffn_gate" + suffix, x, expert);
    const Vector up = model.product(block + "ffn_up" + suffix, x, expert);
    for (std::size_t i = 0; i < gate.size(); ++i) {
        const double g = gate[i];
        const double gelu = 0.5 * g * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (g + 0.044715 * g * g * g)));
        gate[i] = (model.arch == "gemma" ? gelu : g / (1.0 + std::exp(-g))) * up[i];
    }
    return model.product(block + "ffn_down" + suffix, gate, expert);
}

Vector mixture(const Model& model, const std::string& block, const Vector& x) {
    const Vector logits = model.product(block + "ffn_gate_inp", x);
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    order.resize(model.count("expert_used_count"));
    double sum = 0;
    for (const std::size_t expert : order) {
        sum += std::exp(logits[expert]);
    }
    Vector out(x.size(), 0.0);
    for (const std::size_t expert : order) {
        add(out, feed_forward(model, block, "_exps", x, expert), std::exp(logits[expert]) / sum);
    }
    return out;
}

void layer(const Model& model, std::size_t index, Rows& hidden) {
    const std::string block = "blk." + std::to_string(index) + ".";
    const std::size_t heads = model.count("attention.head_count");
    const std::size_t group = heads / model.count("attention.head_count_kv");
    const std::size_t head_size = model.count("attention.key_length");
    const std::size_t window = model.count("attention.sliding_window", 0);
    Rows query, key, value;
    for (std::size_t p = 0; p < hidden.size(); ++p) {
        const Vector x = model.norm(block + "attn_norm", hidden[p]);
        query.push_back(model.product(block + "attn_q", x));
        key.push_back(model.product(block + "attn_k", x));
        value.push_back(model.product(block + "attn_v", x));
        if (model.arch.starts_with("qwen3")) {
            query[p] = model.norm(block + "attn_q_norm", query[p]);
            key[p] = model.norm(block + "attn_k_norm", key[p]);
        }
        turn(model, query[p], head_size, p);
        turn(model, key[p], head_size, p);
    }
    for (std::size_t p = 0; p < hidden.size(); ++p) {
        const Vector seen = attend(query[p], key, value, p, head_size, group, window);
        add(hidden[p], model.product(block + "attn_output", seen));
        const Vector x = model.norm(block + "ffn_norm", hidden[p]);
        add(hidden[p], model.find("expert_count") ? mixture(model, block, x) : feed_forward(model, block, "", x));
    }
}

} // namespace

std::vector<double> logits(const std::string& path, const std::vector<std::int32_t>& tokens) {
    Result<gguf::File> file = gguf::File::open(path);
    if (!file) {
        std::abort();
    }
    Model model{std::move(*file), {}, {}};
    model.arch = model.file.contents().find("general.architecture")->as_string().value();
    const std::size_t width = model.count("embedding_length");
    const Vector& embedding = model.values("token_embd.weight");
    const double scale = model.arch == "gemma" ? std::sqrt(static_cast<double>(width)) : 1.0;
    Rows hidden;
    for (const std::int32_t token : tokens) {
        Vector row(width, 0.0);
        for (std::size_t i = 0; i < width; ++i) {
            row[i] = scale * embedding[static_cast<std::size_t>(token) * width + i];
        }
        hidden.push_back(row);
    }
    for (std::size_t index = 0; index < model.count("block_count"); ++index) {
        layer(model, index, hidden);
    }
    return model.product(model.has("output.weight") ? "output" : "token_embd",
                         model.norm("output_norm", hidden.back()));
}

} // namespace plumb::decoder::reference
