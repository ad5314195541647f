// SPDX-License-Identifier: Apache-2.0
// The kernels a device offers to the decoder: one interface, one folder per device behind it (cpu/, cuda/, opencl/).
// Contract: a backend is used by one thread at a time; operations are queued in order on queue() and may run
// asynchronously, read() waits. Memory comes from allocate() and is addressed by pointers that only this backend may
// follow (on the cpu: plain memory). prepare() does all that can fail or allocate; operations after it do neither.
// Matrices are row-major; a Weight of `rows` outputs times `cols` inputs lies as in a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "decoder/kernels/random_weights.hpp"
#include "decoder/kernels/type.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb {
class Profiler;
}

namespace plumb::decoder {

/// A matrix of the model, read-only, at least 8-byte aligned.
struct Weight {
    const void* data = nullptr;
    Type type = Type::f32;
    std::size_t rows = 0; // outputs
    std::size_t cols = 0; // inputs

    [[nodiscard]] std::size_t bytes() const noexcept { return rows * row_bytes(type, cols); }
};

/// What a product moves and computes: a part of its own, and one for each row of the input.
struct Cost {
    double bytes = 0;
    double row_bytes = 0;
    double row_flops = 0;
};

/// y = W x + bias. `plan` is the backend's, set by prepare().
struct Linear {
    Weight weight;
    const float* bias = nullptr; // weight.rows values, or none
    std::size_t plan = 0;
    Cost cost;
};

/// Activations: `rows` tokens times `cols` values, contiguous.
struct Block {
    void* data = nullptr;
    Type type = Type::f32;
    std::size_t rows = 0;
    std::size_t cols = 0;

    [[nodiscard]] float* f32() const noexcept { return static_cast<float*>(data); }
    [[nodiscard]] std::size_t bytes() const noexcept { return rows * cols * size_of(type); }
};

/// One matrix product of a group: out = linear(in).
struct Product {
    const Linear* linear = nullptr;
    Block out;
};

/// Rotation of query and key heads. The table holds cos then sin of `pairs` angles for each position.
struct Rope {
    const float* table = nullptr;
    std::size_t pairs = 0; // rotated pairs of a head; the rest of the head stays
    bool halves = false;   // false: neighbours (2i, 2i+1); true: (i, i + pairs)
};

/// The cache of one layer: [kv_head][context][head_size], float.
struct KvCache {
    float* keys = nullptr;
    float* values = nullptr;
    std::size_t context = 0;
};

/// Of each row of a block its best values and where they are, best first. Host memory of the backend, until the next call.
struct BestLogits {
    std::span<const float> values;
    std::span<const std::int32_t> at;
};

/// The rows of one step: those of a sequence lie next to each other, as many for each.
struct StepRows {
    std::span<const std::int32_t> tokens; // of each row
    std::span<const std::size_t> first;   // of each sequence: the position of its first row

    [[nodiscard]] std::size_t of_sequence() const noexcept { return tokens.size() / first.size(); }
};

/// `count` rows of a block.
[[nodiscard]] inline Block rows_from(const Block& block, std::size_t first, std::size_t count) noexcept {
    return {static_cast<std::byte*>(block.data) + first * block.cols * size_of(block.type), block.type, count,
            block.cols};
}

/// Products that one group may hold.
inline constexpr std::size_t max_products = 4;

struct HeadShape {
    std::size_t heads = 0;
    std::size_t kv_heads = 0;
    std::size_t size = 0;
    std::size_t window = 0; // positions that a query sees, its own the last; 0: all
};

/// `count` matrices of one shape, one after the other: a matrix of each expert.
struct Stack {
    Weight one;
    std::size_t count = 0;
};

/// Which experts each token goes to. Filled by route() and dispatch(); memory of the backend, for `rows` tokens at most.
struct Routing {
    std::size_t experts = 0;
    std::size_t used = 0;            // of each token
    bool normalise = true;           // the weights of a token sum to 1
    float scale = 1;                 // of all weights
    std::int32_t* chosen = nullptr;  // [rows][used], the best first
    float* weight = nullptr;         // [rows][used]
    std::int32_t* slot = nullptr;    // [rows][used]: the row that holds the token for that expert
    std::int32_t* offsets = nullptr; // [experts + 1]: expert e has the rows offsets[e] … offsets[e + 1]
};

/// Of the kernels of one step, by their own clock.
struct StampedKernels {
    std::uint64_t kernels_ns = 0; // in which one ran
    std::uint64_t stretch_ns = 0; // from the begin of the first to the end of the last
};

/// What not every model asks for, and not every backend does.
enum class Feature : std::uint8_t { experts, gelu, scale, window };

/// Memory of a backend; gives it back when it goes. Outlives nothing: the backend must live longer.
struct FreeBuffer {
    void (*free)(void* data, std::size_t bytes) noexcept = nullptr;
    std::size_t bytes = 0;
    void operator()(void* data) const noexcept { free(data, bytes); }
};
using Buffer = std::unique_ptr<void, FreeBuffer>;

class ComputeBackend {
  public:
    virtual ~ComputeBackend() = default;

