// SPDX-License-Identifier: Apache-2.0
// Where libplumb gets the names of a captured graph's nodes from: libplumb-naming.so, which libplumb.so opens when the first graph without
// scopes is captured, and keeps. Any thread; never in a signal handler.
#pragma once

#include "plumb/result.hpp"
#include "recording/node_names.hpp"

namespace plumb::asking {

/// Error unavailable: there is no such library, or one of another version; asked again, it is looked for again.
[[nodiscard]] Result<recording::NameNodes> naming();

/// Defined in libplumb.so alone (open_naming.cpp); null elsewhere.
[[gnu::weak]] Result<recording::NameNodes> open_naming();

} // namespace plumb::asking
