// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/state.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace plumb::decoder {
namespace {

/// Takes memory from the backend; remembers the first error.
class Memory {
  public:
    Memory(Backend& backend, std::vector<Buffer>& kept) : backend_(backend), kept_(kept) {}

    void* take(std::size_t count, std::size_t each) {
        if (count > std::numeric_limits<std::size_t>::max() / 2 / each)
            count = 0, too_much();
        if (!status_)
            return nullptr;
        Result<Buffer> buffer = backend_.allocate(count * each);
        if (!buffer) {
            status_ = buffer.error();
            return nullptr;
        }
        kept_.push_back(std::move(*buffer));
        return kept_.back().get();
    }

    Block block(std::size_t rows, std::size_t cols, Type type) {
        return {take(rows * cols, size_of(type)), type, rows, cols};
    }
    [[nodiscard]] const Status& status() const noexcept { return status_; }

  private:
    void too_much() {
        status_ =
            Error{ErrorCode::out_of_memory, "the buffers are larger than any memory; use a smaller --ctx or --chunk"};
    }

    Backend& backend_;
    std::vector<Buffer>& kept_;
    Status status_;
};

/// cos and sin of every position, in double: the angle of a late position loses its digits in float.
void fill_rope(const State& state, float* table) {
    const std::size_t pairs = state.rope.pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(state.config.rope_size);
        double frequency = std::pow(state.config.rope_base, exponent) / state.config.rope_scale;
        if (state.weights.rope_factors)
            frequency /= static_cast<double>(state.weights.rope_factors[i]);
        for (std::size_t position = 0; position < state.context; ++position) {
            const double angle = static_cast<double>(position) * frequency;
            table[position * 2 * pairs + i] = static_cast<float>(std::cos(angle));
            table[position * 2 * pairs + pairs + i] = static_cast<float>(std::sin(angle));
        }
    }
}

/// Known once and for all: computed in the step it would cost time between the bricks.
Cost cost_of(const Linear& linear, Type input) {
    const double outputs = static_cast<double>(linear.weight.rows);
    const double inputs = static_cast<double>(linear.weight.cols);
    const double bias = linear.bias != nullptr ? outputs * sizeof(float) : 0;
    return {static_cast<double>(linear.weight.bytes()) + bias,
            inputs * static_cast<double>(size_of(input)) + outputs * sizeof(float), 2 * inputs * outputs};
}

void set_costs(State& state) {
    for (LayerWeights& layer : state.weights.layers)
        for (Linear* linear :
             {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down})
            linear->cost = cost_of(*linear, state.input);
    state.weights.head.cost = cost_of(state.weights.head, state.head_input);
}

void allocate_blocks(State& state, Memory& memory) {
    const ModelConfig& config = state.config;
    const std::size_t rows = state.chunk;
    state.hidden = memory.block(rows, config.hidden, Type::f32);
    state.normed = memory.block(rows, config.hidden, state.input);
    state.query = memory.block(rows, config.query_size(), Type::f32);
    state.key = memory.block(rows, config.kv_size(), Type::f32);
    state.value = memory.block(rows, config.kv_size(), Type::f32);
    state.attended = memory.block(rows, config.query_size(), state.input);
    state.projected = memory.block(rows, config.hidden, Type::f32);
    state.gate = memory.block(rows, config.feed_forward, Type::f32);
    state.up = memory.block(rows, config.feed_forward, Type::f32);
    state.activated = memory.block(rows, config.feed_forward, state.input);
    state.last = memory.block(1, config.hidden, state.head_input);
    state.logits = memory.block(1, state.weights.vocabulary(), Type::f32);
}

} // namespace

Status State::prepare_constants() {
    Status status = backend->prepare_table(weights.embedding);
    const auto norm = [&](const float* values) {
        status = status && values != nullptr ? backend->prepare_vector(values, config.hidden) : status;
    };
    norm(weights.output_norm);
    for (const LayerWeights& layer : weights.layers)
        norm(layer.attention_norm), norm(layer.feed_forward_norm);
    return status;
}

Status State::prepare(std::size_t rows) {
    for (LayerWeights& layer : weights.layers)
        for (Linear* linear :
             {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down})
            if (Status status = backend->prepare(*linear, rows); !status)
                return status;
    return backend->prepare(weights.head, 1);
}

Result<State> make_state(ModelConfig config, Weights weights, Backend& backend, std::size_t context,
                         std::size_t chunk) {
    State state;
    state.config = std::move(config);
    state.weights = std::move(weights);
    state.backend = &backend;
    state.context = context;
    state.chunk = chunk;
    state.heads = {state.config.heads, state.config.kv_heads, state.config.head_size};
    state.input = backend.input_type(state.weights.type);
    state.head_input = backend.input_type(state.weights.head.weight.type);

    set_costs(state);

    Memory memory(backend, state.memory);
    allocate_blocks(state, memory);
    const std::size_t cache_values = context * state.config.kv_size();
    for (std::size_t layer = 0; layer < state.config.layers && memory.status(); ++layer) {
        auto* keys = static_cast<float*>(memory.take(cache_values, sizeof(float)));
        auto* values = static_cast<float*>(memory.take(cache_values, sizeof(float)));
        state.cache.push_back({keys, values, context});
    }
    state.scratch =
        static_cast<float*>(memory.take(context * static_cast<std::size_t>(backend.threads()), sizeof(float)));
    auto* table = static_cast<float*>(memory.take(context * state.config.rope_size, sizeof(float)));
    if (!memory.status())
        return memory.status().error();
    state.rope = {table, state.config.rope_size / 2, state.config.rope_halves};
    fill_rope(state, table);
    backend.written(table, context * state.config.rope_size * sizeof(float));
    if (Status status = state.prepare_constants(); !status)
        return status.error();
    if (Status status = state.prepare(1); !status)
        return status.error();
    if (Status status = state.prepare(chunk); !status)
        return status.error();
    return state;
}

} // namespace plumb::decoder
