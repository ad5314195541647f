// SPDX-License-Identifier: Apache-2.0
// The text of the fingerprint kernels, built in, and packed: it is a tenth of its length there. Any thread.
#pragma once

#include <string>

namespace plumb::fingerprint {

using KernelText = std::string (*)();

/// Unpacks it, which each device needs once. Null where this library was built without nvcc.
extern const KernelText fingerprint_ptx;

} // namespace plumb::fingerprint
