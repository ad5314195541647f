// SPDX-License-Identifier: Apache-2.0
// HIP's own header, where there is one, against what we take to be alike in HIP and CUDA. Nothing else sees that header.
#include <gtest/gtest.h>

#include <utility>

#include "backends/hip/driver.hpp"
#include "backends/hip/hip_calls.hpp"
#include "backends/same_call_testing.hpp"

#ifdef PLUMB_HAVE_HIP_HEADER
#define __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_HCC__
#include <hip/hip_runtime_api.h>
#endif

namespace plumb::backends::hip {
namespace {

#ifdef PLUMB_HAVE_HIP_HEADER

#define PLUMB_HIP_ALIKE_required(member, symbol) \
    EXPECT_TRUE((SameCall<decltype(Driver::member), decltype(&::symbol)>::value)) << #symbol;
#define PLUMB_HIP_ALIKE_optional(member, symbol) // an older header does not declare it
#define PLUMB_HIP_COMPARE(member, cuda_name, symbol, need) PLUMB_HIP_ALIKE_##need(member, symbol)

TEST(HipAbi, the_real_header_agrees_with_every_call_and_value) {
    PLUMB_HIP_CALLS(PLUMB_HIP_COMPARE)
#define PLUMB_HIP_COMPARE_PROBE(member, cuda_name, symbol) PLUMB_HIP_ALIKE_required(member, symbol)
    PLUMB_HIP_PROBE_CALLS(PLUMB_HIP_COMPARE_PROBE)
#undef PLUMB_HIP_COMPARE_PROBE
    EXPECT_TRUE((SameCall<const char* (*)(CuResult), decltype(&::hipGetErrorName)>::value));
    EXPECT_TRUE((SameCall<CuResult (*)(int), decltype(&::hipSetDevice)>::value));
    const std::pair<CuResult, hipError_t> results[] = {
        {CuResult::success, hipSuccess},
        {CuResult::invalid_value, hipErrorInvalidValue},
        {CuResult::out_of_memory, hipErrorOutOfMemory},
        {CuResult::not_initialized, hipErrorNotInitialized},
        {CuResult::deinitialized, hipErrorDeinitialized},
        {CuResult::no_device, hipErrorNoDevice},
        {CuResult::invalid_device, hipErrorInvalidDevice},
        {CuResult::invalid_context, hipErrorInvalidContext},
        {CuResult::invalid_handle, hipErrorInvalidHandle},
        {CuResult::not_found, hipErrorNotFound},
        {CuResult::not_ready, hipErrorNotReady},
        {CuResult::illegal_address, hipErrorIllegalAddress},
        {CuResult::context_is_destroyed, hipErrorContextIsDestroyed},
        {CuResult::assert_failed, hipErrorAssert},
        {CuResult::launch_failed, hipErrorLaunchFailure},
        {CuResult::not_supported, hipErrorNotSupported},
        {CuResult::stream_capture_unsupported, hipErrorStreamCaptureUnsupported},
        {CuResult::stream_capture_implicit, hipErrorStreamCaptureImplicit},
        {CuResult::unknown, hipErrorUnknown},
    };
    for (const auto& [ours, theirs] : results) {
        EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
    }
    EXPECT_EQ(static_cast<int>(cuda::CaptureStatus::active), static_cast<int>(hipStreamCaptureStatusActive));
    EXPECT_EQ(static_cast<int>(cuda::CaptureStatus::invalidated), static_cast<int>(hipStreamCaptureStatusInvalidated));
    EXPECT_EQ(static_cast<int>(cuda::CaptureMode::relaxed), static_cast<int>(hipStreamCaptureModeRelaxed));
    EXPECT_EQ(cuda::stream_non_blocking, unsigned{hipStreamNonBlocking});
    EXPECT_EQ(cuda::event_default, unsigned{hipEventDefault});
    EXPECT_EQ(sizeof(cuda::Uuid), sizeof(hipUUID));
}

#else

TEST(HipAbi, the_real_header_agrees_with_every_call_and_value) { GTEST_SKIP() << "no hip/hip_runtime_api.h here"; }

#endif

} // namespace
} // namespace plumb::backends::hip
