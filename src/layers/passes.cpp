// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "layers/laid_out.hpp"

namespace plumb {

std::vector<PassRange> find_passes(std::span<const SequenceKernel> kernels) {
    if (kernels.empty()) {
        return {};
    }
    return {{0, kernels.size(), false}};
}

} // namespace plumb
