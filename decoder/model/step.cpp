// SPDX-License-Identifier: Apache-2.0
#include "decoder/model/step.hpp"

#include <algorithm>
#include <optional>

#include "plumb/op.hpp"
#include "plumb/request.hpp"

#if !defined(PLUMB_DECODER_STEP)
#define PLUMB_DECODER_STEP run_step
#endif

namespace plumb::decoder {
namespace {

constexpr std::size_t float_bytes = sizeof(float);

Block rows_of(const Block& block, std::size_t rows) { return {block.data, block.type, rows, block.cols}; }

/// Every head a row.
Block heads_of(const Block& block, std::size_t size) {
    return {block.data, block.type, block.rows * block.cols / size, size};
}

DType dtype_of(Type type) { return type == Type::f32 ? DType::f32 : DType::bf16; }

// The next three describe operations for the profiler alone: with PLUMB_DISABLE nothing calls them.

[[maybe_unused]] Tensor tensor_of(const Block& block) {
    return tensor(block.data, dtype_of(block.type), {block.rows, block.cols});
}

/// The rows of a cache that hold the positions first … first + rows: [rows][kv_heads][head_size].
[[maybe_unused]] Tensor cache_rows(const float* values, const KvCache& cache, const HeadShape& shape, std::size_t first,
                                   std::size_t rows) {
    const auto row = static_cast<std::ptrdiff_t>(shape.size);
    return tensor(values + first * shape.size, DType::f32, {rows, shape.kv_heads, shape.size},
                  {row, row * static_cast<std::ptrdiff_t>(cache.context), 1});
}

[[maybe_unused]] double product_bytes(const Linear& linear, double rows) {
    return linear.cost.bytes + rows * linear.cost.row_bytes;
}

/// Rows of one sequence that follow each other.
struct RowSpan {
    std::size_t sequence;
    std::size_t row; // of the step's blocks
    std::size_t rows;
    std::size_t first; // position of the first
};

/// The operations of one step, with what they share.
class Pass {
  public:
    Pass(State& state, const StepInput& input, Recorder& profiler)
        : state_(state), input_(input), profiler_(profiler), backend_(*state.backend), queue_(backend_.queue()),
          step_{input.tokens, std::span<const std::size_t>(state.used).subspan(input.sequence, input.sequences)},
          rows_(input.tokens.size()), first_(state.used[input.sequence]), hidden_(rows_of(state.hidden, rows_)) {}

    [[nodiscard]] const StepRows& rows() const noexcept { return step_; }
    [[nodiscard]] Block logits_of_step() const { return rows_from(state_.logits, input_.sequence, input_.sequences); }

    void embed() {
        const Block out = hidden_;
        PLUMB_OP(profiler_, queue_, Brick::embedding, in(tensor(backend_.tokens_of(step_), DType::i32, {rows_, 1})),
                 plumb::out(tensor_of(out)), elements(rows_ * out.cols), flops(0),
                 bytes(rows_ * (row_bytes(state_.weights.embedding.type, out.cols) + out.cols * float_bytes))) {
            backend_.embed(input_.tokens, state_.weights.embedding, out);
            if (state_.config.embedding_scale != 1) {
                backend_.scale(out, state_.config.embedding_scale);
            }
        }
    }

    // [norm]
    void norm(const Block& x, const float* weight, const Block& y) {
        PLUMB_OP(profiler_, queue_, Brick::rms_norm, in(tensor_of(x), last_of(x)), out(tensor_of(y), last_of(y)),
                 bytes(x.bytes() + x.cols * float_bytes + y.bytes()),
                 flops(4.0 * static_cast<double>(x.rows * x.cols))) {
            backend_.rms_norm(x, weight, state_.config.epsilon, y);
        }
    }
    // [/norm]

    /// `tags` say more of the output to whoever checks it.
    template <class... Tags>
    void project(Brick brick, const Linear& linear, const Block& x, const Block& y, Tags... tags) {
        PLUMB_OP(profiler_, queue_, brick, in(tensor_of(x), last_of(x)), out(tensor_of(y), last_of(y), tags...),
                 bytes(product_bytes(linear, static_cast<double>(x.rows))),
                 flops(static_cast<double>(x.rows) * linear.cost.row_flops)) {
            const Product product{&linear, y};
            backend_.products(x, {&product, 1});
        }
    }

    void residual(const Block& addend) {
        PLUMB_OP(profiler_, queue_, Brick::residual_add, in(tensor_of(hidden_)), in(tensor_of(addend)),
                 out(tensor_of(hidden_)), bytes(3 * addend.bytes()), flops(addend.rows * addend.cols)) {
            backend_.add(hidden_, addend);
        }
    }

