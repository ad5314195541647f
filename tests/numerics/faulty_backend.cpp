// SPDX-License-Identifier: Apache-2.0
#include "numerics/faulty_backend.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace plumb::numerics_test {
namespace {

using namespace decoder;

const char* const kind_words[] = {"wrong weight row", "stale KV row", "swapped RoPE layout", "NaN in one head",
                                  "overflow"};

std::vector<Op> ops_of(FaultKind kind) {
    switch (kind) {
    case FaultKind::weight_row:
        return {Op::qkv, Op::output, Op::gate, Op::up, Op::down, Op::embed, Op::head};
    case FaultKind::stale_kv:
        return {Op::kv_append, Op::attention};
    case FaultKind::rope_layout:
        return {Op::rope_query, Op::rope_key};
    case FaultKind::nan_in_head:
        return {Op::qkv, Op::rope_query, Op::rope_key, Op::attention};
    default:
        return {Op::attention_norm,
                Op::qkv,
                Op::rope_query,
                Op::rope_key,
                Op::attention,
                Op::output,
                Op::gate,
                Op::attention_residual,
                Op::up,
                Op::activation,
                Op::down,
                Op::feed_forward_norm,
                Op::embed,
                Op::head_norm,
                Op::head,
                Op::feed_forward_residual};
    }
}

void set(const Block& block, std::size_t index, float value) {
    if (block.type == Type::f32) {
        block.f32()[index] = value;
        return;
    }
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    static_cast<std::uint16_t*>(block.data)[index] = static_cast<std::uint16_t>(bits >> 16); // exact for NaN and Inf
}

/// Row `p` of a cache, of every head.
template <class Take>
void each_row(const KvCache& cache, const HeadShape& shape, std::size_t p, Take&& take) {
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
        take((head * cache.context + p) * shape.size);
    }
}

} // namespace

Brick Fault::brick() const {
    constexpr Brick bricks[] = {Brick::rms_norm,          Brick::qkv_projection, Brick::rope_embedding,
                                Brick::rope_embedding,    Brick::kv_append,      Brick::attention,
                                Brick::output_projection, Brick::residual_add,   Brick::rms_norm,
                                Brick::gate_projection,   Brick::up_projection,  Brick::activation,
                                Brick::down_projection,   Brick::residual_add,   Brick::embedding,
                                Brick::rms_norm,          Brick::lm_head};
    return bricks[static_cast<int>(op)];
}

std::string Fault::text() const {
    return std::string(kind_words[static_cast<int>(kind)]) + ", step " + std::to_string(step) +
           (layer ? ", layer " + std::to_string(*layer) : std::string()) + ", op " +
           std::to_string(static_cast<int>(op)) + ", dice " + std::to_string(dice);
}

std::string brick_word(Brick brick) {
    switch (brick) {
#define PLUMB_WORD(name, id, category, aliases) \
    case Brick::name:                           \
        return #name;
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_WORD)
#undef PLUMB_WORD
    }
    return {};
}

Fault random_fault(FaultKind kind, const std::vector<StepShape>& steps, std::size_t layers, std::mt19937_64& random) {
    const std::vector<Op> ops = ops_of(kind);
    // At position 0 nothing turns, and there is no older row to read.
    const bool needs_past = kind == FaultKind::rope_layout || kind == FaultKind::stale_kv;
    Fault fault;
    fault.kind = kind;
    fault.op = ops[random() % ops.size()];
    fault.dice = random();
    do {
        fault.step = random() % steps.size();
    } while (needs_past && steps[fault.step].first + steps[fault.step].rows < 2);
    if (static_cast<int>(fault.op) < layer_ops) {
        fault.layer = random() % layers;
    }
    return fault;
}

bool FaultyBackend::here() noexcept {
    const std::size_t call = next_call_++;
    if (!fault_ || steps_ == 0 || steps_ - 1 != fault_->step) {
        return false;
    }
    const std::size_t in_layers = layers_ * static_cast<std::size_t>(layer_ops);
    const auto op = static_cast<std::size_t>(fault_->op);
    std::size_t wanted = 0; // the embedding
    if (fault_->layer) {
        wanted = 1 + *fault_->layer * static_cast<std::size_t>(layer_ops) + op;
    } else if (fault_->op != Op::embed) {
        wanted = 1 + in_layers + (fault_->op == Op::head ? 1 : 0);
    }
    planted_ += call == wanted ? 1 : 0;
    return call == wanted;
}

