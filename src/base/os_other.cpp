// SPDX-License-Identifier: Apache-2.0
// POSIX systems other than Linux, macOS above all.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/os.hpp"

namespace plumb::base {
namespace {

#if defined(__APPLE__)
std::string system_text(const char* name) {
    char text[256] = {};
    std::size_t size = sizeof(text) - 1;
    return sysctlbyname(name, text, &size, nullptr, 0) == 0 ? text : "";
}
#else
std::string system_text(const char*) { return ""; }
#endif

bool writable_folder(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && access(path.c_str(), W_OK | X_OK) == 0;
}

const char own_address = 0;

} // namespace

std::string boot_id() { return system_text("kern.bootsessionuuid"); }

std::uint64_t time_namespace() { return 0; }

Result<std::uint64_t> process_start_time(std::uint32_t pid) {
#if defined(__APPLE__)
    kinfo_proc info{};
    std::size_t size = sizeof(info);
    int query[4] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, static_cast<int>(pid)};
    if (sysctl(query, 4, &info, &size, nullptr, 0) == 0 && size == sizeof(info)) {
        const timeval start = info.kp_proc.p_starttime;
        return static_cast<std::uint64_t>(start.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(start.tv_usec);
    }
#endif
    return Error{ErrorCode::not_found,
                 "the start time of process " + std::to_string(pid) + " is not known here; check its id"};
}

bool process_alive(std::uint32_t pid, std::uint64_t start, const std::string& boot) {
    if (!boot.empty() && boot != boot_id()) {
        return false;
    }
    if (kill(static_cast<pid_t>(pid), 0) != 0 && errno != EPERM) {
        return false;
    }
    const Result<std::uint64_t> now = process_start_time(pid);
    return start == 0 || !now || *now == start;
}

std::string command_line() {
#if defined(__APPLE__)
    return getprogname();
#else
    return "";
#endif
}

std::string cpu_model() { return system_text("machdep.cpu.brand_string"); }

std::vector<std::pair<std::string, std::string>> cpu_conditions() { return {}; }

unsigned usable_cpus() { return static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))); }

std::vector<int> usable_cpu_numbers() { return {}; }
void bind_to_cpu(int) noexcept {}

std::vector<CpuCache> cpu_caches() {
    std::vector<CpuCache> caches;
#if defined(__APPLE__)
    const char* names[] = {"hw.l1dcachesize", "hw.l2cachesize", "hw.l3cachesize"};
    for (unsigned level = 1; level <= 3; ++level) {
        std::uint64_t bytes = 0;
        std::size_t size = sizeof(bytes);
        if (sysctlbyname(names[level - 1], &bytes, &size, nullptr, 0) == 0 && bytes != 0) {
            caches.push_back({level, bytes, 1});
        }
    }
#endif
    return caches;
}

std::uint64_t available_memory() { return 0; }

std::uint64_t thread_id() {
#if defined(__APPLE__)
    std::uint64_t id = 0;
    pthread_threadid_np(nullptr, &id);
    return id;
#else
    std::uint64_t id = 0;
    const pthread_t self = pthread_self();
    std::memcpy(&id, &self, std::min(sizeof(id), sizeof(self)));
    return id;
#endif
}

std::string thread_name() {
    char name[32] = {};
#if defined(__APPLE__)
    pthread_getname_np(pthread_self(), name, sizeof(name));
#endif
    return name;
}

void set_thread_name([[maybe_unused]] const char* name) {
#if defined(__APPLE__)
    pthread_setname_np(name);
#endif
}

bool kernel_trusts_tsc() { return true; }

const char* environment(const char* name) noexcept { return issetugid() == 0 ? std::getenv(name) : nullptr; }

Result<std::string> runtime_dir() {
    const char* session = environment("XDG_RUNTIME_DIR");
    if (session != nullptr && session[0] == '/' && writable_folder(session)) {
        return std::string(session);
    }
    return Error{ErrorCode::unavailable,
                 "$XDG_RUNTIME_DIR is not a writable folder; set it to one in memory to make recordings crash-safe"};
}

Status pin_own_module() {
    Dl_info module{};
#if defined(RTLD_NODELETE)
    constexpr int flags = RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY;
#else
    constexpr int flags = RTLD_LAZY; // one reference that is never given back
#endif
    if (dladdr(&own_address, &module) != 0 && dlopen(module.dli_fname, flags) != nullptr) {
        return {};
    }
    return Error{ErrorCode::failed,
                 "the module that holds plumb cannot be kept in memory; do not dlclose it while a profiler lives"};
}

int current_cpu() noexcept { return -1; }

void leave_cpu(int /*cpu*/) noexcept {}

} // namespace plumb::base
