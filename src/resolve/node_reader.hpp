// SPDX-License-Identifier: Apache-2.0
// Puts the records of one node together. A part counts only for a node that stands directly behind it, so that what is
// missing never joins two nodes. Owned by one track's resolver; one thread. Takes hostile input.
#pragma once

#include <cstdint>
#include <optional>

#include "base/layout.hpp"
#include "resolve/node.hpp"

namespace plumb::resolve {

class NodeReader {
  public:
    /// A part of the next node, or the first half of a dependency. False: no writer writes such.
    [[nodiscard]] bool part(const Record& record, std::uint64_t sequence);
    /// Fills in what the parts before say. False: some are missing, or it is no node that a writer writes.
    [[nodiscard]] bool complete(const Record& record, std::uint64_t sequence, RecordedNode& node);
    /// The second half of a dependency; absent when the first is missing.
    [[nodiscard]] std::optional<NodeDependency> dependency(const Record& record, std::uint64_t sequence);

  private:
    [[nodiscard]] bool holds(RecordKind kind, unsigned which) const noexcept;

    RecordedNode parts_;
    RecordKind of_ = RecordKind::empty; // kind of the parts
    unsigned have_ = 0;                 // a bit for each
    std::uint64_t next_ = 0;            // sequence that goes on with them
    NodeKey earlier_;
};

} // namespace plumb::resolve
