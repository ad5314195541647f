// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/opencl/opencl_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "decoder/kernels/opencl/device.hpp"

namespace plumb::decoder::opencl {
namespace {

constexpr std::size_t ids_of_one_launch = 16; // of embed_*: an int16
constexpr cl_uint cpu_span = 1024;            // values of one long work-item

void keep(void*, std::size_t) noexcept {} // the device's memory goes with the device

cl_uint narrow(std::size_t value) { return static_cast<cl_uint>(value); }

class OpenClComputeBackend final : public ComputeBackend {
  public:
    OpenClComputeBackend(std::unique_ptr<OpenClDevice> device, Queue (*queue_of)(void*))
        : device_(std::move(device)), queue_(queue_of(device_->queue())), span_(device_->is_cpu() ? cpu_span : 1) {}

    Status open() {
        Result<void*> index = device_->allocate(sizeof(cl_int));
        if (!index) {
            return index.error();
        }
        index_ = static_cast<cl_int*>(*index);
        return {};
    }

    [[nodiscard]] Queue queue() const noexcept override { return queue_; }
    [[nodiscard]] int threads() const noexcept override { return 1; }
    [[nodiscard]] std::string description() const override { return "opencl, " + device_->name(); }
    [[nodiscard]] Status status() const override { return device_->status(); }

    [[nodiscard]] Result<Buffer> allocate(std::size_t bytes) override {
        Result<void*> data = device_->allocate(bytes);
        return data ? Result<Buffer>(Buffer(*data, FreeBuffer{keep, bytes})) : Result<Buffer>(data.error());
    }
    [[nodiscard]] Type input_type(Type) const noexcept override { return Type::f32; }
    [[nodiscard]] Status prepare(Linear& linear, std::size_t) override {
        const Status matrix = prepare_table(linear.weight);
        return matrix && linear.bias != nullptr ? prepare_vector(linear.bias, linear.weight.rows) : matrix;
    }
    [[nodiscard]] Status prepare_table(const Weight& weight) override {
        if (weight.type != Type::f32 && weight.type != Type::bf16) {
            return Error{ErrorCode::unsupported,
                         "the opencl backend computes with F32 and BF16 weights only; use --backend cpu"};
        }
        return device_->adopt(weight.data, weight.bytes());
    }
    [[nodiscard]] Status prepare_vector(const float* values, std::size_t count) override {
        return device_->adopt(values, count * sizeof(float));
    }
    void enter() noexcept override {}
    void leave() noexcept override {}
    void write(void* to, const void* from, std::size_t bytes) noexcept override {
        std::memcpy(to, from, bytes);
        device_->write(to, bytes);
    }
    std::span<const float> read(const Block& block) noexcept override {
        device_->read(block.data, block.bytes());
        return {block.f32(), block.rows * block.cols};
    }

    void embed(std::span<const std::int32_t> ids, const Weight& table, const Block& out) noexcept override {
        const bool narrow_table = table.type == Type::bf16;
        const BufferPlace from = device_->place(table.data, size_of(table.type));
        for (std::size_t first = 0; first < ids.size(); first += ids_of_one_launch) {
            const std::size_t count = std::min(ids_of_one_launch, ids.size() - first);
            cl_int16 some{};
            std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(first), count, some.s);
            device_->run(narrow_table ? Kernel::embed_bf16 : Kernel::embed_f32, count, 1, from, some,
                         narrow(table.cols), at(out.f32() + first * out.cols));
        }
    }

    void rms_norm(const Block& in, const float* weight, float epsilon, const Block& out) noexcept override {
        device_->run(Kernel::rms_norm, in.rows, 1, at(in), at(weight), epsilon, narrow(in.cols), at(out));
    }

