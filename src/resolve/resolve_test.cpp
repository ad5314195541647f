// SPDX-License-Identifier: Apache-2.0
#include "resolve/resolve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <new>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "planted/tape.hpp"

namespace plumb::resolve {
namespace {

using planted::Tape;

struct Resolved {
    std::vector<Sample> samples;
    std::vector<LabelValue> labels;
    Resolution resolution;

    [[nodiscard]] std::vector<Sample> named(Name name) const {
        std::vector<Sample> found;
        for (const Sample& sample : samples) {
            if (sample.name == name.id) {
                found.push_back(sample);
            }
        }
        return found;
    }
    [[nodiscard]] std::vector<Sample> of_kind(SampleKind kind) const {
        std::vector<Sample> found;
        for (const Sample& sample : samples) {
            if (sample.kind == kind) {
                found.push_back(sample);
            }
        }
        return found;
    }
};

Resolved resolve_all(Tape& source, const ResolveOptions& options = {0, {}}) {
    Resolved all;
    auto result = resolve(
        source, options, [](const StepTable&, const TrackTable&) {},
        [&](const ResolvedBatch& batch) {
            all.samples.insert(all.samples.end(), batch.samples.begin(), batch.samples.end());
            all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
        });
    EXPECT_TRUE(result.ok());
    all.resolution = std::move(*result);
    return all;
}

TEST(Resolve, F4_every_sample_begins_when_its_scope_began) {
    Tape source;
    source.track(1);
    source.scope(1, Brick::rms_norm, 1000, 3000);
    source.scope(1, Brick::qkv_projection, 3000, 10'000);
    source.scope(1, Brick::attention, 12'000, 12'400);
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.samples.size(), 3u);
    EXPECT_EQ(all.samples[0].begin_ns, 1000);
    EXPECT_EQ(all.samples[1].begin_ns, 3000);
    EXPECT_EQ(all.samples[2].begin_ns, 12'000);
    for (std::size_t i = 1; i < all.samples.size(); ++i) {
        EXPECT_GE(all.samples[i].begin_ns, all.samples[i - 1].begin_ns + all.samples[i - 1].duration_ns);
    }
}

TEST(Resolve, F4_the_first_decode_steps_are_flagged_as_warm_up_and_prefill_is_not) {
    Tape source;
    source.track(1);
    for (std::uint64_t i = 0; i < 6; ++i) {
        const auto t = static_cast<std::int64_t>(i) * 10'000;
        const Phase phase = i == 0 ? Phase::prefill : Phase::decode;
        source.step_begin(1, i, phase, t);
        source.scope(1, Brick::attention, t + 1000, t + 2000);
        source.step_end(1, phase, t, t + 9000);
    }
    const Resolved all = resolve_all(source, {2, {}});
    const std::vector<bool> expected = {false, true, true, false, false, false};
    ASSERT_EQ(all.resolution.steps->size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ((*all.resolution.steps)[i].warmup, expected[i]) << i;
        EXPECT_EQ(all.named(Brick::attention)[i].warmup, expected[i]) << i;
    }
}

TEST(Resolve, the_first_steps_behind_a_removed_beginning_are_no_warm_up) {
    // With and without the begin of its own track: those of ended threads are removed as a whole.
    for (const auto& [removed, of_its_track] :
         {std::pair{std::uint64_t{0}, false}, {1, true}, {100, true}, {100, false}}) {
        Tape source;
        source.track(1);
        source.lose(1, of_its_track ? removed : 0);
        source.counters_.records_removed = removed;
        for (std::uint64_t i = removed; i < removed + 4; ++i) {
            const auto t = static_cast<std::int64_t>(i) * 10'000;
            source.step_begin(1, i, Phase::decode, t);
            source.step_end(1, Phase::decode, t, t + 9000);
        }
        const Resolved all = resolve_all(source, {2, {}});
        ASSERT_EQ(all.resolution.steps->size(), 4u);
        EXPECT_EQ((*all.resolution.steps)[0].warmup, removed < 2) << removed;
        EXPECT_FALSE((*all.resolution.steps)[3].warmup);
    }
}

TEST(Resolve, T2_every_scope_has_its_own_end_and_durations_do_not_add_up) {
    Tape source;
    source.track(1);
    // One batch, as deferred collection delivers it: 1000 scopes of 100 ns each.
    for (int i = 0; i < 1000; ++i) {
        source.scope(1, Brick::rms_norm, 200 * i, 200 * i + 100);
    }
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.samples.size(), 1000u);
    std::int64_t total = 0;
    for (const Sample& sample : all.samples) {
        EXPECT_EQ(sample.duration_ns, 100);
        total += sample.duration_ns;
    }
    EXPECT_EQ(total, 100'000);
}

TEST(Resolve, F8_self_time_is_the_duration_without_the_children) {
    Tape source;
    source.track(1);
    source.scope(1, Brick::attention_score, 1000, 3000);
    source.scope(1, Brick::attention_softmax, 3000, 4000);
    source.scope(1, Brick::attention, 0, 10'000);
    const Resolved all = resolve_all(source);
    const Sample parent = all.named(Brick::attention).at(0);
    EXPECT_EQ(parent.duration_ns, 10'000);
    EXPECT_EQ(parent.self_ns, 7000);
    EXPECT_FALSE(parent.leaf);
    EXPECT_EQ(all.named(Brick::attention_score).at(0).self_ns, 2000);
    EXPECT_TRUE(all.named(Brick::attention_score).at(0).leaf);
}

TEST(Resolve, F8_layer_0_and_no_layer_and_track_0_are_different_things) {
    Tape source;
    source.track(0);
    source.step_begin(0, 0, Phase::decode, 0);
    source.scope(0, Brick::embedding, 100, 200);
    source.layer_begin(0, 0, 300);
    source.scope(0, Brick::attention, 400, 500);
    source.layer_end(0, 0, 300, 600);
    source.step_end(0, Phase::decode, 0, 1000);
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.named(Brick::embedding).at(0).layer, std::nullopt);
    EXPECT_EQ(all.named(Brick::attention).at(0).layer, 0u);
    EXPECT_EQ(all.named(Brick::attention).at(0).track, 0u);
    EXPECT_EQ(all.named(Brick::attention).at(0).step, 0u);
    EXPECT_EQ(all.of_kind(SampleKind::layer).at(0).layer, 0u);
}

TEST(Resolve, F8_a_step_id_that_was_used_before_is_counted_and_never_mixes_two_steps) {
    Tape source;
    source.track(1);
    std::int64_t t = 0;
    for (const std::uint64_t id : {5u, 6u, 5u}) { // as if a counter had been set back
        source.step_begin(1, id, id == 6 ? Phase::prefill : Phase::decode, t);
        source.scope(1, Brick::lm_head, t + 100, t + 200);
        source.step_end(1, id == 6 ? Phase::prefill : Phase::decode, t, t + 1000);
        t += 1000;
    }
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.resolution.losses.of(Loss::step_id_reused), 1u);
    ASSERT_EQ(all.resolution.steps->size(), 3u) << "each keeps its own period";
    EXPECT_EQ(all.resolution.steps->find(6), 1u);
    EXPECT_EQ(all.resolution.steps->find(5), 0u) << "the first one";
    EXPECT_EQ(all.resolution.steps->find(4), step_not_found);
    EXPECT_EQ(all.resolution.steps->find(7), step_not_found);
}

TEST(Resolve, F8_ids_that_do_not_ascend_in_time_are_found_all_the_same) {
    Tape source;
    source.track(1);
    const std::vector<std::uint64_t> ids = {9, 2, 7, 0, 4};
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 1000;
        source.step_begin(1, ids[i], Phase::decode, t);
        source.step_end(1, Phase::decode, t, t + 1000);
    }
    const Resolved all = resolve_all(source);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(all.resolution.steps->find(ids[i]), i);
    }
    EXPECT_EQ(all.resolution.steps->find(3), step_not_found);
    EXPECT_EQ(all.resolution.losses.of(Loss::step_id_reused), 0u);
}

TEST(Resolve, F10_step_phase_layer_brick_and_track_are_kept_apart) {
    Tape source;
    source.track(1);
    source.track(2, "worker");
    for (std::uint64_t step = 0; step < 3; ++step) {
        const auto t = static_cast<std::int64_t>(step) * 100'000;
        const Phase phase = step == 0 ? Phase::prefill : Phase::decode;
        source.step_begin(1, step, phase, t);
        for (std::uint16_t layer = 0; layer < 2; ++layer) {
            const std::int64_t u = t + 20'000 * layer;
            source.layer_begin(1, layer, u);
            source.scope(1, Brick::attention, u + 1000, u + 2000);
            source.layer_end(1, layer, u, u + 10'000);
            source.context(2, step, layer);
            source.scope(2, Brick::attention, u + 1500, u + 3000);
            source.context_end(2);
        }
        source.step_end(1, phase, t, t + 90'000);
    }
    const Resolved all = resolve_all(source);
    for (const std::uint32_t track : {1u, 2u}) {
        for (std::uint64_t step = 0; step < 3; ++step) {
            for (std::uint32_t layer = 0; layer < 2; ++layer) {
                int found = 0;
                for (const Sample& sample : all.named(Brick::attention)) {
                    if (sample.track == track && sample.step == step && sample.layer == layer) {
                        ++found;
                        EXPECT_EQ(sample.phase, step == 0 ? Phase::prefill : Phase::decode);
                    }
                }
                EXPECT_EQ(found, 1) << track << step << layer;
            }
        }
    }
}

TEST(Resolve, a_worker_whose_chunk_comes_before_the_step_gets_its_phase_and_kv_length) {
    Tape source;
    source.track(1);
    source.track(2, "worker");
    source.context(2, 7, 3);
    source.work(2, Brick::attention, WorkQuantity::bytes_per_kv, 10);
    source.scope(2, Brick::attention, 2000, 3000, flag_work);
    source.context_end(2);
    source.scope(2, Brick::sampling, 4000, 5000);
    source.deliver(2);
    source.step_begin(1, 7, Phase::prefill, 1000);
    source.step_value(1, StepValue::kv_length, 128);
    source.step_end(1, Phase::prefill, 1000, 9000);
    const Resolved all = resolve_all(source);
    const Sample inside = all.named(Brick::attention).at(0);
    EXPECT_EQ(inside.phase, Phase::prefill);
    EXPECT_EQ(inside.step, 7u);
    EXPECT_EQ(inside.layer, 3u);
    EXPECT_EQ(inside.bytes, 1280);
    EXPECT_EQ(all.named(Brick::sampling).at(0).step, no_step);
    EXPECT_EQ(all.named(Brick::sampling).at(0).phase, Phase::none);
}

TEST(Resolve, times_of_kernels_that_do_not_fit_each_other_are_counted_and_no_times) {
    struct Given {
        std::optional<std::uint64_t> kernels, stretch;
        std::uint64_t refused;
    };
    constexpr std::uint64_t too_long = std::uint64_t{1} << 32;
    for (const auto& [kernels, stretch, refused] :
         {Given{5, 6, 0}, Given{6, 6, 0}, Given{7, 6, 2}, Given{too_long, 6, 2}, Given{5, too_long, 2}, Given{{}, 6, 1},
          Given{5, {}, 1}, Given{{}, {}, 0}}) {
        Tape source;
        source.track(1);
        source.step_begin(1, 7, Phase::decode, 1000);
        if (kernels) {
            source.step_value(1, StepValue::kernels, *kernels);
        }
        if (stretch) {
            source.step_value(1, StepValue::kernel_stretch, *stretch);
        }
        source.step_end(1, Phase::decode, 1000, 9000);
        const Resolved all = resolve_all(source);
        const ResolvedStep& step = (*all.resolution.steps)[0];
        const bool fits = kernels && refused == 0;
        EXPECT_EQ(step.kernels_ns, fits ? *kernels : 0);
        EXPECT_EQ(step.kernel_stretch_ns, fits ? *stretch : 0);
        EXPECT_EQ(all.resolution.losses.of(Loss::bad_value), refused);
    }
}

TEST(Resolve, F1_work_that_was_not_given_is_absent_and_never_0) {
    Tape source;
    source.track(1);
    source.work(1, Brick::attention, WorkQuantity::bytes, 100);
    source.scope(1, Brick::attention, 0, 100, flag_work);
    source.scope(1, Brick::attention, 200, 300); // without the flag: no work
    source.work(1, Brick::rms_norm, WorkQuantity::bytes_per_kv, 8);
    source.scope(1, Brick::rms_norm, 400, 500, flag_work); // no step, so no kv length
    source.work(1, Brick::attention, WorkQuantity::bytes, std::nan(""));
    source.work(1, Brick::attention, WorkQuantity::flops, 7);
    source.scope(1, Brick::attention, 600, 700, flag_work); // bytes were taken back
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.samples[0].bytes, 100);
    EXPECT_TRUE(std::isnan(all.samples[0].flops));
    EXPECT_TRUE(std::isnan(all.samples[1].bytes));
    EXPECT_TRUE(std::isnan(all.samples[2].bytes));
    EXPECT_TRUE(std::isnan(all.samples[3].bytes));
    EXPECT_EQ(all.samples[3].flops, 7);
}

TEST(Resolve, laps_and_spans_are_told_apart_from_scopes) {
    Tape source;
    source.track(1);
    source.lap(1, Brick::rope_embedding, 1000, 2000);
    source.lap(1, Brick::attention, 2000, 3000);
    source.scope(1, Brick::qkv_projection, 900, 3000);
    source.span(1, Brick::sampling, 500, 2500);
    source.span(1, Brick::lm_head, 4000, 5000);
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.of_kind(SampleKind::lap).size(), 2u);
    EXPECT_EQ(all.of_kind(SampleKind::span).size(), 2u);
    EXPECT_EQ(all.named(Brick::qkv_projection).at(0).self_ns, 100); // laps are its children, the span is not
    EXPECT_TRUE(all.named(Brick::lm_head).at(0).leaf);
}

TEST(Resolve, a_wait_at_a_barrier_is_of_the_next_scope_alone_and_never_longer_than_it) {
    Tape source;
    source.track(1);
    source.barrier_wait(1, 0);
    source.scope(1, Brick::attention, 1000, 3000);
    source.barrier_wait(1, 500);
    source.scope(1, Brick::attention, 4000, 6000);
    source.scope(1, Brick::attention, 7000, 8000);
    source.barrier_wait(1, 1004);
    source.scope(1, Brick::attention, 9000, 10'000);
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.samples.size(), 4u);
    EXPECT_EQ(all.samples[0].barrier_wait_ns, 0);
    EXPECT_EQ(all.samples[1].barrier_wait_ns, 500);
    EXPECT_TRUE(std::isnan(all.samples[2].barrier_wait_ns));
    EXPECT_TRUE(std::isnan(all.samples[3].barrier_wait_ns));
}

TEST(Resolve, which_collective_it_is_is_of_the_next_scope_of_that_name) {
    Tape source;
    source.track(1);
    source.collective(1, Brick::all_reduce, 7, Name(300));
    source.scope(1, Brick::attention, 1000, 1400); // inside
    source.scope(1, Brick::all_reduce, 1000, 3000);
    source.scope(1, Brick::all_reduce, 4000, 5000); // says nothing
    source.device_track({2, recording::TrackKind::device_queue, 0, 0, "stream", "cuda_event", 1, 0});
    source.collective(1, Brick::all_gather, 8); // of a submission: it stands again on the queue's track
    const Tape::NodeKey cause = source.submit_scope(1, Brick::all_gather, 2, 6000, 6100);
    source.scope(1, Brick::all_gather, 7000, 8000);
    source.context(2, 0);
    source.collective(2, Brick::all_gather, 8);
    source.cause(2, cause);
    source.raw(2, {Tape::at(9000) + Tape::device_ahead,
                   pack(RecordKind::scope, Name(Brick::all_gather).id, Tape::lasting(1000))});
    source.context_end(2);
    std::vector<std::string> said;
    const auto result = resolve(
        source, {0, {}}, [](const StepTable&, const TrackTable&) {},
        [&](const ResolvedBatch& batch) {
            for (const CollectiveMark& mark : batch.collectives) {
                said.push_back(std::to_string(batch.samples[mark.sample].begin_ns) + " " +
                               std::to_string(mark.sequence_plus_one) + " " + std::to_string(mark.group));
            }
        });
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(said, (std::vector<std::string>{"1000 8 300", "9000 9 0"}));
    EXPECT_EQ(result->losses.unresolved(), 0u);
}

TEST(Resolve, a_span_that_encloses_a_scope_of_its_thread_is_no_leaf) {
    Tape source;
    source.track(1);
    source.scope(1, Brick::attention, 1000, 2000);
    source.span(1, Brick::moe_experts, 500, 2500);
    EXPECT_FALSE(resolve_all(source).named(Brick::moe_experts).at(0).leaf);
}

TEST(Resolve, durations_above_40_bits_stand_before_their_record) {
    Tape source;
    source.track(1);
    const std::int64_t an_hour = 3'600'000'000'000;
    source.raw(1, {Tape::lasting(an_hour), pack(RecordKind::long_value)});
    source.raw(1, {Tape::at(1000), pack(RecordKind::scope, 18, payload_mask)});
    source.raw(1, {Tape::at(1000), pack(RecordKind::scope, 18, payload_mask)});
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.samples.size(), 1u);
    EXPECT_EQ(all.samples[0].duration_ns, an_hour);
    EXPECT_EQ(all.resolution.losses.of(Loss::long_duration_missing), 1u);
}

