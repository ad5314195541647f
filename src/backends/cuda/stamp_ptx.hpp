// SPDX-License-Identifier: Apache-2.0
// The text of stamp.ptx, built in. Constant.
#pragma once

namespace plumb::backends::cuda {

extern const char* const stamp_ptx;

} // namespace plumb::backends::cuda
