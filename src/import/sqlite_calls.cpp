// SPDX-License-Identifier: Apache-2.0
#include "import/sqlite_calls.hpp"

#include <utility>

#include "base/dynamic_library.hpp"

namespace plumb::imported {
namespace {

Result<SqliteCalls> open_sqlite() {
    auto opened = base::DynamicLibrary::open({"libsqlite3.so.0", "libsqlite3.so"},
                                             "a trace that is a database is read by SQLite: install libsqlite3-0");
    if (!opened) {
        return opened.error();
    }
    const base::DynamicLibrary& library = base::keep_for_good(std::move(*opened));
    SqliteCalls calls;
    Error missing{};
    const auto find = [&]<class Call>(const char* name, Call*& call) {
        const auto found = library.function<Call>(name);
        found ? void(call = *found) : void(missing = found.error());
    };
#define PLUMB_FIND(name) find("sqlite3_" #name, calls.name);
    PLUMB_SQLITE_CALLS(PLUMB_FIND)
#undef PLUMB_FIND
    if (!missing.message.empty()) {
        return missing;
    }
    return calls;
}

} // namespace

Result<const SqliteCalls*> sqlite_calls() {
    static const Result<SqliteCalls> calls = open_sqlite();
    if (!calls) {
        return calls.error();
    }
    return &*calls;
}

} // namespace plumb::imported
