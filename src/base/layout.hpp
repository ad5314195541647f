// SPDX-License-Identifier: Apache-2.0
// The rooms write and read what inlined user code writes: in here its names stand without detail::. No thread rule.
#pragma once

#include "plumb/layout.hpp"

namespace plumb {
using namespace detail; // NOLINT: the library is where these names are at home
}
