// SPDX-License-Identifier: Apache-2.0
#include "resolve/packed_steps.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/layout.hpp"
#include "planted/tape.hpp"
#include "resolve/resolve.hpp"

namespace plumb::resolve {
namespace {

using planted::Tape;

StepFacts facts(Phase phase, std::uint64_t kv = 0, bool has_kv = false) {
    StepFacts made;
    made.phase = phase;
    made.kv_length = kv;
    made.has_kv_length = has_kv;
    return made;
}

TEST(PackedSteps, steps_in_any_order_are_found_with_what_they_said_and_others_are_not) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        std::mt19937_64 random(seed);
        std::map<std::uint64_t, StepFacts> truth;
        PackedSteps packed;
        std::uint64_t reused = 0;
        std::uint64_t next = random() % 100;
        for (int i = 0; i < 150'000; ++i) {
            // Several threads whose steps arrive in pieces, holes, and ids that come back.
            next += random() % 8 == 0 ? random() % 5 : 1;
            const bool late = seed % 2 == 0 && random() % 3 == 0;
            const std::uint64_t id = late ? next - random() % std::min<std::uint64_t>(next + 1, 300'000) : next;
            const std::uint64_t kv = random() % 4 == 0 ? (std::uint64_t{1} << 26) - 3 + random() % 5 : random() % 9000;
            const StepFacts made = facts(static_cast<Phase>(1 + random() % 3),
                                         random() % 16 == 0 && kv > 9000 ? kv : kv % 9000, random() % 5 != 0);
            packed.add(id, made);
            reused += truth.emplace(id, made).second ? 0 : 1;
        }
        EXPECT_EQ(packed.finish(), reused) << seed;
        EXPECT_EQ(packed.size(), truth.size());
        for (std::uint64_t id = 0; id < next + 10; ++id) {
            StepFacts found;
            const auto wanted = truth.find(id);
            ASSERT_EQ(packed.facts_of(id, found), wanted != truth.end()) << seed << " " << id;
            if (wanted == truth.end()) {
                continue;
            }
            ASSERT_EQ(found.phase, wanted->second.phase) << id;
            ASSERT_EQ(found.has_kv_length, wanted->second.has_kv_length) << id;
            ASSERT_EQ(found.kv_length, wanted->second.has_kv_length ? wanted->second.kv_length : 0) << id;
            ASSERT_FALSE(found.warmup || found.left_out);
        }
    }
}

TEST(PackedSteps, a_phase_of_which_all_steps_were_disturbed_leaves_none_of_them_out) {
    PackedSteps packed;
    for (std::uint64_t id = 0; id < 6; ++id) {
        packed.add(id, facts(id < 3 ? Phase::prefill : Phase::decode));
    }
    (void)packed.finish();
    for (const std::uint64_t id : {0, 1, 2, 3, 9}) {
        packed.set_left_out(id);
    }
    packed.set_warmup(4);
    packed.keep_phases_that_have_no_other_steps();
    for (std::uint64_t id = 0; id < 6; ++id) {
        StepFacts found;
        ASSERT_TRUE(packed.facts_of(id, found));
        EXPECT_EQ(found.left_out, id == 3) << id;
        EXPECT_EQ(found.warmup, id == 4) << id;
    }
}

/// Two threads of steps with kv lengths, a queue that is timed now and then, captured graphs, an id used twice.
void plant(Tape& source) {
    constexpr std::int64_t us = 1'000;
    constexpr std::uint32_t queue = 0x80000001;
    source.track(1);
    source.track(2, "other");
    recording::TrackInfo info;
    info.id = queue;
    info.kind = recording::TrackKind::device_queue;
    info.source = "cuda_event";
    info.sampled_every = 4;
    source.device_track(info);
    for (std::uint64_t i = 0; i < 60; ++i) {
        const std::uint32_t track = 1 + i % 2;
        const std::uint64_t id = i == 51 ? 49 : i;
        const std::int64_t t = static_cast<std::int64_t>(i) * 100 * us;
        const Phase phase = i % 10 == 0 ? Phase::prefill : i % 7 == 0 ? Phase::mixed : Phase::decode;
        source.step_begin(track, id, phase, t);
        if (i % 5 != 0) {
            source.step_value(track, StepValue::kv_length, 100 + i);
        }
        source.work(track, Brick::attention, WorkQuantity::bytes_per_kv, 8);
        source.scope(track, Brick::attention, t + 10 * us, t + 20 * us, flag_work);
        if (i % 4 == 0) {
            source.submit_scope(track, Brick::lm_head, queue, t + 30 * us, t + 35 * us);
        }
        if (i % 4 == 0) {
            source.device_scope(queue, Brick::lm_head, id, 0, t + 40 * us, t + 70 * us);
        }
        if (i % 9 == 0) {
            source.launch(track, 64, launch_instrumented, queue, t + 75 * us, t + 76 * us);
        }
        if (i % 11 != 10) {
            source.step_end(track, phase, t, t + 90 * us);
        }
        if (i % 6 == 0) {
            source.deliver(track);
        }
    }
}

TEST(PackedSteps, samples_resolved_with_them_are_those_resolved_with_a_table) {
    Tape source;
    plant(source);
    ResolveOptions options;
    options.warmup_steps = 5;
    const auto words = [](const ResolvedBatch& batch, std::vector<std::string>& to) {
        for (const Sample& s : batch.samples) {
            to.push_back(std::to_string(static_cast<int>(s.kind)) + " " + std::to_string(static_cast<int>(s.phase)) +
                         " " + std::to_string(s.name) + " " + std::to_string(s.step) + " " +
                         std::to_string(s.begin_ns) + " " + std::to_string(s.duration_ns) + " " +
                         std::to_string(s.warmup) + std::to_string(s.left_out) + std::to_string(s.leaf) + " " +
                         std::to_string(s.bytes));
        }
        for (const Submission& s : batch.submissions) {
            to.push_back("submitted " + std::to_string(s.step) + " " + std::to_string(static_cast<int>(s.phase)) + " " +
                         std::to_string(s.warmup) + std::to_string(s.left_out));
        }
    };
    std::vector<std::string> with_table, packed;
    ASSERT_TRUE(resolve(
                    source, options, [](const StepTable&, const TrackTable&) {},
                    [&](const ResolvedBatch& batch) { words(batch, with_table); })
                    .ok());
    ASSERT_TRUE(resolve_samples(source, options, [&](const ResolvedBatch& batch) { words(batch, packed); }).ok());
    EXPECT_GT(packed.size(), 100u);
    EXPECT_EQ(packed, with_table);
}

} // namespace
} // namespace plumb::resolve
