// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/affinity_linux.hpp"
#include "base/control_groups_linux.hpp"
#include "base/os.hpp"

namespace plumb::base {
namespace {

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return file ? std::move(text).str() : std::string();
}

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

/// Of "max", and where there is no such file: no_limit.
std::uint64_t number_in(const std::string& path) {
    const std::string text = read_text(path);
    std::uint64_t number = no_limit;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

/// What follows `name` at the beginning of a line; 0 where none begins so.
std::uint64_t field_in(const std::string& path, std::string_view name) {
    std::istringstream text(read_text(path));
    for (std::string line; std::getline(text, line);) {
        if (line.starts_with(name)) {
            return std::strtoull(line.c_str() + name.size(), nullptr, 10);
        }
    }
    return 0;
}

/// Calls take(folder, version) for the group of this process with that controller, and for each above it. In a container its own folder
/// may not be seen, but then that of the mount is its own.
template <class Take>
void for_each_group(const std::string& root, const std::string& controller, const Take& take) {
    std::istringstream groups(read_text(root + "/proc/self/cgroup"));
    for (std::string line; std::getline(groups, line);) { // "0::/group", or of version 1 "4:cpu,cpuacct:/group"
        const std::size_t names = line.find(':');
        const std::size_t path = names == std::string::npos ? names : line.find(':', names + 1);
        if (path == std::string::npos) {
            continue;
        }
        const std::string controllers = ',' + line.substr(names + 1, path - names - 1) + ',';
        const bool second = controllers == ",,";
        if (!second && controllers.find(',' + controller + ',') == std::string::npos) {
            continue;
        }
        const std::string mount = root + "/sys/fs/cgroup" + (second ? "" : "/" + controller);
        for (std::string group = line.substr(path + 1);; group.resize(std::min(group.rfind('/'), group.size() - 1))) {
            take(mount + group, second ? 2 : 1);
            if (group.empty()) {
                break;
            }
        }
    }
}

/// A memory controller as cgroups(7) tells it.
struct MemoryFiles {
    const char *limit, *used;
    std::string_view given_back; // in memory.stat: caches that the kernel takes back first
};
constexpr MemoryFiles memory_files_1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "};
constexpr MemoryFiles memory_files_2 = {"/memory.max", "/memory.current", "inactive_file "};

std::uint64_t room_in_group(const std::string& folder, const MemoryFiles& files) {
    const std::uint64_t limit = number_in(folder + files.limit);
    const std::uint64_t used = number_in(folder + files.used);
    if (limit == no_limit || used == no_limit) {
        return no_limit;
    }
    const std::uint64_t back = field_in(folder + "/memory.stat", files.given_back);
    return limit - std::min(limit, used - std::min(used, back));
}

/// Microseconds of CPU time in so many of the clock; no_limit where a group has none.
struct CpuQuota {
    std::uint64_t quota = no_limit, period = no_limit;
};

CpuQuota quota_in_group(const std::string& folder, int version) {
    CpuQuota found;
    if (version == 1) {
        return {number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us")};
    }
    const std::string text = read_text(folder + "/cpu.max"); // "400000 100000", "max 100000"
    const std::size_t blank = std::min(text.find(' '), text.size());
    std::from_chars(text.data(), text.data() + blank, found.quota);
    std::from_chars(text.data() + std::min(blank + 1, text.size()), text.data() + text.size(), found.period);
    return found;
}

struct ProcessStat {
    char state = 0;
    std::uint64_t threads = 0;
    std::uint64_t start = 0;
};

bool parse_field(std::string_view field, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    return error == std::errc() && end == field.data() + field.size();
}

// The command (field 2) may hold blanks and parentheses, so fields are counted from the last parenthesis.
bool read_process_stat(std::uint32_t pid, ProcessStat& stat) {
    const std::string text = read_text("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t command_end = text.rfind(')');
    if (command_end == std::string::npos) {
        return false;
    }
    std::istringstream rest(text.substr(command_end + 1));
    std::vector<std::string> fields(3); // fields[n] is field n of proc(5)
    for (std::string field; rest >> field;) {
        fields.push_back(field);
    }
    if (fields.size() <= 22 || fields[3].size() != 1) {
        return false;
    }
    stat.state = fields[3][0];
    return parse_field(fields[20], stat.threads) && parse_field(fields[22], stat.start);
}

bool writable_folder(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && access(path.c_str(), W_OK | X_OK) == 0;
}

// The program's own headers lie in the program; it is never unloaded, and cannot be opened by its file name.
bool is_main_program(const Dl_info& module) {
    Dl_info program{};
    const auto* headers = reinterpret_cast<const void*>(getauxval(AT_PHDR));
    return headers != nullptr && dladdr(headers, &program) != 0 && program.dli_fbase == module.dli_fbase;
}

// Any object of this module will do; a variable needs no cast from a function pointer.
const char own_address = 0;

} // namespace

std::string boot_id() {
    std::string id = read_text("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && id.back() == '\n') {
        id.pop_back();
    }
    return id;
}

std::uint64_t time_namespace() {
    struct stat info {};
    return stat("/proc/self/ns/time", &info) == 0 ? info.st_ino : 0;
}

Result<std::uint64_t> process_start_time(std::uint32_t pid) {
    ProcessStat stat;
    if (read_process_stat(pid, stat)) {
        return stat.start;
    }
    return Error{ErrorCode::not_found,
                 "process " + std::to_string(pid) + " is not listed in /proc; check its id and that /proc is mounted"};
}

bool process_alive(std::uint32_t pid, std::uint64_t start, const std::string& boot) {
    if (!boot.empty() && boot != boot_id()) {
        return false;
    }
    ProcessStat stat;
    if (!read_process_stat(pid, stat) || (start != 0 && stat.start != start)) {
        return false;
    }
    // The first thread of a live process may have ended (Z) while others run.
    const bool ended = stat.state == 'X' || stat.state == 'x' || (stat.state == 'Z' && stat.threads <= 1);
    return !ended;
}

std::string command_line() {
    std::string line = read_text("/proc/self/cmdline");
    while (!line.empty() && line.back() == '\0') {
        line.pop_back();
    }
    std::replace(line.begin(), line.end(), '\0', ' ');
    return line;
}

std::string cpu_model() {
    std::istringstream text(read_text("/proc/cpuinfo"));
    for (std::string line; std::getline(text, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || colon + 2 > line.size()) {
            continue;
        }
        if (line.starts_with("model name") || line.starts_with("Model")) {
            return line.substr(colon + 2);
        }
    }
    return "";
}

std::vector<std::pair<std::string, std::string>> cpu_conditions() {
    std::vector<std::pair<std::string, std::string>> conditions;
    const auto first_word = [](const std::string& path) {
        std::istringstream text(read_text(path));
        std::string word;
        text >> word;
        return word;
    };
    const std::string folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
    if (const std::string khz = first_word(folder + "scaling_cur_freq"); khz.size() > 3) {
        conditions.emplace_back("clock.cpu_mhz", khz.substr(0, khz.size() - 3));
    }
    if (const std::string governor = first_word(folder + "scaling_governor"); !governor.empty()) {
        conditions.emplace_back("clock.governor", governor);
    }
    if (const std::string load = first_word("/proc/loadavg"); !load.empty()) {
        conditions.emplace_back("load.average", load);
    }
    return conditions;
}

std::vector<int> usable_cpu_numbers() {
    return cpus_told_by([](std::size_t bytes, cpu_set_t* set) { return sched_getaffinity(0, bytes, set); });
}

unsigned usable_cpus() {
    const std::size_t count = usable_cpu_numbers().size();
    const auto told =
        count != 0 ? static_cast<unsigned>(count) : static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    return std::min(told, cpus_allowed_under(""));
}

void bind_to_cpu(int cpu) noexcept {
    if (cpu < 0) {
        return;
    }
    const auto number = static_cast<std::size_t>(cpu);
    const CpuSet set(CPU_ALLOC(number + 1));
    if (set == nullptr) {
        return;
    }
    const std::size_t bytes = CPU_ALLOC_SIZE(number + 1);
    CPU_ZERO_S(bytes, set.get());
    CPU_SET_S(number, bytes, set.get());
    sched_setaffinity(0, bytes, set.get());
}

std::vector<CpuCache> cpu_caches() {
    std::map<unsigned, std::pair<std::uint64_t, std::set<std::string>>> levels; // bytes of one, CPUs that share it
    for (const int cpu : usable_cpu_numbers()) {
        for (int index = 0; index < 8; ++index) {
            const std::string folder =
                "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
            const std::string type = read_text(folder + "type");
            if (type.empty()) {
                break;
            }
            const unsigned long level = std::strtoul(read_text(folder + "level").c_str(), nullptr, 10);
            const std::uint64_t kib = std::strtoull(read_text(folder + "size").c_str(), nullptr, 10); // "32768K"
            if (type.starts_with("Instruction") || level == 0 || kib == 0) {
                continue;
            }
            auto& [bytes, shared] = levels[static_cast<unsigned>(level)];
            bytes = kib * 1024;
            shared.insert(read_text(folder + "shared_cpu_list"));
        }
    }
    std::vector<CpuCache> caches;
    for (const auto& [level, cache] : levels) {
        caches.push_back({level, cache.first, static_cast<unsigned>(cache.second.size())});
    }
    return caches;
}

std::uint64_t available_memory() { return available_memory_under(""); }

std::uint64_t available_memory_under(const std::string& root) {
    const std::uint64_t of_kernel = field_in(root + "/proc/meminfo", "MemAvailable:") * 1024;
    std::uint64_t room = of_kernel == 0 ? no_limit : of_kernel;
    for_each_group(root, "memory", [&room](const std::string& folder, int version) {
        room = std::min(room, room_in_group(folder, version == 1 ? memory_files_1 : memory_files_2));
    });
    return room == no_limit ? 0 : std::max<std::uint64_t>(room, 1);
}

unsigned cpus_allowed_under(const std::string& root) {
    std::uint64_t cpus = no_limit;
    for_each_group(root, "cpu", [&cpus](const std::string& folder, int version) {
        const CpuQuota time = quota_in_group(folder, version);
        if (time.quota != no_limit && time.period != no_limit && time.period != 0) {
            cpus =
                std::min(cpus, std::max<std::uint64_t>(time.quota / time.period + (time.quota % time.period != 0), 1));
        }
    });
    return static_cast<unsigned>(std::min<std::uint64_t>(cpus, std::numeric_limits<unsigned>::max()));
}

std::uint64_t thread_id() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

std::string thread_name() {
    char name[32] = {};
    return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 ? name : "";
}

void set_thread_name(const char* name) {
    // The kernel refuses more than 15 bytes instead of cutting them.
    pthread_setname_np(pthread_self(), std::string(name).substr(0, 15).c_str());
}

bool kernel_trusts_tsc() {
#if defined(PR_GET_TSC)
    int access_mode = PR_TSC_ENABLE;
    if (prctl(PR_GET_TSC, &access_mode) == 0 && access_mode != PR_TSC_ENABLE) {
        return false; // reading it would kill the process
    }
#endif
    // A counter that the kernel found to drift or to differ between cores is no longer listed.
    std::istringstream list(read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource"));
    bool any = false;
    for (std::string name; list >> name; any = true) {
        if (name == "tsc") {
            return true;
        }
    }
    return !any;
}

const char* environment(const char* name) noexcept { return secure_getenv(name); }

Result<std::string> runtime_dir() {
    const char* session = environment("XDG_RUNTIME_DIR");
    // A relative path would move with the working folder, and the standard forbids it.
    if (session != nullptr && session[0] == '/' && writable_folder(session)) {
        return std::string(session);
    }
    if (writable_folder("/dev/shm")) {
        return std::string("/dev/shm");
    }
    return Error{ErrorCode::unavailable,
                 "neither $XDG_RUNTIME_DIR nor /dev/shm is a writable folder; set XDG_RUNTIME_DIR to one in memory"};
}

Status pin_own_module() {
    Dl_info module{};
    if (dladdr(&own_address, &module) == 0 || module.dli_fname == nullptr) {
        return Error{ErrorCode::failed,
                     "the module that holds plumb cannot be found; do not dlclose it while a profiler lives"};
    }
    if (is_main_program(module)) {
        return {};
    }
    // The handle is kept on purpose: the module then stays, whoever closes it how often.
    if (dlopen(module.dli_fname, RTLD_NOLOAD | RTLD_NODELETE | RTLD_LAZY) != nullptr) {
        return {};
    }
    return Error{ErrorCode::failed,
                 std::string(module.dli_fname) + " cannot be kept in memory; do not dlclose it while a profiler lives"};
}

int current_cpu() noexcept { return sched_getcpu(); }

void leave_cpu(int cpu) noexcept {
    cpu_set_t allowed;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
        CPU_COUNT(&allowed) < 2) {
        return;
    }
    cpu_set_t others = allowed;
    CPU_CLR(static_cast<std::size_t>(cpu), &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0) {
        sched_setaffinity(0, sizeof allowed, &allowed);
    }
}

} // namespace plumb::base
