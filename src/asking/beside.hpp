// SPDX-License-Identifier: Apache-2.0
// How libplumb.so finds the libraries that it opens when something of them is asked for. Any thread; never in a signal handler.
#pragma once

#include <string>

#include "plumb/result.hpp"

namespace plumb::asking {

/// What `symbol` of the library `file` is, which lies beside the one that this code is in, or where the loader looks. Such a library is linked
/// with -z nodelete: its code stays. Error unavailable ends with the advice. In libplumb.so alone.
Result<void*> open_beside(const std::string& file, const std::string& symbol, const std::string& advice);

/// Error unavailable: that library is not of our build.
Status same_version(const char* library, const std::string& version);

} // namespace plumb::asking
