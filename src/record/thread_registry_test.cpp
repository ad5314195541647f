// SPDX-License-Identifier: Apache-2.0
// Threads that come and go, and the process that forks.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "record/name_registry.hpp"
#include "record/recorder_testing.hpp"
#include "record/thread_registry.hpp"

namespace plumb::record {
namespace {

TEST(Threads, record_concurrently_into_rings_of_their_own) {
    TestRecorder recorder;
    constexpr int threads = 8;
    constexpr std::uint64_t each = 500;
    std::atomic<int> together{0};
    std::vector<std::thread> list;
    for (int t = 0; t < threads; ++t) {
        list.emplace_back([&] {
            ++together;
            yield_until([&] { return together == threads; });
            for (std::uint64_t i = 0; i < each; ++i) {
                recorder.record(norm, i);
            }
        });
    }
    for (std::thread& thread : list) {
        thread.join();
    }
    const auto tracks = recorder.take_tracks();
    EXPECT_EQ(tracks.size(), static_cast<std::size_t>(threads));
    for (const auto& [track, records] : tracks) {
        ASSERT_EQ(records.size(), each);
        for (std::uint64_t i = 0; i < each; ++i) {
            EXPECT_EQ(records[i].first, i);
        }
    }
}

// Threads record, toggle and drain at once; under ThreadSanitizer this is the test that no state is shared unguarded.
TEST(Threads, T5_recording_toggling_and_draining_at_once_lose_nothing_uncounted) {
    TestRecorder recorder(TestOptions{true, 4096, "", {}});
    constexpr int threads = 4;
    constexpr std::uint64_t each = 20000;
    std::atomic<int> running{threads};
    std::vector<std::thread> list;
    for (int t = 0; t < threads; ++t) {
        list.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < each; ++i) {
                PLUMB_BRICK(recorder, host, norm, bytes(i & 1));
                PLUMB_LAP(recorder, host, Brick::rope_embedding);
                recorder.record(norm, static_cast<std::uint64_t>(t));
            }
            running.fetch_sub(1);
        });
    }
    std::uint64_t labels = 0;
    const auto take = [&] {
        for (const auto& [track, records] : recorder.take_tracks()) {
            for (const Record& record : records) {
                labels += kind_of(record) == RecordKind::label ? 1 : 0;
                ASSERT_NE(kind_of(record), RecordKind::empty);
                if (kind_of(record) == RecordKind::scope) {
                    ASSERT_LT(payload_of(record), std::uint64_t{1} << 40);
                }
            }
        }
    };
    int round = 0;
    while (running.load() != 0) {
        take();
        if (++round % 64 == 0) {
            recorder.off();
            recorder.on();
        }
    }
    for (std::thread& thread : list) {
        thread.join();
    }
    take();
    EXPECT_GT(labels, 0u);
    EXPECT_LE(labels, threads * each);
    // A lap may find itself without a scope: the scope began while recording was off.
    EXPECT_EQ(recorder.drops(Drop::bad_token) + recorder.drops(Drop::too_deep), 0u);
}

TEST(Threads, that_end_with_records_in_their_ring_lose_none) {
    TestRecorder recorder;
    std::thread([&] {
        for (int i = 0; i < 100; ++i) {
            PLUMB_BRICK(recorder, host, norm);
        }
    }).join();
    EXPECT_EQ(recorder.take().size(), 100u);
}

struct RecordsWhenDestroyed {
    TestRecorder* recorder = nullptr;
    ~RecordsWhenDestroyed() {
        if (recorder != nullptr) {
            PLUMB_BRICK(*recorder, host, norm);
        }
    }
};

TEST(Threads, may_record_from_thread_local_destructors) {
    TestRecorder recorder;
    std::thread([&] {
        thread_local RecordsWhenDestroyed last;
        last.recorder = &recorder; // before the thread has a ring
        PLUMB_BRICK(recorder, host, Brick::attention);
    }).join();
    EXPECT_EQ(recorder.take(), (Words{"scope 9 @1000 +0", "scope 1 @1000 +0"}));
}

TEST(Threads, what_is_open_when_they_end_is_counted) {
    TestRecorder recorder;
    std::thread([&] {
        recorder.push_scope(host, norm);
        recorder.push_scope(host, Brick::attention);
        recorder.pop_scope();
    }).join();
    EXPECT_EQ(recorder.drops(Drop::thread_exit), 1u);
    EXPECT_EQ(recorder.take(), Words{"scope 9 @1000 +0"});
}

TEST(Threads, recording_after_their_ring_was_given_up_is_counted) {
    TestRecorder recorder;
    static TestRecorder* late = nullptr;
    late = &recorder;
    std::thread([&] {
        recorder.record(norm, 1); // our key comes first in order of destruction
        pthread_key_t key{};
        ASSERT_EQ(pthread_key_create(&key, [](void*) { late->record(norm, 2); }), 0);
        pthread_setspecific(key, &recorder);
    }).join();
    EXPECT_EQ(recorder.take(), Words{"label 1=1"});
    EXPECT_EQ(recorder.rings().drops_without_ring.load(), 1u);
}

class Listener final : public ForkListener {
  public:
    explicit Listener(RingSet& rings) : rings_(rings) { add_fork_listener(*this); }
    ~Listener() override { remove_fork_listener(*this); }
    void before_fork() noexcept override { rings_.before_fork(); }
    void in_parent() noexcept override { rings_.in_parent(); }
    void in_child() noexcept override { rings_.in_child(); }

  private:
    RingSet& rings_;
};

// What was open when the process forked ends in both; only the parent's end may reach the parent's ring.
TEST(Fork, scopes_open_across_it_end_in_the_child_without_touching_the_parents_ring) {
    TestRecorder recorder(TestOptions{false, 4096, "/dev/shm", {}});
    ASSERT_NE(recorder.rings().file_path(), "");
    const Listener listener(recorder.rings());
    detail::ThreadRecorder* pen = recorder.thread();
    const auto ends_in_both = [&] {
        PLUMB_STEP(recorder, host, Phase::decode);
        PLUMB_LAYER(recorder, 1);
        PLUMB_BRICK(recorder, host, norm, bytes(4));
        PLUMB_LAP(recorder, host, Brick::rope_embedding);
        const pid_t child = fork();
        if (child == 0) {
            recorder.off(); // as the session does
        }
        return child;
    };
    const pid_t child = ends_in_both();
    if (child == 0) {
        for (int i = 0; i < 1000; ++i) {
            pen->push(1, pack(RecordKind::label, 1));
        }
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(recorder.all_drops(), 0u);
    EXPECT_EQ(recorder.take().size(), 10u);
    recorder.rings().remove_file();
}

TEST(Fork, in_the_middle_of_interning_and_attaching_leaves_the_child_no_locked_lock) {
    TestRecorder recorder;
    const Listener listener(recorder.rings());
    std::atomic<bool> stop{false};
    std::thread interning([&] {
        for (std::uint64_t i = 0; !stop; ++i) {
            (void)intern_name("fork test " + std::to_string(i % 50), Category::other);
        }
    });
    std::thread attaching([&] {
        while (!stop) {
            std::thread([&] { recorder.record(norm, 1); }).join();
            (void)recorder.take();
        }
    });
    for (int i = 0; i < 30; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20); // a lock left locked would hang here
            _exit(intern_name("rms_norm", Category::other).id == norm.id ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    stop = true;
    interning.join();
    attaching.join();
}

} // namespace
} // namespace plumb::record
