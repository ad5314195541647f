// SPDX-License-Identifier: Apache-2.0
// Rings: full, wrapped around, reused, shared out; where their memory lies.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

class RingsInAFolder : public testing::Test {
  protected:
    RingsInAFolder() {
        char name[] = "/tmp/plumb-rings-XXXXXX";
        folder_ = mkdtemp(name);
    }
    ~RingsInAFolder() override { std::filesystem::remove_all(folder_); }
    std::string folder_;
};

TEST(Ring, full_drops_and_counts_and_never_blocks) {
    TestRecorder recorder(TestOptions{true, 4096, "", {}}); // 256 records
    for (int i = 0; i < 1000; ++i) {
        PLUMB_BRICK(recorder, host, norm);
    }
    std::uint64_t kept = 0;
    for (const std::string& word : recorder.take()) {
        kept += word.rfind("scope", 0) == 0 ? 1 : 0;
    }
    EXPECT_LE(kept, 256u);
    EXPECT_GE(kept, 200u);
    EXPECT_GE(recorder.drops(Drop::ring_full), 1000 - kept);
    { PLUMB_BRICK(recorder, host, norm); }
    EXPECT_EQ(recorder.take().size(), 1u) << "drained, it records again";
}

TEST(Ring, wraps_around_without_losing_or_repeating) {
    TestRecorder recorder(TestOptions{false, 4096, "", {}});
    std::uint64_t next = 0;
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 100; ++i) {
            recorder.record(norm, static_cast<std::uint64_t>(round * 100 + i));
        }
        for (const std::string& word : recorder.take()) {
            EXPECT_EQ(word, "label 1=" + std::to_string(next++));
        }
    }
    EXPECT_EQ(next, 5000u);
    EXPECT_EQ(recorder.all_drops(), 0u);
}

TEST(Ring, work_with_a_full_ring_is_never_taken_for_other_work) {
    TestRecorder recorder(TestOptions{false, 1024, "", {}}); // 64 records
    double known = 0;
    std::uint64_t scopes_with_work = 0;
    for (int i = 0; i < 400; ++i) {
        {
            PLUMB_BRICK(recorder, host, norm, bytes(i));
            recorder.clock.advance(static_cast<std::uint64_t>(i)); // so that the scope tells which it is
        }
        if (i % 40 != 39) {
            continue;
        }
        for (const auto& [track, all] : recorder.take_tracks()) {
            for (const Record& record : all) {
                if (kind_of(record) == RecordKind::work && payload_of(record) == 0) {
                    std::memcpy(&known, &record.first, sizeof known);
                } else if (kind_of(record) == RecordKind::scope && (record.second & flag_work) != 0) {
                    ++scopes_with_work;
                    EXPECT_EQ(known, static_cast<double>(payload_of(record)));
                }
            }
        }
    }
    EXPECT_GT(scopes_with_work, 0u);
    EXPECT_GT(recorder.drops(Drop::ring_full), 0u);
}

TEST(Ring, a_long_value_and_its_scope_are_written_both_or_neither) {
    TestRecorder recorder(TestOptions{false, 1024, "", {}});
    for (int i = 0; i < 200; ++i) {
        if (i % 3 == 0) {
            recorder.record(norm, 1); // odd counts, so that one free slot is met
        }
        PLUMB_BRICK(recorder, host, norm);
        recorder.clock.advance(payload_mask);
    }
    const auto all = recorder.take();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].rfind("long", 0) == 0) {
            ASSERT_LT(i + 1, all.size());
            EXPECT_EQ(all[i + 1].rfind("scope", 0), 0u);
        }
    }
    EXPECT_GT(recorder.drops(Drop::ring_full), 0u);
}

TEST(Ring, of_an_ended_thread_is_reused_once_drained_and_counts_from_zero) {
    TestRecorder recorder;
    constexpr int threads = 200;
    std::size_t tracks = 0;
    for (int i = 0; i < threads; ++i) {
        std::thread([&] { recorder.record(norm, static_cast<std::uint64_t>(i)); }).join();
        const auto taken = recorder.take_tracks();
        ASSERT_EQ(taken.size(), 1u);
        tracks += taken.size();
        EXPECT_EQ(taken.begin()->first, static_cast<std::uint32_t>(i + 1)) << "a track is never used again";
        EXPECT_EQ(taken.begin()->second.at(0).first, static_cast<std::uint64_t>(i));
    }
    EXPECT_EQ(tracks, static_cast<std::size_t>(threads));
    ASSERT_EQ(recorder.all_rings().size(), 1u) << "memory is bounded by the threads that live at once";
    EXPECT_EQ(recorder.all_rings()[0]->header().head.load(), 1u);
}

