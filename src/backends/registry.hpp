// SPDX-License-Identifier: Apache-2.0
// The backends of this build, in the order of PLUMB_BACKENDS; the definition is generated from that list.
// The objects live as long as the process; any thread.
#pragma once

#include <span>

#include "plumb/backend.hpp"

namespace plumb {

std::span<Backend* const> registered_backends();

} // namespace plumb