    void products(const Block& in, std::span<const Product> group) noexcept override {
        for (const Product& product : group) {
            const Weight& weight = product.linear->weight;
            const float* bias = product.linear->bias;
            const BufferPlace matrix = device_->place(weight.data, size_of(weight.type));
            device_->run(weight.type == Type::bf16 ? Kernel::product_bf16 : Kernel::product_f32, weight.rows, in.rows,
                         matrix, at(in), bias != nullptr ? at(bias) : at(in), cl_int{bias != nullptr}, at(product.out),
                         narrow(weight.cols), narrow(weight.rows));
        }
    }

    void rope(const Rope& rope, const Block& heads, std::size_t head_size, std::size_t first) noexcept override {
        device_->run(Kernel::rope, heads.cols / head_size, heads.rows, at(heads), at(rope.table), narrow(head_size),
                     narrow(heads.cols), narrow(rope.pairs), cl_int{rope.halves}, narrow(first));
    }

    void kv_append(const KvCache& cache, const HeadShape& shape, const Block& keys, const Block& values,
                   std::size_t first) noexcept override {
        device_->run(Kernel::kv_append, shape.kv_heads, keys.rows, at(cache.keys), at(cache.values), at(keys),
                     at(values), narrow(shape.size), narrow(keys.cols), cl_ulong{cache.context}, narrow(first));
    }

    void attention(const KvCache& cache, const HeadShape& shape, const Block& queries, std::size_t first, float*,
                   const Block& out) noexcept override {
        device_->run(Kernel::attention, shape.heads, queries.rows, at(cache.keys), at(cache.values), at(queries),
                     at(out), narrow(shape.size), narrow(queries.cols), narrow(shape.heads / shape.kv_heads),
                     cl_ulong{cache.context}, narrow(first));
    }

    void add(const Block& x, const Block& y) noexcept override {
        const std::size_t n = x.rows * x.cols;
        device_->run(Kernel::add, items(n), 1, at(x), at(y), cl_ulong{n}, span_);
    }

    void silu_multiply(const Block& gate, const Block& up, const Block& out) noexcept override {
        const std::size_t n = gate.rows * gate.cols;
        device_->run(Kernel::silu_multiply, items(n), 1, at(gate), at(up), at(out), cl_ulong{n}, span_);
    }

    void largest(const Block& rows, std::span<std::int32_t> out) noexcept override {
        const BufferPlace index = device_->place(index_, sizeof *index_);
        for (std::size_t r = 0; r < rows.rows; ++r) {
            device_->run(Kernel::largest, 1, 1, at(rows.f32() + r * rows.cols), narrow(rows.cols), index.buffer);
            device_->read(index_, sizeof *index_);
            out[r] = *index_;
        }
    }

  private:
    [[nodiscard]] BufferPlace at(const float* values) noexcept { return device_->place(values, sizeof(float)); }
    [[nodiscard]] BufferPlace at(const Block& block) noexcept { return at(block.f32()); }
    [[nodiscard]] std::size_t items(std::size_t values) const noexcept { return (values + span_ - 1) / span_; }

    std::unique_ptr<OpenClDevice> device_;
    Queue queue_;
    cl_uint span_;
    cl_int* index_ = nullptr; // of largest()
};

} // namespace

Result<std::unique_ptr<ComputeBackend>> make_backend(std::size_t device) {
    const Result<Api>& calls = api();
    if (!calls) {
        return calls.error();
    }
    return make_backend(*calls, device);
}

Result<std::unique_ptr<ComputeBackend>> make_backend(const Api& calls, std::size_t device, Queue (*queue_of)(void*)) {
    Result<std::unique_ptr<OpenClDevice>> opened = OpenClDevice::open(calls, device);
    if (!opened) {
        return opened.error();
    }
    auto backend = std::make_unique<OpenClComputeBackend>(std::move(*opened), queue_of);
    if (Status ready = backend->open(); !ready) {
        return ready.error();
    }
    return std::unique_ptr<ComputeBackend>(std::move(backend));
}

} // namespace plumb::decoder::opencl
