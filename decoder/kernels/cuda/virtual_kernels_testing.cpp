// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

#include "decoder/kernels/cuda/best_kernels.hpp"
#include "decoder/kernels/cuda/fill.hpp"
#include "decoder/kernels/cuda/host_block_testing.hpp"
#include "decoder/kernels/cuda/kernels.hpp"
#include "decoder/kernels/cuda/split_kernels.hpp"
#include "decoder/kernels/cuda/stamps.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder::cuda {

struct VirtualDecoderKernels::State {
    HostBlock block{[](std::uint64_t address, std::size_t bytes) {
        return vgpu::memory(address, bytes);
    }};
    std::string failure;
    std::uint64_t launches = 0;
};

namespace {

/// What stamp_begin() and stamp_end() of kernels.cu do, by when the virtual GPU ran it.
void stamp(std::uint64_t address, const vgpu::KernelRun& run, std::string& wrong) {
    auto* slot = static_cast<StampSlot*>(vgpu::memory(address, sizeof(StampSlot)));
    if (slot == nullptr) {
        wrong = wrong.empty() ? "its slot for stamps lies in no buffer" : wrong;
        return;
    }
    slot->begin_inverted = std::max(slot->begin_inverted, ~vgpu::globaltimer_ns(run.start_ns, run.device));
    slot->end = std::max(slot->end, vgpu::globaltimer_ns(run.end_ns, run.device));
}

template <class Arguments, class Body>
void add(const std::shared_ptr<VirtualDecoderKernels::State>& of, const std::string& name, unsigned most_threads,
         Body body) {
    vgpu::KernelModel model;
    model.param_bytes = {sizeof(Arguments), sizeof(std::uint64_t)};
    model.function = [state = of, name, most_threads, body](const vgpu::KernelRun& run) {
        ++state->launches;
        if (!state->failure.empty()) {
            return;
        }
        const HostLaunch shape{{run.grid[0], run.grid[1], run.grid[2]}, run.block[0], run.shared_bytes};
        std::string wrong = run.block[0] > most_threads ? "more threads than it was compiled for"
                                                        : state->block.launch(shape, body, run.param<Arguments>(0));
        if (const auto slot = run.param<std::uint64_t>(1); slot != 0) {
            stamp(slot, run, wrong);
        }
        if (!wrong.empty()) {
            state->failure = name + ": " + wrong;
        }
    };
    vgpu::kernel("plumb_decoder_" + name, model);
}

} // namespace

VirtualDecoderKernels::VirtualDecoderKernels() : state_(std::make_shared<State>()) {
#define PLUMB_VIRTUAL_PLAIN(name, arguments, threads) \
    add<arguments>(state_, #name, threads, [](HostBlock::Lane& m, const arguments& a) { cuda::name(m, a); });
    PLUMB_CUDA_PLAIN_KERNELS(PLUMB_VIRTUAL_PLAIN)
#undef PLUMB_VIRTUAL_PLAIN
#define PLUMB_VIRTUAL_TYPED(type)                                                                          \
    add<EmbedArgs>(state_, "embed_" #type, element_threads,                                                \
                   [](HostBlock::Lane& m, const EmbedArgs& a) { embed<Type::type>(m, a); });               \
    add<ProductArgs>(state_, "gemv_" #type "_1", gemv_threads,                                             \
                     [](HostBlock::Lane& m, const ProductArgs& a) { gemv<Type::type, 1>(m, a); });         \
    add<ProductArgs>(state_, "gemv_" #type "_4", gemv_threads,                                             \
                     [](HostBlock::Lane& m, const ProductArgs& a) { gemv<Type::type, gemv_rows>(m, a); }); \
    add<ProductArgs>(state_, "tile_" #type, tile_threads,                                                  \
                     [](HostBlock::Lane& m, const ProductArgs& a) { tile<Type::type>(m, a); });
    PLUMB_CUDA_TYPES(PLUMB_VIRTUAL_TYPED)
#undef PLUMB_VIRTUAL_TYPED
}

VirtualDecoderKernels& VirtualDecoderKernels::of_process() {
    static VirtualDecoderKernels& only = *new VirtualDecoderKernels;
    static void* const library = ::dlopen(PLUMB_VIRTUAL_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        throw std::runtime_error(::dlerror());
    }
    return only;
}

const std::string& VirtualDecoderKernels::failure() const { return state_->failure; }

std::uint64_t VirtualDecoderKernels::launches() const { return state_->launches; }

} // namespace plumb::decoder::cuda
