// SPDX-License-Identifier: Apache-2.0
// In libplumb-naming.so alone.
#include "import/rules/node_naming.hpp"
#include "plumb/api.hpp"

extern "C" PLUMB_API const plumb::recording::NamingTable* plumb_naming_table() noexcept {
    static constexpr plumb::recording::NamingTable table = {PLUMB_BUILD_VERSION, &plumb::imported::name_nodes};
    return &table;
}
