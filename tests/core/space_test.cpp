// SPDX-License-Identifier: Apache-2.0
// No room, no right, no folder: one clear sentence, and what was recorded before is not lost.
// Small file systems are mounted in a mount namespace of the child's own, which needs root or user namespaces.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <thread>

#include "core/child.hpp"

namespace plumb::core_test {
namespace {

constexpr int cannot_mount = 77;

/// Scopes whose work cannot be compressed: 8 bytes each, whatever the codec does.
void bulky_scopes(Profiler& prof, int count) {
    std::uint64_t seed = 1;
    for (int i = 0; i < count; ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        PLUMB_BRICK(prof, host, norm, bytes(seed >> 11));
    }
}

/// A namespace in which this process may mount; nobody else sees it.
bool own_mounts() {
    const bool isolated = geteuid() == 0 ? unshare(CLONE_NEWNS) == 0 : unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    return isolated && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool mount_small(const std::string& folder, const char* size, unsigned long flags = 0) {
    std::filesystem::create_directories(folder);
    return mount("tmpfs", folder.c_str(), "tmpfs", flags, (std::string("size=") + size).c_str()) == 0;
}

class NoRoom : public CoreTest {
  protected:
    NoRoom() { unsetenv("XDG_RUNTIME_DIR"); }
    ~NoRoom() override { unsetenv("XDG_RUNTIME_DIR"); }
    /// One sentence, about `what`.
    void expect_said(const std::string& what) {
        ASSERT_EQ(said().size(), 1u) << (said().empty() ? "nothing" : said()[1]);
        EXPECT_NE(said()[0].find(what), std::string::npos) << said()[0];
    }
};

#define PLUMB_TEST_SKIP_UNLESS_MOUNTED(end)                                           \
    if ((end).code == cannot_mount) {                                                 \
        GTEST_SKIP() << "needs root or user namespaces to mount a small file system"; \
    }                                                                                 \
    ASSERT_EQ((end).signal, 0);                                                       \
    ASSERT_EQ((end).code, 0)

TEST_F(NoRoom, in_the_rings_folder_rings_lie_in_memory_and_the_report_says_so) {
    const std::string shm = folder_ + "/shm";
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small(shm, "64k")) {
            return cannot_mount;
        }
        setenv("XDG_RUNTIME_DIR", shm.c_str(), 1);
        Profiler prof(config());
        if (!prof.enabled()) {
            return 1;
        }
        scopes(prof, 100);
        return prof.close().ok() && std::filesystem::is_empty(shm) ? 0 : 2;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    expect_said(shm);
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 100u);
    bool noted = false;
    const Result<Report> report = report_recording(path());
    for (const std::string& note : report->notes) {
        noted = noted || note.find("Not crash-safe") != std::string::npos;
    }
    EXPECT_TRUE(noted);
}

TEST_F(NoRoom, for_later_threads_in_the_rings_folder_is_said_once_and_noted) {
    const std::string shm = folder_ + "/shm";
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small(shm, "200k")) {
            return cannot_mount;
        }
        setenv("XDG_RUNTIME_DIR", shm.c_str(), 1);
        Profiler prof(config("ring=64KiB"));
        scopes(prof, 10);
        std::vector<std::thread> threads;
        for (int t = 0; t < 6; ++t) {
            threads.emplace_back([&] {
                scopes(prof, 10);
                (void)prof.flush(60);
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return prof.close().ok() ? 0 : 2;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    expect_said(shm);
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 70u);
    EXPECT_EQ(report_recording(path())->description.at(0).first, "not crash-safe");
}

TEST_F(NoRoom, at_all_for_rings_is_said_once_and_recording_goes_on_in_memory) {
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small("/dev/shm", "1m", MS_RDONLY)) {
            return cannot_mount;
        }
        setenv("XDG_RUNTIME_DIR", (folder_ + "/missing").c_str(), 1);
        Profiler prof(config());
        scopes(prof, 100);
        return prof.enabled() && prof.close().ok() ? 0 : 2;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    expect_said("XDG_RUNTIME_DIR");
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 100u);
}