TEST(Resolve, M4_a_negative_duration_is_counted_as_an_error_and_never_becomes_0) {
    Tape source;
    source.track(1);
    source.raw(1, {std::uint64_t(-1000), pack(RecordKind::long_value)});
    source.raw(1, {Tape::at(5000), pack(RecordKind::scope, 18, payload_mask)});
    source.scope(1, Brick::attention, 6000, 7000);
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.samples.size(), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::duration_impossible), 1u);
    EXPECT_EQ(all.resolution.losses.unresolved(), 1u);
}

TEST(Resolve, M2_samples_that_cannot_be_resolved_are_counted_by_reason) {
    Tape source;
    source.track(1);
    source.tracks_.push_back({9, recording::TrackKind::device_queue, 4, 0, "queue", "cuda_event"}); // clock 4: no pairs
    source.scope(1, Brick::attention, 0, 100);
    source.scope(9, Brick::attention, 0, 100);
    source.scope(9, Brick::attention, 200, 300);
    source.scope(77, Brick::attention, 0, 100);                                // nobody described track 77
    source.raw(1, {std::uint64_t{1} << 60, pack(RecordKind::scope, 9, 1000)}); // years after the last clock pair
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.samples.size(), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::clock_not_fitted), 2u);
    EXPECT_EQ(all.resolution.losses.of(Loss::track_unknown), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::stamp_outside), 1u);
    EXPECT_EQ(all.resolution.losses.unresolved(), 4u);
    ASSERT_EQ(all.resolution.complaints.size(), 1u);
    EXPECT_NE(all.resolution.complaints[0].find("Clock 4"), std::string::npos);
}

