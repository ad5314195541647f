// SPDX-License-Identifier: Apache-2.0
// From rings into a recording: all of it, once, in order, also when the disk fills up, threads end, or time is short.
#include "drain/drain.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "drain/hand_timer_testing.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_testing.hpp"
#include "recording/recorded_run.hpp"

namespace plumb::drain {
namespace {

using record::TestOptions;
using record::TestRecorder;
using record::Words;
using record::words;

constexpr Name norm = Brick::rms_norm;
constexpr std::chrono::seconds long_enough(60);

/// A disk that fills up and empties when the test says so.
class Disk {
  public:
    recording::WriteFunction function() {
        return [this](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
            if (full) {
                ++refused;
                errno = ENOSPC;
                return -1;
            }
            return pwrite(file, data, size, static_cast<off_t>(offset));
        };
    }
    std::atomic<bool> full{false};
    std::atomic<int> refused{0};
    std::atomic<bool> hang{false}; // the next write says entered, and goes on when it may
    std::atomic<bool> entered{false};
    std::atomic<bool> may_go{false};
};

class DrainTest : public testing::Test {
  protected:
    DrainTest() {
        char name[] = "/tmp/plumb-drain-XXXXXX";
        folder_ = mkdtemp(name);
        recording::WriterOptions options;
        options.path = path();
        options.write = disk_.function();
        auto writer = recording::Writer::create(options, recording::Metadata{});
        EXPECT_TRUE(writer.ok());
        writer_ = *std::move(writer);
    }
    ~DrainTest() override {
        drain_.reset();
        std::filesystem::remove_all(folder_);
    }
    Drain& start() {
        DrainOptions options;
        options.clock = clock::host_clock(&recorder_.clock);
        options.diagnose = [this](const std::string& sentence) {
            const std::lock_guard<std::mutex> lock(mutex_);
            said_.push_back(sentence);
        };
        drain_ = std::make_unique<Drain>(recorder_.rings(), *writer_, std::move(options));
        EXPECT_TRUE(drain_->start().ok());
        return *drain_;
    }
    Queue add_queue() {
        recording::TrackInfo track;
        track.id = 900;
        track.kind = recording::TrackKind::device_queue;
        drain_->add_queue(timer_, track);
        return Queue{&timer_, track.id};
    }
    [[nodiscard]] std::string path() const { return folder_ + "/run.plumb"; }
    recording::Reader reader() const {
        recording::ReadOptions options;
        options.merge_ring = false;
        auto opened = recording::Reader::open(path(), options);
        EXPECT_TRUE(opened.ok());
        return *std::move(opened);
    }
    /// Labels of every track, and that each track's records are without gap.
    std::map<std::uint32_t, std::vector<std::uint64_t>> labels() const {
        std::map<std::uint32_t, std::vector<std::uint64_t>> result;
        std::map<std::uint32_t, std::uint64_t> next;
        recording::Reader opened = reader();
        EXPECT_TRUE(opened
                        .for_each_batch([&](const recording::RecordBatch& batch) {
                            EXPECT_EQ(batch.first_sequence, next[batch.track]);
                            next[batch.track] = batch.first_sequence + batch.count;
                            for (std::size_t i = 0; i < batch.count; ++i) {
                                if (kind_of(batch.records[i]) == RecordKind::label) {
                                    result[batch.track].push_back(batch.records[i].first);
                                }
                            }
                            return true;
                        })
                        .ok());
        return result;
    }
    std::vector<std::string> said() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return said_;
    }

