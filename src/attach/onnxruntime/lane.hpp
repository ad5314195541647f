// SPDX-License-Identifier: Apache-2.0
// The queue of a thread's nodes, whose times come from onnxruntime's own profile. Two threads on one queue would overlap.
// Thread rule: any thread.
#pragma once

#include "attach/told_lane.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::onnxruntime {

/// The calling thread's; that of a thread that has ended goes to another one.
[[nodiscard]] Queue lane_of_thread();

/// The same, for those who add to it.
[[nodiscard]] inline ToldLane& lane_of(const Queue& queue) { return static_cast<ToldLane&>(*queue.timer); }

} // namespace plumb::attach::onnxruntime
