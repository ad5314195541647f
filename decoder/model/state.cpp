// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/state.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>

namespace plumb::decoder {
namespace {

/// Takes memory from the backend; remembers the first error.
class Memory {
  public:
    Memory(ComputeBackend& backend, std::vector<Buffer>& kept) : backend_(backend), kept_(kept) {}

    void* take(std::size_t count, std::size_t each) {
        if (count > std::numeric_limits<std::size_t>::max() / 2 / each) {
            count = 0, too_much();
        }
        if (!status_) {
            return nullptr;
        }
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

    ComputeBackend& backend_;
    std::vector<Buffer>& kept_;
    Status status_;
};

/// The pair at which a frequency turns so often within the original context. YaRN, https://arxiv.org/abs/2309.00071.
double pair_that_turns(const ModelConfig& config, double turns) {
    const double width = static_cast<double>(config.rope_size);
    return width * std::log(config.rope_scaling.original_context / (2 * std::numbers::pi * turns)) /
           (2 * std::log(config.rope_base));
}

/// What becomes of a frequency, and of the size of cos and sin, where the context is stretched.
class Stretch {
  public:
    explicit Stretch(const ModelConfig& config) : scaling_(config.rope_scaling) {
        if (scaling_.kind != RopeScaling::Kind::yarn) {
            return;
        }
        const double last = static_cast<double>(config.rope_size) - 1;
        low_ = std::clamp(std::floor(pair_that_turns(config, scaling_.beta_fast)), 0.0, last);
        high_ = std::clamp(std::ceil(pair_that_turns(config, scaling_.beta_slow)), 0.0, last);
    }
    [[nodiscard]] double frequency(double plain, std::size_t pair) const {
        if (scaling_.kind == RopeScaling::Kind::none) {
            return plain;
        }
        const double stretched = plain / scaling_.factor;
        if (scaling_.kind == RopeScaling::Kind::linear) {
            return stretched;
        }
        const double along = (static_cast<double>(pair) - low_) / std::max(0.001, high_ - low_);
        const double kept = (1 - std::clamp(along, 0.0, 1.0)) * scaling_.extrapolation;
        return stretched * (1 - kept) + plain * kept;
    }
    [[nodiscard]] double magnitude() const {
        if (scaling_.kind != RopeScaling::Kind::yarn) {
            return 1;
        }
        return scaling_.magnitude * (1 + 0.1 * std::log(scaling_.factor));
    }

