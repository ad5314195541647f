// SPDX-License-Identifier: Apache-2.0
// The decoder's kernels on the virtual GPU: what they do to its memory, by their own source in its host form. Test-only; made
// after each reset() of the virtual GPU, and alive as long as it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "decoder/kernels/cuda/cublaslt.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder::cuda {

class VirtualDecoderKernels {
  public:
    VirtualDecoderKernels();

    /// For tests that never reset the virtual GPU: one for the process. The libcublasLt that the decoder then finds is the
    /// stand-in, wherever the environment has another.
    static VirtualDecoderKernels& of_process();

    /// What went wrong first, with the kernel's name; empty: nothing.
    [[nodiscard]] const std::string& failure() const;
    [[nodiscard]] std::uint64_t launches() const;

    struct State; // defined where the kernels are

  private:
    std::shared_ptr<State> state_;
};

/// For make_backend().
inline const Result<CublasLt>& no_library() {
    static const Result<CublasLt> none = Error{ErrorCode::unavailable, "none"};
    return none;
}

} // namespace plumb::decoder::cuda
