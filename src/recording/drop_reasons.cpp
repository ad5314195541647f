// SPDX-License-Identifier: Apache-2.0
#include "recording/drop_reasons.hpp"

#include <algorithm>

namespace plumb::recording {

const char* drop_reason_text(Drop reason) {
    switch (reason) {
    case Drop::ring_full:
        return "ring full";
    case Drop::across_toggle:
        return "open across enable or disable";
    case Drop::lap_outside_scope:
        return "lap outside any scope";
    case Drop::too_deep:
        return "nested too deeply";
    case Drop::thread_exit:
        return "open, or recorded, while its thread ended";
    case Drop::bad_token:
        return "end without begin";
    case Drop::device_failed:
        return "device timer refused";
    case Drop::negative_span:
        return "span with end before begin";
    case Drop::unrecorded_node:
        return "dependency of what was not recorded";
    case Drop::layer_beyond:
        return "layer with an index beyond 65,534";
    }
    return "unknown reason";
}

bool lost_records(const Counters& counters) {
    return std::any_of(counters.drops.begin(), counters.drops.end(), [](const auto& drop) {
        return drop.second != 0 &&
               (drop.first == drop_reason_text(Drop::ring_full) || drop.first.starts_with("no ring to be had"));
    });
}

} // namespace plumb::recording