    void activate(const Block& gate, const Block& up, const Block& out) {
        if (state_.config.activation == Activation::gelu) {
            backend_.gelu_multiply(gate, up, out);
        } else {
            backend_.silu_multiply(gate, up, out);
        }
    }

    void attention_half(const LayerWeights& layer, std::size_t index);
    void feed_forward_half(const LayerWeights& layer);
    void experts_half(const LayerWeights& layer);
    void head();
    void sample();

  private:
    void norm_heads(const LayerWeights& layer, const Block& query, const Block& key);
    void rotate(const Block& query, const Block& key);
    void append(std::size_t layer, const Block& key, const Block& value);
    void attend(std::size_t layer, const Block& query, const Block& out);
    void route(const LayerWeights& layer, const Block& normed);
    void run_experts(const LayerWeights& layer, const Block& tokens, const Block& out);

    [[nodiscard]] RowSpan span(std::size_t i) const noexcept {
        const std::size_t sequence = input_.sequence + i;
        const std::size_t rows = rows_ / input_.sequences;
        return {sequence, i * rows, rows, state_.used[sequence]};
    }
    /// Bytes of keys and values that the rows read: each those before it, as far as it sees.
    [[nodiscard]] double seen_positions() const noexcept;

    /// Position of the first row of a block that ends with the step's last token.
    [[nodiscard]] decltype(position(0)) last_of(const Block& block) const noexcept {
        return position(static_cast<std::int64_t>(first_ + rows_ - block.rows));
    }

