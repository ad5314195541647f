// SPDX-License-Identifier: Apache-2.0
// The processor's own counters (counters=on): cycles, instructions, cache references and misses of the whole process.
// A reader is owned by whoever made it and must outlive the profiler it is given to; any thread, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/api.hpp"

namespace plumb {

/// Running totals since the reader was made. A counter that could not be read is left out, and the reason says why.
struct CounterTotals {
    std::vector<std::pair<std::string, std::uint64_t>>
        totals; // "cycles", "instructions", "cache_references", "cache_misses"
    std::string reason;
};

class PLUMB_API CounterReader {
  public:
    virtual ~CounterReader() = default;
    CounterReader() = default;
    CounterReader(const CounterReader&) = delete;
    CounterReader& operator=(const CounterReader&) = delete;

    [[nodiscard]] virtual CounterTotals read() = 0;
};

} // namespace plumb
