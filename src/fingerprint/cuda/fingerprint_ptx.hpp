// SPDX-License-Identifier: Apache-2.0
// The text of the fingerprint kernels, built in; null where this library was built without nvcc. Constant.
#pragma once

namespace plumb::fingerprint {

extern const char* const fingerprint_ptx;

} // namespace plumb::fingerprint
