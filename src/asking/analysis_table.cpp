// SPDX-License-Identifier: Apache-2.0
#include "asking/analysis_table.hpp"
#include "asking/beside.hpp"

namespace plumb::asking {

Result<AnalysisPointer> analysis() {
    if (plumb_analysis_table != nullptr) {
        return same_version(*plumb_analysis_table());
    }
    if (open_analysis != nullptr) {
        return open_analysis();
    }
    return Error{
        ErrorCode::unavailable,
        "this program was linked without plumb's analysis, which recording does not need; link plumb::analysis "
        "too, or read the recording with the command plumb"};
}

Result<AnalysisPointer> same_version(const AnalysisTable& table) {
    const Status same = same_version("libplumb-analysis", table.version);
    return same.ok() ? &table : Result<AnalysisPointer>(same.error());
}

Status same_version(const char* library, const std::string& version) {
    if (version == PLUMB_BUILD_VERSION) {
        return {};
    }
    return Error{ErrorCode::unavailable, "libplumb is of version " PLUMB_BUILD_VERSION ", " + std::string(library) +
                                             " of version " + version + "; install both from one build"};
}

} // namespace plumb::asking
