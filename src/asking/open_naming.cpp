// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "asking/beside.hpp"
#include "asking/naming.hpp"

namespace plumb::asking {

Result<recording::NameNodes> open_naming() {
    static std::atomic<recording::NameNodes> opened{nullptr};
    if (const recording::NameNodes known = opened.load(std::memory_order_acquire); known != nullptr) {
        return known;
    }
    const Result<void*> table_of = open_beside(PLUMB_NAMING_FILE, "plumb_naming_table",
                                               "put it beside libplumb.so, or open scopes while the graph is captured");
    if (!table_of.ok()) {
        return table_of.error();
    }
    const recording::NamingTable* const table =
        reinterpret_cast<const recording::NamingTable* (*)() noexcept>(*table_of)();
    if (Status same = same_version("libplumb-naming", table->version); !same.ok()) {
        return same.error();
    }
    opened.store(table->name_nodes, std::memory_order_release);
    return table->name_nodes;
}

} // namespace plumb::asking
