// SPDX-License-Identifier: Apache-2.0
// recover_recording() of results.hpp.
#include "plumb/results.hpp"
#include "recording/recovery.hpp"

namespace plumb {

Result<RecoverSummary> recover_recording(const std::string& path) {
    const Result<recording::Recovery> recovered = recording::recover(path);
    if (!recovered.ok()) {
        return recovered.error();
    }
    RecoverSummary summary;
    summary.records_recovered = recovered->records;
    summary.rings = recovered->ring_removed ? 1 : 0;
    summary.notes = recovered->notes;
    return summary;
}

} // namespace plumb
