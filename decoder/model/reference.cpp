// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/reference.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "decoder/gguf/reader.hpp"

namespace plumb::decoder::reference {
namespace {

using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

struct Model {
    gguf::File file;
    std::string arch;

    std::size_t count(const std::string& key) const {
        return static_cast<std::size_t>(file.contents().find(arch + "." + key)->as_unsigned().value());
    }
    double real(const std::string& key) const { return file.contents().find(arch + "." + key)->as_number().value(); }

    /// Element i of a tensor, whatever its type.
    static double at(const gguf::Tensor& tensor, std::size_t i) {
        if (tensor.type == 0) {
            float value = 0;
            std::memcpy(&value, tensor.data.data() + 4 * i, 4);
            return static_cast<double>(value);
        }
        std::uint32_t bits = 0;
        std::memcpy(reinterpret_cast<char*>(&bits) + 2, tensor.data.data() + 2 * i, 2);
        float value = 0;
        std::memcpy(&value, &bits, 4);
        return static_cast<double>(value);
    }

    Vector product(const std::string& name, const Vector& x) const {
        const gguf::Tensor& w = *file.contents().tensor(name + ".weight");
        const gguf::Tensor* bias = file.contents().tensor(name + ".bias");
        Vector y(w.size[1]);
        for (std::size_t o = 0; o < y.size(); ++o) {
            double sum = bias ? at(*bias, o) : 0.0;
            for (std::size_t i = 0; i < x.size(); ++i)
                sum += at(w, o * x.size() + i) * x[i];
            y[o] = sum;
        }
        return y;
    }

    Vector norm(const std::string& name, const Vector& x) const {
        const gguf::Tensor& w = *file.contents().tensor(name + ".weight");
        double squares = 0;
        for (const double v : x)
            squares += v * v;
        const double root =
            std::sqrt(squares / static_cast<double>(x.size()) + real("attention.layer_norm_rms_epsilon"));
        Vector y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
            y[i] = x[i] / root * at(w, i);
        return y;
    }
};

/// Turns each head of `x` by the angles of `position`: neighbours for llama, halves for qwen2.
void turn(Vector& x, std::size_t head_size, std::size_t position, double base, bool halves) {
    for (std::size_t head = 0; head < x.size(); head += head_size)
        for (std::size_t i = 0; i < head_size / 2; ++i) {
            const double angle = static_cast<double>(position) *
                                 std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_size));
            double& a = x[head + (halves ? i : 2 * i)];
            double& b = x[head + (halves ? i + head_size / 2 : 2 * i + 1)];
            const double before = a;
            a = before * std::cos(angle) - b * std::sin(angle);
            b = before * std::sin(angle) + b * std::cos(angle);
        }
}

/// Attention of the last row of `query` over all keys and values up to `position`.
Vector attend(const Vector& query, const Rows& keys, const Rows& values, std::size_t position, std::size_t head_size,
              std::size_t group) {
    Vector out(query.size(), 0.0);
    for (std::size_t head = 0; head < query.size() / head_size; ++head) {
        const std::size_t kv = head / group * head_size;
        Vector weight(position + 1);
        double sum = 0;
        for (std::size_t p = 0; p <= position; ++p) {
            double score = 0;
            for (std::size_t i = 0; i < head_size; ++i)
                score += query[head * head_size + i] * keys[p][kv + i];
            weight[p] = std::exp(score / std::sqrt(static_cast<double>(head_size)));
            sum += weight[p];
        }
        for (std::size_t p = 0; p <= position; ++p)
            for (std::size_t i = 0; i < head_size; ++i)
                out[head * head_size + i] += weight[p] / sum * values[p][kv + i];
    }
    return out;
}

void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] += y[i];
}

void layer(const Model& model, std::size_t index, Rows& hidden) {
    const std::string block = "blk." + std::to_string(index) + ".";
    const std::size_t heads = model.count("attention.head_count");
    const std::size_t group = heads / model.count("attention.head_count_kv");
    const std::size_t head_size = model.count("attention.key_length");
    const bool halves = model.arch == "qwen2";
    const double base = model.real("rope.freq_base");
    Rows query, key, value;
    for (std::size_t p = 0; p < hidden.size(); ++p) {
        const Vector x = model.norm(block + "attn_norm", hidden[p]);
        query.push_back(model.product(block + "attn_q", x));
        key.push_back(model.product(block + "attn_k", x));
        value.push_back(model.product(block + "attn_v", x));
        turn(query[p], head_size, p, base, halves);
        turn(key[p], head_size, p, base, halves);
    }
    for (std::size_t p = 0; p < hidden.size(); ++p) {
        add(hidden[p], model.product(block + "attn_output", attend(query[p], key, value, p, head_size, group)));
        const Vector x = model.norm(block + "ffn_norm", hidden[p]);
        Vector gate = model.product(block + "ffn_gate", x);
        const Vector up = model.product(block + "ffn_up", x);
        for (std::size_t i = 0; i < gate.size(); ++i)
            gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
        add(hidden[p], model.product(block + "ffn_down", gate));
    }
}

} // namespace

std::vector<double> logits(const std::string& path, const std::vector<std::int32_t>& tokens) {
    Result<gguf::File> file = gguf::File::open(path);
    if (!file)
        std::abort();
    Model model{std::move(*file), {}};
    model.arch = model.file.contents().find("general.architecture")->as_string().value();
    const gguf::Tensor& embedding = *model.file.contents().tensor("token_embd.weight");
    const std::size_t width = model.count("embedding_length");
    Rows hidden;
    for (const std::int32_t token : tokens) {
        Vector row(width);
        for (std::size_t i = 0; i < width; ++i)
            row[i] = Model::at(embedding, static_cast<std::size_t>(token) * width + i);
        hidden.push_back(row);
    }
    for (std::size_t index = 0; index < model.count("block_count"); ++index)
        layer(model, index, hidden);
    const bool tied = model.file.contents().tensor("output.weight") == nullptr;
    return model.product(tied ? "token_embd" : "output", model.norm("output_norm", hidden.back()));
}

} // namespace plumb::decoder::reference
