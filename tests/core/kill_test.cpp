// SPDX-License-Identifier: Apache-2.0
// SIGKILL at any moment: every finished scope is in the recording or its ring, none twice.
// PLUMB_KILL_ROUNDS=1000 runs more rounds; PLUMB_KILL_SEED repeats others.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <random>
#include <thread>

#include "core/child.hpp"
#include "drain/drain.hpp"
#include "record/recorder_access.hpp"

namespace plumb::core_test {
namespace {

constexpr unsigned recording_threads = 4;

struct alignas(64) Counter {
    std::atomic<std::uint64_t> scopes{0};
};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

Name name_of(unsigned thread) { return Name(static_cast<std::uint16_t>(thread + 1)); }

/// Records until it is killed. In busy rounds chunks are written all the time.
template <class Prof>
int record_for_ever(Prof& prof, Counter* counters, bool busy) {
    std::vector<std::thread> list;
    for (unsigned t = 0; t < recording_threads; ++t) {
        list.emplace_back([&prof, counter = &counters[t], t] {
            for (std::uint64_t n = 1;; ++n) {
                {
                    PLUMB_BRICK(prof, host, name_of(t));
                }
                counter->scopes.store(n, std::memory_order_release);
                spin(800);
            }
        });
    }
    while (true) {
        if (busy) {
            (void)prof.flush(60);
        } else {
            pause();
        }
    }
    return 0;
}

struct Tally {
    std::uint64_t rounds = 0, scopes = 0, drops = 0;
};

/// A recorder whose disk takes a part of one write, and then the process is gone.
class TornRecorder : public Recorder {
  public:
    TornRecorder(const std::string& path, const std::string& rings_folder, int last_write, double share)
        : rings_(record::RingOptions{std::uint64_t{4} << 20, rings_folder, path, {1, 2}}) {
        recording::Metadata metadata;
        metadata.recording_id[0] = 1;
        metadata.recording_id[1] = 2;
        metadata.ring_path = rings_.file_path();
        metadata.pid = static_cast<std::uint32_t>(getpid());
        recording::WriterOptions options;
        options.path = path;
        options.write = [last_write, share, n = 0](int file, const void* data, std::size_t size,
                                                   std::uint64_t offset) mutable -> std::int64_t {
            if (++n == last_write) {
                const auto part = static_cast<std::size_t>(static_cast<double>(size) * share);
                (void)!pwrite(file, data, part, static_cast<off_t>(offset));
                kill(getpid(), SIGKILL);
            }
            return pwrite(file, data, size, static_cast<off_t>(offset));
        };
        writer_ = *recording::Writer::create(options, metadata);
        drain::DrainOptions how;
        how.clock = clock::machine_clock();
        drain_ = std::make_unique<drain::Drain>(rings_, *writer_, std::move(how));
        RecorderAccess::prepare(*this, StampOptions{});
        RecorderAccess::connect(*this, &rings_);
        RecorderAccess::set_enabled(*this, true);
        (void)drain_->start();
    }
    Status flush(int seconds) { return drain_->flush(std::chrono::seconds(seconds)); }

