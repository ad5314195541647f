// SPDX-License-Identifier: Apache-2.0
// Debug labels that are open, with a scope each, and names of scopes. Scopes of a thread nest, so a thread has labels of one recording
// of one command buffer at a time. Where another thread gives that recording up, its own thread ends them later.
// Thread rule: any thread; what belongs to one command buffer, as Vulkan's own.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/record.hpp"

namespace plumb::attach::vulkan {

/// Of one recording of a command buffer. Plain data.
struct LabelCount {
    std::uint64_t recording = 0; // its number among all; 0: none
    unsigned open = 0;           // with a scope each
    unsigned skipped = 0;        // open inside of these, without one
};

/// Starts those of a new recording. REQUIRES: none of the one before is open.
void begin_labels(LabelCount& labels) noexcept;
/// Whether the calling thread has any open, of whatever recording.
[[nodiscard]] bool has_open_labels();
/// Whether one of that recording may be opened on the calling thread.
[[nodiscard]] bool may_open(const LabelCount& labels);
void opened(LabelCount& labels) noexcept;
/// Ends the innermost.
void close_label(LabelCount& labels);
/// Ends all, or leaves that to the thread whose they are. REQUIRES: stamps may be written into the command buffer, or are refused by its
/// timer.
void close_all(LabelCount& labels);

/// A scope's name: that of a label or pipeline. From the 4,097th on they are "other", since programs number them.
[[nodiscard]] Name name_of_scope(const std::string& text);

} // namespace plumb::attach::vulkan
