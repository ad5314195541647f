// SPDX-License-Identifier: Apache-2.0
#include "base/os.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>

#include "base/affinity_linux.hpp"
#include "base/control_groups_linux.hpp"
#endif

namespace plumb::base {
namespace {

/// A child that waits to be killed; its main thread carries `name`.
pid_t start_child(const char* name) {
    int ready[2];
    if (pipe(ready) != 0) {
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        set_thread_name(name);
        const char byte = 1;
        if (write(ready[1], &byte, 1) != 1) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

class Environment {
  public:
    explicit Environment(const char* name) : name_(name) {
        if (const char* value = std::getenv(name)) {
            before_ = value;
        }
    }
    ~Environment() {
        if (before_) {
            setenv(name_, before_->c_str(), 1);
        } else {
            unsetenv(name_);
        }
    }

  private:
    const char* name_;
    std::optional<std::string> before_;
};

TEST(Os, this_process_is_alive_under_its_start_time_and_boot) {
    const auto start = process_start_time(process_id());
    ASSERT_TRUE(start.ok()) << start.error().message;
    EXPECT_GT(*start, 0u);
    EXPECT_TRUE(process_alive(process_id(), *start, boot_id()));
    EXPECT_FALSE(process_alive(process_id(), *start + 1, boot_id())) << "a reused pid is another process";
    EXPECT_FALSE(process_alive(process_id(), *start, "another boot"));
    EXPECT_TRUE(process_alive(process_id(), 0, "")) << "what is not known is not compared";
}

TEST(Os, a_command_name_with_blanks_and_parentheses_does_not_move_the_fields) {
    const pid_t child = start_child("x) S 1 (2 3)");
    ASSERT_GT(child, 0);
    const auto own = process_start_time(process_id());
    const auto start = process_start_time(static_cast<std::uint32_t>(child));
    ASSERT_TRUE(own.ok() && start.ok());
    EXPECT_GE(*start, *own);
    EXPECT_LE(*start, *own + 100 * 3600) << "started in this hour, not some other field";
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST(Os, a_killed_process_is_dead_before_and_after_it_is_waited_for) {
    const pid_t child = start_child("victim");
    ASSERT_GT(child, 0);
    const auto pid = static_cast<std::uint32_t>(child);
    const auto start = process_start_time(pid);
    ASSERT_TRUE(start.ok());
    EXPECT_TRUE(process_alive(pid, *start, boot_id()));
    kill(child, SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(process_alive(pid, *start, boot_id())) << "a zombie";
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_FALSE(process_alive(pid, *start, boot_id()));
    EXPECT_EQ(process_start_time(pid).error().code, ErrorCode::not_found);
}

TEST(Os, each_thread_has_its_own_id_and_name) {
    std::uint64_t other_id = 0;
    std::string other_name;
    std::thread other([&] {
        set_thread_name("a name that is far too long");
        other_id = thread_id();
        other_name = thread_name();
    });
    other.join();
    EXPECT_NE(other_id, thread_id());
    EXPECT_NE(other_id, 0u);
#if defined(__linux__)
    EXPECT_EQ(other_name, "a name that is ");
#endif
}

TEST(Os, cpu_time_of_a_thread_grows_with_its_work) {
    const std::int64_t before = thread_cpu_ns();
    volatile unsigned sink = 0;
    for (unsigned i = 0; i < 3'000'000; ++i) {
        sink = sink + i;
    }
    EXPECT_GT(thread_cpu_ns(), before);
}

TEST(Os, the_runtime_folder_is_the_session_folder_where_that_is_writable) {
    const Environment keep("XDG_RUNTIME_DIR");
    const std::string folder = std::filesystem::temp_directory_path() / ("plumb-os-" + std::to_string(getpid()));
    ASSERT_TRUE(std::filesystem::create_directory(folder));
    setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    auto dir = runtime_dir();
    ASSERT_TRUE(dir.ok());
    EXPECT_EQ(*dir, folder);
    std::filesystem::remove(folder);
    for (const char* unusable : {folder.c_str(), "relative", "", "/proc/self/stat"}) {
        setenv("XDG_RUNTIME_DIR", unusable, 1);
        dir = runtime_dir();
        EXPECT_TRUE(!dir.ok() || *dir == "/dev/shm") << unusable;
    }
}

#if defined(__linux__)
TEST(Os, a_program_with_the_rights_of_another_user_has_no_environment) {
    if (getauxval(AT_SECURE) != 0) { // the copy that is started below
        EXPECT_NE(std::getenv("HOME"), nullptr);
        EXPECT_EQ(environment("HOME"), nullptr);
        _exit(HasFailure() ? 1 : 0); // LeakSanitizer may not look into such a process
    }
    const Environment keep("HOME");
    setenv("HOME", "/", 1);
    EXPECT_STREQ(environment("HOME"), "/");
    char folder[] = "/tmp/plumb-os-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const std::string copy = std::string(folder) + "/setuid";
    std::filesystem::copy_file("/proc/self/exe", copy);
    struct statvfs mounted {};
    const bool may = geteuid() == 0 && chown(copy.c_str(), 65534, 65534) == 0 && chmod(copy.c_str(), 04755) == 0 &&
                     chmod(folder, 0755) == 0 && statvfs(folder, &mounted) == 0 && (mounted.f_flag & ST_NOSUID) == 0 &&
                     prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
    int status = 0;
    if (may) {
        const pid_t child = fork();
        if (child == 0) {
            execl(copy.c_str(), "setuid", "--gtest_filter=Os.a_program_with_the_rights_of_another_user*", nullptr);
            _exit(99);
        }
        waitpid(child, &status, 0);
    }
    std::filesystem::remove_all(folder);
    if (!may || WEXITSTATUS(status) == 127) {
        GTEST_SKIP() << "root alone makes a program of another user's, who may not read our libraries";
    }
    EXPECT_EQ(status, 0);
}

TEST(Os, cpus_are_counted_however_many_the_machine_has) {
    std::vector<std::size_t> asked;
    const auto cpus = cpus_told_by([&](std::size_t bytes, cpu_set_t* set) {
        asked.push_back(bytes);
        if (bytes * 8 < 4000) { // as a kernel for 4000 CPUs answers
            errno = EINVAL;
            return -1;
        }
        CPU_SET_S(3, bytes, set);
        CPU_SET_S(3999, bytes, set);
        return 0;
    });
    EXPECT_EQ(cpus, (std::vector<int>{3, 3999}));
    EXPECT_EQ(asked, (std::vector<std::size_t>{128, 256, 512}));
}

TEST(Os, where_nobody_tells_the_cpus_asking_ends) {
    for (const int why : {EPERM, EINVAL}) {
        EXPECT_TRUE(cpus_told_by([&](std::size_t, cpu_set_t*) {
                        errno = why;
                        return -1;
                    }).empty());
    }
}

TEST(Os, a_thread_is_bound_to_one_cpu_of_those_it_may_use) {
    const std::vector<int> cpus = usable_cpu_numbers();
    ASSERT_GE(cpus.size(), usable_cpus()); // fewer where a control group limits their time
    std::vector<int> bound;
    std::thread([&] {
        bind_to_cpu(cpus.back());
        bind_to_cpu(-1);
        bind_to_cpu(1 << 19); // there is none: it stays where it is
        bound = usable_cpu_numbers();
    }).join();
    EXPECT_EQ(bound, std::vector<int>{cpus.back()});
}
#endif

TEST(Os, names_of_machine_and_process_are_known) {
    EXPECT_FALSE(host_name().empty());
    EXPECT_GE(usable_cpus(), 1u);
#if defined(__linux__)
    EXPECT_EQ(boot_id().size(), 36u);
    EXPECT_NE(command_line().find("plumb_base_test"), std::string::npos);
#endif
}

#if defined(__linux__)
TEST(Os, a_thread_that_leaves_a_cpu_may_run_where_it_might_before) {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < 100; ++i) {
        leave_cpu(current_cpu());
        ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
        ASSERT_TRUE(CPU_EQUAL(&before, &after));
    }
    leave_cpu(-1);
    leave_cpu(1 << 20);
    // Where one CPU alone is allowed there is nowhere to go.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(current_cpu()), &one);
    std::thread([&] {
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        leave_cpu(current_cpu());
        cpu_set_t still;
        ASSERT_EQ(sched_getaffinity(0, sizeof still, &still), 0);
        EXPECT_TRUE(CPU_EQUAL(&one, &still));
    }).join();
}
#endif

#if defined(__linux__)
/// A system of these files, by their paths, in a folder that goes with it.
struct FolderSystem {
    explicit FolderSystem(const std::map<std::string, std::string>& files) {
        for (const auto& [name, text] : files) {
            std::filesystem::create_directories(std::filesystem::path(root + name).parent_path());
            std::ofstream(root + name) << text << '\n';
        }
    }
    ~FolderSystem() { std::filesystem::remove_all(root); }
    FolderSystem(const FolderSystem&) = delete;
    FolderSystem& operator=(const FolderSystem&) = delete;
    const std::string root = testing::TempDir() + "plumb-system-" + std::to_string(::getpid());
};

TEST(Os, cpus_are_those_whose_time_every_group_of_the_process_allows) {
    const auto allowed = [](const std::map<std::string, std::string>& files) {
        return cpus_allowed_under(FolderSystem(files).root);
    };
    constexpr unsigned any = std::numeric_limits<unsigned>::max();
    std::map<std::string, std::string> files = {{"/proc/self/cgroup", "0::/pod/container"}};
    EXPECT_EQ(allowed(files), any);
    files["/sys/fs/cgroup/pod/container/cpu.max"] = "max 100000";
    EXPECT_EQ(allowed(files), any) << "no limit";
    files["/sys/fs/cgroup/pod/cpu.max"] = "400000 100000";
    EXPECT_EQ(allowed(files), 4u) << "a group above has one";
    files["/sys/fs/cgroup/pod/container/cpu.max"] = "150000 100000";
    EXPECT_EQ(allowed(files), 2u) << "a part of a CPU runs on one";
    files["/sys/fs/cgroup/pod/container/cpu.max"] = "1000 100000";
    EXPECT_EQ(allowed(files), 1u);
    EXPECT_EQ(allowed({{"/proc/self/cgroup", "0::/not/seen/here"}, {"/sys/fs/cgroup/cpu.max", "200000 100000"}}), 2u)
        << "in a container";
    files = {{"/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/x"},
             {"/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1"},
             {"/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"}};
    EXPECT_EQ(allowed(files), any) << "version 1";
    files["/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us"] = "300000";
    EXPECT_EQ(allowed(files), 3u);
    for (const char* damaged : {"", "x", "100000", "100000 0", "100000 x", "99999999999999999999 1"}) {
        EXPECT_EQ(allowed({{"/proc/self/cgroup", "0::/\n\n:\n4"}, {"/sys/fs/cgroup/cpu.max", damaged}}), any)
            << damaged;
    }
}

TEST(Os, memory_is_available_as_far_as_every_group_of_the_process_allows) {
    constexpr std::uint64_t gib = std::uint64_t{1} << 30;
    const auto available = [](const std::map<std::string, std::string>& files) {
        return available_memory_under(FolderSystem(files).root);
    };
    std::map<std::string, std::string> files = {{"/proc/meminfo", "MemTotal: 99 kB\nMemAvailable:   8388608 kB"}};
    EXPECT_EQ(available(files), 8 * gib);
    const std::map<std::string, std::string> host = files;
    files["/proc/self/cgroup"] = "0::/pod/container";
    files["/sys/fs/cgroup/pod/container/memory.max"] = "max";
    files["/sys/fs/cgroup/pod/container/memory.current"] = "1073741824";
    EXPECT_EQ(available(files), 8 * gib) << "no limit";
    files["/sys/fs/cgroup/pod/memory.max"] = "3221225472";
    files["/sys/fs/cgroup/pod/memory.current"] = "2147483648";
    EXPECT_EQ(available(files), 1 * gib) << "a group above has one";
    files["/sys/fs/cgroup/pod/memory.stat"] = "anon 1073741824\ninactive_file 1073741824";
    EXPECT_EQ(available(files), 2 * gib) << "caches give way";
    files["/sys/fs/cgroup/pod/container/memory.max"] = "1073741824";
    EXPECT_EQ(available(files), 1u) << "none is left, which is not unknown";

    files = host;
    files["/proc/self/cgroup"] = "5:cpu:/x\n4:memory:/not/seen/here\n0::/";
    files["/sys/fs/cgroup/memory/memory.limit_in_bytes"] = "2147483648";
    files["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "1073741824";
    EXPECT_EQ(available(files), 1 * gib) << "version 1, in a container";
    EXPECT_EQ(available({}), 0u) << "unknown";
}
#endif

TEST(Os, the_module_that_holds_this_code_can_be_pinned_twice) {
    EXPECT_TRUE(pin_own_module().ok());
    EXPECT_TRUE(pin_own_module().ok());
}

} // namespace
} // namespace plumb::base