/// Makes one place of an output what no operation would have made it.
void FaultyBackend::spoil(const Block& out, std::size_t head_size) noexcept {
    const std::size_t row = fault_->dice % out.rows;
    const std::uint64_t dice = fault_->dice / out.rows;
    if (fault_->kind == FaultKind::weight_row) {
        // Output `to` with the weights of output `from`.
        const std::size_t to = dice % out.cols;
        const std::size_t from = (to + 1 + dice / out.cols % (out.cols - 1)) % out.cols;
        for (std::size_t r = 0; r < out.rows; ++r) {
            out.f32()[r * out.cols + to] = out.f32()[r * out.cols + from];
        }
        return;
    }
    const bool whole_head = fault_->kind == FaultKind::nan_in_head;
    const std::size_t width = whole_head ? head_size : 1;
    const std::size_t at = row * out.cols + dice % (out.cols / width) * width;
    const float bad = whole_head ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < width; ++i) {
        set(out, at + i, bad);
    }
    bad_index_ = at;
}

void FaultyBackend::embed(std::span<const std::int32_t> ids, const Weight& table, const Block& out) noexcept {
    ++steps_;
    next_call_ = 0;
    inner_.embed(ids, table, out);
    if (!here()) {
        return;
    }
    if (fault_->kind == FaultKind::weight_row) {
        const std::size_t row = fault_->dice % ids.size();
        const auto other = static_cast<std::int32_t>((static_cast<std::size_t>(ids[row]) + 1) % table.rows);
        inner_.embed({&other, 1}, table, {out.f32() + row * out.cols, out.type, 1, out.cols});
    } else {
        spoil(out, 1);
    }
}

void FaultyBackend::rms_norm(const Block& in, const float* weight, float epsilon, const Block& out) noexcept {
    inner_.rms_norm(in, weight, epsilon, out);
    if (here()) {
        spoil(out, 1);
    }
}

void FaultyBackend::products(const Block& in, std::span<const Product> group) noexcept {
    inner_.products(in, group);
    if (here()) {
        // A head of query, key or value: the narrowest divides them all.
        std::size_t head = group[0].out.cols;
        for (const Product& product : group) {
            head = std::min(head, product.out.cols);
        }
        spoil(group[fault_->dice / 7 % group.size()].out, head_size_ != 0 ? head_size_ : head);
    }
}

void FaultyBackend::rope(const Rope& rope, const Block& heads, std::size_t head_size, std::size_t first) noexcept {
    head_size_ = head_size;
    const bool now = here();
    Rope used = rope;
    used.halves = used.halves != (now && fault_->kind == FaultKind::rope_layout);
    inner_.rope(used, heads, head_size, first);
    if (now && fault_->kind != FaultKind::rope_layout) {
        spoil(heads, head_size);
    }
}

void FaultyBackend::kv_append(const KvCache& cache, const HeadShape& shape, const Block& keys, const Block& values,
                              std::size_t first) noexcept {
    const bool now = here();
    const std::size_t count = cache.context * shape.kv_heads * shape.size;
    if (now) {
        keys_.assign(cache.keys, cache.keys + count);
        values_.assign(cache.values, cache.values + count);
    }
    inner_.kv_append(cache, shape, keys, values, first);
    if (now) { // one row is not written
        each_row(cache, shape, first + fault_->dice % keys.rows, [&](std::size_t at) {
            std::copy_n(keys_.data() + at, shape.size, cache.keys + at);
            std::copy_n(values_.data() + at, shape.size, cache.values + at);
        });
    }
}

void FaultyBackend::attention(const KvCache& cache, const HeadShape& shape, const Block& queries, std::size_t first,
                              float* scratch, const Block& out) noexcept {
    const bool now = here();
    if (!now || fault_->kind != FaultKind::stale_kv) {
        inner_.attention(cache, shape, queries, first, scratch, out);
        if (now) {
            spoil(out, shape.size);
        }
        return;
    }
    // A row is read as the one before it was.
    const std::size_t count = cache.context * shape.kv_heads * shape.size;
    keys_.assign(cache.keys, cache.keys + count);
    values_.assign(cache.values, cache.values + count);
    const std::size_t stale = 1 + fault_->dice % (first + queries.rows - 1);
    each_row(cache, shape, stale, [&](std::size_t at) {
        std::copy_n(cache.keys + at - shape.size, shape.size, keys_.data() + at);
        std::copy_n(cache.values + at - shape.size, shape.size, values_.data() + at);
    });
    inner_.attention({keys_.data(), values_.data(), cache.context}, shape, queries, first, scratch, out);
}

void FaultyBackend::add(const Block& x, const Block& y) noexcept {
    inner_.add(x, y);
    if (here()) {
        spoil(x, 1);
    }
}

void FaultyBackend::silu_multiply(const Block& gate, const Block& up, const Block& out) noexcept {
    inner_.silu_multiply(gate, up, out);
    if (here()) {
        spoil(out, 1);
    }
}

} // namespace plumb::numerics_test
