// SPDX-License-Identifier: Apache-2.0
// The names of a captured graph's nodes: libplumb-attach holds the rules itself, and opens no library for them.
#include "asking/naming.hpp"
#include "import/rules/node_naming.hpp"

namespace plumb::asking {

Result<recording::NameNodes> open_naming() {
    const recording::NameNodes name = &imported::name_nodes;
    return name;
}

} // namespace plumb::asking
