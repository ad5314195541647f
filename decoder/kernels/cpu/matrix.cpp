// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/matrix.hpp"

#include <algorithm>
#include <new>

#include "decoder/kernels/cpu/team.hpp"
#include "decoder/kernels/cpu/vector_ops.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr std::size_t widened_floats = std::size_t{1} << 18; // 1 MiB: stays in the second-level caches

dnnl::memory::data_type data_type(Type type) {
    return type == Type::f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::memory::dim dim(std::size_t n) { return static_cast<dnnl::memory::dim>(n); }

Error no_product(const dnnl::error& error) {
    return {ErrorCode::unsupported, std::string("this processor offers no such matrix product to oneDNN (") +
                                        error.message + "); use an x86-64 or arm64 machine of the last ten years"};
}

} // namespace

Result<std::unique_ptr<Matrices>> Matrices::make(bool widen) {
    std::unique_ptr<Matrices> out(new Matrices);
    try {
        out->engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
        out->stream_ = dnnl::stream(out->engine_);
    } catch (const dnnl::error& error) {
        return no_product(error);
    }
    const Shape probe{64, 64, Type::bf16, false, {}};
    out->native_bf16_ = !widen && out->make_plan(probe, 1).ok();
    return out;
}

std::string Matrices::implementation() const {
    for (const Shape& shape : shapes_)
        for (const auto& plan : shape.plans)
            return plan->name;
    return native_bf16_ ? "bf16" : "f32";
}

Result<std::unique_ptr<Matrices::Plan>> Matrices::make_plan(const Shape& shape, std::size_t rows) {
    using dnnl::memory;
    try {
        auto plan = std::make_unique<Plan>();
        plan->rows = rows;
        const memory::desc source({dim(rows), dim(shape.inputs)}, data_type(shape.type), memory::format_tag::ab);
        const memory::desc weights({dim(shape.outputs), dim(shape.inputs)}, data_type(shape.type),
                                   memory::format_tag::ab);
        const memory::desc bias({dim(shape.outputs)}, memory::data_type::f32, memory::format_tag::a);
        const memory::desc destination({dim(rows), dim(shape.outputs)}, memory::data_type::f32, memory::format_tag::ab);
        const auto kind = dnnl::prop_kind::forward_inference;
        const dnnl::inner_product_forward::desc product =
            shape.bias ? dnnl::inner_product_forward::desc(kind, source, weights, bias, destination)
                       : dnnl::inner_product_forward::desc(kind, source, weights, destination);
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const dnnl::inner_product_forward::primitive_desc chosen(product, attributes, engine_);
        plan->name = chosen.impl_info_str();
        plan->primitive = dnnl::inner_product_forward(chosen);
        plan->source = memory(source, engine_, nullptr);
        plan->weights = memory(weights, engine_, nullptr);
        plan->bias = memory(bias, engine_, nullptr);
        plan->destination = memory(destination, engine_, nullptr);
        plan->scratch.resize(chosen.scratchpad_desc().get_size());
        plan->scratchpad = memory(chosen.scratchpad_desc(), engine_, plan->scratch.data());
        plan->arguments = {{DNNL_ARG_SRC, plan->source.get()},
                           {DNNL_ARG_WEIGHTS, plan->weights.get()},
                           {DNNL_ARG_DST, plan->destination.get()},
                           {DNNL_ARG_SCRATCHPAD, plan->scratchpad.get()}};
        if (shape.bias)
            plan->arguments.push_back({DNNL_ARG_BIAS, plan->bias.get()});
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
            shape.bias == wanted.bias)
            return i;
    }
    shapes_.push_back(std::move(wanted));
    return shapes_.size() - 1;
}

Status Matrices::prepare(Linear& linear, std::size_t rows) {
    if (linear.weight.type == Type::bf16 && !native_bf16_) {
        widened_.resize(std::max(widened_floats, linear.weight.cols));
        return {};
    }
    linear.plan = shape_of(linear);
    Shape& shape = shapes_[linear.plan];
    for (const auto& plan : shape.plans)
        if (plan->rows == rows)
            return {};
    Result<std::unique_ptr<Plan>> plan = make_plan(shape, rows);
    if (!plan)
        return plan.error();
    if (shape.plans.size() == kept)
        shape.plans.pop_back();
    shape.plans.push_back(std::move(*plan));
    return {};
}

void Matrices::run(const Linear& linear, const Block& in, const Block& out) noexcept {
    if (linear.weight.type == Type::bf16 && !native_bf16_)
        return run_widened(linear, in, out);
    for (const auto& candidate : shapes_[linear.plan].plans) {
        Plan& plan = *candidate;
        if (plan.rows != in.rows)
            continue;
        // oneDNN's handles are not const; sources are only read.
        dnnl_memory_set_data_handle(plan.source.get(), in.data);
        dnnl_memory_set_data_handle(plan.weights.get(), const_cast<void*>(linear.weight.data));
        dnnl_memory_set_data_handle(plan.destination.get(), out.data);
        if (linear.bias != nullptr)
            dnnl_memory_set_data_handle(plan.bias.get(), const_cast<float*>(linear.bias));
        dnnl_primitive_execute(plan.primitive.get(), stream_.get(), static_cast<int>(plan.arguments.size()),
                               plan.arguments.data());
        return;
    }
}

void Matrices::run_widened(const Linear& linear, const Block& in, const Block& out) noexcept {
    const std::size_t outputs = linear.weight.rows;
    const std::size_t inputs = linear.weight.cols;
    const auto* weights = static_cast<const Bf16*>(linear.weight.data);
    const auto bias = [&](std::size_t i) {
        return linear.bias ? linear.bias[i] : 0.0F;
    };
    if (in.rows == 1) {
        for_each_index(outputs, outputs * inputs > 65536, [&](std::size_t i, int) {
            out.f32()[i] = dot(weights + i * inputs, in.f32(), inputs) + bias(i);
        });
        return;
    }
    const std::size_t block = std::max<std::size_t>(1, widened_.size() / inputs);
    for (std::size_t first = 0; first < outputs; first += block) {
        const std::size_t count = std::min(block, outputs - first);
        for_each_index(count, true, [&](std::size_t i, int) {
            from_bf16(weights + (first + i) * inputs, inputs, widened_.data() + i * inputs);
        });
        dnnl_sgemm('N', 'T', dim(in.rows), dim(count), dim(inputs), 1.0F, in.f32(), dim(inputs), widened_.data(),
                   dim(inputs), 0.0F, out.f32() + first, dim(outputs));
    }
    if (linear.bias == nullptr)
        return;
    for (std::size_t r = 0; r < in.rows; ++r)
        add(out.f32() + r * outputs, linear.bias, outputs);
}

} // namespace plumb::decoder::cpu