    std::string folder_;
    Disk disk_;
    TestRecorder recorder_{TestOptions{false, 4096, "", {}}};
    std::unique_ptr<recording::Writer> writer_;
    HandTimer timer_;
    std::unique_ptr<Drain> drain_;
    std::mutex mutex_;
    std::vector<std::string> said_;
};

TEST_F(DrainTest, flush_waits_until_everything_recorded_before_is_in_the_recording) {
    Drain& drain = start();
    for (std::uint64_t round = 0; round < 20; ++round) {
        recorder_.record(norm, round);
        ASSERT_TRUE(drain.flush(long_enough).ok());
        const auto all = labels();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(all.begin()->second.size(), round + 1);
    }
}

TEST_F(DrainTest, rings_that_wrap_around_many_times_arrive_whole_and_once) {
    Drain& drain = start();
    constexpr int threads = 3;
    constexpr std::uint64_t each = 5000; // 20 times the ring
    std::vector<std::thread> list;
    for (int t = 0; t < threads; ++t) {
        list.emplace_back([&] {
            for (std::uint64_t i = 0; i < each; ++i) {
                // A full ring drops: here the test waits instead, to see that nothing else gets lost.
                while (!recorder_.thread()->has_room(1)) {
                    ASSERT_TRUE(drain.flush(long_enough).ok());
                }
                recorder_.record(norm, i);
            }
        });
    }
    for (std::thread& thread : list) {
        thread.join();
    }
    ASSERT_TRUE(drain.stop().ok());
    const auto all = labels();
    EXPECT_EQ(all.size(), static_cast<std::size_t>(threads));
    for (const auto& [track, values] : all) {
        ASSERT_EQ(values.size(), each);
        for (std::uint64_t i = 0; i < each; ++i) {
            ASSERT_EQ(values[i], i);
        }
    }
}

TEST_F(DrainTest, many_short_threads_share_few_rings_and_lose_nothing) {
    Drain& drain = start();
    constexpr std::uint64_t threads = 300;
    for (std::uint64_t i = 0; i < threads; ++i) {
        std::thread([&] {
            recorder_.record(norm, i);
            recorder_.thread()->drop(Drop::bad_token);
        }).join();
        if (i % 10 == 9) {
            ASSERT_TRUE(drain.flush(long_enough).ok());
        }
    }
    ASSERT_TRUE(drain.stop().ok());
    const auto all = labels();
    EXPECT_EQ(all.size(), threads);
    for (const auto& [track, values] : all) {
        EXPECT_EQ(values, std::vector<std::uint64_t>{track - 1});
    }
    EXPECT_LE(recorder_.all_rings().size(), 11u);
    const recording::Counters counters = reader().counters();
    ASSERT_EQ(counters.drops.size(), 1u);
    EXPECT_EQ(counters.drops[0].second, threads) << "drops of ended threads are not forgotten";
    EXPECT_EQ(counters.ended_drops[static_cast<std::size_t>(Drop::bad_token)], threads);
}

// A full ring drops, and says how many: a quiet cut would make every total wrong.
TEST_F(DrainTest, what_a_full_ring_drops_is_counted_in_the_recording) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
        recorder_.record(norm, i); // nobody drains yet
    }
    ASSERT_TRUE(start().stop().ok());
    const std::size_t kept = labels().begin()->second.size();
    const recording::Counters counters = reader().counters();
    ASSERT_EQ(counters.drops.size(), 1u);
    EXPECT_EQ(kept + counters.drops[0].second, 1000u);
    EXPECT_EQ(counters.records, kept);
}

TEST_F(DrainTest, names_stand_before_the_records_that_use_them) {
    Drain& drain = start();
    const Name name = record::intern_name("drain test op", Category::ffn);
    recorder_.record(name, 1);
    ASSERT_TRUE(drain.flush(long_enough).ok());
    bool found = false;
    const recording::Reader opened = reader();
    for (const recording::NameInfo& info : opened.names()) {
        found = found || (info.id == name.id && info.name == "drain test op" && info.category == Category::ffn);
    }
    EXPECT_TRUE(found);
}

TEST_F(DrainTest, tracks_carry_the_names_of_their_threads) {
    Drain& drain = start();
    std::thread([&] {
        pthread_setname_np(pthread_self(), "decode-3");
        recorder_.record(norm, 1);
    }).join();
    ASSERT_TRUE(drain.flush(long_enough).ok());
    ASSERT_EQ(reader().tracks().size(), 1u);
    EXPECT_EQ(reader().tracks()[0].name, "decode-3");
    EXPECT_NE(reader().tracks()[0].os_thread, 0u);
    EXPECT_EQ(reader().tracks()[0].source, "caller");
}

