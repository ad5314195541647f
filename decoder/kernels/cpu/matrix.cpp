// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/matrix.hpp"

#include <algorithm>
#include <new>

#include "decoder/kernels/cpu/vector_ops.hpp"

namespace plumb::decoder::cpu {
namespace {

// Pieces of half a megabyte deal evenly, and are wide enough: the library packs the tokens anew for each.
constexpr std::size_t piece_bytes = std::size_t{512} << 10;
constexpr std::size_t smallest_outputs = 128;
constexpr std::size_t output_grain = 16; // a cache line of results

dnnl::memory::data_type data_type(Type type) {
    return type == Type::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::memory::dim dim(std::size_t n) { return static_cast<dnnl::memory::dim>(n); }

Error no_product(const dnnl::error& error) {
    return {ErrorCode::unsupported, std::string("this processor offers no such matrix product to oneDNN (") +
                                        error.message + "); use an x86-64 or arm64 machine of the last ten years"};
}

std::size_t round_up(std::size_t n, std::size_t grain) { return (n + grain - 1) / grain * grain; }

} // namespace

Result<std::unique_ptr<Matrices>> Matrices::make(Team& team, bool widen) {
    if (!has_onednn()) {
        return Error{ErrorCode::unavailable, no_onednn};
    }
    std::unique_ptr<Matrices> out(new Matrices(team));
    try {
        out->engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
        out->stream_ = dnnl::stream(out->engine_);
    } catch (const dnnl::error& error) {
        return no_product(error);
    }
    const Shape probe{64, 64, Type::bf16, false, {}};
    out->native_bf16_ = !widen && out->make_plan(probe, 2).ok();
    return out;
}

/// Output rows of a piece: as many pieces as deal evenly, none smaller than is worth a call.
std::size_t Matrices::piece_outputs(std::size_t outputs, std::size_t row_bytes) const noexcept {
    const auto threads = static_cast<std::size_t>(team_.size());
    const std::size_t rounds = std::max<std::size_t>(1, outputs * row_bytes / (threads * piece_bytes));
    const std::size_t even = round_up((outputs + threads * rounds - 1) / (threads * rounds), output_grain);
    return std::min(outputs, std::max(even, smallest_outputs));
}

/// The matrix product, which may leave gaps between the rows of its result.
Matrices::Kernel Matrices::make_kernel(const Shape& shape, std::size_t outputs, std::size_t rows) const {
    using dnnl::memory;
    const memory::desc source({dim(rows), dim(shape.inputs)}, data_type(shape.type), memory::format_tag::ab);
    const memory::desc weights({dim(shape.inputs), dim(outputs)}, data_type(shape.type), memory::format_tag::ba);
    const memory::desc bias({1, dim(outputs)}, memory::data_type::f32, memory::format_tag::ab);
    const memory::desc result({dim(rows), dim(outputs)}, memory::data_type::f32, memory::dims{dim(shape.outputs), 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    using Product = dnnl::matmul;
    const Product::primitive_desc chosen(shape.bias ? Product::desc(source, weights, bias, result)
                                                    : Product::desc(source, weights, result),
                                         attributes, engine_);
    const memory::desc scratchpad = chosen.scratchpad_desc();
    Kernel kernel;
    kernel.outputs = outputs;
    kernel.primitive = Product(chosen);
    for (int thread = 0; thread < team_.size(); ++thread) {
        Call call;
        call.source = memory(source, engine_, nullptr);
        call.weights = memory(weights, engine_, nullptr);
        call.bias = memory(bias, engine_, nullptr);
        call.destination = memory(result, engine_, nullptr);
        call.scratch.resize(scratchpad.get_size());
        call.scratchpad = memory(scratchpad, engine_, call.scratch.data());
        call.arguments = {{DNNL_ARG_SRC, call.source.get()},
                          {DNNL_ARG_WEIGHTS, call.weights.get()},
                          {DNNL_ARG_DST, call.destination.get()},
                          {DNNL_ARG_SCRATCHPAD, call.scratchpad.get()}};
        if (shape.bias) {
            call.arguments.push_back({DNNL_ARG_BIAS, call.bias.get()});
        }
        kernel.calls.push_back(std::move(call));
    }
    return kernel;
}

Result<std::unique_ptr<Matrices::Plan>> Matrices::make_plan(const Shape& shape, std::size_t rows) const {
    try {
        auto plan = std::make_unique<Plan>();
        const std::size_t outputs = piece_outputs(shape.outputs, row_bytes(shape.type, shape.inputs));
        plan->rows = rows;
        plan->pieces = (shape.outputs + outputs - 1) / outputs;
        plan->piece = make_kernel(shape, outputs, rows);
        plan->last = make_kernel(shape, shape.outputs - (plan->pieces - 1) * outputs, rows);
        return plan;
    } catch (const dnnl::error& error) {
        return no_product(error);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is no memory for a matrix product; use a smaller model or --chunk"};
    }
}

std::size_t Matrices::shape_of(const Linear& linear) {
    Shape wanted;
    wanted.outputs = linear.weight.rows;
    wanted.inputs = linear.weight.cols;
    wanted.type = linear.weight.type;
    wanted.bias = linear.bias != nullptr;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        const Shape& shape = shapes_[i];
        if (shape.outputs == wanted.outputs && shape.inputs == wanted.inputs && shape.type == wanted.type &&
            shape.bias == wanted.bias) {
            return i;
        }
    }
    shapes_.push_back(std::move(wanted));
    return shapes_.size() - 1;
}

Status Matrices::prepare(Linear& linear, std::size_t rows) {
    if (Status status = packed_.prepare(linear.weight); !status) {
        return status;
    }
    if (linear.weight.cols > token_values_) {
        token_.reset(new (cache_line, std::nothrow) float[linear.weight.cols]);
        token_values_ = token_ != nullptr ? linear.weight.cols : 0;
        if (token_ == nullptr) {
            return Error{ErrorCode::out_of_memory, "there is no memory for a matrix product; use a smaller model"};
        }
    }
    if (rows == 1 || !offered(linear.weight.type)) {
        return {};
    }
    linear.plan = shape_of(linear);
    Shape& shape = shapes_[linear.plan];
    if (plan_of(linear, rows) != nullptr) {
        return {};
    }
    Result<std::unique_ptr<Plan>> plan = make_plan(shape, rows);
    if (!plan) {
        return plan.error();
    }
    if (shape.plans.size() == kept) {
        shape.plans.pop_back();
    }
    shape.plans.push_back(std::move(*plan));
    return {};
}

const Matrices::Plan* Matrices::plan_of(const Linear& linear, std::size_t rows) const noexcept {
    for (const auto& plan : shapes_[linear.plan].plans) {
        if (plan->rows == rows) {
            return plan.get();
        }
    }
    return nullptr;
}

void Matrices::run(const Block& tokens, std::span<const Product> group) noexcept {
    Block in = tokens;
    if (in.rows == 1 && in.type == Type::bf16) {
        from_bf16(static_cast<const Bf16*>(in.data), in.cols, token_.get());
        in = {token_.get(), Type::f32, 1, in.cols};
    }
    // The pieces of all products are one job: one wait for the team and not one per product.
    const Plan* plans[max_products]{};
    std::size_t ends[max_products]{};
    std::size_t pieces = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
        const Linear& linear = *group[i].linear;
        if (in.rows > 1 && linear.weight.type == in.type) {
            plans[i] = plan_of(linear, in.rows);
            pieces += plans[i]->pieces;
        } else {
            pieces += packed_.pieces(linear.weight, in.rows);
        }
        ends[i] = pieces;
    }
    team_.run(pieces, [&](std::size_t piece, int thread) {
        std::size_t i = 0;
        while (piece >= ends[i]) {
            ++i;
        }
        const std::size_t local = i == 0 ? piece : piece - ends[i - 1];
        if (plans[i] != nullptr) {
            run_piece(in, group[i], *plans[i], local, thread);
        } else {
            packed_.run_piece(group[i].linear->weight, group[i].linear->bias, in, group[i].out, local, thread);
        }
    });
}

void Matrices::run_piece(const Block& in, const Product& product, const Plan& plan, std::size_t piece,
                         int thread) noexcept {
    const Kernel& kernel = piece + 1 == plan.pieces ? plan.last : plan.piece;
    const Call& call = kernel.calls[static_cast<std::size_t>(thread)];
    const Linear& linear = *product.linear;
    const std::size_t first = piece * plan.piece.outputs;
    const auto* weights = static_cast<const std::byte*>(linear.weight.data);
    // oneDNN's handles are not const; sources are only read.
    dnnl_memory_set_data_handle(call.source.get(), in.data);
    dnnl_memory_set_data_handle(
        call.weights.get(), const_cast<std::byte*>(weights + first * linear.weight.cols * size_of(linear.weight.type)));
    dnnl_memory_set_data_handle(call.destination.get(), product.out.f32() + first);
    if (linear.bias != nullptr) {
        dnnl_memory_set_data_handle(call.bias.get(), const_cast<float*>(linear.bias + first));
    }
    dnnl_primitive_execute(kernel.primitive.get(), stream_.get(), static_cast<int>(call.arguments.size()),
                           call.arguments.data());
}

Status Matrices::prepare(const Stack& stack) {
    try {
        ends_.resize(std::max(ends_.size(), stack.count));
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "there is no memory for so many experts; use a smaller model"};
    }
    return packed_.prepare(stack.one);
}

void Matrices::run_stack(const Block& in, const Stack& stack, const std::int32_t* offsets, const Block& out) noexcept {
    const auto offset = [&](std::size_t e) {
        return static_cast<std::size_t>(offsets[e]);
    };
    std::size_t pieces = 0;
    for (std::size_t e = 0; e < stack.count; ++e) {
        const std::size_t rows = offset(e + 1) - offset(e);
        pieces += rows == 0 ? 0 : packed_.pieces(stack.one, rows);
        ends_[e] = pieces;
    }
    team_.run(pieces, [&](std::size_t piece, int thread) {
        const auto last = ends_.begin() + static_cast<std::ptrdiff_t>(stack.count);
        const auto e = static_cast<std::size_t>(std::upper_bound(ends_.begin(), last, piece) - ends_.begin());
        const std::size_t rows = offset(e + 1) - offset(e);
        Weight weight = stack.one;
        weight.data = static_cast<const std::byte*>(weight.data) + e * weight.bytes();
        packed_.run_piece(weight, nullptr, {in.f32() + offset(e) * in.cols, Type::f32, rows, in.cols},
                          {out.f32() + offset(e) * out.cols, Type::f32, rows, out.cols},
                          piece - (e == 0 ? 0 : ends_[e - 1]), thread);
    });
}

} // namespace plumb::decoder::cpu
