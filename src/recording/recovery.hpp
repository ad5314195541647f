// SPDX-License-Identifier: Apache-2.0
// Makes the recording of a killed process whole: folds its ring in, cuts off an unfinished chunk, removes the ring.
// Plain function; safe against others by the recording's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/store.hpp"

namespace plumb::recording {

struct Recovery {
    std::uint64_t records = 0;   // put into the recording
    std::uint64_t cut_bytes = 0; // of an unfinished chunk at its end
    bool ring_removed = false;
    std::vector<std::string> notes; // what is lost all the same, in words
};

/// May be killed and called again at any moment: nothing is lost and nothing is there twice. A recording with nothing to
/// recover is no error. Errors: already_exists (a live writer, by pid), no_space, permission, and those of Reader::open.
Result<Recovery> recover(const std::string& path, const WriteFunction& write = {});

} // namespace plumb::recording