    /// Where the operations run, for the profiler.
    [[nodiscard]] virtual Queue queue() const noexcept = 0;
    /// "cpu, 2 threads": one line for reports.
    [[nodiscard]] virtual std::string description() const = 0;
    [[nodiscard]] virtual int threads() const noexcept = 0;

    /// Zeroed memory, aligned to 64 bytes. Errors: out_of_memory.
    [[nodiscard]] virtual Result<Buffer> allocate(std::size_t bytes) = 0;
    /// What the input block of a product with such weights must be.
    [[nodiscard]] virtual Type input_type(Type weights) const noexcept = 0;
    /// Makes products with these matrices possible for blocks of `rows`. Repeating it is cheap.
    /// Errors: unsupported, out_of_memory.
    [[nodiscard]] virtual Status prepare(Linear& linear, std::size_t rows) = 0;
    /// Makes embed() from this table, or rms_norm() with these values, possible. Errors: unsupported, out_of_memory.
    [[nodiscard]] virtual Status prepare_table(const Weight& table) {
        (void)table;
        return {};
    }
    [[nodiscard]] virtual Status prepare_vector(const float* values, std::size_t count) {
        (void)values, (void)count;
        return {};
    }
    /// Makes attention of `rows` rows possible. Errors: unsupported, out_of_memory.
    [[nodiscard]] virtual Status prepare_attention(const HeadShape& shape, std::size_t rows) {
        (void)shape, (void)rows;
        return {};
    }
    /// Puts the host's bytes into memory of allocate(), before the operations that follow.
    virtual void write(void* to, const void* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }
    /// The values of an f32 block for the host, once every operation before is done.
    [[nodiscard]] virtual std::span<const float> read(const Block& block) noexcept {
        return {block.f32(), block.rows * block.cols};
    }
    /// An error of an operation; what came after it did nothing.
    [[nodiscard]] virtual Status status() const { return {}; }
    /// A model that needs what is not supported is refused; the operation is then never called.
    [[nodiscard]] virtual bool supports(Feature feature) const noexcept {
        (void)feature;
        return false;
    }
    /// Makes grouped_products() with this stack possible. Errors: unsupported, out_of_memory.
    [[nodiscard]] virtual Status prepare(const Stack& stack) {
        (void)stack;
        return Error{ErrorCode::unsupported, "this device has no products of experts; use another --backend"};
    }
    /// From now on kernels may start while those before them end, where a device has that. What they compute is the same.
    /// Errors: invalid_argument, unsupported.
    [[nodiscard]] virtual Status launch_programmatically() {
        return Error{ErrorCode::invalid_argument,
                     "only the cuda backend has programmatic launches: leave --programmatic-launch out, or say "
                     "--backend cuda"};
    }
    /// Before any prepare(): which matrices it makes on the device instead of copying them. Errors: unsupported.
    [[nodiscard]] virtual Status make_weights(RandomWeights weights) {
        (void)weights;
        return Error{
            ErrorCode::unsupported,
            "only the cuda backend makes random weights on its device: say --backend cuda, or plumb model make --shape "
            "SHAPE -o FILE and decode that file"};
    }
    /// From now on kernels write down when they run. Errors: unsupported, out_of_memory.
    [[nodiscard]] virtual Status stamp_kernels() {
        return Error{ErrorCode::unsupported, "only the cuda backend has kernels that stamp their times: leave "
                                             "--kernel-stamps out, or say --backend cuda"};
    }
    /// Those since the last run_step() began; waits for them. Nothing where they are not stamped.
    [[nodiscard]] virtual std::optional<StampedKernels> stamped_kernels() noexcept { return std::nullopt; }
    /// Called at the start and end of a run of operations on the calling thread.
    virtual void enter() noexcept = 0;
    virtual void leave() noexcept = 0;

    /// Runs the operations of a step, or what a device has kept of them: they depend on nothing but the number of rows and
    /// what `rows` says. `outputs` is what they leave for the host.
    virtual void run_step(const StepRows& rows, const Block& outputs, const std::function<void()>& operations) {
        (void)rows, (void)outputs;
        operations();
    }
    /// Where the operations of a step find its tokens.
    [[nodiscard]] virtual const std::int32_t* tokens_of(const StepRows& rows) const noexcept {
        return rows.tokens.data();
    }

