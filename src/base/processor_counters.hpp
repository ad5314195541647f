// SPDX-License-Identifier: Apache-2.0
// The processor's own counters (counters=on): cycles, instructions, cache references and misses of the whole process. One file
// per system reads them (processor_counters_linux.cpp, processor_counters_other.cpp); CMake chooses. Threads that begin later are
// counted where a counted thread began them. A reader is owned by whoever made it; any thread, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace plumb::base {

/// Running totals since the reader was made. A counter that could not be read is left out, and the reason says why.
struct CounterTotals {
    std::vector<std::pair<std::string, std::uint64_t>>
        totals; // "cycles", "instructions", "cache_references", "cache_misses"
    std::string reason;
};

class CounterReader {
  public:
    virtual ~CounterReader() = default;
    CounterReader() = default;
    CounterReader(const CounterReader&) = delete;
    CounterReader& operator=(const CounterReader&) = delete;

    [[nodiscard]] virtual CounterTotals read() = 0;
};

/// Never null: where the system allows none, its totals are empty and the reason says what to do.
[[nodiscard]] std::unique_ptr<CounterReader> open_processor_counters();

} // namespace plumb::base
