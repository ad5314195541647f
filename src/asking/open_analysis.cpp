// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>

#include "asking/analysis_table.hpp"
#include "base/dynamic_library.hpp"

namespace plumb::asking {
namespace {

/// Beside the file that this code lies in, then wherever the loader looks.
std::vector<std::string> places() {
    std::vector<std::string> names;
    Dl_info own{};
    if (dladdr(reinterpret_cast<const void*>(&open_analysis), &own) != 0 && own.dli_fname != nullptr) {
        const std::string file = own.dli_fname;
        if (const std::size_t slash = file.rfind('/'); slash != std::string::npos) {
            names.push_back(file.substr(0, slash + 1) + PLUMB_ANALYSIS_FILE);
        }
    }
    names.emplace_back(PLUMB_ANALYSIS_FILE);
    return names;
}

} // namespace

Result<AnalysisPointer> open_analysis() {
    static std::atomic<AnalysisPointer> opened{nullptr};
    if (const AnalysisPointer table = opened.load(std::memory_order_acquire); table != nullptr) {
        return table;
    }
    // It is linked with -z nodelete: whoever closes it, its code stays.
    const Result<base::DynamicLibrary> library = base::DynamicLibrary::open(
        places(),
        "put it beside libplumb.so, or read the recording with the command plumb: recording does not need it");
    if (!library.ok()) {
        return library.error();
    }
    const auto table_of = library->function<decltype(plumb_analysis_table)>("plumb_analysis_table");
    if (!table_of.ok()) {
        return Error{ErrorCode::unavailable, table_of.error().message};
    }
    const Result<AnalysisPointer> table = same_version(*(*table_of)());
    if (table.ok()) {
        opened.store(*table, std::memory_order_release);
    }
    return table;
}

} // namespace plumb::asking