TEST_F(DrainTest, M7_a_full_disk_is_said_once_and_loses_nothing_that_fits_the_ring) {
    Drain& drain = start();
    recorder_.record(norm, 1);
    ASSERT_TRUE(drain.flush(long_enough).ok());
    disk_.full = true;
    recorder_.record(norm, 2);
    for (int i = 0; i < 3; ++i) {
        const Status status = drain.flush(long_enough);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().code, ErrorCode::no_space);
    }
    ASSERT_EQ(said().size(), 1u);
    EXPECT_NE(said()[0].find(path()), std::string::npos) << said()[0];
    disk_.full = false;
    recorder_.record(norm, 3);
    ASSERT_TRUE(drain.flush(long_enough).ok());
    EXPECT_EQ(labels().begin()->second, (std::vector<std::uint64_t>{1, 2, 3}));
    disk_.full = true;
    recorder_.record(norm, 4);
    ASSERT_FALSE(drain.flush(long_enough).ok());
    EXPECT_EQ(said().size(), 2u) << "a new failure is a new sentence";
}

TEST_F(DrainTest, a_disk_that_stays_full_is_the_status_of_stop_and_the_ring_keeps_its_records) {
    Drain& drain = start();
    recorder_.record(norm, 1);
    ASSERT_TRUE(drain.flush(long_enough).ok());
    disk_.full = true;
    recorder_.record(norm, 2);
    EXPECT_FALSE(drain.stop().ok());
    EXPECT_EQ(recorder_.take(), Words{"label 1=2"});
}

TEST_F(DrainTest, F8_what_nobody_will_collect_is_given_back_when_it_ends) {
    Drain& drain = start();
    const Queue queue = add_queue();
    { PLUMB_BRICK(recorder_, queue, norm); }
    ASSERT_TRUE(drain.flush(long_enough).ok());
    disk_.full = true;
    { PLUMB_BRICK(recorder_, queue, norm); } // this one stays in the ring
    ASSERT_EQ(timer_.in_flight(), 2u);
    EXPECT_FALSE(drain.stop().ok());
    EXPECT_EQ(timer_.in_flight(), 0u);
    EXPECT_FALSE(recorder_.take().empty()) << "for who recovers it";
}

TEST_F(DrainTest, a_device_scope_has_the_step_and_work_that_were_drained_before_its_queue_was_made) {
    Drain& drain = start();
    timer_.done[1] = {500, 530, 0};
    {
        PLUMB_STEP(recorder_, host, Phase::decode);
        PLUMB_LAYER(recorder_, 4);
        { PLUMB_BRICK(recorder_, host, norm, bytes(64)); }
        ASSERT_TRUE(drain.flush(long_enough).ok());
        const Queue queue = add_queue();
        { PLUMB_BRICK(recorder_, queue, norm, bytes(64)); }
    }
    ASSERT_TRUE(drain.flush(long_enough).ok());
    Words of_queue;
    recording::Reader opened = reader();
    ASSERT_TRUE(opened
                    .for_each_batch([&](const recording::RecordBatch& batch) {
                        for (std::size_t i = 0; batch.track == 900 && i < batch.count; ++i) {
                            of_queue.push_back(words(batch.records[i]));
                        }
                        return true;
                    })
                    .ok());
    ASSERT_GE(of_queue.size(), 2u);
    EXPECT_EQ(of_queue[0], "context step+1=1 layer+1=5");
    EXPECT_EQ(of_queue[1], "work 1 bytes=64");
}

