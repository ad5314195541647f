// SPDX-License-Identifier: Apache-2.0
// Running totals against records whose truth is known. One tick is 2 ns, so that ticks taken for nanoseconds show.
#include "metrics/totals.hpp"

#include <gtest/gtest.h>

#include "metrics/scrape_testing.hpp"

namespace plumb::metrics {
namespace {

constexpr std::uint16_t norm = static_cast<std::uint16_t>(Brick::rms_norm);
constexpr std::uint16_t reduce = static_cast<std::uint16_t>(Brick::all_reduce);
constexpr auto prefill = static_cast<std::uint16_t>(Phase::prefill);
constexpr auto decode = static_cast<std::uint16_t>(Phase::decode);

/// A writer's calls, by hand.
class TotalsTest : public ::testing::Test {
  protected:
    TotalsTest() {
        track(1);
        pair(0, 1000, 0);
        pair(0, 501000, 1'000'000);
    }
    void pair(std::uint32_t clock, std::uint64_t ticks, std::int64_t ns, std::uint64_t uncertainty = 0) {
        totals_.add(recording::ClockPair{clock, ticks, ns, ns, uncertainty});
    }
    void track(std::uint32_t id, const std::string& source = "cpu_tsc", std::uint32_t clock = 0) {
        recording::TrackInfo info;
        info.id = id;
        info.kind = clock == 0 ? recording::TrackKind::host_thread : recording::TrackKind::device_queue;
        info.clock = clock;
        info.source = source;
        totals_.add(info);
    }
    void name(std::uint16_t id, const std::string& text, Category category = Category::other) {
        totals_.add(recording::NameInfo{id, category, text});
    }
    void write(std::uint32_t track, const std::vector<Record>& records) {
        totals_.add(recording::RecordBatch{track, 0, records.data(), records.size()});
    }
    static Record scope(std::uint16_t name, std::uint64_t ticks, std::uint64_t flags = 0) {
        return {2000, pack(RecordKind::scope, name, ticks) | flags};
    }
    static Record step_begin(std::uint64_t id, std::uint16_t phase) {
        return {2000, pack(RecordKind::step_begin, phase, id)};
    }
    static Record step_end(std::uint16_t phase, std::uint64_t ticks) {
        return {2000, pack(RecordKind::step_end, phase, ticks)};
    }
    static Record value(StepValue which, std::uint64_t value) {
        return {value, pack(RecordKind::step_value, static_cast<std::uint16_t>(which))};
    }
    static Record context(std::uint64_t step) { return {step + 1, pack(RecordKind::context)}; }
    static Record context_end() { return {0, pack(RecordKind::context_end)}; }
    static std::string brick(const char* what, const std::string& name, const char* phase,
                             const char* source = "cpu_tsc") {
        return std::string("plumb_brick_") + what + "_total{brick=\"" + name + "\",phase=\"" + phase + "\",source=\"" +
               source + "\"}";
    }
    [[nodiscard]] std::map<std::string, double> series() const { return series_of(text_of(totals_.figures())); }

