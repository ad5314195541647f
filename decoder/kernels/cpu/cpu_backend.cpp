// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/cpu_backend.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "decoder/kernels/cpu/matrix.hpp"
#include "decoder/kernels/cpu/openmp.hpp"
#include "decoder/kernels/cpu/packed.hpp"
#include "decoder/kernels/cpu/routing.hpp"
#include "decoder/kernels/cpu/team.hpp"
#include "decoder/kernels/cpu/tiled_attention.hpp"
#include "decoder/kernels/cpu/vector_ops.hpp"

namespace plumb::decoder::cpu {
namespace {

// Below this many values a fork and join of the team (about 1 us) costs more than it saves.
constexpr std::size_t worth_a_team = 16384;

void unmap(void* data, std::size_t bytes) noexcept { ::munmap(data, bytes); }

class CpuComputeBackend final : public ComputeBackend {
  public:
    explicit CpuComputeBackend(int threads) : team_(threads) {}

    /// Errors: unsupported.
    Status open(bool widen_bf16) {
        Result<std::unique_ptr<Matrices>> matrices = Matrices::make(team_, widen_bf16);
        if (!matrices) {
            return matrices.error();
        }
        matrices_ = std::move(*matrices);
        return {};
    }

    [[nodiscard]] Queue queue() const noexcept override { return host; }
    [[nodiscard]] int threads() const noexcept override { return team_.size(); }
    [[nodiscard]] std::string description() const override {
        return "cpu, " + std::to_string(team_.size()) + (team_.size() == 1 ? " thread" : " threads");
    }

    [[nodiscard]] Result<Buffer> allocate(std::size_t bytes) override {
        const std::size_t size = bytes == 0 ? 64 : bytes;
        void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) {
            return Error{ErrorCode::out_of_memory, "there is no memory for " + std::to_string(size >> 20) +
                                                       " MiB of buffers; use a smaller --ctx or --chunk"};
        }
        return Buffer(data, FreeBuffer{unmap, size});
    }

    [[nodiscard]] Type input_type(Type weights) const noexcept override {
        return weights == Type::bf16 && matrices_->native_bf16() ? Type::bf16 : Type::f32;
    }
    [[nodiscard]] Status prepare(Linear& linear, std::size_t rows) override { return matrices_->prepare(linear, rows); }

    [[nodiscard]] Status prepare(const Stack& stack) override { return matrices_->prepare(stack); }
    [[nodiscard]] bool supports(Feature) const noexcept override { return true; }

    void enter() noexcept override { openmp_before_ = matrix_library_alone(); }
    void leave() noexcept override { set_matrix_library_threads(openmp_before_); }

    void embed(std::span<const std::int32_t> ids, const Weight& table, const Block& out) noexcept override {
        const auto* rows = static_cast<const std::byte*>(table.data);
        for (std::size_t r = 0; r < ids.size(); ++r) {
            unpack(table.type, rows + static_cast<std::size_t>(ids[r]) * row_bytes(table.type, table.cols), table.cols,
                   out.f32() + r * out.cols);
        }
    }

    void rms_norm(const Block& in, const float* weight, float epsilon, const Block& out) noexcept override {
        const std::size_t n = in.cols;
        for_each(in.rows, in.rows * n > worth_a_team, [&](std::size_t r, int) {
            if (out.type == Type::bf16) {
                cpu::rms_norm(in.f32() + r * n, weight, epsilon, n, static_cast<Bf16*>(out.data) + r * n);
            } else {
                cpu::rms_norm(in.f32() + r * n, weight, epsilon, n, out.f32() + r * n);
            }
        });
    }

    void products(const Block& in, std::span<const Product> group) noexcept override { matrices_->run(in, group); }

    void rope(const Rope& rope, const Block& heads, std::size_t head_size, std::size_t first) noexcept override {
        for (std::size_t r = 0; r < heads.rows; ++r) {
            const float* cosines = rope.table + (first + r) * 2 * rope.pairs;
            const float* sines = cosines + rope.pairs;
            for (std::size_t h = 0; h < heads.cols; h += head_size) {
                float* head = heads.f32() + r * heads.cols + h;
                rope.halves ? rotate_halves(head, cosines, sines, rope.pairs)
                            : rotate_neighbours(head, cosines, sines, rope.pairs);
            }
        }
    }

    void kv_append(const KvCache& cache, const HeadShape& shape, const Block& keys, const Block& values,
                   std::size_t first) noexcept override {
        const std::size_t bytes = shape.size * sizeof(float);
        for (std::size_t r = 0; r < keys.rows; ++r) {
            for (std::size_t h = 0; h < shape.kv_heads; ++h) {
                const std::size_t from = r * keys.cols + h * shape.size;
                const std::size_t to = (h * cache.context + first + r) * shape.size;
                std::memcpy(cache.keys + to, keys.f32() + from, bytes);
                std::memcpy(cache.values + to, values.f32() + from, bytes);
            }
        }
    }

