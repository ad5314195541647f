// SPDX-License-Identifier: Apache-2.0
// The calls of OpenCL that the decoder makes, found in libOpenCL.so.1 when a device is asked for: nothing is linked. The
// table lives as long as the process; any thread.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "plumb/result.hpp"

#define PLUMB_DECODER_OPENCL_CALLS(X) \
    X(clGetPlatformIDs)               \
    X(clGetDeviceIDs)                 \
    X(clGetDeviceInfo)                \
    X(clCreateContext)                \
    X(clReleaseContext)               \
    X(clCreateCommandQueue)           \
    X(clReleaseCommandQueue)          \
    X(clCreateProgramWithSource)      \
    X(clBuildProgram)                 \
    X(clGetProgramBuildInfo)          \
    X(clReleaseProgram)               \
    X(clCreateKernel)                 \
    X(clReleaseKernel)                \
    X(clSetKernelArg)                 \
    X(clCreateBuffer)                 \
    X(clReleaseMemObject)             \
    X(clEnqueueNDRangeKernel)         \
    X(clEnqueueReadBuffer)            \
    X(clEnqueueWriteBuffer)           \
    X(clGetEventProfilingInfo)        \
    X(clReleaseEvent)                 \
    X(clFinish)

namespace plumb::decoder::opencl {

struct Api {
#define PLUMB_DECODER_OPENCL_MEMBER(call) decltype(&::call) call = nullptr;
    PLUMB_DECODER_OPENCL_CALLS(PLUMB_DECODER_OPENCL_MEMBER)
#undef PLUMB_DECODER_OPENCL_MEMBER
};

/// Error unavailable says what is missing and what to do.
const Result<Api>& api();

} // namespace plumb::decoder::opencl
