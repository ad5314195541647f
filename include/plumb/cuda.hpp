// SPDX-License-Identifier: Apache-2.0
// Queues of CUDA streams. No CUDA header is needed: CUstream and cudaStream_t are pointers to CUstream_st.
// Thread rule: any thread.
#pragma once

#include "plumb/api.hpp"
#include "plumb/record.hpp"

struct CUstream_st;

namespace plumb {

/// The queue of a stream: scopes on it are timed by events on the device, in every n-th step (device.every=n); while the
/// stream is captured they are noted instead, for graph_captured(). The first call for a stream makes its timer, which
/// lives as long as the process; later ones are a lookup. A stream handle that the driver gave out anew is a new queue
/// (from CUDA 12.0; before that, the same one). Null is the legacy stream.
/// Where there is no driver or device the queue's scopes are dropped and counted, and reports say why.
PLUMB_API Queue cuda(CUstream_st* stream) noexcept;

} // namespace plumb