    State& state_;
    const StepInput& input_;
    Recorder& profiler_;
    ComputeBackend& backend_;
    const Queue queue_;
    const StepRows step_;
    const std::size_t rows_;
    const std::size_t first_;
    const Block hidden_;
};

double Pass::seen_positions() const noexcept {
    double seen = 0;
    const std::size_t window = state_.heads.window;
    for (std::size_t i = 0; i < input_.sequences; ++i) {
        const RowSpan part = span(i);
        for (std::size_t r = 1; r <= part.rows; ++r) {
            const std::size_t before = part.first + r;
            seen += static_cast<double>(window != 0 && window < before ? window : before);
        }
    }
    return seen;
}

void Pass::norm_heads(const LayerWeights& layer, const Block& query, const Block& key) {
    const Block heads[]{heads_of(query, state_.heads.size), heads_of(key, state_.heads.size)};
    PLUMB_OP(profiler_, queue_, Brick::qk_norm, in(tensor_of(heads[0])), in(tensor_of(heads[1])),
             out(tensor_of(heads[0])), out(tensor_of(heads[1])),
             bytes(2 * (query.bytes() + key.bytes()) + 2 * state_.heads.size * float_bytes),
             flops(4 * rows_ * (query.cols + key.cols))) {
        backend_.rms_norm(heads[0], layer.query_norm, state_.config.epsilon, heads[0]);
        backend_.rms_norm(heads[1], layer.key_norm, state_.config.epsilon, heads[1]);
    }
}

void Pass::rotate(const Block& query, const Block& key) {
    const std::size_t turned = rows_ * (state_.heads.heads + state_.heads.kv_heads) * state_.config.rope_size;
    PLUMB_OP(profiler_, queue_, Brick::rope_embedding, in(tensor_of(query)), in(tensor_of(key)), out(tensor_of(query)),
             out(tensor_of(key)), bytes(2 * turned * float_bytes), flops(3 * turned)) {
        for (const Block& half : {query, key}) {
            backend_.rope_step(state_.rope, half, state_.heads.size, step_);
        }
    }
}

void Pass::append(std::size_t layer, const Block& key, const Block& value) {
    PLUMB_OP(profiler_, queue_, Brick::kv_append, in(tensor_of(key)), in(tensor_of(value)),
             bytes(2 * (key.bytes() + value.bytes())), flops(0)) {
        backend_.kv_append_step(&state_.cache(layer, input_.sequence), state_.heads, key, value, step_);
    }
    for (std::size_t i = 0; i < input_.sequences; ++i) {
        const RowSpan part = span(i);
        const KvCache& cache = state_.cache(layer, part.sequence);
        for (const float* kept : {cache.keys, cache.values}) {
            PLUMB_TENSOR(profiler_, queue_, Brick::kv_append,
                         cache_rows(kept, cache, state_.heads, part.first, part.rows));
        }
    }
}

void Pass::attend(std::size_t layer, const Block& query, const Block& out) {
    const double seen = seen_positions();
    const double kv_row = 2.0 * static_cast<double>(state_.config.kv_size() * float_bytes);
    // One sequence that sees all reads what the step's kv length says; else what is read is counted here.
    const bool whole = input_.sequences == 1 && state_.heads.window == 0;
    const double counted = whole ? 0.0 : kv_row * seen / static_cast<double>(rows_ / input_.sequences);
    PLUMB_OP(profiler_, queue_, Brick::attention, in(tensor_of(query)), plumb::out(tensor_of(out)),
             bytes(static_cast<double>(query.bytes() + out.bytes()) + counted), bytes_per_kv(whole ? kv_row : 0.0),
             flops(4.0 * seen * static_cast<double>(state_.config.query_size()))) {
        backend_.attention_step(&state_.cache(layer, input_.sequence), state_.heads, query, step_, state_.scratch, out);
    }
}

void Pass::attention_half(const LayerWeights& layer, std::size_t index) {
    const Block normed = rows_of(state_.attention_normed, rows_);
    const Block query = rows_of(state_.query, rows_);
    const Block key = rows_of(state_.key, rows_);
    const Block value = rows_of(state_.value, rows_);
    const Block attended = rows_of(state_.attended, rows_);
    const Block projected = rows_of(state_.projected, rows_);
    norm(hidden_, layer.attention_norm, normed);
    const double rows = static_cast<double>(rows_);
    PLUMB_OP(
        profiler_, queue_, Brick::qkv_projection, in(tensor_of(normed)), out(tensor_of(query)), out(tensor_of(key)),
        out(tensor_of(value)),
        bytes(product_bytes(layer.query, rows) + product_bytes(layer.key, rows) + product_bytes(layer.value, rows)),
        flops(rows * (layer.query.cost.row_flops + layer.key.cost.row_flops + layer.value.cost.row_flops))) {
        const Product group[]{{&layer.query, query}, {&layer.key, key}, {&layer.value, value}};
        backend_.products(normed, group);
    }
    if (state_.config.qk_norm) {
        norm_heads(layer, query, key);
    }
    rotate(query, key);
    append(index, key, value);
    attend(index, query, attended);
    project(Brick::output_projection, layer.output, attended, projected);
    residual(projected);
}

void Pass::feed_forward_half(const LayerWeights& layer) {
    const Block normed = rows_of(state_.feed_normed, rows_);
    const Block gate = rows_of(state_.gate, rows_);
    const Block up = rows_of(state_.up, rows_);
    const Block activated = rows_of(state_.activated, rows_);
    const Block projected = rows_of(state_.projected, rows_);
    norm(hidden_, layer.feed_forward_norm, normed);
    project(Brick::gate_projection, layer.gate, normed, gate);
    project(Brick::up_projection, layer.up, normed, up);
    // exp, division, sum and two products.
    PLUMB_OP(profiler_, queue_, Brick::activation, in(tensor_of(gate)), in(tensor_of(up)), out(tensor_of(activated)),
             bytes(gate.bytes() + up.bytes() + activated.bytes()), flops(5 * rows_ * gate.cols)) {
        activate(gate, up, activated);
    }
    project(Brick::down_projection, layer.down, activated, projected);
    residual(projected);
}

void Pass::route(const LayerWeights& layer, const Block& normed) {
    const Block logits = rows_of(state_.routed, rows_);
    // The product, then an exponential, a sum and a comparison for each expert.
    PLUMB_OP(profiler_, queue_, Brick::moe_router, in(tensor_of(normed), last_of(normed)),
             out(tensor_of(logits), last_of(logits)),
             bytes(product_bytes(layer.router, static_cast<double>(rows_)) + static_cast<double>(logits.bytes())),
             flops(static_cast<double>(rows_) * layer.router.cost.row_flops +
                   static_cast<double>(3 * rows_ * logits.cols))) {
        const Product product{&layer.router, logits};
        backend_.products(normed, {&product, 1});
        backend_.route(logits, state_.routing);
    }
}

/// One brick: what runs is one product for all experts at a time, however many have a token.
void Pass::run_experts(const LayerWeights& layer, const Block& tokens, const Block& out) {
    const Block gate = rows_of(state_.expert_gate, tokens.rows);
    const Block up = rows_of(state_.expert_up, tokens.rows);
    const double one = static_cast<double>(layer.expert_gate.one.bytes() + layer.expert_up.one.bytes() +
                                           layer.expert_down.one.bytes());
    const double values = static_cast<double>(tokens.rows * gate.cols);
    PLUMB_OP(profiler_, queue_, Brick::moe_experts, in(tensor_of(tokens)), plumb::out(tensor_of(out)),
             bytes(one * static_cast<double>(backend_.active_experts(state_.routing)) +
                   static_cast<double>(2 * tokens.bytes() + 5 * gate.bytes() + out.bytes())),
             flops(values * (6.0 * static_cast<double>(tokens.cols) + 5.0))) {
        backend_.grouped_products(tokens, layer.expert_gate, state_.routing, gate);
        backend_.grouped_products(tokens, layer.expert_up, state_.routing, up);
        activate(gate, up, gate);
        backend_.grouped_products(gate, layer.expert_down, state_.routing, out);
    }
}

void Pass::experts_half(const LayerWeights& layer) {
    const Block normed = rows_of(state_.feed_normed, rows_);
    const std::size_t slots = rows_ * state_.config.experts.used;
    const Block tokens = rows_of(state_.dispatched, slots);
    const Block outputs = rows_of(state_.expert_out, slots);
    const Block projected = rows_of(state_.projected, rows_);
    norm(hidden_, layer.feed_forward_norm, normed);
    route(layer, normed);
    PLUMB_OP(profiler_, queue_, Brick::moe_dispatch, in(tensor_of(normed)), out(tensor_of(tokens)),
             bytes(2 * tokens.bytes()), flops(0)) {
        backend_.dispatch(normed, state_.routing, tokens);
    }
    run_experts(layer, tokens, outputs);
    PLUMB_OP(profiler_, queue_, Brick::moe_combine, in(tensor_of(outputs)), out(tensor_of(projected)),
             bytes(outputs.bytes() + projected.bytes()), flops(2 * outputs.rows * outputs.cols)) {
        backend_.combine(outputs, state_.routing, projected);
    }
    residual(projected);
}

/// Of a prompt the last token counts, of several sequences each one's only token.
void Pass::head() {
    const std::size_t ends = input_.sequences;
    const Block last = rows_of(state_.last, ends);
    const Block out = logits_of_step();
    norm(rows_from(hidden_, rows_ - ends, ends), state_.weights.output_norm, last);
    project(Brick::lm_head, state_.weights.head, last, out, logits);
}

void Pass::sample() {
    if (!input_.sampler) {
        return;
    }
    const Block rows = logits_of_step();
    // One comparison per logit.
    PLUMB_BRICK(profiler_, queue_, Brick::sampling, bytes(rows.bytes()), flops(rows.rows * rows.cols),
                elements(rows.rows));
    const auto sampled = std::span(state_.sampled).subspan(input_.sequence, rows.rows);
    if (input_.sampler->greedy()) { // all samplers of a batch have the same options
        backend_.largest(rows, sampled);
        return;
    }
    if (const std::size_t wanted = input_.sampler->wanted(); wanted != 0) {
        if (const BestLogits best = backend_.best(rows, wanted); !best.values.empty()) {
            const std::size_t count = best.values.size() / rows.rows;
            for (std::size_t i = 0; i < rows.rows; ++i) {
                sampled[i] = input_.sampler[i].pick_among(best.values.subspan(i * count, count),
                                                          best.at.subspan(i * count, count));
            }
            return;
        }
    }
    for (std::size_t i = 0; i < rows.rows; ++i) {
        sampled[i] = input_.sampler[i].pick(backend_.read(rows_from(rows, i, 1)));
    }
}

} // namespace

std::int32_t PLUMB_DECODER_STEP(State& state, const StepInput& input, Recorder& profiler) {
    const std::size_t rows = input.tokens.size();
    const std::size_t added = rows / input.sequences;
    const std::size_t longest =
        *std::max_element(&state.used[input.sequence], &state.used[input.sequence] + input.sequences);
    // [step]
    PLUMB_STEP(profiler, state.backend->queue(), input.phase, tokens(rows), kv_length(longest + added),
               sequences(input.sequences));
    Pass pass(state, input, profiler);
    state.backend->run_step(pass.rows(), pass.logits_of_step(), [&] {
        pass.embed();
        for (std::size_t index = 0; index < state.weights.layers.size(); ++index) {
            PLUMB_LAYER(profiler, index);
            const LayerWeights& layer = state.weights.layers[index];
            pass.attention_half(layer, index);
            if (state.config.experts.count != 0) {
                pass.experts_half(layer);
            } else {
                pass.feed_forward_half(layer);
            }
        }
        pass.head();
    });
    // [/step]
    for (std::size_t i = 0; i < input.sequences; ++i) {
        state.used[input.sequence + i] += added;
        PLUMB_STEP_REQUEST(profiler, input.sequence + i);
    }
    pass.sample();
    if (const std::optional<StampedKernels> kernels = state.backend->stamped_kernels()) {
        PLUMB_STEP_KERNELS(profiler, kernels->kernels_ns, kernels->stretch_ns);
    }
    return input.sampler ? state.sampled[input.sequence] : -1;
}

} // namespace plumb::decoder
