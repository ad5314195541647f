// SPDX-License-Identifier: Apache-2.0
// In libplumb.so alone, in place of the room: opens libplumb-metrics when metrics are asked for.
#include "asking/beside.hpp"
#include "metrics/metrics.hpp"

namespace plumb::metrics {

Result<std::unique_ptr<Exporter>> start(const MetricsOptions& options) {
    const Result<void*> table_of =
        asking::open_beside(PLUMB_METRICS_FILE, "plumb_metrics_table", "put it beside libplumb.so");
    if (!table_of.ok()) {
        return table_of.error();
    }
    const Table* const table = reinterpret_cast<decltype(&plumb_metrics_table)>(*table_of)();
    if (Status same = asking::same_version("libplumb-metrics", table->version); !same.ok()) {
        return same.error();
    }
    return table->start(options);
}

} // namespace plumb::metrics