    void attention(const KvCache& cache, const HeadShape& shape, const Block& queries, std::size_t first,
                   float* scratch, const Block& out) noexcept override {
        const std::size_t group = shape.heads / shape.kv_heads;
        const std::size_t work = queries.rows * shape.heads * (first + queries.rows) * shape.size;
        for_each(queries.rows * shape.heads, work > 4 * worth_a_team, [&](std::size_t i, int thread) {
            const std::size_t row = i / shape.heads;
            const std::size_t head = i % shape.heads;
            const std::size_t kv = head / group * cache.context * shape.size;
            const std::size_t at = row * queries.cols + head * shape.size;
            // The query is read for the last time here, so that its place can take the result.
            float* place = queries.f32() + at;
            const std::size_t end = first + row + 1;
            const std::size_t begin = shape.window != 0 && end > shape.window ? end - shape.window : 0;
            const std::size_t skipped = kv + begin * shape.size;
            const Head one{head, place, cache.keys + skipped, cache.values + skipped, end - begin, shape.size};
            float* scores = scratch + static_cast<std::size_t>(thread) * cache.context;
            if (observer_ != nullptr && observer_->keeps_tiles()) {
                attend_in_tiles(*observer_, one, scores, place);
            } else {
                attend(one.query, one.keys, one.values, one.positions, one.size, scores, place);
            }
            if (out.type == Type::bf16) {
                to_bf16(place, shape.size, static_cast<Bf16*>(out.data) + at);
            } else {
                std::memcpy(out.f32() + at, place, shape.size * sizeof(float));
            }
        });
    }

    void observe(Recorder* recorder) noexcept override { observer_ = recorder; }

    void add(const Block& x, const Block& y) noexcept override {
        for_each(x.rows, x.rows * x.cols > worth_a_team,
                 [&](std::size_t r, int) { cpu::add(x.f32() + r * x.cols, y.f32() + r * x.cols, x.cols); });
    }

    void silu_multiply(const Block& gate, const Block& up, const Block& out) noexcept override {
        activate(gate, up, out, [](auto... arguments) { cpu::silu_multiply(arguments...); });
    }
    void gelu_multiply(const Block& gate, const Block& up, const Block& out) noexcept override {
        activate(gate, up, out, [](auto... arguments) { cpu::gelu_multiply(arguments...); });
    }

    void scale(const Block& x, float factor) noexcept override { cpu::scale(x.f32(), factor, x.rows * x.cols); }

    void route(const Block& logits, const Routing& routing) noexcept override { cpu::route(logits, routing); }

    void dispatch(const Block& in, const Routing& routing, const Block& out) noexcept override {
        order_by_expert(routing, in.rows);
        for_each(out.rows, out.rows * out.cols > 2 * worth_a_team, [&](std::size_t choice, int) {
            const std::size_t row = choice / routing.used;
            const auto slot = static_cast<std::size_t>(routing.slot[choice]);
            std::memcpy(out.f32() + slot * out.cols, in.f32() + row * in.cols, in.cols * sizeof(float));
        });
    }

    void grouped_products(const Block& in, const Stack& stack, const Routing& routing,
                          const Block& out) noexcept override {
        matrices_->run_stack(in, stack, routing.offsets, out);
    }

    void combine(const Block& in, const Routing& routing, const Block& out) noexcept override {
        for_each(out.rows, in.rows * in.cols > worth_a_team, [&](std::size_t r, int) {
            float* row = out.f32() + r * out.cols;
            std::memset(row, 0, out.cols * sizeof(float));
            for (std::size_t choice = r * routing.used; choice < (r + 1) * routing.used; ++choice) {
                add_scaled(in.f32() + static_cast<std::size_t>(routing.slot[choice]) * in.cols, routing.weight[choice],
                           out.cols, row);
            }
        });
    }

    [[nodiscard]] std::size_t active_experts(const Routing& routing) const noexcept override {
        std::size_t out = 0;
        for (std::size_t e = 0; e < routing.experts; ++e) {
            out += routing.offsets[e] != routing.offsets[e + 1] ? 1U : 0U;
        }
        return out;
    }

    void largest(const Block& rows, std::span<std::int32_t> out) noexcept override {
        for (std::size_t r = 0; r < rows.rows; ++r) {
            out[r] = static_cast<std::int32_t>(cpu::largest(rows.f32() + r * rows.cols, rows.cols));
        }
    }

  private:
    /// function(gate, up, n, out) for every row.
    template <class Function>
    void activate(const Block& gate, const Block& up, const Block& out, Function function) noexcept {
        const std::size_t n = gate.cols;
        for_each(gate.rows, gate.rows * n > worth_a_team, [&](std::size_t r, int) {
            if (out.type == Type::bf16) {
                function(gate.f32() + r * n, up.f32() + r * n, n, static_cast<Bf16*>(out.data) + r * n);
            } else {
                function(gate.f32() + r * n, up.f32() + r * n, n, out.f32() + r * n);
            }
        });
    }

    /// f(index, thread) for all indices below `count`: by the team in a few even parts, or by the caller alone.
    template <class F>
    void for_each(std::size_t count, bool by_team, F&& f) noexcept {
        const std::size_t parts = by_team ? std::min(count, 4 * static_cast<std::size_t>(team_.size())) : 1;
        team_.run(parts, [&](std::size_t part, int thread) {
            const std::size_t end = count * (part + 1) / parts;
            for (std::size_t i = count * part / parts; i < end; ++i) {
                f(i, thread);
            }
        });
    }

    Team team_;
    std::unique_ptr<Matrices> matrices_; // uses the team
    int openmp_before_ = 1;
    Recorder* observer_ = nullptr;
};

} // namespace

Result<std::unique_ptr<ComputeBackend>> make_backend(const CpuOptions& options) {
    const int cores = available_cores();
    if (options.threads < 0 || options.threads > 1024) {
        return Error{ErrorCode::invalid_argument, "--threads must lie between 1 and 1024, or be 0 for all cores"};
    }
    auto backend = std::make_unique<CpuComputeBackend>(options.threads == 0 ? cores : options.threads);
    backend->enter();
    const Status opened = backend->open(options.widen_bf16);
    backend->leave();
    if (!opened) {
        return opened.error();
    }
    return std::unique_ptr<ComputeBackend>(std::move(backend));
}

} // namespace plumb::decoder::cpu