TEST_F(NoRoom, on_the_disk_is_said_once_and_keeps_what_was_written_and_what_the_ring_holds) {
    // The recording outlives the child's namespace only as a copy.
    const std::string disk = folder_ + "/disk";
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small(disk, "64k")) {
            return cannot_mount;
        }
        Config c = config("ring=64KiB");
        c.out = disk + "/run.plumb";
        Profiler prof(c);
        scopes(prof, 100);
        if (!prof.flush(60).ok()) {
            return 1;
        }
        std::ofstream filler(disk + "/filler", std::ios::binary);
        while (filler.write("x", 1).flush()) {
        }
        bulky_scopes(prof, 1500); // more than fits the last page of the file
        const Status full = prof.flush(60);
        if (full.ok() || full.error().code != ErrorCode::no_space || !prof.enabled()) {
            return 2;
        }
        scopes(prof, 100);
        if (prof.flush(60).ok()) {
            return 3;
        }
        const Held held = read_back(c.out);
        if (!held.problem.empty() || held.scopes.at(norm.id) != 100u) {
            return 4;
        }
        filler.close();
        std::filesystem::remove(disk + "/filler"); // somebody made room
        if (const Status closed = prof.close(); !closed.ok()) {
            std::fprintf(stderr, "%s\n", closed.error().message.c_str());
            return 5;
        }
        std::filesystem::copy(c.out, path());
        return 0;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    expect_said(disk + "/run.plumb");
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 1700u);
}

TEST_F(NoRoom, on_the_disk_to_the_end_keeps_the_ring_and_says_how_to_recover) {
    const std::string disk = folder_ + "/disk";
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small(disk, "64k")) {
            return cannot_mount;
        }
        Config c = config("ring=64KiB");
        c.out = disk + "/run.plumb";
        const ChildEnd recorded = in_child([&] {
            Profiler prof(c);
            (void)prof.flush(60);
            std::ofstream filler(disk + "/filler", std::ios::binary);
            while (filler.write("x", 1).flush()) {
            }
            bulky_scopes(prof, 1500);
            return prof.close().ok() ? 1 : 0;
        });
        if (recorded.code != 0) {
            return 1;
        }
        std::filesystem::remove(disk + "/filler");
        if (!recover_recording(c.out).ok()) {
            return 2;
        }
        return read_back(c.out).scopes.at(norm.id) == 1500u ? 0 : 3;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    ASSERT_EQ(said().size(), 2u);
    EXPECT_NE(said()[1].find("plumb recover"), std::string::npos) << said()[1];
}

TEST_F(NoRoom, a_folder_that_may_not_be_written_is_one_sentence) {
    const std::string folder = folder_ + "/read-only";
    const ChildEnd end = in_child([&] {
        if (!own_mounts() || !mount_small(folder, "64k", MS_RDONLY)) {
            return cannot_mount;
        }
        Config c = config();
        c.out = folder + "/run.plumb";
        Profiler prof(c);
        scopes(prof, 10);
        return !prof.enabled() && !prof.status().ok() ? 0 : 1;
    });
    PLUMB_TEST_SKIP_UNLESS_MOUNTED(end);
    expect_said(folder + "/run.plumb");
}

TEST_F(NoRoom, a_file_size_limit_is_as_a_full_disk) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config("ring=64KiB"));
        scopes(prof, 100);
        if (!prof.flush(60).ok()) {
            return 1;
        }
        const rlimit tight{std::filesystem::file_size(path()), RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &tight);
        scopes(prof, 10);
        if (prof.flush(60).ok()) {
            return 2;
        }
        const rlimit wide{RLIM_INFINITY, RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &wide);
        return prof.close().ok() ? 0 : 3;
    });
    ASSERT_EQ(end.code, 0);
    expect_said(path());
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 110u);
}

TEST_F(NoRoom, a_live_writer_is_never_disturbed_and_the_second_says_who_it_is) {
    const ChildEnd end = in_child([&] {
        Profiler first(config());
        scopes(first, 10);
        const pid_t second = start_child([&] {
            Profiler prof(config());
            return prof.enabled() ? 1 : 0;
        });
        if (wait_for(second).code != 0) {
            return 1;
        }
        scopes(first, 10);
        return first.close().ok() ? 0 : 2;
    });
    ASSERT_EQ(end.code, 0);
    expect_said(path());
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 20u);
}

} // namespace
} // namespace plumb::core_test
