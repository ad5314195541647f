// SPDX-License-Identifier: Apache-2.0
#include "base/processor_counters.hpp"

namespace plumb::base {
namespace {

class NoCounters final : public CounterReader {
  public:
    CounterTotals read() override { return {{}, "processor counters are read on Linux only"}; }
};

} // namespace

std::unique_ptr<CounterReader> open_processor_counters() { return std::make_unique<NoCounters>(); }

} // namespace plumb::base
