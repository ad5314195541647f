// SPDX-License-Identifier: Apache-2.0
// Which scopes of different ranks are the same collective, the same message or the same transfer. By the sequence that the recordings say;
// where one does not, by counting: through the whole run where all ranks of the group have as many, else step by step.
// Pure; no thread rule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ranks/job.hpp"

namespace plumb::ranks {

enum class JointKind : std::uint8_t {
    blocking, // no part ends before the last began
    exchange, // of experts: the same, where every rank sends to every other
    message,  // a send, then its receive, which does not end before the send began
    transfer, // of a KV cache between two ranks
};

/// Scopes of one brick in one instance of a group.
struct JointStream {
    std::string brick, group;
    int instance = 0;
    JointKind kind = JointKind::blocking;
};

struct JointPart {
    std::uint32_t rank = 0;  // place in Job::ranks
    std::uint32_t event = 0; // in its RankEvents::events
};

struct Joint {
    std::uint32_t stream = 0;
    std::uint32_t first_part = 0;
    std::uint32_t parts = 0;  // two or more; of a message, or a transfer of which that is known, the send first
    bool directed = false;    // the send is first
    bool contradicts = false; // set by who finds that it cannot have been one collective
};

struct Joints {
    std::vector<JointStream> streams;
    std::vector<Joint> joints; // by stream, in order
    std::vector<JointPart> parts;
    std::vector<std::string> notes;
};

[[nodiscard]] Joints match(const Job& job);

} // namespace plumb::ranks
