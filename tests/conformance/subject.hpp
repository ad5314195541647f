// SPDX-License-Identifier: Apache-2.0
// What the conformance suite needs to know of a backend to put it to the test. Each backend's folder holds one
// conformance_testing.cpp; one more subject is a device in virtual time. Owned by the test; one thread unless said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "plumb/backend.hpp"

namespace plumb::conformance {

class Subject {
  public:
    virtual ~Subject() = default;

    /// A timer on one queue of this subject.
    virtual Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options = {}) = 0;
    /// Work of about so many nanoseconds, done or enqueued where the timer's queue runs it. Any thread.
    virtual void work(std::int64_t ns) = 0;
    /// Afterwards everything enqueued is finished.
    virtual void settle() = 0;
    /// The common clock, as this subject's timers know it.
    virtual std::int64_t host_ns() const = 0;

    /// The system's or vendor's calls that can fail.
    virtual std::vector<std::string> calls() const = 0;
    /// The `use`-th use of that call from now on fails, once. Use 0: none fails any more.
    virtual void fail(const std::string& call, unsigned use) = 0;
    /// Whether the failure that was asked for has happened.
    virtual bool has_failed() const = 0;
    /// What is held of the system or the vendor right now: allocations, events.
    virtual std::size_t resources() const = 0;
};

struct Entry {
    const char* name;
    std::unique_ptr<Subject> (*make)();
};
/// Test names show it: a name, not bytes that change with every run.
inline void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.name; }
/// One per word of PLUMB_BACKENDS (generated), and the device in virtual time.
std::vector<Entry> subjects();

} // namespace plumb::conformance