TEST(Resolve, records_of_more_tracks_than_are_followed_are_counted_for_that_reason) {
    Tape source;
    for (std::uint32_t id = 1; id <= TrackTable::max_tracks + 2; ++id) {
        source.track(id);
    }
    source.scope(1, Brick::attention, 0, 100);
    source.scope(TrackTable::max_tracks + 1, Brick::attention, 0, 100);
    source.scope(TrackTable::max_tracks + 2, Brick::attention, 0, 100);
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.samples.size(), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::too_many_tracks), 2u);
    EXPECT_EQ(all.resolution.losses.of(Loss::track_unknown), 0u);
    EXPECT_EQ(all.resolution.losses.unresolved(), 2u);
}

TEST(Resolve, a_step_without_its_end_or_begin_is_counted_and_is_no_step) {
    Tape source;
    source.track(1);
    source.step_end(1, Phase::decode, 0, 500); // its begin was removed
    source.step_begin(1, 1, Phase::decode, 1000);
    source.scope(1, Brick::attention, 1100, 1200);
    source.step_end(1, Phase::decode, 1000, 2000);
    source.step_begin(1, 2, Phase::decode, 3000);
    source.scope(1, Brick::attention, 3100, 3200); // the run was killed here
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.resolution.steps->size(), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::step_cut_short), 2u);
    EXPECT_EQ(all.named(Brick::attention).at(0).phase, Phase::decode);
    EXPECT_EQ(all.named(Brick::attention).at(1).phase, Phase::none);
    EXPECT_EQ(all.named(Brick::attention).at(1).step, 2u);
}

