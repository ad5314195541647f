// SPDX-License-Identifier: Apache-2.0
#include "plumb/backend.hpp"

namespace plumb {

Result<DeviceToken> QueueTimer::lap(DeviceToken ended, const Work* work, const ScopeLabel& next) noexcept {
    if (ended.value != token_not_timed) {
        if (Status status = end_labelled(ended, work); !status.ok()) {
            cancel(ended);
            return status.error();
        }
    }
    return begin_labelled(next);
}

} // namespace plumb
