// SPDX-License-Identifier: Apache-2.0
// In libplumb-metrics.so alone.
#include "metrics/metrics.hpp"

extern "C" const plumb::metrics::Table* plumb_metrics_table() noexcept {
    static constexpr plumb::metrics::Table table = {PLUMB_BUILD_VERSION, &plumb::metrics::start};
    return &table;
}
