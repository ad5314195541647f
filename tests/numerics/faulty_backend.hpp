// SPDX-License-Identifier: Apache-2.0
// A backend of the decoder that does everything as another one does, but for one thing at one place: the truth that
// `plumb diverge` is asked to find. Owned by a test; one thread, as any backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/model/config.hpp"
#include "plumb/bricks.hpp"

namespace plumb::numerics_test {

enum class FaultKind { weight_row, stale_kv, rope_layout, nan_in_head, overflow };
inline constexpr FaultKind all_faults[] = {FaultKind::weight_row, FaultKind::stale_kv, FaultKind::rope_layout,
                                           FaultKind::nan_in_head, FaultKind::overflow};

/// The operations of one step as the decoder calls them: those of a layer, between the embedding and the head.
enum class Op {
    attention_norm,
    qkv,
    rope_query,
    rope_key,
    kv_append,
    attention,
    output,
    attention_residual,
    feed_forward_norm,
    gate,
    up,
    activation,
    down,
    feed_forward_residual,
    embed,
    head_norm,
    head,
};
inline constexpr int layer_ops = static_cast<int>(Op::embed);

struct Fault {
    FaultKind kind = FaultKind::weight_row;
    std::uint64_t step = 0;
    std::optional<std::size_t> layer; // none: outside the layers
    Op op = Op::qkv;
    std::uint64_t dice = 0; // chooses what is left: product, row, head, element

    [[nodiscard]] Brick brick() const;
    /// "NaN in one head, step 3, layer 1, op 5, dice 17": enough to do it again.
    [[nodiscard]] std::string text() const;
};

/// "rms_norm", …
[[nodiscard]] std::string brick_word(Brick brick);

/// Any fault that the run can show: `rows` of each step, and the position that each begins at.
struct StepShape {
    std::size_t first = 0;
    std::size_t rows = 1;
};
[[nodiscard]] Fault random_fault(FaultKind kind, const std::vector<StepShape>& steps, std::size_t layers,
                                 std::mt19937_64& random);

class FaultyBackend final : public decoder::ComputeBackend {
  public:
    /// `fault` none: exactly `inner`.
    FaultyBackend(decoder::ComputeBackend& inner, std::size_t layers, std::optional<Fault> fault)
        : inner_(inner), layers_(layers), fault_(fault) {}

    /// How often the fault took place: 1 after a run that came by.
    [[nodiscard]] int planted() const noexcept { return planted_; }
    /// Index of the first element it made not finite; none where it made none.
    [[nodiscard]] std::optional<std::uint64_t> bad_index() const noexcept { return bad_index_; }

    [[nodiscard]] Queue queue() const noexcept override { return inner_.queue(); }
    [[nodiscard]] std::string description() const override { return inner_.description(); }
    [[nodiscard]] int threads() const noexcept override { return inner_.threads(); }
    [[nodiscard]] Result<decoder::Buffer> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
    [[nodiscard]] decoder::Type input_type(decoder::Type weights) const noexcept override {
        return inner_.input_type(weights);
    }
    [[nodiscard]] Status prepare(decoder::Linear& linear, std::size_t rows) override {
        return inner_.prepare(linear, rows);
    }
    void enter() noexcept override { inner_.enter(); }
    void leave() noexcept override { inner_.leave(); }

    void embed(std::span<const std::int32_t> ids, const decoder::Weight& table,
               const decoder::Block& out) noexcept override;
    void rms_norm(const decoder::Block& in, const float* weight, float epsilon,
                  const decoder::Block& out) noexcept override;
    void products(const decoder::Block& in, std::span<const decoder::Product> group) noexcept override;
    void rope(const decoder::Rope& rope, const decoder::Block& heads, std::size_t head_size,
              std::size_t first) noexcept override;
    void kv_append(const decoder::KvCache& cache, const decoder::HeadShape& shape, const decoder::Block& keys,
                   const decoder::Block& values, std::size_t first) noexcept override;
    void attention(const decoder::KvCache& cache, const decoder::HeadShape& shape, const decoder::Block& queries,
                   std::size_t first, float* scratch, const decoder::Block& out) noexcept override;
    void add(const decoder::Block& x, const decoder::Block& y) noexcept override;
    void silu_multiply(const decoder::Block& gate, const decoder::Block& up,
                       const decoder::Block& out) noexcept override;
    void largest(const decoder::Block& rows, std::span<std::int32_t> out) noexcept override {
        inner_.largest(rows, out);
    }

  private:
    /// Counts the operation; true when the fault belongs here.
    bool here() noexcept;
    void spoil(const decoder::Block& out, std::size_t head_size) noexcept;

    decoder::ComputeBackend& inner_;
    const std::size_t layers_;
    const std::optional<Fault> fault_;
    std::uint64_t steps_ = 0;   // begun
    std::size_t next_call_ = 0; // of this step
    std::size_t head_size_ = 0;
    int planted_ = 0;
    std::optional<std::uint64_t> bad_index_;
    std::vector<float> keys_, values_; // copies of a cache
};

} // namespace plumb::numerics_test
