// SPDX-License-Identifier: Apache-2.0
// Everything an engine needs to be profiled: scopes, the profiler, queues of every backend, captured graphs, tensors, tiles,
// and answers by their name. A file that only has scopes includes record.hpp, which is a quarter of this.
#pragma once

#include "plumb/answer.hpp"
#include "plumb/cuda.hpp"
#include "plumb/cuda_graph.hpp"
#include "plumb/hip.hpp"
#include "plumb/metal.hpp"
#include "plumb/op.hpp"
#include "plumb/opencl.hpp"
#include "plumb/profiler.hpp"
#include "plumb/record.hpp"
#include "plumb/request.hpp"
#include "plumb/tensor.hpp"
#include "plumb/tile.hpp"
#include "plumb/vulkan.hpp"