  private:
    record::RingSet rings_;
    std::unique_ptr<recording::Writer> writer_;
    std::unique_ptr<drain::Drain> drain_;
};

class Killed : public CoreTest {
  protected:
    Killed() {
        void* memory = mmap(nullptr, sizeof(Counter) * recording_threads, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        counters_ = static_cast<Counter*>(memory);
    }
    ~Killed() override { munmap(counters_, sizeof(Counter) * recording_threads); }

    void count_anew() {
        for (unsigned t = 0; t < recording_threads; ++t) {
            new (&counters_[t]) Counter;
        }
    }
    void round(std::mt19937_64& random, Tally& tally) {
        count_anew();
        const bool busy = random() % 2 == 0;
        const unsigned watched = static_cast<unsigned>(random() % recording_threads);
        const std::uint64_t target = 1 + random() % (busy ? 3000 : 20000);
        const Config recorded = config("ring=4MiB");
        const pid_t child = start_child([&] {
            Profiler prof(recorded);
            return record_for_ever(prof, counters_, busy);
        });
        while (counters_[watched].scopes.load(std::memory_order_acquire) < target) {
            sched_yield();
        }
        kill(child, SIGKILL);
        ASSERT_EQ(wait_for(child).signal, SIGKILL);
        check(read_back(path()), tally);
        if (tally.rounds % 5 == 0) {
            const Result<Answer> recovered = recover_recording(path());
            ASSERT_TRUE(recovered.ok()) << recovered.error().message;
            Tally again;
            check(read_back(path()), again);
        }
        ++tally.rounds;
        remove_traces();
    }
    void check(const Held& held, Tally& tally) {
        ASSERT_EQ(held.problem, "");
        std::uint64_t counted = 0;
        std::uint64_t kept = 0;
        for (unsigned t = 0; t < recording_threads; ++t) {
            const std::uint64_t counter = counters_[t].scopes.load(std::memory_order_acquire);
            const auto found = held.scopes.find(name_of(t).id);
            const std::uint64_t scopes = found == held.scopes.end() ? 0 : found->second;
            EXPECT_LE(scopes, counter + 1) << "thread " << t;
            if (held.drops == 0) {
                EXPECT_GE(scopes, counter) << "thread " << t;
            }
            counted += counter;
            kept += scopes;
        }
        EXPECT_GE(kept + held.drops, counted);
        tally.scopes += kept;
        tally.drops += held.drops;
    }
    void remove_traces() {
        unlink(path().c_str());
        for (const auto& entry : std::filesystem::directory_iterator(rings_folder_)) {
            std::filesystem::remove(entry.path());
        }
    }

    Counter* counters_;
};

TEST_F(Killed, at_any_moment_no_finished_scope_is_lost_and_none_is_there_twice) {
    const std::uint64_t rounds = setting("PLUMB_KILL_ROUNDS", 60);
    const std::uint64_t seed = setting("PLUMB_KILL_SEED", 20260101);
    std::mt19937_64 random(seed);
    Tally tally;
    for (std::uint64_t i = 0; i < rounds && !HasFailure(); ++i) {
        SCOPED_TRACE("round " + std::to_string(i) + " of seed " + std::to_string(seed));
        round(random, tally);
    }
    std::printf("%" PRIu64 " kills: %" PRIu64 " scopes kept, %" PRIu64 " dropped and counted\n", tally.rounds,
                tally.scopes, tally.drops);
    EXPECT_EQ(said(), std::vector<std::string>{});
}

// The write itself is cut at any byte: what it held is still in the ring, and is there once.
TEST_F(Killed, in_the_middle_of_a_write_loses_nothing_and_repeats_nothing) {
    std::mt19937_64 random(11);
    Tally tally;
    for (int i = 0; i < 40 && !HasFailure(); ++i) {
        SCOPED_TRACE("round " + std::to_string(i));
        count_anew();
        const int last_write = 40 + static_cast<int>(random() % 60); // the first ones are names
        const double share = static_cast<double>(random() % 1001) / 1000;
        const pid_t child = start_child([&] {
            TornRecorder recorder(path(), rings_folder_, last_write, share);
            return record_for_ever(recorder, counters_, true);
        });
        ASSERT_EQ(wait_for(child).signal, SIGKILL);
        check(read_back(path()), tally);
        remove_traces();
    }
    EXPECT_GT(tally.scopes, 0u);
}

// The drain has seen hardly any of these names.
TEST_F(Killed, leaves_every_name_that_it_met) {
    constexpr int names = 1000;
    const auto word = [](int i) {
        return "name of a killed process, the " + std::to_string(i) + "th";
    };
    const Config recorded = config();
    const pid_t child = start_child([&] {
        Profiler prof(recorded);
        for (int i = 0; i < names; ++i) {
            const Name name = prof.intern(word(i), Category::moe);
            PLUMB_BRICK(prof, host, name);
        }
        return kill(getpid(), SIGKILL);
    });
    ASSERT_EQ(wait_for(child).signal, SIGKILL);
    const auto check = [&] {
        std::map<std::string, std::uint64_t> scopes;
        Held held = read_back(path());
        EXPECT_EQ(held.problem, "");
        const Result<recording::Reader> reader = recording::Reader::open(path());
        for (const recording::NameInfo& name : reader->names()) {
            scopes[name.name] = name.category == Category::moe ? held.scopes[name.id] : 0;
        }
        for (int i = 0; i < names; ++i) {
            ASSERT_EQ(scopes[word(i)], 1u) << word(i);
        }
    };
    check();
    ASSERT_TRUE(recover_recording(path()).ok());
    EXPECT_TRUE(std::filesystem::is_empty(rings_folder_));
    check();
}

// Also while the recording is being opened: there is none yet, or it can be read.
TEST_F(Killed, while_it_opens_its_recording_leaves_none_or_a_readable_one) {
    std::mt19937_64 random(7);
    int opened = 0;
    std::uint64_t patience = 32; // follows how long a child takes here until it has opened: half of them should have
    for (int i = 0; i < 40; ++i) {
        const Config recorded = config();
        const pid_t child = start_child([&] {
            Profiler prof(recorded);
            return record_for_ever(prof, counters_, false);
        });
        for (std::uint64_t n = random() % (2 * patience); n > 0; --n) {
            usleep(100); // only to let the child come a random part of its way
        }
        kill(child, SIGKILL);
        (void)wait_for(child);
        if (std::filesystem::exists(path())) {
            ++opened;
            EXPECT_EQ(read_back(path()).problem, "");
            patience = patience / 2 + 1;
        } else {
            patience = std::min<std::uint64_t>(2 * patience, 10'000);
        }
        remove_traces();
    }
    std::printf("%d of 40 had opened their recording\n", opened);
    EXPECT_GT(opened, 0);
    EXPECT_LT(opened, 40) << "some are killed before";
}

} // namespace
} // namespace plumb::core_test
