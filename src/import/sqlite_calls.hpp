// SPDX-License-Identifier: Apache-2.0
// SQLite, opened where a trace is a database, and not before: a tenth of the command would be in it. A constant; any thread.
#pragma once

#include <sqlite3.h>

#include "plumb/result.hpp"

#define PLUMB_SQLITE_CALLS(CALL) \
    CALL(close)                  \
    CALL(create_function)        \
    CALL(db_config)              \
    CALL(db_status)              \
    CALL(deserialize)            \
    CALL(errmsg)                 \
    CALL(exec)                   \
    CALL(hard_heap_limit64)      \
    CALL(limit)                  \
    CALL(open_v2)                \
    CALL(progress_handler)       \
    CALL(result_error_code)      \
    CALL(user_data)              \
    CALL(value_bytes)            \
    CALL(value_int64)            \
    CALL(value_text)             \
    CALL(value_type)

namespace plumb::imported {

struct SqliteCalls {
#define PLUMB_DECLARE(name) decltype(&::sqlite3_##name) name = nullptr;
    PLUMB_SQLITE_CALLS(PLUMB_DECLARE)
#undef PLUMB_DECLARE
};

/// Never null. Errors: unavailable where the library is not there; unsupported where it is too old.
[[nodiscard]] Result<const SqliteCalls*> sqlite_calls();

} // namespace plumb::imported
