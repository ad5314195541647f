// SPDX-License-Identifier: Apache-2.0
// The words of NVTX (base/nvtx.hpp) as they are used here. No thread rule.
#pragma once

#include "base/nvtx.hpp"

namespace plumb::attach::nvtx {
using namespace base::nvtx;
}
