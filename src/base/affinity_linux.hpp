// SPDX-License-Identifier: Apache-2.0
// The CPUs that a thread may run on, however many the machine has: the sets of the C library end at 1024. Linux only; plain
// functions, any thread.
#pragma once

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

namespace plumb::base {

struct FreeCpuSet {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

/// Empty where nobody tells. `ask(bytes, set)` fills a set of that size, as sched_getaffinity(): EINVAL says that it is too
/// small for this machine.
template <class Ask>
std::vector<int> cpus_told_by(const Ask& ask) {
    constexpr std::size_t most_cpus = std::size_t{1} << 20;
    for (std::size_t room = CPU_SETSIZE; room <= most_cpus; room *= 2) {
        const CpuSet set(CPU_ALLOC(room));
        if (set == nullptr) {
            return {};
        }
        const std::size_t bytes = CPU_ALLOC_SIZE(room);
        CPU_ZERO_S(bytes, set.get());
        errno = 0;
        if (ask(bytes, set.get()) != 0) {
            if (errno == EINVAL) {
                continue;
            }
            return {};
        }
        std::vector<int> cpus;
        for (std::size_t cpu = 0; cpu < room; ++cpu) {
            if (CPU_ISSET_S(cpu, bytes, set.get())) {
                cpus.push_back(static_cast<int>(cpu));
            }
        }
        return cpus;
    }
    return {};
}

} // namespace plumb::base
