// SPDX-License-Identifier: Apache-2.0
// Decode steps of a llama.cpp that this program opens as others do, with the attach library in it and without, by turns. Runs in a
// process of its own: one recording, one copy of the engine. One thread.
#pragma once

#include <string>
#include <vector>

#include "plumb/result.hpp"

namespace bench::attach {

struct Subject {
    std::string libraries; // the folder
    std::string model;
    int pairs = 0;
};

/// CPU time of the thread that decodes, nanoseconds; of one step on and one off.
struct Pairs {
    std::vector<double> on, off;
};

/// REQUIRES: PLUMB and GGML_BACKEND_PATH are set for it.
[[nodiscard]] plumb::Result<Pairs> measure(const Subject& subject);

} // namespace bench::attach