TEST(Resolve, a_step_of_phase_none_is_apart_and_one_of_an_unknown_phase_is_lost) {
    Tape source;
    source.track(1);
    for (const Phase phase : {Phase::none, static_cast<Phase>(4), Phase::none}) {
        const std::int64_t t = 1000 * (1 + static_cast<std::int64_t>(source.written(1)));
        source.step_begin(1, source.written(1), phase, t);
        source.step_end(1, phase, t, t + 500);
    }
    const Resolved all = resolve_all(source);
    EXPECT_TRUE(all.resolution.steps->empty());
    EXPECT_EQ(all.resolution.steps->phaseless(), (std::vector<std::uint64_t>{0, 4}));
    EXPECT_EQ(all.resolution.losses.of(Loss::step_without_phase), 1u);
    EXPECT_EQ(all.resolution.losses.of(Loss::step_cut_short), 0u);
    const Resolved cut = resolve_all(source, {1, {{1, 2}}});
    EXPECT_EQ(cut.resolution.steps->phaseless(), std::vector<std::uint64_t>{4}) << "the first began before the cut";
}

TEST(Resolve, where_records_are_lost_a_step_of_phase_none_still_ends_the_number_before) {
    Tape source;
    source.track(1);
    const auto step = [&source](std::uint64_t id, Phase phase, std::int64_t t) {
        source.step_begin(1, id, phase, t);
        source.step_end(1, phase, t, t + 500);
    };
    step(1, Phase::decode, 1000);
    step(2, Phase::none, 2000);
    step(3, Phase::decode, 3000);
    source.lose(1, 5);
    step(9, Phase::decode, 9000);
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.resolution.steps->size(), 3u);
    EXPECT_EQ((*all.resolution.steps)[1].period_begin_ns, 1500);
    EXPECT_EQ((*all.resolution.steps)[2].period_begin_ns, 9000);
}