TEST(Ring, that_is_not_drained_yet_is_not_given_to_another_thread) {
    TestRecorder recorder;
    for (int i = 0; i < 3; ++i) {
        std::thread([&] { recorder.record(norm, 1); }).join();
    }
    EXPECT_EQ(recorder.all_rings().size(), 3u);
    EXPECT_EQ(recorder.take().size(), 3u);
}

TEST(Ring, of_ended_threads_are_bounded_while_nobody_drains_them) {
    TestRecorder recorder(TestOptions{false, 4096, {}, {}});
    constexpr std::uint64_t threads = 500;
    for (std::uint64_t i = 0; i < threads; ++i) {
        std::thread([&] { recorder.record(norm, i); }).join();
    }
    const std::size_t rings = recorder.all_rings().size();
    EXPECT_LE(rings, 140u);
    EXPECT_TRUE(recorder.rings().take_crowded()) << "the drain is told";
    EXPECT_EQ(recorder.rings().drops_without_ring.load(), threads - rings) << "and what found no ring is counted";
    EXPECT_EQ(recorder.take().size(), rings);
    std::thread([&] { recorder.record(norm, 7); }).join();
    EXPECT_EQ(recorder.take(), Words{"label 1=7"});
    EXPECT_EQ(recorder.all_rings().size(), rings);
    EXPECT_FALSE(recorder.rings().take_crowded());
}

TEST(Ring, a_thread_without_one_looks_for_it_now_and_then_and_when_one_is_released) {
    TestRecorder recorder(TestOptions{false, 4096, {}, {}});
    for (int i = 0; i < 200; ++i) {
        std::thread([&] { recorder.record(norm, 1); }).join();
    }
    ASSERT_GT(recorder.rings().drops_without_ring.load(), 0u);
    std::thread([&] {
        (void)recorder.rings().take_crowded();
        const std::uint64_t before = recorder.rings().drops_without_ring.load();
        for (int i = 0; i < 500; ++i) {
            recorder.record(norm, 2);
        }
        EXPECT_FALSE(recorder.rings().take_crowded()) << "it took the lock";
        for (int i = 0; i < 1000; ++i) {
            recorder.record(norm, 2);
        }
        EXPECT_TRUE(recorder.rings().take_crowded());
        EXPECT_EQ(recorder.rings().drops_without_ring.load(), before + 1500);
        Token token = recorder.begin(norm);
        recorder.end(token);
        EXPECT_EQ(recorder.rings().drops_without_ring.load(), before + 1501) << "a span is one record";
        (void)recorder.take();
        recorder.record(norm, 3);
    }).join();
    EXPECT_EQ(recorder.take(), Words{"label 1=3"});
}

TEST(Ring, as_many_threads_as_lived_at_once_may_end_and_begin_again_at_once) {
    TestRecorder recorder(TestOptions{false, 4096, {}, {}});
    constexpr int threads = 200;
    for (int round = 0; round < 2; ++round) {
        std::atomic<int> here{0};
        std::vector<std::thread> all;
        for (int i = 0; i < threads; ++i) {
            all.emplace_back([&] {
                recorder.record(norm, 1);
                ++here;
                yield_until([&] { return here == threads; });
            });
        }
        for (std::thread& thread : all) {
            thread.join();
        }
    }
    EXPECT_EQ(recorder.rings().drops_without_ring.load(), 0u);
    EXPECT_EQ(recorder.take().size(), 2u * threads);
}

TEST(Ring, more_profilers_than_thread_slots_do_not_mix_their_records) {
    std::vector<std::unique_ptr<TestRecorder>> recorders;
    for (unsigned i = 0; i < detail::thread_slots + 5; ++i) {
        recorders.push_back(std::make_unique<TestRecorder>());
    }
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < recorders.size(); ++i) {
            recorders[i]->record(norm, i * 10 + round);
        }
    }
    for (std::size_t i = 0; i < recorders.size(); ++i) {
        Words expected;
        for (std::uint64_t round = 0; round < 3; ++round) {
            expected.push_back("label 1=" + std::to_string(i * 10 + round));
        }
        EXPECT_EQ(recorders[i]->take(), expected);
        EXPECT_EQ(recorders[i]->all_rings().size(), 1u) << "one ring for each thread and profiler, slots or not";
    }
}

TEST(Ring, scopes_of_two_profilers_may_interleave_on_one_thread) {
    TestRecorder a;
    TestRecorder b;
    {
        PLUMB_BRICK(a, host, norm);
        PLUMB_LAP(a, host, Brick::rope_embedding);
        {
            PLUMB_BRICK(b, host, norm);
            PLUMB_LAP(b, host, Brick::attention);
        }
    }
    EXPECT_EQ(a.take(), (Words{"scope 5 @1000 +0 lap", "scope 1 @1000 +0"}));
    EXPECT_EQ(b.take(), (Words{"scope 9 @1000 +0 lap", "scope 1 @1000 +0"}));
}

