// SPDX-License-Identifier: Apache-2.0
// Our statement of cuBLASLt, and of the driver's extended launch, against the real headers: layout, values and signatures. The
// checks happen at compile time, where a CUDA toolkit is installed.
#include <gtest/gtest.h>

#include <cstddef>

#include "backends/same_call_testing.hpp"
#include "decoder/kernels/cuda/cublaslt.hpp"
#include "decoder/kernels/cuda/driver.hpp"

#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <cuda.h>

namespace plumb::decoder::cuda {
namespace {

#define PLUMB_CUBLASLT_SAME(name, symbol, result, parameters) \
    static_assert(backends::SameCall<decltype(CublasLt::name), decltype(&::symbol)>::value, #symbol);
PLUMB_DECODER_CUBLASLT_CALLS(PLUMB_CUBLASLT_SAME)
#undef PLUMB_CUBLASLT_SAME

static_assert(sizeof(LtChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(sizeof(LtChoice::algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(offsetof(LtChoice, algorithm) == offsetof(cublasLtMatmulHeuristicResult_t, algo));
static_assert(offsetof(LtChoice, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtChoice, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(offsetof(LtChoice, waves) == offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));

static_assert(CUBLAS_STATUS_SUCCESS == 0);
static_assert(lt_type_f32 == CUDA_R_32F && lt_type_f16 == CUDA_R_16F && lt_type_bf16 == CUDA_R_16BF);
static_assert(lt_compute_f32 == CUBLAS_COMPUTE_32F && lt_compute_f32_pedantic == CUBLAS_COMPUTE_32F_PEDANTIC);
static_assert(lt_transposed == CUBLAS_OP_T && sizeof(cublasOperation_t) == sizeof(int));
static_assert(lt_desc_transpose_a == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(lt_preference_workspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(lt_preference_alignment_a == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(lt_preference_alignment_a + 1 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(lt_preference_alignment_a + 2 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(lt_preference_alignment_a + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(lt_invalid_value == CUBLAS_STATUS_INVALID_VALUE && lt_arch_mismatch == CUBLAS_STATUS_ARCH_MISMATCH);
static_assert(lt_not_supported == CUBLAS_STATUS_NOT_SUPPORTED);

static_assert(sizeof(ExtendedLaunch) == sizeof(CUlaunchConfig));
static_assert(offsetof(ExtendedLaunch, grid_x) == offsetof(CUlaunchConfig, gridDimX));
static_assert(offsetof(ExtendedLaunch, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(ExtendedLaunch, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(ExtendedLaunch, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(ExtendedLaunch, properties) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(ExtendedLaunch, property_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(LaunchExtension) == sizeof(CUlaunchAttribute) && alignof(LaunchExtension) <= 8);
static_assert(offsetof(LaunchExtension, value) == offsetof(CUlaunchAttribute, value));
static_assert(property_programmatic == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(attribute_capability == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(attribute_processors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(backends::SameCall<decltype(CudaDriver::launch_with), decltype(&cuLaunchKernelEx)>::value);

TEST(CudaAbi, is_that_of_the_headers_it_was_compiled_with) { EXPECT_GE(CUBLAS_VER_MAJOR, 12); }

} // namespace
} // namespace plumb::decoder::cuda
#else
TEST(CudaAbi, is_that_of_the_headers_it_was_compiled_with) {
    GTEST_SKIP() << "the headers of a CUDA toolkit were not found";
}
#endif
