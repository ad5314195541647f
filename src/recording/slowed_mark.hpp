// SPDX-License-Identifier: Apache-2.0
// A further Mark of a record: the step that it stands in ran slower than it would have, because the profiler traced kernels. Steps
// with it are left out where steps are counted. No engine's inlined code writes it, so it is not in layout.hpp. No thread rule.
#pragma once

#include "base/layout.hpp"

namespace plumb::recording {

inline constexpr auto slowed_step = static_cast<Mark>(5);

} // namespace plumb::recording
