// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/step.hpp"

#include "plumb/check.hpp"

#if !defined(PLUMB_DECODER_STEP)
#define PLUMB_DECODER_STEP run_step
#endif

namespace plumb::decoder {
namespace {

constexpr std::size_t float_bytes = sizeof(float);

Block rows_of(const Block& block, std::size_t rows) { return {block.data, block.type, rows, block.cols}; }

DType dtype_of(Type type) { return type == Type::f32 ? DType::f32 : DType::bf16; }

Tensor tensor_of(const Block& block) { return tensor(block.data, dtype_of(block.type), {block.rows, block.cols}); }

/// The rows of a cache that hold the positions first … first + rows: [rows][kv_heads][head_size].
Tensor cache_rows(const float* values, const KvCache& cache, const HeadShape& shape, std::size_t first,
                  std::size_t rows) {
    const auto row = static_cast<std::ptrdiff_t>(shape.size);
    return tensor(values + first * shape.size, DType::f32, {rows, shape.kv_heads, shape.size},
                  {row, row * static_cast<std::ptrdiff_t>(cache.context), 1});
}

double product_bytes(const Linear& linear, double rows) { return linear.cost.bytes + rows * linear.cost.row_bytes; }

/// The operations of one step, with what they share.
class Pass {
  public:
    Pass(State& state, const StepInput& input, Recorder& profiler)
        : state_(state), input_(input), profiler_(profiler), backend_(*state.backend), queue_(backend_.queue()),
          rows_(input.tokens.size()), first_(state.used), hidden_(rows_of(state.hidden, rows_)) {}

    void embed() {
        const Block out = hidden_;
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::embedding, tensor(input_.tokens.data(), DType::i32, {rows_, 1}));
        {
            PLUMB_BRICK(profiler_, queue_, Brick::embedding, elements(rows_ * out.cols), flops(0),
                        bytes(rows_ * out.cols * (size_of(state_.weights.embedding.type) + float_bytes)));
            backend_.embed(input_.tokens, state_.weights.embedding, out);
        }
        PLUMB_CHECK(profiler_, queue_, Brick::embedding, tensor_of(out));
    }

    void norm(const Block& in, const float* weight, const Block& out) {
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::rms_norm, tensor_of(in), last_of(in));
        {
            PLUMB_BRICK(profiler_, queue_, Brick::rms_norm, bytes(in.bytes() + in.cols * float_bytes + out.bytes()),
                        flops(4.0 * static_cast<double>(in.rows * in.cols)));
            backend_.rms_norm(in, weight, state_.config.epsilon, out);
        }
        PLUMB_CHECK(profiler_, queue_, Brick::rms_norm, tensor_of(out), last_of(out));
    }

    /// `tags` say more of the output to whoever checks it.
    template <class... Tags>
    void project(Brick brick, const Linear& linear, const Block& in, const Block& out, Tags... tags) {
        PLUMB_CHECK_INPUT(profiler_, queue_, brick, tensor_of(in), last_of(in));
        {
            PLUMB_BRICK(profiler_, queue_, brick, bytes(product_bytes(linear, static_cast<double>(in.rows))),
                        flops(static_cast<double>(in.rows) * linear.cost.row_flops));
            const Product product{&linear, out};
            backend_.products(in, {&product, 1});
        }
        PLUMB_CHECK(profiler_, queue_, brick, tensor_of(out), last_of(out), tags...);
    }

    void residual(const Block& addend) {
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::residual_add, tensor_of(hidden_));
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::residual_add, tensor_of(addend));
        {
            PLUMB_BRICK(profiler_, queue_, Brick::residual_add, bytes(3 * addend.bytes()),
                        flops(addend.rows * addend.cols));
            backend_.add(hidden_, addend);
        }
        PLUMB_CHECK(profiler_, queue_, Brick::residual_add, tensor_of(hidden_));
    }

    void attention_half(const LayerWeights& layer, const KvCache& cache);
    void feed_forward_half(const LayerWeights& layer);
    void head();
    std::int32_t sample();

  private:
    void attend(const KvCache& cache, const Block& query, const Block& out);

    /// Position of the first row of a block that ends with the step's last token.
    [[nodiscard]] PositionTag last_of(const Block& block) const noexcept {
        return position(static_cast<std::int64_t>(first_ + rows_ - block.rows));
    }

    State& state_;
    const StepInput& input_;
    Recorder& profiler_;
    Backend& backend_;
    const Queue queue_;
    const std::size_t rows_;
    const std::size_t first_;
    const Block hidden_;
};

void Pass::attend(const KvCache& cache, const Block& query, const Block& out) {
    // Every row reads the keys and values before it; together rows * first + rows * (rows + 1) / 2 positions.
    const double seen = static_cast<double>(rows_ * first_) + 0.5 * static_cast<double>(rows_ * (rows_ + 1));
    const double kv_row = 2.0 * static_cast<double>(state_.config.kv_size() * float_bytes);
    PLUMB_CHECK_INPUT(profiler_, queue_, Brick::attention, tensor_of(query));
    {
        PLUMB_BRICK(profiler_, queue_, Brick::attention, bytes(query.bytes() + out.bytes()), bytes_per_kv(kv_row),
                    flops(4.0 * seen * static_cast<double>(state_.config.query_size())));
        backend_.attention(cache, state_.heads, query, first_, state_.scratch, out);
    }
    PLUMB_CHECK(profiler_, queue_, Brick::attention, tensor_of(out));
}