TEST(Resolve, a_lost_layer_end_does_not_leak_its_layer_past_the_step) {
    Tape source;
    source.track(1);
    source.step_begin(1, 1, Phase::decode, 1000);
    source.layer_begin(1, 5, 1100);
    source.step_end(1, Phase::decode, 1000, 2000);
    source.scope(1, Brick::sampling, 2100, 2200);
    source.raw(1, {0, pack(RecordKind::context_end)});
    const Resolved all = resolve_all(source);
    EXPECT_EQ(all.named(Brick::sampling).at(0).layer, std::nullopt);
    EXPECT_EQ(all.named(Brick::sampling).at(0).step, no_step);
    EXPECT_EQ(all.resolution.losses.of(Loss::end_without_begin), 1u);
}

TEST(Resolve, a_step_cut_by_a_mark_is_cut_short_and_starts_a_new_period) {
    Tape source;
    source.track(1);
    source.step_begin(1, 1, Phase::decode, 0);
    source.step_end(1, Phase::decode, 0, 1000);
    source.step_begin(1, 2, Phase::decode, 2000);
    source.raw(1, {Tape::at(3000), pack(RecordKind::mark, static_cast<std::uint16_t>(Mark::cut_step))});
    source.scope(1, Brick::sampling, 3500, 3600);
    source.step_begin(1, 3, Phase::decode, 50'000);
    source.step_end(1, Phase::decode, 50'000, 51'000);
    const Resolved all = resolve_all(source);
    ASSERT_EQ(all.resolution.steps->size(), 2u);
    EXPECT_EQ((*all.resolution.steps)[1].period_begin_ns, 50'000);
    EXPECT_EQ(all.resolution.losses.of(Loss::step_cut_short), 1u);
    EXPECT_EQ(all.named(Brick::sampling).at(0).step, no_step);
}

TEST(Resolve, a_period_does_not_span_steps_that_were_lost) {
    for (const bool dropped :
         {true, false}) { // by a full ring, which leaves no gap in the numbers, and in a damaged chunk
        Tape source;
        source.track(1);
        source.track(2, "other");
        source.step_begin(1, 1, Phase::decode, 0);
        source.step_end(1, Phase::decode, 0, 1000);
        if (dropped) {
            source.counters_.drops = {{"ring full", 7}};
        } else {
            source.lose(1, 7);
        }
        source.step_begin(1, 9, Phase::decode, 50'000);
        source.step_end(1, Phase::decode, 50'000, 51'000);
        source.step_begin(2, 10, Phase::decode, 50'500);
        source.step_begin(1, 11, Phase::decode, 52'000);
        source.step_end(1, Phase::decode, 52'000, 53'000);
        source.step_end(2, Phase::decode, 50'500, 54'000);
        const Resolved all = resolve_all(source);
        const StepTable& steps = *all.resolution.steps;
        ASSERT_EQ(steps.size(), 4u);
        EXPECT_EQ(steps[1].period_begin_ns, 50'000) << "not the time of the 7 steps that were lost";
        EXPECT_EQ(steps[2].period_begin_ns, 51'000) << "step 10 is there, only later";
        EXPECT_EQ(steps[3].period_begin_ns, 53'000);
    }
}

TEST(Resolve, where_nothing_was_lost_steps_may_have_any_numbers) {
    Tape source;
    source.track(1);
    source.step_begin(1, 1, Phase::decode, 0);
    source.step_end(1, Phase::decode, 0, 1000);
    source.step_begin(1, 9, Phase::decode, 5000);
    source.step_end(1, Phase::decode, 5000, 6000);
    EXPECT_EQ((*resolve_all(source).resolution.steps)[1].period_begin_ns, 1000);
}

TEST(Resolve, periods_tile_the_time_between_step_ends_also_where_steps_overlap) {
    Tape source;
    source.track(1);
    source.track(2, "other");
    source.step_begin(1, 1, Phase::decode, 1000);
    source.step_end(1, Phase::decode, 1000, 5000);
    source.step_begin(2, 2, Phase::decode, 3000);
    source.step_end(2, Phase::decode, 3000, 6000);
    source.step_begin(1, 3, Phase::decode, 8000);
    source.step_end(1, Phase::decode, 8000, 9000);
    const Resolved all = resolve_all(source);
    const StepTable& steps = *all.resolution.steps;
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].period_begin_ns, 1000); // nothing ended before: its own begin
    EXPECT_EQ(steps[1].period_begin_ns, 5000);
    EXPECT_EQ(steps[2].period_begin_ns, 6000);
}

TEST(Resolve, records_below_the_cut_only_move_the_state_on) {
    Tape source;
    source.track(1);
    source.step_begin(1, 1, Phase::decode, 0);
    source.scope(1, Brick::attention, 100, 200);
    source.step_end(1, Phase::decode, 0, 1000);
    source.label(1, Brick::attention, 5);
    source.work(1, Brick::attention, WorkQuantity::bytes, 64);
    source.step_begin(1, 2, Phase::decode, 2000);
    const Cut cut = {{1, source.written(1)}};
    source.scope(1, Brick::rms_norm, 2100, 2200);
    source.step_end(1, Phase::decode, 2000, 3000);
    source.step_begin(1, 3, Phase::decode, 4000);
    source.scope(1, Brick::attention, 4100, 4200, flag_work);
    source.step_end(1, Phase::decode, 4000, 5000);
    const Resolved all = resolve_all(source, {1, cut});
    ASSERT_EQ(all.resolution.steps->size(), 1u); // step 2 began before the cut
    const ResolvedStep& step = (*all.resolution.steps)[0];
    EXPECT_EQ(step.id, 3u);
    EXPECT_EQ(step.period_begin_ns, 4000);
    EXPECT_FALSE(step.warmup); // the run was warm before
    EXPECT_TRUE(all.labels.empty());
    EXPECT_EQ(all.named(Brick::attention).size(), 1u);
    EXPECT_EQ(all.named(Brick::attention)[0].bytes, 64);
    EXPECT_EQ(all.named(Brick::rms_norm).at(0).phase, Phase::none);
}

TEST(Resolve, where_a_chunk_is_missing_no_scope_around_it_is_called_a_leaf) {
    Tape source;
    source.track(1);
    source.scope(1, Brick::rms_norm, 100, 200);
    source.lose(1, 5);
    source.scope(1, Brick::attention, 150, 900);
    source.scope(1, Brick::lm_head, 1000, 1100);
    const Resolved all = resolve_all(source);
    EXPECT_FALSE(all.named(Brick::attention).at(0).leaf);
    EXPECT_TRUE(all.named(Brick::lm_head).at(0).leaf);
}

TEST(Resolve, a_batch_says_how_early_what_follows_may_end) {
    Tape source;
    source.track(1);
    source.track(2, "late");
    source.scope(1, Brick::attention, 1000, 2000);
    source.deliver(1);
    source.scope(1, Brick::attention, 8000, 9000);
    source.deliver(1);
    source.scope(2, Brick::attention, 3000, 4000); // of an idle thread, drained last
    source.deliver(2);
    std::vector<std::int64_t> bounds;
    ASSERT_TRUE(resolve(
                    source, {}, [](const StepTable&, const TrackTable&) {},
                    [&](const ResolvedBatch& batch) { bounds.push_back(batch.no_earlier_than); })
                    .ok());
    ASSERT_EQ(bounds.size(), 3u);
    EXPECT_EQ(bounds[0], 4000);
    EXPECT_EQ(bounds[1], 4000);
    EXPECT_GT(bounds[2], 1'000'000'000);
}

TEST(Resolve, spans_bound_what_follows_wherever_they_stand) {
    Tape source;
    source.track(1);
    source.track(2, "spans");
    source.scope(1, Brick::attention, 8000, 9000);
    source.deliver(1);
    source.span(2, Brick::attention, 6000, 7000);
    source.span(2, Brick::attention, 2000, 3000); // told late
    source.deliver(2);
    std::vector<std::int64_t> bounds;
    ASSERT_TRUE(resolve(
                    source, {}, [](const StepTable&, const TrackTable&) {},
                    [&](const ResolvedBatch& batch) { bounds.push_back(batch.no_earlier_than); })
                    .ok());
    ASSERT_EQ(bounds.size(), 2u);
    EXPECT_EQ(bounds[0], 3000);
}

TEST(Resolve, random_bits_never_crash_and_no_sample_has_a_negative_time) {
    std::mt19937_64 random(11);
    for (int round = 0; round < 200; ++round) {
        Tape source;
        source.track(1);
        source.track(2);
        for (int i = 0; i < 3000; ++i) {
            Record record{random(), random()};
            if (random() % 4 != 0) {
                record.first = Tape::first_tick + random() % 1'000'000;
            }
            if (random() % 4 != 0) {
                record.second = pack(static_cast<RecordKind>(random() % 20), static_cast<std::uint16_t>(random() % 4),
                                     random() % 50'000);
            }
            source.raw(static_cast<std::uint32_t>(random() % 3 + 1), record);
            if (random() % 500 == 0) {
                source.lose(1, random() % 10);
            }
        }
        const Resolved all = resolve_all(source);
        for (const Sample& sample : all.samples) {
            ASSERT_GE(sample.duration_ns, 0);
            ASSERT_GE(sample.self_ns, 0);
            ASSERT_LE(sample.self_ns, sample.duration_ns);
        }
        EXPECT_GT(all.resolution.losses.unresolved(), 0u);
        EXPECT_GT(all.resolution.losses.of(Loss::unknown_kind), 0u);
    }
}

/// More than fits between two threads at once.
Tape long_engine() {
    Tape source;
    source.track(1);
    for (std::uint64_t step = 0; step < 12'000; ++step) {
        const auto t = static_cast<std::int64_t>(step) * 10'000;
        source.step_begin(1, step, Phase::decode, t);
        source.scope(1, Brick::attention, t + 1000, t + 2000 + static_cast<std::int64_t>(step % 700) * 2);
        source.label(1, Brick::sampling, step);
        source.step_end(1, Phase::decode, t, t + 9000);
    }
    return source;
}

TEST(ResolveAhead, gives_the_same_samples_in_the_same_order) {
    Tape source = long_engine();
    const Resolved here = resolve_all(source);
    recording::RecordedRun run = source;
    run.ahead = true;
    std::size_t at = 0;
    std::size_t labels = 0;
    const auto ahead = resolve(
        run, {0, {}}, [](const StepTable&, const TrackTable&) {},
        [&](const ResolvedBatch& batch) {
            EXPECT_NE(batch.track, nullptr);
            labels += batch.labels.size();
            for (const Sample& sample : batch.samples) {
                ASSERT_LT(at, here.samples.size());
                const Sample& other = here.samples[at++];
                ASSERT_EQ(std::tie(sample.kind, sample.begin_ns, sample.duration_ns, sample.step, sample.phase),
                          std::tie(other.kind, other.begin_ns, other.duration_ns, other.step, other.phase));
            }
        });
    ASSERT_TRUE(ahead.ok());
    EXPECT_EQ(at, here.samples.size());
    EXPECT_EQ(labels, here.labels.size());
    EXPECT_EQ(ahead->records, here.resolution.records);
}

TEST(ResolveAhead, the_thread_ends_when_the_sink_throws) {
    Tape source = long_engine();
    recording::RecordedRun run = source;
    run.ahead = true;
    int batches = 0;
    const auto resolve_some = [&] {
        (void)resolve(
            run, {0, {}}, [](const StepTable&, const TrackTable&) {},
            [&](const ResolvedBatch&) {
                if (++batches == 3) {
                    throw std::bad_alloc();
                }
            });
    };
    EXPECT_THROW(resolve_some(), std::bad_alloc);
    EXPECT_EQ(batches, 3);
}

TEST(ResolveAhead, what_the_stream_says_or_throws_reaches_the_caller) {
    Tape source = long_engine();
    recording::RecordedRun run = source;
    run.ahead = true;
    const auto stream = run.for_each_batch;
    int passes = 0;
    run.for_each_batch = [&](const auto& take) -> Status {
        const Status read = stream(take);
        return ++passes == 2 ? Status(Error{ErrorCode::failed, "the disk is gone"}) : read;
    };
    const auto nothing = [](const auto&...) {
    };
    auto result = resolve(run, {0, {}}, nothing, nothing);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the disk is gone");
    run.for_each_batch = [&](const auto& take) -> Status {
        if (++passes == 4) {
            throw std::bad_alloc();
        }
        return stream(take);
    };
    EXPECT_THROW((void)resolve(run, {0, {}}, nothing, nothing), std::bad_alloc);
}

} // namespace
} // namespace plumb::resolve
