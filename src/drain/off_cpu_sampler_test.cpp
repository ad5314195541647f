// SPDX-License-Identifier: Apache-2.0
// A busy loop beside a thread is time in the run queue, a sleep is blocked time: by the kernel's own counts, beside those that the
// threads read themselves.
#include "drain/off_cpu_sampler.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/os.hpp"

namespace plumb::drain {
namespace {

using base::not_counted;
using base::ThreadTimes;
using Clock = std::chrono::steady_clock;

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

struct Lived {
    std::int64_t wall_ns = 0, cpu_ns = 0;
    ThreadTimes before, after;
    [[nodiscard]] double run_queue() const { return static_cast<double>(after.waited_ns - before.waited_ns); }
    [[nodiscard]] double blocked() const {
        return static_cast<double>(wall_ns) - static_cast<double>(after.run_ns - before.run_ns) - run_queue();
    }
};

/// Both within 1 ms, however busy the machine is: what lies between two such moments is the same to the kernel and to us.
void read_together(const base::ThreadTimesReader& reader, ThreadTimes& times, std::int64_t& wall, std::int64_t& cpu) {
    for (int i = 0; i < 1'000; ++i) {
        const std::int64_t begin = now_ns();
        reader.read(times, true);
        cpu = base::thread_cpu_ns();
        wall = now_ns();
        if (wall - begin < 1'000'000) {
            return;
        }
    }
    ADD_FAILURE() << "none of a thousand readings took less than a millisecond";
}

/// What the calling thread lived through, by the kernel and by itself.
template <class Body>
Lived lived(Body&& body) {
    const base::ThreadTimesReader reader(base::thread_id());
    Lived all;
    std::int64_t wall = 0, cpu = 0;
    read_together(reader, all.before, wall, cpu);
    body();
    read_together(reader, all.after, all.wall_ns, all.cpu_ns);
    all.wall_ns -= wall;
    all.cpu_ns -= cpu;
    return all;
}

bool is_kept(const Lived& all) { return all.after.run_ns != not_counted && all.after.run_ns != 0; }

TEST(OffCpuSampler, a_busy_loop_on_the_same_cpu_appears_as_run_queue_wait) {
    const std::vector<int> cpus = base::usable_cpu_numbers();
    ASSERT_FALSE(cpus.empty());
    std::atomic<bool> stop{false}, runs{false};
    std::thread hog([&] {
        base::bind_to_cpu(cpus[0]);
        runs = true;
        while (!stop.load(std::memory_order_relaxed)) {
        }
    });
    Lived all;
    std::thread worker([&] {
        base::bind_to_cpu(cpus[0]);
        while (!runs) {
            std::this_thread::yield();
        }
        all = lived([] {
            const std::int64_t until =
                base::thread_cpu_ns() + 100'000'000; // of its own CPU time: however busy the machine is
            while (base::thread_cpu_ns() < until) {
            }
        });
    });
    worker.join();
    stop = true;
    hog.join();
    if (!is_kept(all)) {
        GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    const double truth = static_cast<double>(all.wall_ns - all.cpu_ns); // it never blocks
    EXPECT_GT(truth, 0.2 * static_cast<double>(all.wall_ns)) << "the busy loop had its share";
    EXPECT_NEAR(all.run_queue(), truth, 0.1 * truth);
}

TEST(OffCpuSampler, a_sleep_appears_as_blocked) {
    std::int64_t slept = 0; // by our own clock: a timer comes late where the machine is busy
    const Lived all = lived([&slept] {
        for (int i = 0; i < 10; ++i) {
            const std::int64_t begin = now_ns();
            (void)poll(nullptr, 0, 30);
            slept += now_ns() - begin;
        }
    });
    if (!is_kept(all)) {
        GTEST_SKIP() << "this kernel keeps no schedstat";
    }
    EXPECT_GE(all.blocked(), 270e6);
    EXPECT_LE(all.blocked(), static_cast<double>(slept) + 5e6);
}

TEST(OffCpuSampler, the_process_has_faults_and_switches) {
    const base::ProcessTimesReader reader;
    const base::ProcessTimes before = reader.read();
    const std::size_t size = std::size_t{64} << 12;
    std::vector<char> fresh(size, 1);
    (void)poll(nullptr, 0, 1);
    const base::ProcessTimes after = reader.read();
    ASSERT_NE(after.minor_faults, not_counted);
    EXPECT_GE(after.minor_faults, before.minor_faults);
    EXPECT_GT(after.voluntary_switches, before.voluntary_switches);
    EXPECT_GE(after.stolen_ns, before.stolen_ns);
}

TEST(OffCpuSampler, a_thread_that_is_not_there_has_no_times) {
    const base::ThreadTimesReader reader(0x7fffffff);
    ThreadTimes times;
    reader.read(times, true);
    EXPECT_EQ(times.run_ns, not_counted);
    EXPECT_EQ(times.waited_ns, not_counted);
    EXPECT_EQ(times.migrations, not_counted);
}

} // namespace
} // namespace plumb::drain
