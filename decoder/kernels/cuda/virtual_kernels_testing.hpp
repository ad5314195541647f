// SPDX-License-Identifier: Apache-2.0
// The decoder's kernels on the virtual GPU: what they do to its memory, by their own source in its host form. Test-only; made
// after each reset() of the virtual GPU, and alive as long as it runs.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "decoder/kernels/cuda/best_kernels.hpp"
#include "decoder/kernels/cuda/cublaslt.hpp"
#include "decoder/kernels/cuda/fill.hpp"
#include "decoder/kernels/cuda/host_block_testing.hpp"
#include "decoder/kernels/cuda/kernels.hpp"
#include "decoder/kernels/cuda/split_kernels.hpp"
#include "decoder/kernels/cuda/stamps.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder::cuda {

class VirtualDecoderKernels {
  public:
    VirtualDecoderKernels() {
#define PLUMB_VIRTUAL_PLAIN(name, arguments, threads) \
    add<arguments>(#name, threads, [](HostBlock::Lane& m, const arguments& a) { cuda::name(m, a); });
        PLUMB_CUDA_PLAIN_KERNELS(PLUMB_VIRTUAL_PLAIN)
#undef PLUMB_VIRTUAL_PLAIN
#define PLUMB_VIRTUAL_TYPED(type)                                                                          \
    add<EmbedArgs>("embed_" #type, element_threads,                                                        \
                   [](HostBlock::Lane& m, const EmbedArgs& a) { embed<Type::type>(m, a); });               \
    add<ProductArgs>("gemv_" #type "_1", gemv_threads,                                                     \
                     [](HostBlock::Lane& m, const ProductArgs& a) { gemv<Type::type, 1>(m, a); });         \
    add<ProductArgs>("gemv_" #type "_4", gemv_threads,                                                     \
                     [](HostBlock::Lane& m, const ProductArgs& a) { gemv<Type::type, gemv_rows>(m, a); }); \
    add<ProductArgs>("tile_" #type, tile_threads,                                                          \
                     [](HostBlock::Lane& m, const ProductArgs& a) { tile<Type::type>(m, a); });
        PLUMB_CUDA_TYPES(PLUMB_VIRTUAL_TYPED)
#undef PLUMB_VIRTUAL_TYPED
    }

    /// For tests that never reset the virtual GPU: one for the process. The libcublasLt that the decoder then finds is the
    /// stand-in, wherever the environment has another.
    static VirtualDecoderKernels& of_process() {
        static VirtualDecoderKernels& only = *new VirtualDecoderKernels;
        static void* const library = ::dlopen(PLUMB_VIRTUAL_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library, nullptr) << ::dlerror();
        return only;
    }

    /// What went wrong first, with the kernel's name; empty: nothing.
    [[nodiscard]] const std::string& failure() const { return state_->failure; }
    [[nodiscard]] std::uint64_t launches() const { return state_->launches; }

  private:
    struct State {
        HostBlock block{[](std::uint64_t address, std::size_t bytes) {
            return vgpu::memory(address, bytes);
        }};
        std::string failure;
        std::uint64_t launches = 0;
    };

    /// What stamp_begin() and stamp_end() of kernels.cu do, by when the virtual GPU ran it.
    static void stamp(std::uint64_t address, const vgpu::KernelRun& run, std::string& wrong) {
        auto* slot = static_cast<StampSlot*>(vgpu::memory(address, sizeof(StampSlot)));
        if (slot == nullptr) {
            wrong = wrong.empty() ? "its slot for stamps lies in no buffer" : wrong;
            return;
        }
        slot->begin_inverted = std::max(slot->begin_inverted, ~vgpu::globaltimer_ns(run.start_ns, run.device));
        slot->end = std::max(slot->end, vgpu::globaltimer_ns(run.end_ns, run.device));
    }

    template <class Arguments, class Body>
    void add(const std::string& name, unsigned most_threads, Body body) {
        vgpu::KernelModel model;
        model.param_bytes = {sizeof(Arguments), sizeof(std::uint64_t)};
        model.function = [state = state_, name, most_threads, body](const vgpu::KernelRun& run) {
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

    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// For make_backend().
inline const Result<CublasLt>& no_library() {
    static const Result<CublasLt> none = Error{ErrorCode::unavailable, "none"};
    return none;
}

} // namespace plumb::decoder::cuda
