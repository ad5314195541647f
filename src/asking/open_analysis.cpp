// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "asking/analysis_table.hpp"
#include "asking/beside.hpp"

namespace plumb::asking {

Result<AnalysisPointer> open_analysis() {
    static std::atomic<AnalysisPointer> opened{nullptr};
    if (const AnalysisPointer table = opened.load(std::memory_order_acquire); table != nullptr) {
        return table;
    }
    const Result<void*> table_of = open_beside(
        PLUMB_ANALYSIS_FILE, "plumb_analysis_table",
        "put it beside libplumb.so, or read the recording with the command plumb: recording does not need it");
    if (!table_of.ok()) {
        return table_of.error();
    }
    const Result<AnalysisPointer> table = same_version(*reinterpret_cast<decltype(&plumb_analysis_table)>(*table_of)());
    if (table.ok()) {
        opened.store(*table, std::memory_order_release);
    }
    return table;
}

} // namespace plumb::asking
