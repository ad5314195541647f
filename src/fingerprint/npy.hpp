// SPDX-License-Identifier: Apache-2.0
// Writes a tensor in host memory as a NumPy .npy file (format 1.0). bf16 becomes f32, exactly. Plain function; any thread.
#pragma once

#include <string>

#include "plumb/fingerprint.hpp"
#include "plumb/result.hpp"

namespace plumb::fingerprint {

/// Errors name the file and what to do: no_space, permission, io.
Status write_npy(const std::string& path, const Tensor& tensor);

} // namespace plumb::fingerprint
