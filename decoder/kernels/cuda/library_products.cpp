// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/library_products.hpp"

#include <algorithm>
#include <utility>

namespace plumb::decoder::cuda {
namespace {

constexpr std::uint64_t most_workspace = std::uint64_t{32} << 20; // what the library's guide advises for sm_90
constexpr std::uint32_t aligned = 16;                             // of every matrix, at least

int lt_type_of(Type type) noexcept {
    return type == Type::f32 ? lt_type_f32 : type == Type::bf16 ? lt_type_bf16 : lt_type_f16;
}
unsigned pieces_of(Type type) noexcept { return type == Type::f32 ? 1 : type == Type::bf16 ? bf16_pieces : f16_pieces; }
void* pointer_to(std::uint64_t address) noexcept { return reinterpret_cast<void*>(address); }
Grid grid_of(std::size_t elements) noexcept { return {(elements + element_threads - 1) / element_threads}; }

/// It has done nothing then.
bool is_refusal(int status) noexcept {
    return status == lt_invalid_value || status == lt_arch_mismatch || status == lt_not_supported;
}

} // namespace

std::unique_ptr<LibraryProducts> LibraryProducts::make(CudaDevice& device, const CublasLt& calls) {
    std::unique_ptr<LibraryProducts> out(new LibraryProducts(device, calls));
    return out->start() ? std::move(out) : nullptr;
}

LibraryProducts::~LibraryProducts() {
    if (handle_ != nullptr) {
        device_.enter();
        device_.wait();
        calls_.destroy(handle_);
        device_.leave();
    }
}

bool LibraryProducts::start() {
    if (calls_.create(&handle_) != 0) {
        handle_ = nullptr;
        return false;
    }
    floats_ = make_desc(lt_compute_f32_pedantic);
    halves_ = make_desc(lt_compute_f32);
    LtPreference* preference = nullptr;
    if (floats_ == nullptr || halves_ == nullptr || calls_.preference_create(&preference) != 0) {
        return false;
    }
    preference_.reset(preference);
    int wrong = calls_.preference_set(preference, lt_preference_workspace, &most_workspace, sizeof most_workspace);
    for (int matrix = 0; matrix < 4; ++matrix) {
        wrong |= calls_.preference_set(preference, lt_preference_alignment_a + matrix, &aligned, sizeof aligned);
    }
    return wrong == 0;
}

std::string LibraryProducts::name() const {
    const std::size_t version = calls_.version();
    return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

OwnedByUs<LtDesc> LibraryProducts::make_desc(int compute) const {
    LtDesc* desc = nullptr;
    OwnedByUs<LtDesc> out(calls_.desc_create(&desc, compute, lt_type_f32) == 0 ? desc : nullptr, {&calls_});
    if (out != nullptr && calls_.desc_set(desc, lt_desc_transpose_a, &lt_transposed, sizeof lt_transposed) != 0) {
        out.reset();
    }
    return out;
}

OwnedByUs<LtLayout> LibraryProducts::make_layout(int type, std::size_t rows, std::size_t cols) const {
    LtLayout* layout = nullptr;
    const int status = calls_.layout_create(&layout, type, rows, cols, static_cast<std::int64_t>(rows));
    return {status == 0 ? layout : nullptr, {&calls_}};
}

/// The library counts by columns: our rows are its columns, and out^T = matrix . in^T.
LibraryProducts::Plan LibraryProducts::make_plan(const Key& key) const {
    Plan out;
    out.key = key;
    out.weights = make_layout(lt_type_of(key.type), key.cols, key.outputs);
    out.in = make_layout(lt_type_of(key.type), key.cols, key.rows);
    out.out = make_layout(lt_type_f32, key.outputs, key.rows);
    if (out.weights == nullptr || out.in == nullptr || out.out == nullptr) {
        return out;
    }
    int found = 0;
    const int status =
        calls_.choose(handle_, key.type == Type::f32 ? floats_.get() : halves_.get(), out.weights.get(), out.in.get(),
                      out.out.get(), out.out.get(), preference_.get(), 1, &out.choice, &found);
    out.refused = status != 0 || found < 1 || out.choice.state != 0 || out.choice.workspace > most_workspace;
    return out;
}

LibraryProducts::Plan* LibraryProducts::find(const Key& key) noexcept {
    for (Plan& plan : plans_) {
        if (plan.key == key) {
            return &plan;
        }
    }
    return nullptr;
}

Status LibraryProducts::grow(Scratch& scratch, std::size_t bytes) {
    if (scratch.bytes >= bytes) {
        return {};
    }
    const Result<std::uint64_t> address = device_.allocate(bytes);
    if (!address) {
        return address.error();
    }
    scratch = {*address, bytes};
    return {};
}

Status LibraryProducts::prepare(const Weight& weight, std::size_t rows) {
    const Key key{weight.type, weight.rows, weight.cols, rows};
    if (find(key) != nullptr) {
        return {};
    }
    Plan plan = make_plan(key);
    Status status;
    if (!plan.refused) {
        status = grow(workspace_, plan.choice.workspace);
        if (status && weight.type != Type::f32) {
            status = grow(pieces_, pieces_of(weight.type) * rows * weight.cols * sizeof(std::uint16_t));
            status = status ? grow(scales_, rows * sizeof(float)) : status;
        }
    }
    if (status) {
        plans_.push_back(std::move(plan));
    }
    return status;
}

void LibraryProducts::take(ProductArgs& args, Type type) noexcept {
    bool split_yet = false;
    unsigned kept = 0;
    for (unsigned i = 0; i < args.count; ++i) {
        const ProductPart part = args.parts[i];
        Plan* const plan = find({type, part.outputs, part.matrix.cols, args.rows});
        const bool planned = plan != nullptr && !plan->refused && device_.status().ok() &&
                             ((args.in | part.out | part.matrix.data) & (aligned - 1)) == 0;
        if (planned && !split_yet) {
            split(args, type, part.matrix.cols);
            split_yet = true;
        }
        if (!planned || !multiply(*plan, args, part, type)) {
            args.parts[kept++] = part;
        }
    }
    args.count = kept;
}

void LibraryProducts::split(const ProductArgs& args, Type type, std::size_t cols) noexcept {
    if (type == Type::f32) {
        return;
    }
    const SplitArgs split{args.in, pieces_.address, type == Type::f16 ? scales_.address : 0, args.rows,
                          static_cast<std::uint32_t>(cols)};
    if (type == Type::bf16) {
        device_.run(CudaKernel::split_bf16, grid_of(args.rows * cols), element_threads, 0, split);
    } else {
        device_.run(CudaKernel::split_f16, {args.rows}, element_threads, element_threads / 32 * sizeof(float), split);
    }
}

/// The smallest pieces first. False: refused, and never tried again.
bool LibraryProducts::multiply(Plan& plan, const ProductArgs& args, const ProductPart& part, Type type) noexcept {
    const float one = 1, zero = 0;
    const unsigned pieces = pieces_of(type);
    (void)device_.stamps().next(); // kernels of the library leave no times, so neither does this step
    const std::size_t piece_bytes = std::size_t{args.rows} * part.matrix.cols * sizeof(std::uint16_t);
    for (unsigned piece = pieces; piece-- > 0;) {
        const std::uint64_t in = type == Type::f32 ? args.in : pieces_.address + piece * piece_bytes;
        const int status = calls_.multiply(handle_, type == Type::f32 ? floats_.get() : halves_.get(), &one,
                                           pointer_to(part.matrix.data), plan.weights.get(), pointer_to(in),
                                           plan.in.get(), piece + 1 == pieces ? &zero : &one, pointer_to(part.out),
                                           plan.out.get(), pointer_to(part.out), plan.out.get(), plan.choice.algorithm,
                                           pointer_to(workspace_.address), plan.choice.workspace, device_.stream());
        if (is_refusal(status)) {
            plan.refused = true;
            return false;
        }
        if (status != 0) {
            device_.fail({ErrorCode::failed, std::string("cublasLtMatmul answers ") + calls_.status_name(status) +
                                                 " (" + std::to_string(status) +
                                                 "); check the driver with nvidia-smi, or use --backend cpu"});
            return true;
        }
    }
    if (type == Type::f16 || part.bias != 0) {
        const std::uint64_t scales = type == Type::f16 ? scales_.address : 0;
        device_.run(CudaKernel::finish_product, grid_of(std::size_t{args.rows} * part.outputs), element_threads, 0,
                    FinishArgs{part.out, scales, part.bias, args.rows, part.outputs});
    }
    return true;
}

} // namespace plumb::decoder::cuda
