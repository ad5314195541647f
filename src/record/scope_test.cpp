// SPDX-License-Identifier: Apache-2.0
// Scopes: what is written, when, and what is refused. The machine's clock takes the inline path, the hand-moved one the
// other: what both must do alike is tested on both.
#include <gtest/gtest.h>

#include "record/recorder_testing.hpp"

namespace plumb::record {
namespace {

class ScopeOnBothClocks : public testing::TestWithParam<bool> {
  protected:
    ScopeOnBothClocks() : recorder_(TestOptions{GetParam(), 64 * 1024, "", {}}) {}
    std::vector<Record> records(RecordKind kind) {
        std::vector<Record> list;
        for (const auto& [track, all] : recorder_.take_tracks()) {
            for (const Record& record : all) {
                if (kind_of(record) == kind) {
                    list.push_back(record);
                }
            }
        }
        return list;
    }
    TestRecorder recorder_;
};

INSTANTIATE_TEST_SUITE_P(Clocks, ScopeOnBothClocks, testing::Bool(),
                         [](const auto& clock) { return clock.param ? "machine" : "by_hand"; });

TEST_P(ScopeOnBothClocks, a_scope_is_one_record_at_its_end) {
    {
        PLUMB_BRICK(recorder_, host, norm);
        EXPECT_TRUE(records(RecordKind::scope).empty());
    }
    const auto scopes = records(RecordKind::scope);
    ASSERT_EQ(scopes.size(), 1u);
    EXPECT_EQ(id_of(scopes[0]), 1);
    EXPECT_EQ(scopes[0].second & (flag_work | flag_lap), 0u);
    EXPECT_EQ(recorder_.all_drops(), 0u);
}

TEST_P(ScopeOnBothClocks, a_child_comes_before_its_parent_and_lies_inside_it) {
    {
        PLUMB_BRICK(recorder_, host, attention);
        recorder_.clock.advance(3);
        {
            PLUMB_BRICK(recorder_, host, norm);
            recorder_.clock.advance(5);
        }
        recorder_.clock.advance(7);
    }
    const auto scopes = records(RecordKind::scope);
    ASSERT_EQ(scopes.size(), 2u);
    EXPECT_EQ(id_of(scopes[0]), norm.id);
    EXPECT_EQ(id_of(scopes[1]), attention.id);
    EXPECT_GE(scopes[0].first, scopes[1].first);
    EXPECT_LE(scopes[0].first + payload_of(scopes[0]), scopes[1].first + payload_of(scopes[1]));
}

TEST_P(ScopeOnBothClocks, work_is_written_once_and_again_only_when_it_differs) {
    for (const int size : {64, 64, 64, 128, 128}) {
        PLUMB_BRICK(recorder_, host, norm, bytes(size), flops(2.0 * size));
    }
    const auto all = recorder_.take();
    const auto is_work = [](const std::string& word) {
        return word.rfind("work", 0) == 0;
    };
    std::vector<std::string> works;
    std::copy_if(all.begin(), all.end(), std::back_inserter(works), is_work);
    // Of the four quantities a first time writes all, so that a reader knows the absent ones as absent.
    EXPECT_EQ(works, (Words{"work 1 bytes=64", "work 1 flops=128", "work 1 elements=none", "work 1 bytes_per_kv=none",
                            "work 1 bytes=128", "work 1 flops=256"}));
    EXPECT_EQ(all.size(), works.size() + 5);
}

TEST_P(ScopeOnBothClocks, work_precedes_the_scope_it_applies_to) {
    { PLUMB_BRICK(recorder_, host, norm, bytes(64)); }
    { PLUMB_BRICK(recorder_, host, norm); }
    const auto all = recorder_.take();
    ASSERT_EQ(all.size(), 6u);
    EXPECT_EQ(all[0], "work 1 bytes=64");
    EXPECT_NE(all[4].find("scope 1"), std::string::npos);
    EXPECT_NE(all[4].find(" work"), std::string::npos);
    EXPECT_EQ(all[5].find(" work"), std::string::npos) << "a scope without tags has no work, whatever came before";
}

TEST_P(ScopeOnBothClocks, nested_scopes_of_one_name_keep_their_own_work) {
    {
        PLUMB_BRICK(recorder_, host, norm, bytes(100));
        { PLUMB_BRICK(recorder_, host, norm, bytes(1)); }
        { PLUMB_BRICK(recorder_, host, norm, bytes(1)); }
    }
    // Replayed as a reader does: the last work of the name before a scope with flag_work is its own.
    std::vector<double> bytes_of_scopes;
    double last = 0;
    for (const auto& [track, all] : recorder_.take_tracks()) {
        for (const Record& record : all) {
            if (kind_of(record) == RecordKind::work && payload_of(record) == 0) {
                std::memcpy(&last, &record.first, sizeof last);
            } else if (kind_of(record) == RecordKind::scope) {
                bytes_of_scopes.push_back(last);
            }
        }
    }
    EXPECT_EQ(bytes_of_scopes, (std::vector<double>{1, 1, 100}));
}

TEST_P(ScopeOnBothClocks, a_collective_says_which_one_it_is_before_its_scope_and_has_no_work_by_that) {
    constexpr Name reduce = Brick::all_reduce; // 26
    const Name tp{300};
    { PLUMB_BRICK(recorder_, host, reduce, group(tp), sequence(0)); }
    { PLUMB_BRICK(recorder_, host, reduce, sequence(1), bytes(64)); }
    { PLUMB_BRICK(recorder_, host, reduce, group(tp)); }
    recorder_.push_scope(host, reduce, sequence(3));
    recorder_.pop_scope();
    Words said;
    std::vector<bool> worked;
    std::size_t works = 0;
    for (const auto& [track, all] : recorder_.take_tracks()) {
        for (const Record& record : all) {
            if (kind_of(record) == RecordKind::collective) {
                said.push_back(words(record));
            } else if (kind_of(record) == RecordKind::scope) {
                worked.push_back((record.second & flag_work) != 0);
            }
            works += kind_of(record) == RecordKind::work ? 1 : 0;
        }
    }
    EXPECT_EQ(said, (Words{"collective 26 group=300 number+1=1", "collective 26 group=0 number+1=2",
                           "collective 26 group=300 number+1=0", "collective 26 group=0 number+1=4"}));
    EXPECT_EQ(worked, (std::vector<bool>{false, true, false, false}));
    EXPECT_EQ(works, work_quantities);
    EXPECT_EQ(recorder_.all_drops(), 0u);
}

TEST_P(ScopeOnBothClocks, work_given_late_replaces_what_was_given_at_the_beginning) {
    {
        Scope scope = recorder_.scope(host, norm, bytes(64));
        scope.work(bytes(4096));
    }
    const auto all = recorder_.take();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all[0], "work 1 bytes=4096");
}

TEST_P(ScopeOnBothClocks, names_that_share_a_place_in_the_work_cache_do_not_mix) {
    const Name other(static_cast<std::uint16_t>(norm.id + detail::work_cache_size));
    for (int i = 0; i < 2; ++i) {
        {
            PLUMB_BRICK(recorder_, host, norm, bytes(1));
        }
        { PLUMB_BRICK(recorder_, host, other, bytes(2)); }
    }
    std::map<std::uint16_t, double> last;
    for (const auto& [track, all] : recorder_.take_tracks()) {
        for (const Record& record : all) {
            if (kind_of(record) == RecordKind::work && payload_of(record) == 0) {
                std::memcpy(&last[id_of(record)], &record.first, sizeof(double));
            } else if (kind_of(record) == RecordKind::scope) {
                EXPECT_EQ(last.at(id_of(record)), id_of(record) == norm.id ? 1 : 2);
            }
        }
    }
}

TEST_P(ScopeOnBothClocks, the_unnamed_brick_has_work_like_any_other) {
    { PLUMB_BRICK(recorder_, host, Name{}, bytes(0), flops(0), elements(0), bytes_per_kv(0)); }
    const auto all = recorder_.take();
    ASSERT_EQ(all.size(), 5u) << "absent and 0 differ, also for the name 0";
    EXPECT_EQ(all[0], "work 0 bytes=0");
}

TEST_P(ScopeOnBothClocks, deeper_than_the_limit_is_dropped_and_counted_and_leaves_the_rest_whole) {
    std::vector<std::unique_ptr<Scope>> open;
    for (unsigned i = 0; i < max_depth + 3; ++i) {
        open.push_back(std::make_unique<Scope>(recorder_, recorder_.mode(), host, norm));
    }
    while (!open.empty()) {
        open.pop_back();
    }
    EXPECT_EQ(records(RecordKind::scope).size(), max_depth);
    EXPECT_EQ(recorder_.drops(Drop::too_deep), 3u);
    { PLUMB_BRICK(recorder_, host, norm); }
    EXPECT_EQ(records(RecordKind::scope).size(), 1u);
}

TEST_P(ScopeOnBothClocks, a_scope_open_across_a_toggle_is_dropped_and_counted) {
    {
        PLUMB_BRICK(recorder_, host, norm);
        recorder_.off();
    }
    {
        PLUMB_BRICK(recorder_, host, norm);
        recorder_.on();
    }
    {
        PLUMB_BRICK(recorder_, host, norm);
        recorder_.off();
        recorder_.on();
    }
    EXPECT_TRUE(records(RecordKind::scope).empty());
    EXPECT_EQ(recorder_.drops(Drop::across_toggle), 2u) << "the one begun while off never was";
    { PLUMB_BRICK(recorder_, host, norm); }
    EXPECT_EQ(records(RecordKind::scope).size(), 1u);
}

TEST_P(ScopeOnBothClocks, ending_twice_records_once) {
    Scope scope = recorder_.scope(host, norm);
    scope.end();
    scope.end();
    EXPECT_EQ(records(RecordKind::scope).size(), 1u);
    EXPECT_EQ(recorder_.thread()->depth, 0u);
}

TEST(Scope, its_times_are_the_clocks) {
    TestRecorder recorder;
    recorder.clock.set(5000);
    {
        PLUMB_BRICK(recorder, host, norm);
        recorder.clock.advance(42);
    }
    EXPECT_EQ(recorder.take(), Words{"scope 1 @5000 +42"});
}

TEST(Scope, a_duration_of_40_bits_and_more_is_written_in_full) {
    TestRecorder recorder;
    for (const std::uint64_t ticks : {payload_mask - 1, payload_mask, payload_mask + 1, std::uint64_t{1} << 52}) {
        PLUMB_BRICK(recorder, host, norm);
        recorder.clock.advance(ticks);
    }
    const auto all = recorder.take();
    const std::string full = std::to_string(payload_mask);
    ASSERT_EQ(all.size(), 7u);
    EXPECT_NE(all[0].find("+" + std::to_string(payload_mask - 1)), std::string::npos);
    EXPECT_EQ(all[1], "long " + full);
    EXPECT_NE(all[2].find("+" + full), std::string::npos);
    EXPECT_EQ(all[3], "long " + std::to_string(payload_mask + 1));
    EXPECT_EQ(all[5], "long " + std::to_string(std::uint64_t{1} << 52));
}

TEST(Scope, a_clock_that_goes_back_gives_no_duration_and_is_counted) {
    TestRecorder recorder;
    recorder.clock.set(5000);
    {
        PLUMB_BRICK(recorder, host, norm);
        recorder.clock.set(4000);
    }
    EXPECT_TRUE(recorder.take().empty());
    EXPECT_EQ(recorder.drops(Drop::negative_span), 1u);
    EXPECT_EQ(recorder.thread()->depth, 0u);
}

TEST(Scope, cpu_time_is_sampled_before_the_first_scope_and_after_anything_long) {
    TestRecorder recorder;
    recorder.clock.set(1000);
    const auto empty_scope = [&] {
        PLUMB_BRICK(recorder, host, norm);
    };
    empty_scope();
    EXPECT_EQ(recorder.take(true), (Words{"cpu_time @1000 0", "scope 1 @1000 +0"}));
    recorder.clock.advance(long_ticks - 1);
    empty_scope();
    EXPECT_EQ(recorder.take(true).size(), 1u) << "a short gap needs no sample";
    recorder.clock.advance(long_ticks);
    recorder.clock.set_cpu_ns(77);
    empty_scope();
    const auto after_gap = recorder.take(true);
    ASSERT_EQ(after_gap.size(), 2u);
    EXPECT_NE(after_gap[0].find(" 77"), std::string::npos);
    const auto long_scope = [&] {
        PLUMB_BRICK(recorder, host, norm);
        recorder.clock.advance(sample_ticks / 2);
    };
    long_scope();
    EXPECT_EQ(recorder.take(true).size(), 1u) << "the last sample is young";
    long_scope();
    const auto after_long = recorder.take(true);
    ASSERT_EQ(after_long.size(), 2u);
    EXPECT_EQ(after_long[1].rfind("cpu_time", 0), 0u);
}

TEST(Scope, tags_are_not_evaluated_while_off) {
    TestRecorder recorder;
    recorder.off();
    int evaluated = 0;
    const auto count = [&] {
        return ++evaluated;
    };
    {
        PLUMB_STEP(recorder, host, Phase::decode, tokens(count()));
        PLUMB_LAYER(recorder, count());
        PLUMB_BRICK(recorder, host, norm, bytes(count()));
        PLUMB_LAP(recorder, host, norm, bytes(count()));
        PLUMB_LAP_END(recorder, (static_cast<void>(count()), host));
        PLUMB_CONTEXT(recorder, (static_cast<void>(count()), Context{}));
    }
    EXPECT_EQ(evaluated, 0);
    recorder.on();
    { PLUMB_BRICK(recorder, host, norm, bytes(count())); }
    EXPECT_EQ(evaluated, 1);
}

TEST(Scope, T5_off_reads_no_clock_and_writes_nothing) {
    struct CountingClock final : HostClock {
        mutable int reads = 0;
        [[nodiscard]] std::uint64_t now_ticks() const noexcept override { return static_cast<std::uint64_t>(++reads); }
        [[nodiscard]] std::int64_t now_ns() const noexcept override { return ++reads; }
    } clock;
    struct OffRecorder : Recorder {
        explicit OffRecorder(const HostClock& clock) {
            RecorderAccess::prepare(*this, StampOptions{&clock, false, false, false});
            RecorderAccess::connect(*this, &rings);
        }
        RingSet rings{RingOptions{}};
    } recorder(clock);
    {
        PLUMB_STEP(recorder, host, Phase::decode, tokens(1));
        PLUMB_LAYER(recorder, 0);
        PLUMB_CONTEXT(recorder, recorder.context());
        PLUMB_BRICK(recorder, host, norm, bytes(1));
        PLUMB_LAP(recorder, host, norm);
        PLUMB_LAP_END(recorder, host);
        const Scope scope = recorder.scope(host, norm);
        Token token = recorder.begin(norm, bytes(1));
        recorder.end(token);
        recorder.record_span(norm, Timestamp{1}, Timestamp{2});
        recorder.record(norm, 5);
    }
    EXPECT_EQ(clock.reads, 0);
    std::uint64_t version = ~std::uint64_t{0};
    std::vector<std::shared_ptr<Ring>> rings;
    recorder.rings.rings(version, rings);
    EXPECT_TRUE(rings.empty()) << "a thread that records nothing has no ring";
}

} // namespace
} // namespace plumb::record
