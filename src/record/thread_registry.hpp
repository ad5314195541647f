// SPDX-License-Identifier: Apache-2.0
// What happens to recording threads and profilers outside their own calls: a thread ends, the process forks.
// Thread rule: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "plumb/record.hpp"

namespace plumb::record {

class Ring;

/// Who must hear of a fork. before_fork() takes its locks, so that the child finds nothing half-done; in_parent() and
/// in_child() let them go. The child has only the forking thread.
class ForkListener {
  public:
    virtual ~ForkListener() = default;
    virtual void before_fork() noexcept = 0;
    virtual void in_parent() noexcept = 0;
    virtual void in_child() noexcept = 0;
};

void add_fork_listener(ForkListener& listener);
void remove_fork_listener(ForkListener& listener);

/// Keeps the ring for the calling thread; when the thread ends, the ring is marked retired and let go.
void remember_ring(const std::shared_ptr<Ring>& ring);
/// The calling thread's ring for that generation, if it has one. Null otherwise.
Ring* find_ring(std::uint64_t generation) noexcept;
/// True in a thread whose end has begun: it gets no ring any more.
bool thread_is_ending() noexcept;
/// Numbers profilers, so that a thread slot left by an older one cannot match.
std::uint64_t new_generation() noexcept;

} // namespace plumb::record
