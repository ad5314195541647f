// SPDX-License-Identifier: Apache-2.0
// The calls of cuBLASLt that the decoder makes, found in libcublasLt.so.13 or .12 when a prompt's products are prepared:
// nothing is linked, and no header of the toolkit is needed. Values are those of cublasLt.h of CUDA 13.0, and the same in
// CUDA 12 (tests/mocks/virtual_cudart/decoder_abi_test.cpp). The table lives as long as the process; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plumb/result.hpp"

struct CUstream_st;

namespace plumb::decoder::cuda {

// All are the library's: it makes and destroys them.
struct LtHandle;
struct LtDesc;
struct LtLayout;
struct LtPreference;

/// What the library proposes for a product; `algorithm` is its own.
struct LtChoice {
    std::uint64_t algorithm[8] = {};
    std::size_t workspace = 0; // bytes of the device
    int state = 0;             // a status: what else is here counts only if it is 0
    float waves = 0;
    int reserved[4] = {};
};

/// X(name, symbol, result, (parameters)): as cublasLt.h declares them; an int result is a status, 0 for success.
#define PLUMB_DECODER_CUBLASLT_CALLS(X)                                                                       \
    X(version, cublasLtGetVersion, std::size_t, ())                                                           \
    X(status_name, cublasLtGetStatusName, const char*, (int status))                                          \
    X(create, cublasLtCreate, int, (LtHandle * *handle))                                                      \
    X(destroy, cublasLtDestroy, int, (LtHandle * handle))                                                     \
    X(desc_create, cublasLtMatmulDescCreate, int, (LtDesc * *desc, int compute, int scale_type))              \
    X(desc_destroy, cublasLtMatmulDescDestroy, int, (LtDesc * desc))                                          \
    X(desc_set, cublasLtMatmulDescSetAttribute, int,                                                          \
      (LtDesc * desc, int attribute, const void* value, std::size_t bytes))                                   \
    X(layout_create, cublasLtMatrixLayoutCreate, int,                                                         \
      (LtLayout * *layout, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t leading))           \
    X(layout_destroy, cublasLtMatrixLayoutDestroy, int, (LtLayout * layout))                                  \
    X(preference_create, cublasLtMatmulPreferenceCreate, int, (LtPreference * *preference))                   \
    X(preference_destroy, cublasLtMatmulPreferenceDestroy, int, (LtPreference * preference))                  \
    X(preference_set, cublasLtMatmulPreferenceSetAttribute, int,                                              \
      (LtPreference * preference, int attribute, const void* value, std::size_t bytes))                       \
    X(choose, cublasLtMatmulAlgoGetHeuristic, int,                                                            \
      (LtHandle * handle, LtDesc * desc, LtLayout * a, LtLayout * b, LtLayout * c, LtLayout * d,              \
       LtPreference * preference, int wanted, LtChoice* choices, int* found))                                 \
    X(multiply, cublasLtMatmul, int,                                                                          \
      (LtHandle * handle, LtDesc * desc, const void* alpha, const void* a, LtLayout* a_layout, const void* b, \
       LtLayout* b_layout, const void* beta, const void* c, LtLayout* c_layout, void* d, LtLayout* d_layout,  \
       const std::uint64_t* algorithm, void* workspace, std::size_t workspace_bytes, CUstream_st* stream))

struct CublasLt {
#define PLUMB_DECODER_CUBLASLT_MEMBER(name, symbol, result, parameters) result(*name) parameters = nullptr;
    PLUMB_DECODER_CUBLASLT_CALLS(PLUMB_DECODER_CUBLASLT_MEMBER)
#undef PLUMB_DECODER_CUBLASLT_MEMBER
};

inline constexpr int lt_type_f32 = 0;
inline constexpr int lt_type_f16 = 2;
inline constexpr int lt_type_bf16 = 14;
inline constexpr int lt_compute_f32 = 68;          // sums in floats
inline constexpr int lt_compute_f32_pedantic = 69; // and factors are never shortened, whatever the environment says
inline constexpr int lt_transposed = 1;
inline constexpr int lt_desc_transpose_a = 3;
inline constexpr int lt_preference_workspace = 1;
inline constexpr int lt_preference_alignment_a = 5; // then of b, c and d
inline constexpr int lt_invalid_value = 7;
inline constexpr int lt_arch_mismatch = 8;
inline constexpr int lt_not_supported = 15;

/// Error unavailable: it is not there, or has not all of these.
const Result<CublasLt>& cublaslt();

} // namespace plumb::decoder::cuda