void Pass::attention_half(const LayerWeights& layer, const KvCache& cache) {
    const Block normed = rows_of(state_.normed, rows_);
    const Block query = rows_of(state_.query, rows_);
    const Block key = rows_of(state_.key, rows_);
    const Block value = rows_of(state_.value, rows_);
    const Block attended = rows_of(state_.attended, rows_);
    const Block projected = rows_of(state_.projected, rows_);
    norm(hidden_, layer.attention_norm, normed);
    PLUMB_CHECK_INPUT(profiler_, queue_, Brick::qkv_projection, tensor_of(normed));
    {
        const double rows = static_cast<double>(rows_);
        PLUMB_BRICK(
            profiler_, queue_, Brick::qkv_projection,
            bytes(product_bytes(layer.query, rows) + product_bytes(layer.key, rows) + product_bytes(layer.value, rows)),
            flops(rows * (layer.query.cost.row_flops + layer.key.cost.row_flops + layer.value.cost.row_flops)));
        const Product group[]{{&layer.query, query}, {&layer.key, key}, {&layer.value, value}};
        backend_.products(normed, group);
    }
    for (const Block& made : {query, key, value})
        PLUMB_CHECK(profiler_, queue_, Brick::qkv_projection, tensor_of(made));
    for (const Block& turned : {query, key})
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::rope_embedding, tensor_of(turned));
    {
        const std::size_t turned = rows_ * (state_.heads.heads + state_.heads.kv_heads) * state_.config.rope_size;
        PLUMB_BRICK(profiler_, queue_, Brick::rope_embedding, bytes(2 * turned * float_bytes), flops(3 * turned));
        backend_.rope(state_.rope, query, state_.heads.size, first_);
        backend_.rope(state_.rope, key, state_.heads.size, first_);
    }
    for (const Block& turned : {query, key})
        PLUMB_CHECK(profiler_, queue_, Brick::rope_embedding, tensor_of(turned));
    for (const Block& kept : {key, value})
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::kv_append, tensor_of(kept));
    {
        PLUMB_BRICK(profiler_, queue_, Brick::kv_append, bytes(2 * (key.bytes() + value.bytes())), flops(0));
        backend_.kv_append(cache, state_.heads, key, value, first_);
    }
    for (const float* kept : {cache.keys, cache.values})
        PLUMB_CHECK(profiler_, queue_, Brick::kv_append, cache_rows(kept, cache, state_.heads, first_, rows_));
    attend(cache, query, attended);
    project(Brick::output_projection, layer.output, attended, projected);
    residual(projected);
}

void Pass::feed_forward_half(const LayerWeights& layer) {
    const Block normed = rows_of(state_.normed, rows_);
    const Block gate = rows_of(state_.gate, rows_);
    const Block up = rows_of(state_.up, rows_);
    const Block activated = rows_of(state_.activated, rows_);
    const Block projected = rows_of(state_.projected, rows_);
    norm(hidden_, layer.feed_forward_norm, normed);
    project(Brick::gate_projection, layer.gate, normed, gate);
    project(Brick::up_projection, layer.up, normed, up);
    for (const Block& half : {gate, up})
        PLUMB_CHECK_INPUT(profiler_, queue_, Brick::activation, tensor_of(half));
    {
        // exp, division, sum and two products.
        PLUMB_BRICK(profiler_, queue_, Brick::activation, bytes(gate.bytes() + up.bytes() + activated.bytes()),
                    flops(5 * rows_ * gate.cols));
        backend_.silu_multiply(gate, up, activated);
    }
    PLUMB_CHECK(profiler_, queue_, Brick::activation, tensor_of(activated));
    project(Brick::down_projection, layer.down, activated, projected);
    residual(projected);
}

void Pass::head() {
    const std::size_t cols = hidden_.cols;
    const Block last{hidden_.f32() + (rows_ - 1) * cols, Type::f32, 1, cols};
    norm(last, state_.weights.output_norm, state_.last);
    project(Brick::lm_head, state_.weights.head, state_.last, state_.logits, logits);
}

std::int32_t Pass::sample() {
    if (!input_.sampler)
        return -1;
    const std::span<const float> logits(state_.logits.f32(), state_.logits.cols);
    // One comparison per logit.
    PLUMB_BRICK(profiler_, queue_, Brick::sampling, bytes(state_.logits.bytes()), flops(logits.size()), elements(1));
    if (input_.sampler->greedy())
        return static_cast<std::int32_t>(backend_.largest(logits));
    return input_.sampler->pick(backend_.read(state_.logits));
}

} // namespace

std::int32_t PLUMB_DECODER_STEP(State& state, const StepInput& input, Recorder& profiler) {
    const std::size_t rows = input.tokens.size();
    PLUMB_STEP(profiler, state.backend->queue(), input.phase, tokens(rows), kv_length(state.used + rows), sequences(1));
    Pass pass(state, input, profiler);
    pass.embed();
    for (std::size_t index = 0; index < state.weights.layers.size(); ++index) {
        PLUMB_LAYER(profiler, index);
        pass.attention_half(state.weights.layers[index], state.cache[index]);
        pass.feed_forward_half(state.weights.layers[index]);
    }
    pass.head();
    state.used += rows;
    return pass.sample();
}

} // namespace plumb::decoder
