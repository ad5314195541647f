// SPDX-License-Identifier: Apache-2.0
// Puts the records of one mark of a request together. A part counts only for a request that stands directly behind it.
// Owned by one track's resolver; one thread. Takes hostile input.
#pragma once

#include <cstdint>

#include "base/layout.hpp"
#include "resolve/sample.hpp"

namespace plumb::resolve {

class RequestReader {
  public:
    /// A part of the next mark. False: no writer writes such.
    [[nodiscard]] bool part(const Record& record, std::uint64_t sequence);
    /// Fills in all but time and step; `ticks` is when it was marked. False: something is missing, or no writer writes such.
    [[nodiscard]] bool complete(const Record& record, std::uint64_t sequence, RequestEvent& event,
                                std::uint64_t& ticks);

  private:
    RequestEvent parts_;
    std::uint64_t ticks_ = 0;
    unsigned have_ = 0;      // a bit for each part
    std::uint64_t next_ = 0; // sequence that goes on with them
};

} // namespace plumb::resolve
