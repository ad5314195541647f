// SPDX-License-Identifier: Apache-2.0
// Every way a process may end: what was recorded stays readable.
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "core/child.hpp"

namespace plumb::core_test {
namespace {

class Ended : public CoreTest {
  protected:
    void expect_ten_scopes(bool finished) {
        const Held held = read_back(path());
        EXPECT_EQ(held.problem, "");
        EXPECT_EQ(held.scopes.at(norm.id), 10u);
        EXPECT_EQ(recording::Reader::open(path())->closed(), finished);
        EXPECT_TRUE(report_recording(path()).ok());
        EXPECT_EQ(said(), std::vector<std::string>{});
    }
};

TEST_F(Ended, by_exit_with_a_static_profiler_finishes_the_recording) {
    const ChildEnd end = in_child([&] {
        static Profiler prof(config());
        scopes(prof, 10);
        std::exit(3);
        return 0;
    });
    EXPECT_EQ(end.code, 3);
    expect_ten_scopes(true);
}

TEST_F(Ended, by_exit_while_other_threads_record_into_a_static_profiler_does_no_harm) {
    const ChildEnd end = in_child([&] {
        static Profiler prof(config());
        scopes(prof, 10);
        static std::atomic<int> running{0};
        for (int t = 0; t < 3; ++t) {
            std::thread([] {
                running.fetch_add(1);
                while (true) {
                    PLUMB_BRICK(prof, host, Brick::attention);
                }
            }).detach();
        }
        while (running.load() < 3) {
            std::this_thread::yield();
        }
        std::exit(3);
        return 0;
    });
    EXPECT_EQ(end.signal, 0);
    EXPECT_EQ(end.code, 3);
    EXPECT_EQ(read_back(path()).problem, "");
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 10u);
}

TEST_F(Ended, by_exit_with_a_profiler_nobody_destroys_leaves_the_ring_to_the_reader) {
    const ChildEnd end = in_child([&] {
        auto* prof = new Profiler(config());
        scopes(*prof, 10);
        std::exit(3);
        return 0;
    });
#if !defined(__SANITIZE_ADDRESS__)
    EXPECT_EQ(end.code, 3);
#else
    (void)end; // the leak that this is about is reported
#endif
    expect_ten_scopes(false);
}

TEST_F(Ended, by_underscore_exit_is_safe_and_loses_nothing) {
    const ChildEnd end = in_child([&] {
        Profiler prof(config());
        scopes(prof, 10);
        _exit(4);
        return 0;
    });
    EXPECT_EQ(end.code, 4);
    expect_ten_scopes(false);
}

TEST_F(Ended, by_control_c_leaves_a_readable_recording) {
    const ChildEnd end = in_child([&] {
        signal(SIGINT, SIG_DFL);
        Profiler prof(config());
        scopes(prof, 10);
        raise(SIGINT);
        return 0;
    });
    EXPECT_EQ(end.signal, SIGINT);
    expect_ten_scopes(false);
}

TEST_F(Ended, by_a_crash_leaves_a_readable_recording) {
    const ChildEnd end = in_child([&] {
        signal(SIGABRT, SIG_DFL);
        Profiler prof(config());
        scopes(prof, 10);
        abort();
        return 0;
    });
    EXPECT_EQ(end.signal, SIGABRT);
    expect_ten_scopes(false);
}

TEST_F(Ended, signals_are_handled_by_the_programs_threads_never_by_ours) {
    const ChildEnd end = in_child([&] {
        static std::atomic<pid_t> handler{0};
        struct sigaction action = {};
        action.sa_handler = [](int) {
            handler = gettid();
        };
        sigaction(SIGUSR1, &action, nullptr);
        Profiler prof(config());
        scopes(prof, 10);
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &blocked, nullptr); // ours would be the only other thread
        kill(getpid(), SIGUSR1);
        (void)prof.flush(60);
        if (handler != 0) {
            return 1;
        }
        pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
        return handler == getpid() ? 0 : 2;
    });
    EXPECT_EQ(end.code, 0);
}

TEST_F(Ended, a_ring_left_behind_is_folded_in_by_recover_and_removed) {
    (void)in_child([&] {
        Profiler prof(config());
        scopes(prof, 10);
        _exit(0);
        return 0;
    });
    const std::string ring = recording::Reader::open(path())->metadata().ring_path;
    ASSERT_TRUE(std::filesystem::exists(ring));
    const Result<Answer> recovered = recover_recording(path());
    ASSERT_TRUE(recovered.ok()) << recovered.error().message;
    EXPECT_GE(std::stoul(recovered->text()), 10u) << recovered->text();
    EXPECT_FALSE(std::filesystem::exists(ring));
    EXPECT_EQ(read_back(path()).scopes.at(norm.id), 10u);
}

TEST_F(Ended, a_name_interned_before_a_kill_is_known_to_the_reader) {
    (void)in_child([&] {
        Profiler prof(config());
        const Name mine = prof.intern("my own operation", Category::ffn);
        { PLUMB_BRICK(prof, host, mine); }
        (void)prof.flush(60);
        { PLUMB_BRICK(prof, host, mine); }
        _exit(0);
        return 0;
    });
    const Result<Report> report = report_recording(path());
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->bricks.size(), 1u);
    EXPECT_EQ(report->bricks[0].key.name, "my own operation");
    EXPECT_EQ(report->bricks[0].time.count, 2u);
}

} // namespace
} // namespace plumb::core_test
