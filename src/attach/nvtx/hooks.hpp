// SPDX-License-Identifier: Apache-2.0
// The functions that programs with NVTX call, and how they get there. Thread rule: any thread.
#pragma once

#include "attach/nvtx/abi.hpp"

namespace plumb::attach::nvtx {

/// Hands our functions to one shared object that uses NVTX; each of a process asks. False: nothing is to be recorded here, or the
/// rules cannot be read (said in a sentence).
[[nodiscard]] bool open_door(ExportTable get);

} // namespace plumb::attach::nvtx