    Totals totals_{recording::Metadata{}};
};

TEST_F(TotalsTest, scopes_laps_and_spans_add_up_by_brick_and_phase) {
    write(1, {scope(norm, 3), step_begin(0, prefill), scope(norm, 50), scope(norm, 50, flag_lap),
              step_end(prefill, 200), step_begin(1, decode), scope(norm, 7),
              Record{2000, pack(RecordKind::span, norm, 10)}, step_end(decode, 100)});
    auto found = series();
    EXPECT_DOUBLE_EQ(found[brick("seconds", "rms_norm", "none")], 6e-9);
    EXPECT_DOUBLE_EQ(found[brick("seconds", "rms_norm", "prefill")], 200e-9);
    EXPECT_EQ(found[brick("calls", "rms_norm", "prefill")], 2);
    EXPECT_DOUBLE_EQ(found[brick("seconds", "rms_norm", "decode")], 34e-9);
    EXPECT_EQ(found[brick("calls", "rms_norm", "decode")], 2);
}

TEST_F(TotalsTest, a_clock_of_24_mhz_has_times_as_one_of_3_ghz) {
    track(2, "cpu_cntvct", 4);
    pair(4, 1000, 0);
    pair(4, 24'001'000, 1'000'000'000);
    write(2, {scope(norm, 24)});
    EXPECT_NEAR(series()[brick("seconds", "rms_norm", "none", "cpu_cntvct")], 1e-6, 1e-12);
}

TEST_F(TotalsTest, steps_fall_into_buckets_by_their_time) {
    write(1, {step_begin(0, decode), step_end(decode, 250'000), step_begin(1, decode), step_end(decode, 500'000),
              step_begin(2, decode), step_end(decode, 500'001), step_begin(3, decode),
              Record{std::uint64_t{1} << 42, pack(RecordKind::long_value)}, step_end(decode, payload_mask)});
    auto found = series();
    EXPECT_EQ(found["plumb_step_seconds_bucket{phase=\"decode\",le=\"0.001\"}"], 2); // a bound belongs to its bucket
    EXPECT_EQ(found["plumb_step_seconds_bucket{phase=\"decode\",le=\"0.0025\"}"], 3);
    EXPECT_EQ(found["plumb_step_seconds_bucket{phase=\"decode\",le=\"5\"}"], 3);
    EXPECT_EQ(found["plumb_step_seconds_bucket{phase=\"decode\",le=\"+Inf\"}"], 4);
    EXPECT_EQ(found["plumb_step_seconds_count{phase=\"decode\"}"], 4);
    EXPECT_NEAR(found["plumb_step_seconds_sum{phase=\"decode\"}"], 8796.093022208 + 0.002500002, 1e-9);
}

TEST_F(TotalsTest, tokens_count_with_the_end_of_their_step_by_what_they_were_for) {
    write(1, {step_begin(0, static_cast<std::uint16_t>(Phase::mixed)), value(StepValue::prefill_tokens, 30),
              value(StepValue::decode_tokens, 4)});
    EXPECT_EQ(series().count("plumb_tokens_total{phase=\"decode\"}"), 0u);
    write(1, {step_end(static_cast<std::uint16_t>(Phase::mixed), 9), step_begin(1, decode),
              value(StepValue::decode_tokens, 5),
              Record{0, pack(RecordKind::mark, static_cast<std::uint16_t>(Mark::cut_step))}, step_begin(2, decode),
              value(StepValue::decode_tokens, 6), step_end(decode, 9)});
    auto found = series();
    EXPECT_EQ(found["plumb_tokens_total{phase=\"prefill\"}"], 30);
    EXPECT_EQ(found["plumb_tokens_total{phase=\"decode\"}"], 10); // a step that was cut is none
    EXPECT_EQ(found["plumb_step_seconds_count{phase=\"decode\"}"], 1);
}

TEST_F(TotalsTest, F10_a_worker_whose_ring_is_written_before_that_of_the_step_counts_in_its_phase) {
    track(2);
    write(2, {context(7), scope(norm, 10), scope(norm, 20)});
    EXPECT_EQ(series().count(brick("calls", "rms_norm", "decode")), 0u);
    write(1, {step_begin(7, decode)});
    write(2, {scope(norm, 30), context_end(), scope(norm, 1)});
    auto found = series();
    EXPECT_EQ(found[brick("calls", "rms_norm", "decode")], 3);
    EXPECT_DOUBLE_EQ(found[brick("seconds", "rms_norm", "decode")], 120e-9);
    EXPECT_EQ(found[brick("calls", "rms_norm", "none")], 1);
}

TEST_F(TotalsTest, any_number_of_steps_in_one_batch_is_in_the_histogram) {
    std::vector<Record> records;
    for (std::uint64_t step = 0; step < 100'000; ++step) {
        records.push_back(step_begin(step, decode));
        records.push_back(step_end(decode, 100 + step % 7));
    }
    write(1, records);
    EXPECT_EQ(series()["plumb_step_seconds_count{phase=\"decode\"}"], 100'000);
    Totals early(recording::Metadata{}); // before anything is known of the clock
    early.add(recording::RecordBatch{1, 0, records.data(), records.size()});
    EXPECT_EQ(series_of(text_of(early.figures())).count("plumb_step_seconds_count{phase=\"decode\"}"), 0u);
    early.add(recording::ClockPair{0, 1000, 0, 0, 0});
    early.add(recording::ClockPair{0, 501000, 1'000'000, 1'000'000, 0});
    auto found = series_of(text_of(early.figures()));
    EXPECT_EQ(found["plumb_step_seconds_count{phase=\"decode\"}"], 100'000);
    EXPECT_DOUBLE_EQ(found["plumb_step_seconds_sum{phase=\"decode\"}"],
                     series()["plumb_step_seconds_sum{phase=\"decode\"}"]);
}

TEST_F(TotalsTest, F10_a_worker_counts_in_the_phases_of_its_steps_however_many_the_rings_lie_apart) {
    std::vector<Record> steps, work;
    for (std::uint64_t step = 0; step < 100'000; ++step) {
        const std::uint16_t phase = step % 2 == 0 ? prefill : decode;
        steps.insert(steps.end(), {step_begin(step, phase), step_end(phase, 9)});
        work.insert(work.end(), {context(step), scope(norm, 10), context_end()});
    }
    track(2);
    track(3);
    constexpr std::size_t ahead = 10'000; // steps of a worker whose ring is written first
    write(2, {work.begin(), work.begin() + 3 * ahead});
    write(1, steps);
    write(3, work);
    auto found = series();
    EXPECT_EQ(found[brick("calls", "rms_norm", "prefill")], 50'000 + ahead / 2);
    EXPECT_EQ(found[brick("calls", "rms_norm", "decode")], 50'000 + ahead / 2);
    EXPECT_EQ(found.count(brick("calls", "rms_norm", "unknown")), 0u);
    for (std::int64_t second = 2; second < 7; ++second) {
        pair(0, 1000 + 500'000 * static_cast<std::uint64_t>(second), 1'000'000 * second);
    }
    write(1, {step_begin(100'000, decode)});
    write(2, {context(0), scope(norm, 10), context_end(), context(99'999), scope(norm, 10), context_end()});
    found = series();
    EXPECT_EQ(found[brick("calls", "rms_norm", "unknown")], 1) << "steps are not remembered for ever";
    EXPECT_EQ(found[brick("calls", "rms_norm", "decode")], 50'001 + ahead / 2);
}

TEST_F(TotalsTest, of_a_step_that_never_comes_the_phase_is_unknown_and_nothing_is_lost) {
    track(2);
    for (std::uint64_t step = 0; step < 1000; ++step) {
        write(2, {context(step), scope(norm, 10), context_end()});
    }
    for (std::int64_t second = 2; second < 8; ++second) {
        pair(0, 1000 + 500'000 * static_cast<std::uint64_t>(second), 1'000'000 * second);
    }
    write(2, {});
    EXPECT_EQ(series()[brick("calls", "rms_norm", "unknown")], 1000);
}

TEST_F(TotalsTest, M4_what_comes_before_its_clock_is_known_is_converted_once_it_is) {
    track(3, "cuda_event", 1);
    write(1, {step_begin(0, decode)});
    pair(1, 5'000'000, 0, 1000);
    pair(1, 5'000'100, 200, 1000); // too close together to say how fast the clock runs
    write(3, {context(0), scope(norm, 100), context_end()});
    EXPECT_EQ(series().count(brick("calls", "rms_norm", "decode", "cuda_event")), 0u);
    pair(1, 7'500'000, 10'000'000, 1000); // 4 ns a tick
    auto found = series();
    EXPECT_EQ(found[brick("calls", "rms_norm", "decode", "cuda_event")], 1);
    EXPECT_DOUBLE_EQ(found[brick("seconds", "rms_norm", "decode", "cuda_event")], 400e-9);
}

TEST_F(TotalsTest, a_total_never_goes_back_when_the_clock_turns_out_to_be_faster) {
    write(1, {scope(norm, 1'000'000)});
    const double before = series()[brick("seconds", "rms_norm", "none")];
    pair(0, 1001000, 1'900'000);
    write(1, {scope(norm, 0)});
    EXPECT_GE(series()[brick("seconds", "rms_norm", "none")], before);
}

TEST_F(TotalsTest, names_beyond_the_bound_are_counted_together_and_a_scrape_stays_small) {
    std::uint64_t calls = 0;
    for (std::uint16_t i = 0; i < 5000; ++i) {
        const auto id = static_cast<std::uint16_t>(first_interned_id + i);
        name(id, "brick " + std::to_string(i), i % 3 == 0 ? Category::collective : Category::other);
        for (std::uint16_t phase = 0; phase < 4; ++phase) {
            write(1, {step_begin(calls, phase), value(StepValue::decode_tokens, 1), value(StepValue::prefill_tokens, 1),
                      scope(id, 1), step_end(phase, 1)});
            ++calls;
        }
    }
    for (std::uint32_t i = 0; i < 20; ++i) {
        track(10 + i, "source " + std::to_string(i));
        write(10 + i, {scope(norm, 1), scope(static_cast<std::uint16_t>(first_interned_id + 4000), 1)});
        calls += 2;
    }
    recording::GraphInfo row;
    for (int i = 0; i < 50; ++i) {
        row.eager_steps.emplace_back("reason " + std::to_string(i), 1);
    }
    totals_.add(row);
    totals_.add(recording::Counters{});
    const auto found = series();
    EXPECT_LE(found.size(), 200u);
    double counted = 0, eager = 0;
    for (const auto& [series, value] : found) {
        counted += series.starts_with("plumb_brick_calls_total") ? value : 0;
        eager += series.starts_with("plumb_graph_eager_steps_total") ? value : 0;
    }
    EXPECT_EQ(counted, static_cast<double>(calls));
    EXPECT_EQ(eager, 50);
    EXPECT_GT(found.at("plumb_bricks_in_other"), 4900);
    EXPECT_GT(found.at(brick("calls", "other", "decode")), 4900);
}

TEST_F(TotalsTest, names_that_would_be_the_same_series_are_one) {
    name(300, "other");
    name(301, std::string("bad \xff"));
    name(302, std::string("bad \xfe"));
    name(303, std::string(200, 'n') + "1");
    name(304, std::string(200, 'n') + "2");
    name(305, "a\"b\\c\nd");
    write(1, {scope(300, 1), scope(301, 1), scope(302, 1), scope(303, 1), scope(304, 1), scope(305, 1)});
    auto found = series();
    EXPECT_EQ(found[brick("calls", "bad \xEF\xBF\xBD", "none")], 2);
    EXPECT_EQ(found[brick("calls", std::string(128, 'n'), "none")], 2);
    EXPECT_EQ(found[brick("calls", "a\\\"b\\\\c\\nd", "none")], 1);
    EXPECT_EQ(found[brick("calls", "other", "none")], 1);
}

TEST_F(TotalsTest, collectives_have_a_sum_of_their_own_by_the_group_they_said) {
    constexpr std::uint16_t tp = 400, pp = 401, custom = 402;
    name(tp, "tp");
    name(pp, "pp");
    name(custom, "exchange");
    const auto of = [](std::uint16_t group, std::uint16_t name) {
        return Record{1, pack(RecordKind::collective, group, name)};
    };
    write(1, {step_begin(0, decode), scope(reduce, 100), scope(norm, 100), of(tp, reduce), of(pp, custom),
              scope(custom, 10), scope(custom, 1000), scope(reduce, 50), of(pp, reduce),
              Record{1, pack(RecordKind::device_scope, reduce, 9)}, scope(reduce, 1), step_end(decode, 300)});
    auto found = series();
    EXPECT_DOUBLE_EQ(found["plumb_collective_seconds_total{group=\"tp\"}"], 100e-9);
    EXPECT_DOUBLE_EQ(found["plumb_collective_seconds_total{group=\"pp\"}"], 20e-9); // the other is no collective
    EXPECT_DOUBLE_EQ(found["plumb_collective_seconds_total"], 202e-9); // the last group was that of the device's scope
}

TEST_F(TotalsTest, a_rank_of_groups_says_its_place_in_them) {
    recording::Metadata metadata;
    metadata.groups = {{"tp", 3, 4, {}}, {"ep", 9, 16, {}}, {"pp", 0, 2, {}}};
    const Totals totals(metadata);
    EXPECT_EQ(series_of(text_of(totals.figures())),
              (std::map<std::string, double>{{"plumb_bricks_in_other{tp_rank=\"3\",pp_rank=\"0\"}", 0}}));
}

TEST_F(TotalsTest, graphs_are_added_up_over_their_keys_by_their_last_rows) {
    recording::GraphInfo one, two;
    one.key = 1, one.replays = 10, one.eager_steps = {{"not captured", 2}};
    two.key = 2, two.replays = 5, two.eager_steps = {{"not captured", 1}, {"padded", 4}};
    totals_.add(one);
    totals_.add(two);
    one.replays = 30;
    one.eager_steps[0].second = 3;
    totals_.add(one);
    auto found = series();
    EXPECT_EQ(found["plumb_graph_replays_total"], 35);
    EXPECT_EQ(found["plumb_graph_eager_steps_total{reason=\"not captured\"}"], 4);
    EXPECT_EQ(found["plumb_graph_eager_steps_total{reason=\"padded\"}"], 4);
}

TEST_F(TotalsTest, only_records_count_as_dropped_records) {
    recording::Counters counters;
    counters.drops = {{"ring full", 3},
                      {"lap outside any scope", 2},
                      {"no ring to be had: its thread was ending, or memory ran out", 1},
                      {"name refused: it is empty, or the registry is full (kept as \"unnamed\")", 100},
                      {"tensor not checked", 100}};
    totals_.add(counters);
    EXPECT_EQ(series()["plumb_dropped_records_total"], 6);
}

TEST_F(TotalsTest, F1_what_was_not_measured_is_absent) {
    EXPECT_EQ(series(), (std::map<std::string, double>{{"plumb_bricks_in_other", 0}}));
    write(1, {scope(norm, 1)});
    recording::Counters counters;
    counters.drain_cpu_ns = 1000;
    totals_.add(counters);
    EXPECT_EQ(series().count("plumb_own_cost_ratio"), 0u); // the price of a scope is not known
}

TEST_F(TotalsTest, own_cost_is_what_was_recorded_by_its_price_and_the_drain_by_the_time_since_the_first_record) {
    recording::Metadata metadata;
    metadata.costs = {{"scope", 100}, {"lap", 50}, {"cpu_time", 10}, {"floor", 20}};
    Totals totals(metadata);
    const std::vector<Record> records = {step_begin(0, decode),
                                         scope(norm, 3),
                                         scope(norm, 3, flag_lap),
                                         {2100, static_cast<std::uint64_t>(RecordKind::cpu_time) << kind_shift},
                                         step_end(decode, 200)};
    totals.add(recording::ClockPair{0, 1000, 0, 0, 0});
    totals.add(recording::RecordBatch{1, 0, records.data(), records.size()});
    totals.add(recording::ClockPair{0, 12'000, 22'000, 0, 0}); // 20 us after the first record
    recording::Counters counters;
    counters.drain_cpu_ns = 740;
    totals.add(counters);
    EXPECT_DOUBLE_EQ(series_of(text_of(totals.figures()))["plumb_own_cost_ratio"], 1000.0 / 20'000);
}

TEST_F(TotalsTest, the_model_and_its_place_are_labels_of_every_series) {
    totals_.describe("model", "/models/qwen \"0.5b\"");
    totals_.describe("tp_rank", "3");
    totals_.describe("engine", "unseen");
    write(1, {scope(norm, 1)});
    for (const auto& [series, value] : series()) {
        EXPECT_NE(series.find("{model_name=\"/models/qwen \\\"0.5b\\\"\",tp_rank=\"3\""), std::string::npos) << series;
    }
}

TEST_F(TotalsTest, with_redact_a_model_that_is_a_folder_has_its_label) {
    Totals totals(recording::Metadata{}, true);
    totals.describe("model", "models/qwen/");
    EXPECT_NE(text_of(totals.figures()).find("{model_name=\"qwen\"}"), std::string::npos);
}

TEST_F(TotalsTest, with_redact_a_model_is_not_named_by_its_folder) {
    Totals totals(recording::Metadata{}, true);
    totals.describe("model", "/models/qwen");
    EXPECT_EQ(text_of(totals.figures()).find("/models"), std::string::npos);
    EXPECT_NE(text_of(totals.figures()).find("{model_name=\"qwen\"}"), std::string::npos);
}

} // namespace
} // namespace plumb::metrics
