// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/cuda_backend.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "decoder/kernels/cuda/library_products.hpp"
#include "decoder/kernels/cuda/pack.hpp"
#include "plumb/cuda.hpp"
#include "plumb/cuda_graph.hpp"

namespace plumb::decoder::cuda {
namespace {

constexpr std::size_t most_gemv_rows = 8; // of the input: more are worth tiles
constexpr std::size_t most_splits = 32;
constexpr std::size_t split_positions = 128; // that a stretch of attention has at least
constexpr std::size_t most_launch = 0x7fffffff;

void keep(void*, std::size_t) noexcept {} // the device's memory goes with the device

std::uint64_t at(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
std::size_t pieces(std::size_t whole, std::size_t piece) { return (whole + piece - 1) / piece; }

class CudaComputeBackend final : public ComputeBackend {
  public:
    CudaComputeBackend(std::unique_ptr<CudaDevice> device, Graphs graphs, LibraryFunction library)
        : device_(std::move(device)), queue_(plumb::cuda(device_->stream())), graphs_(graphs), find_library_(library) {}

    [[nodiscard]] Queue queue() const noexcept override { return queue_; }
    [[nodiscard]] int threads() const noexcept override { return 1; }
    [[nodiscard]] std::string description() const override {
        return "cuda, " + device_->name() + (library_ != nullptr ? ", " + library_->name() : "");
    }
    [[nodiscard]] Status status() const override { return device_->status(); }
    [[nodiscard]] bool supports(Feature) const noexcept override { return true; }
    [[nodiscard]] Type input_type(Type) const noexcept override { return Type::f32; }
    [[nodiscard]] Status launch_programmatically() override { return device_->launch_programmatically(); }
    void enter() noexcept override { device_->enter(); }
    void leave() noexcept override { device_->leave(); }

    // --- Memory ---

    [[nodiscard]] Result<Buffer> allocate(std::size_t bytes) override {
        Result<std::uint64_t> address = device_->allocate(bytes);
        return address ? Result<Buffer>(Buffer(reinterpret_cast<void*>(*address), FreeBuffer{keep, bytes}))
                       : Result<Buffer>(address.error());
    }
    void write(void* to, const void* from, std::size_t bytes) noexcept override {
        device_->write(at(to), from, bytes);
        device_->wait();
    }
    std::span<const float> read(const Block& block) noexcept override {
        std::vector<float>& host = host_[block.data];
        host.resize(block.rows * block.cols);
        device_->read(host.data(), at(block.data), block.bytes());
        return host;
    }

    [[nodiscard]] Status prepare(Linear& linear, std::size_t rows) override {
        rows_ = std::max(rows_, rows);
        Status status = prepare_table(linear.weight);
        status = status && linear.bias != nullptr ? prepare_vector(linear.bias, linear.weight.rows) : status;
        return status && rows > most_gemv_rows ? prepare_library(linear.weight, rows) : status;
    }
    [[nodiscard]] Status prepare_table(const Weight& weight) override { return adopt(weight, 1); }
    [[nodiscard]] Status prepare(const Stack& stack) override {
        if (stack.count > most_experts) {
            return Error{ErrorCode::unsupported, "the cuda backend knows at most " + std::to_string(most_experts) +
                                                     " experts; use --backend cpu"};
        }
        return adopt(stack.one, stack.count);
    }
    [[nodiscard]] Status make_weights(RandomWeights weights) override {
        random_ = std::move(weights);
        return {};
    }
    [[nodiscard]] Status stamp_kernels() override { return device_->stamp_launches(); }
    [[nodiscard]] std::optional<StampedKernels> stamped_kernels() noexcept override {
        return times_of(device_->read_stamps());
    }
    [[nodiscard]] Status prepare_vector(const float* values, std::size_t count) override {
        if (device_->copy_of(values) != 0) {
            return {};
        }
        const Result<std::uint64_t> copy = device_->adopt(values, values, count * sizeof(float));
        return copy ? Status{} : Status{copy.error()};
    }
    [[nodiscard]] Status prepare_attention(const HeadShape& shape, std::size_t rows) override {
        if (shape.size > attend_largest_head) {
            return Error{ErrorCode::unsupported, "the cuda backend knows heads of at most " +
                                                     std::to_string(attend_largest_head) +
                                                     " values; use --backend cpu"};
        }
        rows_ = std::max(rows_, rows);
        const std::size_t split_rows = std::min(rows_, most_gemv_rows);
        const Result<std::uint64_t> partial =
            device_->allocate(split_rows * shape.heads * most_splits * (shape.size + 2) * sizeof(float));
        const Result<std::uint64_t> step = device_->allocate(2 * rows_ * sizeof(std::int32_t));
        const Result<std::uint64_t> found = device_->allocate(rows_ * (most_parts_found * 2 + 1) * sizeof(float));
        const Result<std::uint64_t> best =
            device_->allocate((most_gemv_rows * most_parts_found + rows_) * most_best * best_bytes);
        if (!partial || !step || !found || !best) {
            return !partial ? partial.error() : !step ? step.error() : !found ? found.error() : best.error();
        }
        best_ = *best;
        partial_ = *partial, tokens_ = *step, positions_ = *step + rows_ * sizeof(std::int32_t), found_ = *found;
        heads_ = shape.heads;
        numbers_.resize(2 * rows_);
        return graphs_ == Graphs::off ? Status{} : make_graphs();
    }

    // --- Steps ---

    void run_step(const StepRows& rows, const Block& outputs, const std::function<void()>& operations) override {
        begin(rows);
        device_->clear_stamps();
        if (graphs_cache_ == nullptr || rows.of_sequence() != 1) {
            operations();
            return;
        }
        const std::uint64_t key = rows.tokens.size() | std::uint64_t{splits_} << 32;
        if (graphs_ == Graphs::verify) {
            operations();
            expected_.assign(read(outputs).begin(), read(outputs).end());
        }
        replay(key, operations);
        if (graphs_ == Graphs::verify) {
            const std::span<const float> replayed = read(outputs);
            if (status().ok() && std::memcmp(replayed.data(), expected_.data(), replayed.size_bytes()) != 0) {
                device_->fail(
                    {ErrorCode::failed, "the replay of a step of " + std::to_string(rows.tokens.size()) +
                                            " rows gives other logits than its kernels one by one; use --graphs off"});
            }
        }
    }
    [[nodiscard]] const std::int32_t* tokens_of(const StepRows&) const noexcept override {
        return reinterpret_cast<const std::int32_t*>(tokens_);
    }

    void profile_replays(Profiler* profiler) noexcept override {
        profiler_ = profiler;
        if (graphs_cache_ == nullptr) {
            return;
        }
        device_->enter();
        device_->wait();
        graphs_cache_.reset(); // its graphs are probed by whom it was made for
        if (Status made = make_graphs(); !made) {
            device_->fail(made.error());
        }
        device_->leave();
    }

    // --- Operations ---

    void embed(std::span<const std::int32_t> ids, const Weight& table, const Block& out) noexcept override {
        device_->run(TypedKernel::embed, table.type, {ids.size()}, element_threads, 0,
                     EmbedArgs{matrix_of(table, 1), tokens_, at(out.data)});
    }

    void rms_norm(const Block& in, const float* weight, float epsilon, const Block& out) noexcept override {
        const unsigned threads = std::clamp<unsigned>(narrow(in.cols / 128 * 32), 32, 1024);
        device_->run(CudaKernel::rms_norm, {in.rows}, threads, threads / 32 * sizeof(float),
                     NormArgs{at(in.data), device_->copy_of(weight), at(out.data), narrow(in.cols), epsilon});
    }

    void products(const Block& in, std::span<const Product> group) noexcept override {
        for (std::size_t done = 0; done < group.size();) {
            ProductArgs args;
            args.in = at(in.data);
            args.rows = narrow(in.rows);
            const Type type = group[done].linear->weight.type;
            for (; done < group.size() && group[done].linear->weight.type == type && args.count < most_parts; ++done) {
                const Linear& linear = *group[done].linear;
                args.parts[args.count++] = {matrix_of(linear.weight, 1),
                                            linear.bias != nullptr ? device_->copy_of(linear.bias) : 0,
                                            at(group[done].out.data), 0, narrow(linear.weight.rows)};
            }
            if (library_ != nullptr && args.rows > most_gemv_rows) {
                library_->take(args, type);
            }
            if (args.count != 0) {
                run_products(args, type, in.cols);
            }
        }
    }

    void rope_step(const Rope& rope, const Block& heads, std::size_t head_size, const StepRows&) noexcept override {
        const std::size_t turns = heads.rows * (heads.cols / head_size) * rope.pairs;
        if (turns != 0) {
            device_->run(CudaKernel::rope, elements(turns), element_threads, 0,
                         RopeArgs{at(heads.data), at(rope.table), positions_, narrow(heads.rows), narrow(heads.cols),
                                  narrow(head_size), narrow(rope.pairs), rope.halves ? 1U : 0U, 0});
        }
    }

    void kv_append_step(const KvCache* caches, const HeadShape& shape, const Block& keys, const Block& values,
                        const StepRows& rows) noexcept override {
        device_->run(CudaKernel::kv_append, elements(keys.rows * keys.cols), element_threads, 0,
                     AppendArgs{cache_of(caches, shape, rows), at(keys.data), at(values.data), narrow(keys.rows),
                                narrow(keys.cols)});
    }

    void attention_step(const KvCache* caches, const HeadShape& shape, const Block& queries, const StepRows& rows,
                        float*, const Block& out) noexcept override {
        const AttendArgs args{
            cache_of(caches, shape, rows),        at(queries.data), at(out.data),        partial_, narrow(shape.heads),
            narrow(shape.heads / shape.kv_heads), narrow(splits_),  narrow(shape.window)};
        const CudaKernel kernel = shape.size <= 32    ? CudaKernel::attend_32
                                  : shape.size <= 64  ? CudaKernel::attend_64
                                  : shape.size <= 128 ? CudaKernel::attend_128
                                                      : CudaKernel::attend_256;
        device_->run(kernel, {shape.heads, splits_, queries.rows}, attend_threads,
                     attend_threads / 8 * (shape.size + 2) * sizeof(float), args);
        if (splits_ > 1) {
            device_->run(CudaKernel::attend_merge, {shape.heads, queries.rows}, attend_threads, 0, args);
        }
    }

    void add(const Block& x, const Block& y) noexcept override { each(CudaKernel::add, x, y, x, 0); }
    void silu_multiply(const Block& gate, const Block& up, const Block& out) noexcept override {
        each(CudaKernel::silu_multiply, gate, up, out, 0);
    }
    void gelu_multiply(const Block& gate, const Block& up, const Block& out) noexcept override {
        each(CudaKernel::gelu_multiply, gate, up, out, 0);
    }
    void scale(const Block& x, float factor) noexcept override { each(CudaKernel::scale, x, x, x, factor); }

    void route(const Block& logits, const Routing& routing) noexcept override {
        device_->run(CudaKernel::route, {logits.rows}, 32, 0,
                     RouteArgs{at(logits.data), at(routing.chosen), at(routing.weight), narrow(routing.experts),
                               narrow(routing.used), routing.normalise ? 1U : 0U, routing.scale});
    }
    void dispatch(const Block& in, const Routing& routing, const Block& out) noexcept override {
        const unsigned threads = narrow(pieces(routing.experts, 32) * 32);
        device_->run(CudaKernel::order_by_expert, {}, threads, threads * sizeof(float),
                     OrderArgs{at(routing.chosen), at(routing.slot), at(routing.offsets), narrow(routing.experts),
                               narrow(out.rows)});
        device_->run(CudaKernel::gather_rows, elements(out.rows * out.cols), element_threads, 0,
                     GatherArgs{at(in.data), at(routing.slot), at(out.data), narrow(out.cols), narrow(routing.used),
                                narrow(out.rows), 0});
        dispatched_ = out.rows;
    }
    void grouped_products(const Block& in, const Stack& stack, const Routing& routing,
                          const Block& out) noexcept override {
        ProductArgs args;
        args.in = at(in.data);
        args.offsets = at(routing.offsets);
        args.rows = narrow(in.rows);
        args.experts = narrow(stack.count);
        args.parts[args.count++] = {matrix_of(stack.one, stack.count), 0, at(out.data), 0, narrow(stack.one.rows)};
        run_products(args, stack.one.type, in.cols);
    }
    void combine(const Block& in, const Routing& routing, const Block& out) noexcept override {
        device_->run(CudaKernel::combine_experts, elements(out.rows * out.cols), element_threads, 0,
                     CombineArgs{at(in.data), at(routing.slot), at(routing.weight), at(out.data), narrow(out.cols),
                                 narrow(routing.used), narrow(out.rows), 0});
    }
    /// At most: how many of several rows chose the same, only the device knows, and nobody waits for it.
    [[nodiscard]] std::size_t active_experts(const Routing& routing) const noexcept override {
        return std::min(routing.experts, dispatched_);
    }

    void largest(const Block& rows, std::span<std::int32_t> out) noexcept override {
        const std::size_t parts = std::clamp<std::size_t>(rows.cols / 1024, 1, most_parts_found);
        const std::uint64_t result = found_ + rows.rows * parts * 2 * sizeof(float);
        const LargestArgs args{at(rows.data), found_, result, narrow(rows.cols), narrow(parts)};
        device_->run(CudaKernel::largest_of_part, {parts, rows.rows}, largest_threads,
                     largest_threads / 32 * 2 * sizeof(float), args);
        device_->run(CudaKernel::largest_of_parts, {rows.rows}, 32, 0, args);
        device_->read(out.data(), result, rows.rows * sizeof(std::int32_t));
    }

    [[nodiscard]] BestLogits best(const Block& rows, std::size_t wanted) noexcept override {
        const std::size_t count = std::min(wanted, rows.cols);
        if (count == 0 || count > most_best) {
            return {};
        }
        const std::size_t parts = std::clamp<std::size_t>(rows.cols / 1024, 1, most_parts_found);
        const std::uint64_t out = best_ + most_gemv_rows * most_parts_found * most_best * best_bytes;
        const std::size_t shared = largest_threads / 32 * 4 * sizeof(float);
        for (std::size_t row = 0; row < rows.rows;
             row += most_gemv_rows) { // as many as there is memory for their parts
            const Block some = rows_from(rows, row, std::min(most_gemv_rows, rows.rows - row));
            const BestArgs parted{at(some.data), best_, narrow(rows.cols), narrow(parts), narrow(count), 0};
            const BestArgs whole{best_, out + row * count * best_bytes, narrow(parts * count), 1, narrow(count), 1};
            device_->run(CudaKernel::best_values, {parts, some.rows}, largest_threads, shared, parted);
            device_->run(CudaKernel::best_values, {1, some.rows}, largest_threads, shared, whole);
        }
        best_pairs_.resize(rows.rows * count);
        device_->read(best_pairs_.data(), out, best_pairs_.size() * best_bytes);
        best_values_.resize(best_pairs_.size()), best_at_.resize(best_pairs_.size());
        for (std::size_t i = 0; i < best_pairs_.size(); ++i) {
            best_values_[i] = best_pairs_[i].value, best_at_[i] = best_pairs_[i].at;
        }
        return {best_values_, best_at_};
    }

  private:
    static constexpr std::size_t most_parts_found = 64; // of one row, by largest() and best()
    struct ValueAt {
        float value;
        std::int32_t at;
    };
    static constexpr std::size_t best_bytes = sizeof(ValueAt);

    [[nodiscard]] static Grid elements(std::size_t count) noexcept { return {pieces(count, element_threads)}; }

    void each(CudaKernel kernel, const Block& a, const Block& b, const Block& out, float factor) noexcept {
        const std::size_t count = out.rows * out.cols;
        device_->run(kernel, elements(count), element_threads, 0,
                     ElementArgs{at(a.data), at(b.data), at(out.data), narrow(count), factor});
    }

    /// The library is looked for when the first product asks for it; without one the tiles remain.
    Status prepare_library(const Weight& weight, std::size_t rows) {
        if (!LibraryProducts::knows(weight.type)) {
            return {};
        }
        if (find_library_ != nullptr) {
            const Result<CublasLt>& calls = std::exchange(find_library_, nullptr)();
            library_ = calls ? LibraryProducts::make(*device_, *calls) : nullptr;
        }
        return library_ != nullptr ? library_->prepare(weight, rows) : Status{};
    }

    /// The bytes of `count` matrices that follow each other.
    Status adopt(const Weight& weight, std::size_t count) {
        if (device_->copy_of(weight.data) != 0) {
            return {};
        }
        if (weight.cols % 8 != 0 || weight.rows > most_launch || weight.cols > most_launch) {
            return Error{ErrorCode::unsupported,
                         "the cuda backend knows matrices whose rows are a multiple of 8, and one "
                         "has rows of " +
                             std::to_string(weight.cols) + "; use --backend cpu"};
        }
        const std::size_t bytes = weight.bytes() * count;
        if (const auto random = random_.find(weight.data); random != random_.end()) {
            return make(weight, count, random->second);
        }
        std::vector<std::byte> planes;
        if (!lies_as_in_file(weight.type)) {
            planes = planes_of(weight.type, weight.data, bytes);
        }
        const Result<std::uint64_t> copy =
            device_->adopt(weight.data, planes.empty() ? weight.data : planes.data(), bytes);
        return copy ? Status{} : Status{copy.error()};
    }
    Status make(const Weight& weight, std::size_t count, const RandomMatrix& random) {
        const Result<std::uint64_t> place = device_->place(weight.data, weight.bytes() * count);
        if (!place) {
            return place.error();
        }
        const std::size_t block = layout_of(weight.type).block;
        const Matrix out = matrix_of(weight, count);
        device_->run(CudaKernel::fill, elements(out.blocks), element_threads, 0,
                     FillArgs{out, random.key, static_cast<std::uint32_t>(weight.type), narrow(block),
                              random.spread / 65535.0F, 0});
        return device_->status();
    }
    [[nodiscard]] Matrix matrix_of(const Weight& weight, std::size_t count) const noexcept {
        return {device_->copy_of(weight.data), weight.rows * count * weight.cols / layout_of(weight.type).block,
                narrow(weight.rows * count), narrow(weight.cols)};
    }

    /// Few rows by gemv, bound by memory; many by tiles, where the library has not taken them.
    void run_products(ProductArgs& args, Type type, std::size_t cols) noexcept {
        const bool grouped = args.offsets != 0;
        const bool gemv = args.rows <= most_gemv_rows;
        std::size_t outputs = 0;
        for (std::size_t i = 0; i < args.count; ++i) {
            outputs += args.parts[i].outputs;
        }
        constexpr std::size_t warps = gemv_threads / 32;
        if (gemv) { // warps enough to keep the memory busy, as long as each has some loads to do
            while (args.split < warps && outputs * args.split < 32 * std::size_t{device_->processors()} &&
                   cols / 8 >= std::size_t{128} * args.split) {
                args.split *= 2;
            }
        }
        const std::size_t of_block = gemv ? warps / args.split : tile_outputs;
        std::size_t blocks = 0;
        for (std::size_t i = 0; i < args.count; ++i) {
            args.parts[i].first_block = narrow(blocks);
            blocks += pieces(args.parts[i].outputs, of_block);
        }
        if (!gemv) {
            device_->run(TypedKernel::tile, type, {blocks, pieces(args.rows, tile_rows), grouped ? args.experts : 1},
                         tile_threads, tile_shared_bytes, args);
            return;
        }
        const bool one = grouped || args.rows == 1; // rows of experts meet a matrix each
        const std::size_t inputs = one ? 1 : gemv_rows;
        device_->run(one ? TypedKernel::gemv_1 : TypedKernel::gemv_4, type, {blocks, pieces(args.rows, inputs)},
                     gemv_threads, args.split > 1 ? warps * inputs * sizeof(float) : 0, args);
    }

    [[nodiscard]] CacheArgs cache_of(const KvCache* caches, const HeadShape& shape,
                                     const StepRows& rows) const noexcept {
        return {at(caches->keys),  at(caches->values), shape.kv_heads * caches->context * shape.size,
                caches->context,   positions_,         narrow(rows.of_sequence()),
                narrow(shape.size)};
    }

    // --- Steps and their graphs ---

    Status make_graphs() {
        CudaGraphOptions options;
        options.max_batch = rows_;
        graphs_cache_ = std::make_unique<CudaGraphCache>(profiler_, options);
        const Result<CudaDecodeState> state = graphs_cache_->decode_state(device_->stream());
        if (!state) {
            return state.error();
        }
        tokens_ = state->tokens;
        positions_ = state->positions;
        return {};
    }

    /// Tokens and positions on their way to the device; how many stretches attention is cut into.
    void begin(const StepRows& rows) noexcept {
        const std::size_t count = rows.tokens.size(), of_sequence = rows.of_sequence();
        std::int32_t* const tokens = numbers_.data();
        std::int32_t* const positions = tokens + rows_;
        std::size_t longest = 0;
        for (std::size_t r = 0; r < count; ++r) {
            const std::size_t position = rows.first[r / of_sequence] + r % of_sequence;
            tokens[r] = rows.tokens[r];
            positions[r] = static_cast<std::int32_t>(position);
            longest = std::max(longest, position + 1);
        }
        splits_ = 1;
        if (count <= most_gemv_rows) {
            const std::size_t wanted = std::max<std::size_t>(1, 4 * device_->processors() / (heads_ * count));
            splits_ =
                std::bit_floor(std::clamp<std::size_t>(longest / split_positions, 1, std::min(wanted, most_splits)));
        }
        if (graphs_cache_ == nullptr) {
            device_->write(tokens_, tokens, count * sizeof(std::int32_t));
            device_->write(positions_, positions, count * sizeof(std::int32_t));
            return;
        }
        Status sent = graphs_cache_->set_decode_state(tokens, positions, count, device_->stream());
        if (!sent && sent.error().code == ErrorCode::pending) { // too many steps on their way
            device_->wait();
            sent = graphs_cache_->set_decode_state(tokens, positions, count, device_->stream());
        }
        if (!sent) {
            device_->fail(sent.error());
        }
    }

    /// The first step of a key is launched, and captured behind: by then every kernel has been loaded, which a capture might not
    /// bear.
    void replay(std::uint64_t key, const std::function<void()>& operations) {
        CUstream_st* const stream = device_->stream();
        const Result<bool> replayed = graphs_cache_->replay(key, stream);
        Status status = replayed ? Status{} : Status{replayed.error()};
        if (replayed && *replayed) {
            device_->stamps().go_to(launches_of_[key]);
        } else if (replayed) {
            operations();
            status = graphs_cache_->begin_capture(stream);
            if (status) {
                launches_of_[key] = device_->stamps().used();
                device_->stamps().go_to(0); // those of the launches that it captures
                operations();
                status = graphs_cache_->end_capture(key);
            }
        }
        if (!status) {
            device_->fail(status.error());
        }
    }

    std::unique_ptr<CudaDevice> device_;
    Queue queue_;
    Graphs graphs_;
    LibraryFunction find_library_;                 // null once it was called
    std::unique_ptr<LibraryProducts> library_;     // before the device goes
    Profiler* profiler_ = nullptr;                 // of replays
    std::unique_ptr<CudaGraphCache> graphs_cache_; // before the device goes
    std::size_t rows_ = 1;                         // of a step, at most
    std::size_t heads_ = 1;
    std::size_t splits_ = 1;     // of this step
    std::size_t dispatched_ = 0; // rows of experts of this step
    std::uint64_t tokens_ = 0, positions_ = 0, partial_ = 0, found_ = 0, best_ = 0;
    std::vector<ValueAt> best_pairs_;
    std::vector<float> best_values_;
    std::vector<std::int32_t> best_at_;
    std::vector<std::int32_t> numbers_;
    std::vector<float> expected_;
    RandomWeights random_;                             // made here
    std::map<std::uint64_t, std::size_t> launches_of_; // of a graph, by its key
    std::map<const void*, std::vector<float>> host_;   // what read() gave, by where it came from
};

} // namespace

Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t index, Graphs graphs, std::string_view image,
                                                     LibraryFunction library) {
    const Result<CudaDriver>& calls = driver();
    if (!calls) {
        return calls.error();
    }
    Result<std::unique_ptr<CudaDevice>> device = CudaDevice::open(*calls, image, index);
    if (!device) {
        return device.error();
    }
    return std::unique_ptr<ComputeBackend>(std::make_unique<CudaComputeBackend>(std::move(*device), graphs, library));
}

Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t index, Graphs graphs) {
    return make_backend(index, graphs, kernels_image());
}

} // namespace plumb::decoder::cuda
