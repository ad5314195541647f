// SPDX-License-Identifier: Apache-2.0
#include "asking/naming.hpp"

namespace plumb::asking {

Result<recording::NameNodes> naming() {
    if (open_naming != nullptr) {
        return open_naming();
    }
    return Error{ErrorCode::unavailable, "only libplumb.so can ask for the names of kernels; link that in place of "
                                         "libplumb.a, or open scopes while the graph is captured"};
}

} // namespace plumb::asking