TEST(Ring, a_profiler_made_anew_at_the_same_address_gets_none_of_the_old_ones_rings) {
    alignas(TestRecorder) std::array<std::byte, sizeof(TestRecorder)> place;
    std::uint64_t generation = 0;
    for (unsigned i = 0; i < 2 * detail::thread_slots; ++i) {
        auto* recorder = new (place.data()) TestRecorder;
        EXPECT_NE(RecorderAccess::generation(*recorder), generation);
        generation = RecorderAccess::generation(*recorder);
        recorder->record(norm, i);
        EXPECT_EQ(recorder->take(), Words{"label 1=" + std::to_string(i)});
        recorder->~TestRecorder();
    }
}

TEST(Ring, a_profiler_may_go_while_a_thread_that_recorded_still_runs) {
    auto first = std::make_unique<TestRecorder>();
    TestRecorder second;
    std::atomic<int> stage{0};
    std::thread thread([&] {
        first->record(norm, 1);
        stage = 1;
        yield_until([&] { return stage == 2; });
        second.record(norm, 2); // lets go of the first one's ring
    });
    yield_until([&] { return stage == 1; });
    first.reset();
    stage = 2;
    thread.join();
    EXPECT_EQ(second.take(), Words{"label 1=2"});
}

TEST_F(RingsInAFolder, lie_in_one_file_that_only_its_owner_may_read) {
    TestRecorder recorder(TestOptions{false, 4096, folder_, {}});
    recorder.record(norm, 7);
    const std::string path = recorder.rings().file_path();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
    EXPECT_EQ(info.st_size, static_cast<off_t>(detail::ring_page + base::ring_names_bytes + detail::ring_page + 4096));
    EXPECT_GE(info.st_blocks * 512, info.st_size) << "allocated in full: a store can never find the disk full";
    EXPECT_EQ(recorder.rings().reason(), "");
    recorder.rings().remove_file();
    EXPECT_NE(stat(path.c_str(), &info), 0);
}

TEST_F(RingsInAFolder, that_is_missing_are_kept_in_memory_and_say_why) {
    TestRecorder recorder(TestOptions{false, 4096, folder_ + "/none", {}});
    recorder.record(norm, 7);
    EXPECT_EQ(recorder.take(), Words{"label 1=7"});
    EXPECT_EQ(recorder.rings().file_path(), "");
    EXPECT_NE(recorder.rings().reason().find("No such file"), std::string::npos) << recorder.rings().reason();
}

TEST_F(RingsInAFolder, beyond_the_largest_file_that_is_allowed_are_kept_in_memory_and_say_why) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (const rlim_t most : {rlim_t{512}, rlim_t{detail::ring_page + base::ring_names_bytes + 512}}) { // none; no ring
        const rlimit little{most, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
        TestRecorder recorder(TestOptions{false, 4096, folder_, {}}); // SIGXFSZ would end the test
        recorder.record(norm, 7);
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
        EXPECT_EQ(recorder.take(), Words{"label 1=7"});
        EXPECT_NE(recorder.rings().reason().find("File too large"), std::string::npos) << recorder.rings().reason();
    }
}

TEST_F(RingsInAFolder, of_a_killed_run_with_this_number_are_left_alone_and_the_next_name_is_taken) {
    TestRecorder first(TestOptions{false, 4096, folder_, {}});
    const std::string path = first.rings().file_path(), begin = path.substr(0, path.rfind('-') + 1);
    const int serial = std::stoi(path.substr(begin.size()));
    for (int next = 1; next <= 3; ++next) {
        std::ofstream(begin + std::to_string(serial + next) + ".ring") << "rings of another run";
    }
    TestRecorder second(TestOptions{false, 4096, folder_, {}});
    EXPECT_EQ(second.rings().file_path(), begin + std::to_string(serial + 4) + ".ring") << second.rings().reason();
    std::ifstream left(begin + std::to_string(serial + 1) + ".ring");
    std::string held;
    std::getline(left, held);
    EXPECT_EQ(held, "rings of another run");
}

TEST_F(RingsInAFolder, two_profilers_have_two_files) {
    TestRecorder a(TestOptions{false, 4096, folder_, {}});
    TestRecorder b(TestOptions{false, 4096, folder_, {}});
    EXPECT_NE(a.rings().file_path(), b.rings().file_path());
}

} // namespace
} // namespace plumb::record
