// SPDX-License-Identifier: Apache-2.0
// Why records were dropped, in the words that recordings and reports use. Whoever fills Counters::drops takes these, so
// that a reader can tell which count a dead writer's ring continues. Pure; no thread rule.
#pragma once

#include "base/layout.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

[[nodiscard]] const char* drop_reason_text(Drop reason);

/// Records that threads would have written found no room.
[[nodiscard]] bool lost_records(const Counters& counters);

} // namespace plumb::recording
