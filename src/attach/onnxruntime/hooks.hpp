// SPDX-License-Identifier: Apache-2.0
// From OrtGetApiBase to our functions: a program gets a copy of onnxruntime's table in which some are ours. Thread rule: any thread.
#pragma once

namespace plumb::attach::onnxruntime {

/// What a program gets that asked for the base; `original` is the function that it would have reached. Null: there is none.
[[nodiscard]] const void* base_of(void* original);

} // namespace plumb::attach::onnxruntime