    /// out[r] = row `ids[r]` of the table; REQUIRES every id below table.rows. out is f32.
    virtual void embed(std::span<const std::int32_t> ids, const Weight& table, const Block& out) noexcept = 0;
    virtual void rms_norm(const Block& in, const float* weight, float epsilon, const Block& out) noexcept = 0;
    /// Products of one input; out: f32, in.rows rows each. REQUIRES at most max_products of them, in of the input_type() of
    /// their weights, and prepare(linear, in.rows) of each.
    virtual void products(const Block& in, std::span<const Product> group) noexcept = 0;
    // Of a whole step, with a cache for each sequence: at once, or one sequence after the other by the operations below.
    virtual void rope_step(const Rope& rope, const Block& heads, std::size_t head_size, const StepRows& rows) noexcept {
        const std::size_t count = rows.of_sequence();
        for (std::size_t i = 0; i < rows.first.size(); ++i) {
            this->rope(rope, rows_from(heads, i * count, count), head_size, rows.first[i]);
        }
    }
    virtual void kv_append_step(const KvCache* caches, const HeadShape& shape, const Block& keys, const Block& values,
                                const StepRows& rows) noexcept {
        const std::size_t count = rows.of_sequence();
        for (std::size_t i = 0; i < rows.first.size(); ++i) {
            kv_append(caches[i], shape, rows_from(keys, i * count, count), rows_from(values, i * count, count),
                      rows.first[i]);
        }
    }
    /// `scratch`: threads() times cache.context floats.
    virtual void attention_step(const KvCache* caches, const HeadShape& shape, const Block& queries,
                                const StepRows& rows, float* scratch, const Block& out) noexcept {
        const std::size_t count = rows.of_sequence();
        for (std::size_t i = 0; i < rows.first.size(); ++i) {
            attention(caches[i], shape, rows_from(queries, i * count, count), rows.first[i], scratch,
                      rows_from(out, i * count, count));
        }
    }
    // Of one sequence; not called where the three above are a backend's own.
    /// Rotates every head of every row; row r is at position `first + r`.
    virtual void rope(const Rope&, const Block&, std::size_t, std::size_t) noexcept {}
    virtual void kv_append(const KvCache&, const HeadShape&, const Block&, const Block&, std::size_t) noexcept {}
    /// Causal: row r sees the positions 0 … first + r.
    virtual void attention(const KvCache&, const HeadShape&, const Block&, std::size_t, float*, const Block&) noexcept {
    }
    /// Who times what is inside replays of run_step(); null: nobody. Must be taken back before it ends.
    virtual void profile_replays(Profiler*) noexcept {}
    /// Whose PLUMB_TILE the kernels use; null: nobody's. What they compute does not depend on it.
    virtual void observe(Recorder*) noexcept {}
    /// x += y, both f32.
    virtual void add(const Block& x, const Block& y) noexcept = 0;
    /// out = silu(gate) * up.
    virtual void silu_multiply(const Block& gate, const Block& up, const Block& out) noexcept = 0;
    /// out = gelu(gate) * up, by the tanh formula. Feature::gelu.
    virtual void gelu_multiply(const Block&, const Block&, const Block&) noexcept {}
    /// x *= factor. Feature::scale.
    virtual void scale(const Block&, float) noexcept {}

    // Feature::experts. All blocks are f32.
    /// The softmax of each row of logits; its `used` largest values and where they are.
    virtual void route(const Block&, const Routing&) noexcept {}
    /// Orders the choices by expert and copies each token's row of `in` to its slots in `out`.
    virtual void dispatch(const Block&, const Routing&, const Block&) noexcept {}
    /// Rows offsets[e] … of `out` = matrix e of the stack times these rows of `in`. REQUIRES prepare(stack).
    virtual void grouped_products(const Block&, const Stack&, const Routing&, const Block&) noexcept {}
    /// out[r] = sum of the rows of `in` that hold token r, each times its weight.
    virtual void combine(const Block&, const Routing&, const Block&) noexcept {}
    /// Experts that have a row; known after dispatch().
    [[nodiscard]] virtual std::size_t active_experts(const Routing&) const noexcept { return 0; }

    /// Index of the largest value of each row, the first of equals; a NaN is none. Waits for what was before.
    virtual void largest(const Block& rows, std::span<std::int32_t> out) noexcept = 0;
    /// The `wanted` best values of each row, or all if there are fewer; of equals the first is better, and a NaN is -inf. Waits
    /// for what was before. Empty where the device finds no so many; the host then reads the rows.
    [[nodiscard]] virtual BestLogits best(const Block& rows, std::size_t wanted) noexcept {
        (void)rows, (void)wanted;
        return {};
    }
};

} // namespace plumb::decoder
