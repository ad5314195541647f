// SPDX-License-Identifier: Apache-2.0
// What oneDNN itself reaches with one large product on all cores: the yardstick of prefill. One thread calls.
#pragma once

#include <optional>

namespace bench {

/// GFLOP/s of one product of 512 × 2048 by 2048 × 2048, in bf16 or f32; nothing where this processor has none.
[[nodiscard]] std::optional<double> library_gflops(bool bf16);

} // namespace bench
