// SPDX-License-Identifier: Apache-2.0
// What the kernel counts of threads that wait: for a CPU, for something else, for the hypervisor. Files of /proc stay open, so that a
// reading costs a system call a file. One file per system implements it (kernel_times_linux.cpp, kernel_times_other.cpp); CMake
// chooses. Owned by whoever reads; one thread.
#pragma once

#include <cstdint>

namespace plumb::base {

/// A count that this system does not give.
inline constexpr std::uint64_t not_counted = ~std::uint64_t{0};

/// A descriptor that is closed with its owner; below 0: none.
class KernelFile {
  public:
    explicit KernelFile(const char* path) noexcept;
    ~KernelFile();
    KernelFile(KernelFile&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
    KernelFile& operator=(KernelFile&& other) noexcept {
        const int mine = descriptor_;
        descriptor_ = other.descriptor_;
        other.descriptor_ = mine;
        return *this;
    }
    /// What it holds from its beginning, cut at `size` - 1 bytes and ended by a 0; false: nothing.
    bool read(char* to, std::uint64_t size) const noexcept;

  private:
    int descriptor_;
};

/// Of one thread of this process, since it began.
struct ThreadTimes {
    std::uint64_t run_ns = not_counted;     // on a CPU
    std::uint64_t waited_ns = not_counted;  // ready to run, and on none
    std::uint64_t migrations = not_counted; // from one CPU to another
};

class ThreadTimesReader {
  public:
    explicit ThreadTimesReader(std::uint64_t thread_id) noexcept;
    /// Times that cannot be had stay not_counted. `with_migrations`: they cost ten times as much as the rest.
    void read(ThreadTimes& to, bool with_migrations) const noexcept;

  private:
    KernelFile times_, scheduling_;
};

/// Of all threads of this process since it began; stolen: of all CPUs of the machine since it began.
struct ProcessTimes {
    std::uint64_t minor_faults = not_counted, major_faults = not_counted;
    std::uint64_t voluntary_switches = not_counted, involuntary_switches = not_counted;
    std::uint64_t stolen_ns = not_counted; // the hypervisor ran somebody else though there was work
};

class ProcessTimesReader {
  public:
    ProcessTimesReader() noexcept;
    [[nodiscard]] ProcessTimes read() const noexcept;

  private:
    KernelFile machine_;
};

} // namespace plumb::base