  private:
    RopeScaling scaling_;
    double low_ = 0, high_ = 0;
};

/// cos and sin of every position, in double: the angle of a late position loses its digits in float.
std::vector<float> rope_table(const State& state) {
    std::vector<float> table(state.context * state.config.rope_size);
    const std::size_t pairs = state.rope.pairs;
    const Stretch stretch(state.config);
    const double size = stretch.magnitude();
    for (std::size_t i = 0; i < pairs; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(state.config.rope_size);
        double plain = std::pow(state.config.rope_base, exponent);
        if (state.weights.rope_factors) {
            plain /= static_cast<double>(state.weights.rope_factors[i]);
        }
        const double frequency = stretch.frequency(plain, i);
        for (std::size_t position = 0; position < state.context; ++position) {
            const double angle = static_cast<double>(position) * frequency;
            table[position * 2 * pairs + i] = static_cast<float>(size * std::cos(angle));
            table[position * 2 * pairs + pairs + i] = static_cast<float>(size * std::sin(angle));
        }
    }
    return table;
}

/// Known once and for all: computed in the step it would cost time between the bricks.
Cost cost_of(const Linear& linear, Type input) {
    const double outputs = static_cast<double>(linear.weight.rows);
    const double inputs = static_cast<double>(linear.weight.cols);
    const double bias = linear.bias != nullptr ? outputs * sizeof(float) : 0;
    return {static_cast<double>(linear.weight.bytes()) + bias,
            inputs * static_cast<double>(size_of(input)) + outputs * sizeof(float), 2 * inputs * outputs};
}

/// The backend's input for products with all of these; f32 serves every type.
Type common_input(const ComputeBackend& backend, std::initializer_list<const Linear*> linears) {
    const Type first = (*linears.begin())->weight.type;
    for (const Linear* linear : linears) {
        if (linear->weight.type != first) {
            return Type::f32;
        }
    }
    return backend.input_type(first);
}

/// One input type for each half of all layers, so that they share the blocks.
void set_inputs(State& state) {
    const ComputeBackend& backend = *state.backend;
    const auto agree = [](Type& kept, Type next, bool first) {
        kept = first || kept == next ? next : Type::f32;
    };
    bool first = true;
    for (const LayerWeights& layer : state.weights.layers) {
        agree(state.input, common_input(backend, {&layer.query, &layer.key, &layer.value, &layer.output}), first);
        if (state.config.experts.count == 0) {
            agree(state.feed_input, common_input(backend, {&layer.gate, &layer.up, &layer.down}), first);
        }
        first = false;
    }
    state.head_input = backend.input_type(state.weights.head.weight.type);
}

void set_costs(State& state) {
    for (LayerWeights& layer : state.weights.layers) {
        for (Linear* linear : {&layer.query, &layer.key, &layer.value, &layer.output}) {
            linear->cost = cost_of(*linear, state.input);
        }
        for (Linear* linear : {&layer.gate, &layer.up, &layer.down, &layer.router}) {
            linear->cost = cost_of(*linear, state.feed_input);
        }
    }
    state.weights.head.cost = cost_of(state.weights.head, state.head_input);
}

void allocate_experts(State& state, Memory& memory, std::size_t rows) {
    const Experts& experts = state.config.experts;
    const std::size_t slots = rows * experts.used;
    const auto numbers = [&](std::size_t count) {
        return static_cast<std::int32_t*>(memory.take(count, sizeof(std::int32_t)));
    };
    state.routing = {experts.count,  experts.used, experts.normalise, experts.scale,
                     numbers(slots), nullptr,      numbers(slots),    numbers(experts.count + 1)};
    state.routing.weight = static_cast<float*>(memory.take(slots, sizeof(float)));
    state.routed = memory.block(rows, experts.count, Type::f32);
    state.dispatched = memory.block(slots, state.config.hidden, Type::f32);
    state.expert_gate = memory.block(slots, experts.feed_forward, Type::f32);
    state.expert_up = memory.block(slots, experts.feed_forward, Type::f32);
    state.expert_out = memory.block(slots, state.config.hidden, Type::f32);
}

void allocate_blocks(State& state, Memory& memory) {
    const ModelConfig& config = state.config;
    const std::size_t rows = std::max(state.chunk, state.batch);
    state.hidden = memory.block(rows, config.hidden, Type::f32);
    // The halves of a layer share the memory: one is done when the other begins.
    state.feed_normed = memory.block(rows, config.hidden, Type::f32);
    state.feed_normed.type = state.feed_input;
    state.attention_normed = state.feed_normed;
    state.attention_normed.type = state.input;
    state.query = memory.block(rows, config.query_size(), Type::f32);
    state.key = memory.block(rows, config.kv_size(), Type::f32);
    state.value = memory.block(rows, config.kv_size(), Type::f32);
    state.attended = memory.block(rows, config.query_size(), state.input);
    state.projected = memory.block(rows, config.hidden, Type::f32);
    if (config.experts.count != 0) {
        allocate_experts(state, memory, rows);
    } else {
        state.gate = memory.block(rows, config.feed_forward, Type::f32);
        state.up = memory.block(rows, config.feed_forward, Type::f32);
        state.activated = memory.block(rows, config.feed_forward, state.feed_input);
    }
    state.last = memory.block(state.batch, config.hidden, state.head_input);
    state.logits = memory.block(state.batch, state.weights.vocabulary(), Type::f32);
}

/// Errors: unsupported, where the model needs what the device does not do.
Status check_features(const ModelConfig& config, const ComputeBackend& backend) {
    const struct {
        bool needed;
        Feature feature;
        const char* what;
    } wishes[] = {{config.experts.count != 0, Feature::experts, "mixtures of experts"},
                  {config.activation == Activation::gelu, Feature::gelu, "gelu activations"},
                  {config.embedding_scale != 1, Feature::scale, "scaled embeddings"},
                  {config.window != 0, Feature::window, "sliding windows"}};
    for (const auto& wish : wishes) {
        if (wish.needed && !backend.supports(wish.feature)) {
            return Error{ErrorCode::unsupported,
                         "this device does not decode models with " + std::string(wish.what) + "; use --backend cpu"};
        }
    }
    return {};
}

} // namespace

Status State::prepare_constants() {
    Status status = backend->prepare_table(weights.embedding);
    const auto norm = [&](const float* values, std::size_t count) {
        status = status && values != nullptr ? backend->prepare_vector(values, count) : status;
    };
    norm(weights.output_norm, config.hidden);
    for (const LayerWeights& layer : weights.layers) {
        norm(layer.attention_norm, config.hidden), norm(layer.feed_forward_norm, config.hidden);
        norm(layer.query_norm, heads.size), norm(layer.key_norm, heads.size);
    }
    return status;
}

Status State::prepare(std::size_t rows) {
    Status status;
    const auto ready = [&](Linear& linear) {
        if (status) {
            status = backend->prepare(linear, rows);
        }
    };
    for (LayerWeights& layer : weights.layers) {
        layer.each_linear(ready);
        for (const Stack* stack : layer.stacks()) {
            if (status && stack->count != 0) {
                status = backend->prepare(*stack);
            }
        }
    }
    for (const std::size_t ends : {std::size_t{1}, batch}) {
        if (status) {
            status = backend->prepare(weights.head, ends);
        }
    }
    return status;
}

Result<State> make_state(ModelConfig config, Weights weights, ComputeBackend& backend, std::size_t context,
                         std::size_t chunk, std::size_t batch) {
    if (Status status = check_features(config, backend); !status) {
        return status.error();
    }
    State state;
    state.config = std::move(config);
    state.weights = std::move(weights);
    state.backend = &backend;
    state.context = context;
    state.chunk = chunk;
    state.batch = batch;
    state.used.assign(batch, 0);
    state.sampled.assign(batch, -1);
    state.heads = {state.config.heads, state.config.kv_heads, state.config.head_size, state.config.window};
    set_inputs(state);
    set_costs(state);

    Memory memory(backend, state.memory);
    allocate_blocks(state, memory);
    const std::size_t cache_values = context * state.config.kv_size();
    for (std::size_t layer = 0; layer < state.config.layers && memory.status(); ++layer) {
        auto* keys = static_cast<float*>(memory.take(cache_values * batch, sizeof(float)));
        auto* values = static_cast<float*>(memory.take(cache_values * batch, sizeof(float)));
        for (std::size_t i = 0; i < batch && memory.status(); ++i) {
            state.caches.push_back({keys + i * cache_values, values + i * cache_values, context});
        }
    }
    state.scratch =
        static_cast<float*>(memory.take(context * static_cast<std::size_t>(backend.threads()), sizeof(float)));
    auto* table = static_cast<float*>(memory.take(context * state.config.rope_size, sizeof(float)));
    if (!memory.status()) {
        return memory.status().error();
    }
    state.rope = {table, state.config.rope_size / 2, state.config.rope_halves};
    const std::vector<float> angles = rope_table(state);
    backend.write(table, angles.data(), angles.size() * sizeof(float));
    if (Status status = state.prepare_constants(); !status) {
        return status.error();
    }
    if (Status status = backend.prepare_attention(state.heads, std::max(chunk, batch)); !status) {
        return status.error();
    }
    for (const std::size_t rows : {std::size_t{1}, batch, chunk}) {
        if (Status status = state.prepare(rows); !status) {
            return status.error();
        }
    }
    return state;
}

} // namespace plumb::decoder
