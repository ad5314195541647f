// SPDX-License-Identifier: Apache-2.0
// From slots to engines: looks for copies of ggml in this process, and leads their slots to functions that know which
// copy they belong to. Thread rule: any thread.
#pragma once

#include "attach/ggml/api.hpp"
#include "plumb/api.hpp"

namespace plumb::attach::ggml {

struct ThreadState;

/// Not null while the calling thread computes a graph that is being timed.
extern __thread ThreadState* computing_thread PLUMB_TLS_MODEL;

/// The nodes from `first` to `last` begin now, on this thread.
void note_node(ThreadState& state, const Tensor* first, const Tensor* last) noexcept;

/// The node that runs now was at a barrier.
void note_wait(ThreadState& state, std::uint64_t begin, std::uint64_t end) noexcept;

/// Redirects what was loaded since the last call. `door` says how we came in: "GGML_BACKEND_PATH" or "LD_PRELOAD".
void open_door(const char* door);

/// The engine's own function for a caller that reached ours by its name.
void* original_for(const char* symbol, const void* caller);

} // namespace plumb::attach::ggml
