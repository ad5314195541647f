// SPDX-License-Identifier: Apache-2.0
// fork and exec in a recording process: the parent's recording is the parent's.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "core/child.hpp"
#include "support/sanitizers.hpp"

namespace plumb::core_test {
namespace {

class Forked : public CoreTest {};

TEST_F(Forked, child_is_off_and_says_why_and_the_parent_goes_on) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config());
        scopes(prof, 10);
        const pid_t child = fork();
        if (child == 0) {
            const bool off = !prof.enabled() && prof.status().error().code == ErrorCode::unavailable &&
                             prof.status().error().message.find("fork=own") != std::string::npos && prof.path().empty();
            scopes(prof, 1000);
            (void)prof.flush();
            (void)prof.close();
            _exit(off ? 0 : 1);
        }
        if (wait_for(child).code != 0) {
            return 2;
        }
        scopes(prof, 5);
        return prof.close().ok() ? 0 : 3;
    });
    EXPECT_EQ(end.code, 0);
    const Held held = read_back(path());
    EXPECT_EQ(held.problem, "");
    EXPECT_EQ(held.scopes.at(norm.id), 15u);
    EXPECT_EQ(held.drops, 0u);
    EXPECT_EQ(said(), std::vector<std::string>{}) << "asked for by nobody, so nothing is said; status() tells";
}

TEST_F(Forked, child_destroys_its_copy_without_harm_to_the_parents_file) {
    const ChildEnd end = in_child([&] {
        auto prof = std::make_unique<Profiler>(config());
        scopes(*prof, 10);
        const pid_t child = fork();
        if (child == 0) {
            prof.reset();
            _exit(0);
        }
        if (wait_for(child).code != 0) {
            return 2;
        }
        scopes(*prof, 1);
        return prof->flush().ok() && std::filesystem::exists(path()) ? 0 : 1;
    });
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 11u);
}

TEST_F(Forked, child_with_fork_own_has_a_recording_of_its_own) {
    if (sanitized) {
        GTEST_SKIP()
            << "the locks of a sanitizer do not survive the fork of a threaded process: a new thread there may hang";
    }
    Config own = config();
    own.follow_fork = true;
    own.out = folder_ + "/run-%p.plumb";
    std::string children;
    const ChildEnd end = in_child([&] {
        Profiler prof(own);
        scopes(prof, 10);
        const pid_t child = fork();
        if (child == 0) {
            if (!prof.enabled() || !prof.status().ok()) {
                _exit(1);
            }
            scopes(prof, 3, Brick::attention);
            std::thread([&] { scopes(prof, 4, Brick::attention); }).join();
            _exit(prof.close().ok() ? 0 : 2);
        }
        if (wait_for(child).code != 0) {
            return 2;
        }
        scopes(prof, 5);
        return prof.close().ok() ? 0 : 3;
    });
    EXPECT_EQ(end.code, 0);
    std::map<std::uint16_t, std::uint64_t> all;
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        if (entry.path().extension() != ".plumb") {
            continue;
        }
        ++files;
        const Held held = read_back(entry.path());
        EXPECT_EQ(held.problem, "");
        EXPECT_EQ(held.scopes.size(), 1u) << "no file holds both";
        for (const auto& [name, count] : held.scopes) {
            all[name] += count;
        }
    }
    EXPECT_EQ(files, 2);
    EXPECT_EQ(all[norm.id], 15u);
    EXPECT_EQ(all[Name(Brick::attention).id], 7u);
}

TEST_F(Forked, a_profiler_that_is_off_at_the_fork_may_be_enabled_in_the_child_if_it_owns_its_file) {
    if (sanitized) {
        GTEST_SKIP()
            << "the locks of a sanitizer do not survive the fork of a threaded process: a new thread there may hang";
    }
    Config own = config();
    own.follow_fork = true;
    own.out = folder_ + "/run-%p.plumb";
    const ChildEnd end = in_child([&] {
        Profiler prof(own);
        prof.disable();
        const pid_t child = fork();
        if (child == 0) {
            if (prof.enabled() || !prof.enable().ok()) {
                _exit(1);
            }
            scopes(prof, 2);
            _exit(prof.close().ok() ? 0 : 2);
        }
        return wait_for(child).code;
    });
    EXPECT_EQ(end.code, 0);
}

TEST_F(Forked, in_the_middle_of_other_threads_scopes_loses_nothing_of_the_parent_and_hangs_no_child) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config("ring=4MiB"));
        std::atomic<bool> stop{false};
        std::atomic<std::uint64_t> counted{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&] {
                std::uint64_t mine = 0;
                while (!stop) {
                    scopes(prof, 10);
                    mine += 10;
                    prof.describe("n", std::to_string(mine));
                    spin(100000);
                }
                counted += mine;
            });
        }
        for (int i = 0; i < 40; ++i) {
            const pid_t child = start_child([&] {
                scopes(prof, 10);
                (void)prof.intern("in a child");
                prof.describe("child", "yes");
                return prof.enabled() ? 1 : 0;
            });
            if (wait_for(child).code != 0) {
                _exit(1);
            }
            (void)prof.flush(60);
        }
        stop = true;
        for (std::thread& thread : threads) {
            thread.join();
        }
        const Result<Report> report = prof.snapshot();
        std::uint64_t lost = 0;
        for (const LossRow& row : report->losses) {
            lost += row.count;
        }
        return report->scopes + lost >= counted && report->scopes <= counted ? 0 : 3;
    });
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(read_back(path()).problem, "");
}

TEST_F(Forked, exec_of_another_program_leaves_the_recording_alone) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config());
        scopes(prof, 10);
        if (std::system("exit 7") != 7 << 8) {
            return 1;
        }
        scopes(prof, 10);
        return prof.close().ok() ? 0 : 2;
    });
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 20u);
}

TEST_F(Forked, a_process_that_execs_itself_away_leaves_what_it_recorded) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config());
        scopes(prof, 10);
        execl("/bin/true", "true", static_cast<char*>(nullptr));
        return 1;
    });
    EXPECT_EQ(end.code, 0);
    const Held held = read_back(path());
    EXPECT_EQ(held.problem, "");
    EXPECT_EQ(held.scopes.at(norm.id), 10u) << "from the ring: exec runs no destructor";
}

// Rings of a parent that ended must not live on because a child still runs.
TEST_F(Forked, child_holds_none_of_the_parents_ring) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config("ring=4MiB"));
        scopes(prof, 1);
        const pid_t child = fork();
        if (child == 0) {
            std::ifstream maps("/proc/self/maps");
            for (std::string line; std::getline(maps, line);) {
                if (line.find(".ring") != std::string::npos) {
                    _exit(1);
                }
            }
            for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
                std::error_code ignored;
                const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
                if (target.find(".ring") != std::string::npos || target.find("run.plumb") != std::string::npos) {
                    _exit(2);
                }
            }
            _exit(0);
        }
        return wait_for(child).code;
    });
    EXPECT_EQ(end.code, 0);
}

} // namespace
} // namespace plumb::core_test