TEST_F(DrainTest, M4_a_busy_devices_clock_is_asked_again_before_it_ends_with_one_pair) {
    timer_.done[1] = {500, 530, 0};
    Drain& drain = start();
    const Queue queue = add_queue();
    { PLUMB_BRICK(recorder_, queue, norm); }
    ASSERT_TRUE(drain.flush(long_enough).ok());
    timer_.busy = 3;
    timer_.ticks = 1'000;
    ASSERT_TRUE(drain.stop().ok());
    std::set<std::uint64_t> moments;
    const recording::Reader written = reader();
    for (const recording::ClockPair& pair : written.clock_pairs()) {
        if (pair.clock == 900) {
            moments.insert(pair.ticks);
        }
    }
    EXPECT_EQ(moments, (std::set<std::uint64_t>{1, 1'000}));
}

TEST_F(DrainTest, a_clock_that_never_answers_holds_up_no_end) {
    timer_.done[1] = {500, 530, 0};
    Drain& drain = start();
    const Queue queue = add_queue();
    { PLUMB_BRICK(recorder_, queue, norm); }
    timer_.busy = std::numeric_limits<int>::max();
    ASSERT_TRUE(drain.stop().ok());
}

TEST_F(DrainTest, a_flush_while_the_disk_hangs_returns_pending_after_its_timeout) {
    recording::WriterOptions options;
    options.path = folder_ + "/hanging.plumb";
    options.write = [&](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
        if (disk_.hang.exchange(false)) {
            disk_.entered = true;
            record::yield_until([&] { return disk_.may_go.load(); });
        }
        return pwrite(file, data, size, static_cast<off_t>(offset));
    };
    writer_ = *recording::Writer::create(options, recording::Metadata{});
    Drain& drain = start();
    ASSERT_TRUE(drain.flush(long_enough).ok());
    disk_.hang = true;
    recorder_.record(norm, 1);
    const Status pending = drain.flush(std::chrono::milliseconds(1));
    ASSERT_FALSE(pending.ok());
    EXPECT_EQ(pending.error().code, ErrorCode::pending);
    record::yield_until([&] { return disk_.entered.load(); });
    for (int i = 0; i < 1000; ++i) {
        recorder_.record(norm, 2); // recorders are never blocked, whatever the disk does
    }
    disk_.may_go = true;
    EXPECT_TRUE(drain.flush(long_enough).ok());
}

TEST_F(DrainTest, a_large_ring_is_written_in_pieces_that_keep_max_bytes) {
    constexpr std::uint64_t bound = 1 << 20;
    std::uint64_t largest = 0;
    recording::WriterOptions options;
    options.path = folder_ + "/bounded.plumb";
    options.max_bytes = bound;
    options.write = [&](int file, const void* data, std::size_t size, std::uint64_t offset) -> std::int64_t {
        largest = std::max<std::uint64_t>(largest, offset + size);
        return pwrite(file, data, size, static_cast<off_t>(offset));
    };
    auto writer = recording::Writer::create(options, recording::Metadata{});
    ASSERT_TRUE(writer.ok());
    TestRecorder recorder(TestOptions{false, 16 << 20, "", {}});
    std::uint64_t noise = 1;
    for (int i = 0; i < 1'000'000; ++i) {
        recorder.record(norm, noise = noise * 6364136223846793005U + 1442695040888963407U);
    }
    DrainOptions drain_options;
    drain_options.clock = clock::host_clock(&recorder.clock);
    Drain drain(recorder.rings(), **writer, std::move(drain_options));
    ASSERT_TRUE(drain.start().ok());
    ASSERT_TRUE(drain.stop().ok());
    EXPECT_GT((*writer)->records_removed(), 800'000u);
    EXPECT_LT(largest, bound + bound / 4);
}

TEST_F(DrainTest, descriptions_reach_the_recording_and_the_last_value_wins) {
    Drain& drain = start();
    drain.describe("model", "a");
    drain.describe("model", "b");
    ASSERT_TRUE(drain.flush(long_enough).ok());
    ASSERT_EQ(reader().descriptions().size(), 1u);
    EXPECT_EQ(reader().descriptions()[0].second, "b");
}

TEST_F(DrainTest, a_key_that_is_described_again_and_again_takes_no_more_room) {
    disk_.full = true;
    Drain& drain = start();
    const std::string value(1000, 'x');
    for (int i = 0; i < 10'000; ++i) {
        drain.describe("first", "before the disk was full");
        drain.describe("loss", value + std::to_string(i));
        if (i == 5'000) {
            record::yield_until([&] { return disk_.refused.load() > 2; }); // what could not be written comes back
        }
    }
    disk_.full = false;
    ASSERT_TRUE(drain.flush(long_enough).ok());
    ASSERT_EQ(reader().descriptions().size(), 2u);
    EXPECT_EQ(reader().descriptions()[1].second, value + "9999");
    EXPECT_LT(std::filesystem::file_size(path()), 200'000u);
}

TEST_F(DrainTest, clock_pairs_are_written_at_each_flush) {
    Drain& drain = start();
    ASSERT_TRUE(drain.flush(long_enough).ok());
    recorder_.clock.advance(1'000'000);
    ASSERT_TRUE(drain.flush(long_enough).ok());
    EXPECT_GE(reader().clock_pairs().size(), 2u);
}

TEST_F(DrainTest, the_kernel_is_asked_for_the_threads_that_record_when_it_begins_and_when_it_ends) {
    TestRecorder recorder(TestOptions{true, 4096, "", {}});
    DrainOptions options;
    options.clock = clock::host_clock(nullptr);
    drain_ = std::make_unique<Drain>(recorder.rings(), *writer_, std::move(options));
    recorder.record(norm, 1);
    ASSERT_TRUE(drain_->start().ok());
    ASSERT_TRUE(drain_->flush(long_enough).ok());
    ASSERT_TRUE(drain_->stop().ok());
    const auto facts = recording::run_of(reader()).facts;
    ASSERT_GE(facts->off_cpu.size(), 2u);
    for (const recording::OffCpuSample* sample : {&facts->off_cpu.front(), &facts->off_cpu.back()}) {
        ASSERT_EQ(sample->threads.size(), 1u);
        EXPECT_EQ(sample->threads[0].track, facts->tracks.at(0).id);
    }
    EXPECT_GT(facts->off_cpu.back().monotonic_ns, facts->off_cpu.front().monotonic_ns);
    drain_.reset(); // before the rings of this test
}

TEST_F(DrainTest, with_a_clock_of_the_callers_the_kernel_is_not_asked) {
    Drain& drain = start();
    recorder_.record(norm, 1);
    ASSERT_TRUE(drain.stop().ok());
    EXPECT_TRUE(recording::run_of(reader()).facts->off_cpu.empty());
}

TEST_F(DrainTest, what_was_read_at_the_opening_and_at_the_start_make_a_line_before_any_round) {
    DrainOptions options;
    options.clock = clock::host_clock(&recorder_.clock);
    options.opened = clock::ClockReading{base::HostTicks(400), base::Nanoseconds(200), base::Nanoseconds(0), 1};
    Drain drain(recorder_.rings(), *writer_, std::move(options));
    ASSERT_TRUE(drain.start().ok());
    const std::vector<recording::ClockPair> pairs = reader().clock_pairs();
    ASSERT_TRUE(drain.stop().ok());
    ASSERT_GE(pairs.size(), 2u);
    EXPECT_EQ(pairs[0].ticks, 400u);
    EXPECT_EQ(pairs[0].monotonic_ns, 200);
    EXPECT_EQ(pairs[1].ticks, 1000u);
}

void record_on_threads_without_room(TestRecorder& small) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{20000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    std::thread([&] { small.record(norm, 2); }).join();
    std::thread([&] { small.record(norm, 3); }).join();
    setrlimit(RLIMIT_FSIZE, &before);
}

TEST_F(DrainTest, rings_that_no_longer_fit_their_folder_are_said_once_and_noted) {
    // A file system of one page for the file and one ring: the second thread's ring has to lie in memory.
    TestRecorder small(TestOptions{false, 4096, folder_, {}});
    small.record(norm, 1);
    ASSERT_NE(small.rings().file_path(), "");
    DrainOptions options;
    options.clock = clock::host_clock(&small.clock);
    std::vector<std::string> sentences;
    options.diagnose = [&](const std::string& sentence) {
        sentences.push_back(sentence);
    };
    Drain drain(small.rings(), *writer_, std::move(options));
    ASSERT_TRUE(drain.start().ok());
    record_on_threads_without_room(small);
    ASSERT_TRUE(drain.stop().ok());
    ASSERT_EQ(sentences.size(), 1u);
    EXPECT_NE(sentences[0].find(folder_), std::string::npos) << sentences[0];
    ASSERT_EQ(reader().descriptions().size(), 1u);
    EXPECT_EQ(reader().descriptions()[0].first, "not crash-safe");
    EXPECT_EQ(labels().size(), 3u) << "they record all the same";
    small.rings().remove_file();
}

TEST_F(DrainTest, key_redact_leaves_the_folder_of_rings_that_no_longer_fit_out) {
    TestRecorder small(TestOptions{false, 4096, folder_, {}});
    small.record(norm, 1);
    DrainOptions options;
    options.clock = clock::host_clock(&small.clock);
    options.redact = true;
    Drain drain(small.rings(), *writer_, std::move(options));
    ASSERT_TRUE(drain.start().ok());
    record_on_threads_without_room(small);
    ASSERT_TRUE(drain.stop().ok());
    ASSERT_EQ(reader().descriptions().size(), 1u);
    EXPECT_EQ(reader().descriptions()[0].second, "some threads recorded into ordinary memory");
    small.rings().remove_file();
}

} // namespace
} // namespace plumb::drain
