// SPDX-License-Identifier: Apache-2.0
// From slots to CUDA graphs: leads the calls of libcudart about graphs, in every library that makes them through a slot, to functions
// that look at the graph and hand each launch to its probe. Thread rule: any thread.
#pragma once

struct CUstream_st;

namespace plumb::attach::cudart {

/// Redirects what was loaded since the last call. `door` says how we came in.
void open_door(const char* door);

/// The stream that the calling thread captures; null: none.
[[nodiscard]] CUstream_st* captured_stream() noexcept;
/// Calls this on a thread that is about to end its capture. One function for the process.
void before_capture_ends(void (*function)()) noexcept;

} // namespace plumb::attach::cudart
