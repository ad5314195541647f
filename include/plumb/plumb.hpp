// SPDX-License-Identifier: Apache-2.0
// Everything an engine needs to be profiled: include this one.
#pragma once

#include "plumb/cuda.hpp"
#include "plumb/cuda_graph.hpp"
#include "plumb/hip.hpp"
#include "plumb/metal.hpp"
#include "plumb/op.hpp"
#include "plumb/opencl.hpp"
#include "plumb/record.hpp"
#include "plumb/results.hpp"
#include "plumb/session.hpp"
#include "plumb/tensor.hpp"
#include "plumb/tile.hpp"
#include "plumb/vulkan.hpp"
