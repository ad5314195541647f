// SPDX-License-Identifier: Apache-2.0
// From slots to engines: looks for copies of ggml in this process, and leads their slots to functions that know which
// copy they belong to. Thread rule: any thread.
#pragma once

#include "attach/ggml/api.hpp"
#include "plumb/api.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::ggml {

struct ThreadState;

/// Not null while the calling thread computes a graph that is being timed.
extern __thread ThreadState* computing_thread PLUMB_TLS_MODEL;

/// The nodes from `first` to `last` begin now, on this thread.
void note_node(ThreadState& state, const Tensor* first, const Tensor* last) noexcept;

/// The node that runs now was at a barrier.
void note_wait(ThreadState& state, std::uint64_t begin, std::uint64_t end) noexcept;

/// A device's backend has something done on that queue, for the node that it came to last. False: the calling thread computes no graph on a
/// device.
bool on_device(const Queue& queue);
/// What it records into ends here.
void leave_device();

/// Redirects what was loaded since the last call. `door` says how we came in: "GGML_BACKEND_PATH" or "LD_PRELOAD".
void open_door(const char* door);

} // namespace plumb::attach::ggml
