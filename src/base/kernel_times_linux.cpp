// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/kernel_times.hpp"

namespace plumb::base {
namespace {

KernelFile of_thread(std::uint64_t thread, const char* name) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%llu/%s", static_cast<unsigned long long>(thread), name);
    return KernelFile(path);
}

} // namespace

KernelFile::KernelFile(const char* path) noexcept : descriptor_(open(path, O_RDONLY | O_CLOEXEC)) {}

KernelFile::~KernelFile() {
    if (descriptor_ >= 0) {
        close(descriptor_);
    }
}

bool KernelFile::read(char* to, std::uint64_t size) const noexcept {
    const ssize_t length = descriptor_ < 0 ? -1 : pread(descriptor_, to, size - 1, 0);
    to[length > 0 ? length : 0] = '\0';
    return length > 0;
}

ThreadTimesReader::ThreadTimesReader(std::uint64_t thread_id) noexcept
    : times_(of_thread(thread_id, "schedstat")), scheduling_(of_thread(thread_id, "sched")) {}

void ThreadTimesReader::read(ThreadTimes& to, bool with_migrations) const noexcept {
    char text[1024];
    char* end = text;
    if (times_.read(text, sizeof text)) { // run, waited, slices; 0 where the kernel does not keep them
        to.run_ns = std::strtoull(text, &end, 10);
        to.waited_ns = std::strtoull(end, nullptr, 10);
    }
    if (with_migrations && scheduling_.read(text, sizeof text)) {
        const char* const line = std::strstr(text, "nr_migrations");
        const char* const value = line == nullptr ? nullptr : std::strchr(line, ':');
        if (value != nullptr) {
            to.migrations = std::strtoull(value + 1, nullptr, 10);
        }
    }
}

ProcessTimesReader::ProcessTimesReader() noexcept : machine_("/proc/stat") {}

ProcessTimes ProcessTimesReader::read() const noexcept {
    ProcessTimes read;
    rusage used{};
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        read.minor_faults = static_cast<std::uint64_t>(used.ru_minflt);
        read.major_faults = static_cast<std::uint64_t>(used.ru_majflt);
        read.voluntary_switches = static_cast<std::uint64_t>(used.ru_nvcsw);
        read.involuntary_switches = static_cast<std::uint64_t>(used.ru_nivcsw);
    }
    char text[256];
    const long ticks = sysconf(_SC_CLK_TCK);
    if (machine_.read(text, sizeof text) && std::strncmp(text, "cpu ", 4) == 0 && ticks > 0) {
        char* at = text + 4;
        unsigned long long stolen = 0;
        for (int field = 0; field < 8; ++field) { // user, nice, system, idle, iowait, irq, softirq, steal
            stolen = std::strtoull(at, &at, 10);
        }
        read.stolen_ns = stolen * (1'000'000'000 / static_cast<unsigned long long>(ticks));
    }
    return read;
}

} // namespace plumb::base
