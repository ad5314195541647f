// SPDX-License-Identifier: Apache-2.0
// What the operating system knows about this machine, process and thread. One file per system implements it
// (os_linux.cpp, os_other.cpp); CMake chooses. Plain functions, safe from any thread; texts are empty where unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::base {

/// Changes at every boot of the machine; empty where the system has none.
std::string boot_id();

/// Names the set of processes that share our CLOCK_MONOTONIC and our start times, for as long as one of them lives; 0 where
/// the system has none.
std::uint64_t time_namespace();

/// When the process began, in the system's own units: with pid and boot_id it names one process for good, although
/// pids are reused. Error not_found when there is no such process.
Result<std::uint64_t> process_start_time(std::uint32_t pid);

/// Whether that very process still runs. A process that was killed and not yet waited for is dead.
/// An empty `boot` or a `start` of 0 (not known to the writer) is not compared.
bool process_alive(std::uint32_t pid, std::uint64_t start, const std::string& boot);

std::uint32_t process_id();
std::string host_name();
/// The arguments of this process, separated by blanks.
std::string command_line();
/// "Intel(R) Xeon(R) …", as the kernel names the CPU.
std::string cpu_model();
/// What the CPU is doing now, as far as this machine tells: "clock.cpu_mhz", "clock.governor", "load.average".
std::vector<std::pair<std::string, std::string>> cpu_conditions();
/// CPUs that this process may use all of, at least 1: those it may run on, or fewer where a control group (of a container) limits its time.
unsigned usable_cpus();
/// The numbers of those it may run on, in order; empty where this system does not tell.
std::vector<int> usable_cpu_numbers();
/// Binds the calling thread to one CPU; where that cannot be done it stays free.
void bind_to_cpu(int cpu) noexcept;

/// Data caches as the CPUs that this process may use have them: one entry per level, in order; empty where unknown.
struct CpuCache {
    unsigned level = 0;
    std::uint64_t bytes = 0; // of one
    unsigned instances = 0;
};
std::vector<CpuCache> cpu_caches();
/// Memory that programs could still take, in bytes; 0 where unknown.
std::uint64_t available_memory();

/// As the kernel numbers it: what `ps -L` and debuggers show.
std::uint64_t thread_id();
/// Name of the calling thread, at most 31 bytes.
std::string thread_name();
/// Best effort; longer names are cut where the system must.
void set_thread_name(const char* name);
/// CPU time the calling thread has used.
std::int64_t thread_cpu_ns();

/// Whether programs here may read the CPU's time stamp counter and the kernel still believes in it. True where the
/// system has no opinion: the CPU's own statement then decides.
bool kernel_trusts_tsc();

/// The value of an environment variable; null where there is none, and in a program that has more rights than who started it
/// (setuid, file capabilities): what that one says must not name what is opened or written.
const char* environment(const char* name) noexcept;

/// A folder in memory for files that live as long as the session: $XDG_RUNTIME_DIR, else /dev/shm.
/// Error unavailable when neither is a writable folder.
Result<std::string> runtime_dir();

/// Whether the file size limit of this process allows a file of that size. The system does not only refuse more: it ends the
/// process (SIGXFSZ), so whoever lets a file grow asks first.
bool file_may_grow_to(std::uint64_t bytes) noexcept;

/// Keeps the executable or shared library that holds our code mapped for good: our drain thread and thread-local
/// destructors may still run when a plugin that contains us is dlclosed. Idempotent.
Status pin_own_module();

/// All signals stay with the program's own threads. Throws what std::thread throws.
std::thread start_quiet_thread(std::function<void()> body);

/// Number of the CPU the caller runs on; -1 where the system does not tell.
int current_cpu() noexcept;
/// Moves the calling thread off that CPU now if it is there and may run on another; where it may run stays as it was.
/// A thread started for a few milliseconds of work else often waits behind its maker while another core is idle.
void leave_cpu(int cpu) noexcept;

} // namespace plumb::base
