// SPDX-License-Identifier: Apache-2.0
// Our own statement of the loader's table against the real header, where that is installed.
#include "attach/opencl/layer.hpp"

#include <gtest/gtest.h>

#if __has_include(<CL/cl_icd.h>) && __has_include(<CL/cl_layer.h>)
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

namespace plumb::attach::opencl {
namespace {

#define EXPECT_PLACE(place, call) EXPECT_EQ(CallPlaces::place * sizeof(void*), offsetof(cl_icd_dispatch, call))

TEST(OpenClLayerAbi, is_that_of_the_loader) {
    EXPECT_PLACE(create_queue, clCreateCommandQueue);
    EXPECT_PLACE(kernel_info, clGetKernelInfo);
    EXPECT_PLACE(release_event, clReleaseEvent);
    EXPECT_PLACE(enqueue_kernel, clEnqueueNDRangeKernel);
    EXPECT_PLACE(create_queue_with_properties, clCreateCommandQueueWithProperties);
    EXPECT_EQ(layer_api_version, static_cast<std::uint32_t>(CL_LAYER_API_VERSION));
    EXPECT_EQ(layer_api_version_100, static_cast<std::uint32_t>(CL_LAYER_API_VERSION_100));
}

} // namespace
} // namespace plumb::attach::opencl

#else

TEST(OpenClLayerAbi, is_that_of_the_loader) {
    GTEST_SKIP() << "CL/cl_layer.h was not installed when this was built (opencl-c-headers)";
}

#endif
