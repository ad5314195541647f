// SPDX-License-Identifier: Apache-2.0
// Device scopes: each gets the times of its own token, the step, layer and work it was submitted under, or is counted.
#include "drain/device_collector.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "drain/hand_timer_testing.hpp"
#include "record/queue_registry.hpp"
#include "record/recorder_testing.hpp"
#include "recording/reader.hpp"

namespace plumb::drain {
namespace {

using record::TestRecorder;
using record::Words;
using record::words;

constexpr Name device_norm = Brick::rms_norm;
constexpr std::uint32_t queue_track = 900;

class Collected : public testing::Test {
  protected:
    Collected() {
        writer_ = *recording::Writer::create({}, recording::Metadata{});
        recording::TrackInfo track;
        track.id = queue_track;
        track.kind = recording::TrackKind::device_queue;
        collector_.add(timer_, track);
    }
    /// What the drain does with one round of records; returns the queue's own, in words.
    Words round() {
        for (const auto& [track, records] : recorder_.take_tracks()) {
            collector_.scan({track, 0, records.data(), records.size()});
        }
        EXPECT_TRUE(collector_.collect(*writer_).ok());
        Words list;
        recording::Reader reader = *recording::Reader::from_bytes(writer_->snapshot());
        EXPECT_TRUE(reader
                        .for_each_batch([&](const recording::RecordBatch& batch) {
                            EXPECT_EQ(batch.track, queue_track);
                            for (std::size_t i = 0; i < batch.count; ++i) {
                                list.push_back(words(batch.records[i]));
                            }
                            return true;
                        })
                        .ok());
        return list;
    }

    /// All scopes written so far, without what stands around them.
    Words scopes() {
        Words list = round();
        std::erase_if(list, [](const std::string& word) { return word.rfind("scope ", 0) != 0; });
        return list;
    }

    TestRecorder recorder_;
    HandTimer timer_;
    Queue queue_{&timer_, queue_track};
    DeviceCollector collector_;
    std::unique_ptr<recording::Writer> writer_;
};

TEST_F(Collected, which_collective_a_scope_is_stands_again_before_it) {
    constexpr Name reduce = Brick::all_reduce;
    { PLUMB_BRICK(recorder_, host, reduce, sequence(4)); } // of the thread itself: not of the queue's next one
    { PLUMB_BRICK(recorder_, queue_, reduce); }
    { PLUMB_BRICK(recorder_, queue_, reduce, group(Name(300)), sequence(5)); }
    timer_.done[1] = {500, 530, 0};
    timer_.done[2] = {600, 630, 0};
    const Words all = round();
    ASSERT_EQ(all.size(), 9u);
    EXPECT_EQ(all[2], "scope 26 @500 +30");
    EXPECT_EQ(all[5], "collective 26 group=300 number+1=6");
    EXPECT_EQ(all[6].rfind("cause ", 0), 0u);
    EXPECT_EQ(all[7], "scope 26 @600 +30");
}

TEST_F(Collected, a_scope_has_the_devices_times_and_the_place_it_was_submitted_from) {
    {
        PLUMB_STEP(recorder_, queue_, Phase::decode);
        PLUMB_LAYER(recorder_, 4);
        PLUMB_BRICK(recorder_, queue_, device_norm, bytes(64));
    }
    EXPECT_TRUE(round().empty()) << "not finished: nothing waits, nothing is made up";
    timer_.done[1] = {500, 530, 0};
    EXPECT_EQ(round(),
              (Words{"context step+1=1 layer+1=5", "work 1 bytes=64", "work 1 flops=none", "work 1 elements=none",
                     "work 1 bytes_per_kv=none", "cause 1:8", "scope 1 @500 +30 work", "context_end"}));
    EXPECT_EQ(collector_.unresolved(), 0u);
}

// Each scope has its own end: one end for all that is pending would make durations cumulative.
TEST_F(Collected, scopes_collected_together_keep_their_own_ends) {
    for (int i = 0; i < 3; ++i) {
        PLUMB_BRICK(recorder_, queue_, device_norm);
    }
    timer_.done = {{1, {100, 110, 0}}, {2, {110, 125, 0}}, {3, {125, 126, 0}}};
    Words scopes;
    for (const std::string& word : round()) {
        if (word.rfind("scope", 0) == 0) {
            scopes.push_back(word);
        }
    }
    EXPECT_EQ(scopes, (Words{"scope 1 @100 +10", "scope 1 @110 +15", "scope 1 @125 +1"}));
}

TEST_F(Collected, a_span_that_ends_before_it_begins_is_counted_never_clamped) {
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    timer_.done[1] = {500, 400, 0};
    EXPECT_TRUE(round().empty());
    EXPECT_EQ(collector_.unresolved(), 1u);
}

TEST_F(Collected, what_never_finishes_is_counted_as_unresolved) {
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    timer_.done[1] = {1, 2, 0};
    (void)round();
    EXPECT_EQ(collector_.unresolved(), 1u);
}

TEST_F(Collected, a_refused_scope_is_dropped_and_counted_and_leaks_no_token) {
    timer_.refuse_begin = true;
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    {
        PLUMB_BRICK(recorder_, host, device_norm);
        PLUMB_LAP(recorder_, queue_, device_norm);
    }
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 2u);
    timer_.refuse_begin = false;
    timer_.refuse_end = true;
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    {
        PLUMB_BRICK(recorder_, host, device_norm);
        PLUMB_LAP(recorder_, queue_, device_norm);
    }
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 4u);
    EXPECT_EQ(timer_.in_flight(), 0u);
    EXPECT_EQ(collector_.unresolved(), 0u);
}

TEST_F(Collected, immediate_waits_and_a_failed_wait_is_counted_once) {
    timer_.immediately = true;
    timer_.refuse_wait = true;
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    EXPECT_TRUE(round().empty());
    EXPECT_EQ(recorder_.drops(Drop::device_failed), 1u);
    EXPECT_EQ(collector_.unresolved(), 0u);
    EXPECT_EQ(timer_.in_flight(), 0u);
}

TEST_F(Collected, a_recorder_in_sync_immediate_waits_for_every_device_and_never_for_the_host) {
    record::TestOptions options;
    options.stamps.serialise = true;
    TestRecorder immediate(options);
    { PLUMB_BRICK(immediate, queue_, device_norm); }
    EXPECT_EQ(timer_.waits, 1u) << "a queue of the whole process knows nothing of this recorder's sync mode";
    {
        PLUMB_BRICK(immediate, host, device_norm);
        PLUMB_LAP(immediate, queue_, device_norm);
    }
    EXPECT_EQ(timer_.waits, 2u);
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    EXPECT_EQ(timer_.waits, 2u) << "deferred";
    timer_.on_host = true;
    { PLUMB_BRICK(immediate, queue_, device_norm); }
    EXPECT_EQ(timer_.waits, 2u);
}

TEST_F(Collected, a_clock_whose_timer_is_gone_gets_its_pairs_from_the_next_one) {
    HandTimer other;
    other.ticks = 77;
    recording::TrackInfo track;
    track.kind = recording::TrackKind::device_queue;
    const auto read = [&] {
        EXPECT_TRUE(collector_.collect(*writer_).ok());
        EXPECT_TRUE(collector_.write_clock_pairs(*writer_).ok());
        return recording::Reader::from_bytes(writer_->snapshot())->clock_pairs().back().ticks;
    };
    track.id = queue_track + 1;
    collector_.add(other, track);
    EXPECT_EQ(read(), 1u) << "the first timer of that clock answers";
    timer_.gone = true;
    track.id = queue_track + 2;
    collector_.add(other, track);
    EXPECT_EQ(read(), 77u);
}

TEST_F(Collected, open_across_a_toggle_gives_its_token_back) {
    {
        PLUMB_BRICK(recorder_, queue_, device_norm);
        PLUMB_LAP(recorder_, queue_, device_norm);
        recorder_.off();
    }
    EXPECT_EQ(timer_.in_flight(), 0u);
    EXPECT_EQ(recorder_.drops(Drop::across_toggle), 2u);
}

TEST_F(Collected, in_a_full_ring_gives_its_token_back) {
    for (int i = 0; i < 5000; ++i) {
        PLUMB_BRICK(recorder_, queue_, device_norm);
    }
    const std::uint64_t lost = recorder_.drops(Drop::ring_full);
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(timer_.in_flight() + lost, 5000u);
}

TEST_F(Collected, laps_on_a_queue_share_no_token_and_end_with_their_scope) {
    {
        PLUMB_BRICK(recorder_, host, Brick::attention);
        PLUMB_LAP(recorder_, queue_, device_norm);
        PLUMB_LAP(recorder_, queue_, Brick::rope_embedding);
    }
    timer_.done = {{1, {10, 20, 0}}, {2, {20, 50, 0}}};
    Words scopes;
    for (const std::string& word : round()) {
        if (word.rfind("scope", 0) == 0) {
            scopes.push_back(word);
        }
    }
    EXPECT_EQ(scopes, (Words{"scope 1 @10 +10 lap", "scope 5 @20 +30 lap"}));
    EXPECT_EQ(timer_.in_flight(), 0u);
}

// sync=none: the device is left alone, and the scope shows what the host spent on it.
TEST_F(Collected, with_host_only_stamps_the_timer_is_never_asked) {
    record::TestOptions options;
    options.stamps.host_only = true;
    TestRecorder host_only(options);
    {
        PLUMB_BRICK(host_only, queue_, device_norm);
        PLUMB_LAP(host_only, queue_, Brick::rope_embedding);
        host_only.clock.advance(3);
        PLUMB_LAP_END(host_only, queue_);
    }
    host_only.record_device(device_norm, queue_, DeviceToken{1});
    EXPECT_EQ(timer_.last, 0u);
    EXPECT_EQ(host_only.take(), (Words{"scope 5 @1000 +3 lap", "scope 1 @1000 +3"}));
}

TEST_F(Collected, clock_pairs_of_the_queue_are_written_under_its_own_clock) {
    ASSERT_TRUE(collector_.write_clock_pairs(*writer_).ok());
    recording::Reader reader = *recording::Reader::from_bytes(writer_->snapshot());
    ASSERT_EQ(reader.clock_pairs().size(), 2u) << "one when the queue was added";
    EXPECT_EQ(reader.clock_pairs()[0].clock, queue_track);
    EXPECT_EQ(reader.clock_pairs()[0].ticks, 1u);
}

TEST_F(Collected, the_clock_of_a_queue_has_its_name_in_the_recording) {
    ASSERT_TRUE(collector_.collect(*writer_).ok());
    recording::Reader reader = *recording::Reader::from_bytes(writer_->snapshot());
    ASSERT_EQ(reader.metadata().clocks.size(), 1u);
    EXPECT_EQ(reader.metadata().clocks[0].id, queue_track);
    EXPECT_EQ(reader.metadata().clocks[0].name, "hand");
}

TEST_F(Collected, what_is_wrong_with_a_span_is_written_before_it) {
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    timer_.done[1] = {500, 530, span_includes_launch_wait};
    EXPECT_EQ(round(),
              (Words{"context step+1=0 layer+1=0", "cause 1:2", "span_quality 1", "scope 1 @500 +30", "context_end"}));
}

TEST_F(Collected, M2_what_never_becomes_ready_holds_back_nothing_but_its_own_group) {
    for (int i = 0; i < 4; ++i) {
        PLUMB_BRICK(recorder_, queue_, device_norm);
    }
    timer_.groups = {{1, 10}, {2, 10}, {3, 11}}; // two command buffers, and a scope of the queue
    timer_.done[2] = {20, 21, 0};
    timer_.done[3] = {30, 31, 0};
    timer_.done[4] = {40, 41, 0};
    EXPECT_EQ(scopes(), (Words{"scope 1 @30 +1", "scope 1 @40 +1"})) << "2 is behind 1, of its group";
    timer_.done[1] = {50, 51, 0};
    EXPECT_EQ(scopes(), (Words{"scope 1 @30 +1", "scope 1 @40 +1", "scope 1 @50 +1", "scope 1 @20 +1"}));
}

TEST_F(Collected, M2_commands_that_run_out_of_order_are_each_taken_when_they_are_ready_however_many_are_not) {
    constexpr std::uint64_t commands = 300;
    for (std::uint64_t token = 1; token <= commands; ++token) {
        PLUMB_BRICK(recorder_, queue_, device_norm);
        timer_.groups[token] = token;
    }
    timer_.done[commands] = {10, 15, span_may_overlap};
    timer_.done[commands - 1] = {11, 12, span_may_overlap};
    EXPECT_EQ(scopes(), (Words{"scope 1 @11 +1", "scope 1 @10 +5"}));
    EXPECT_EQ(collector_.unresolved(), commands - 2);
    { PLUMB_BRICK(recorder_, queue_, device_norm); } // a scope of the queue, behind all of them
    timer_.done[commands + 1] = {20, 21, 0};
    EXPECT_EQ(scopes().back(), "scope 1 @20 +1");
}

TEST_F(Collected, F8_what_lies_inside_a_scope_is_written_before_it_though_it_was_asked_for_too_early) {
    for (int i = 0; i < 4; ++i) {
        PLUMB_BRICK(recorder_, queue_, device_norm);
    }
    timer_.groups = {{1, 10}, {2, 10}, {3, 11}};
    timer_.done[3] = {30, 31, 0};
    timer_.done[4] = {5, 60, 0}; // around all
    timer_.collected = [&](std::uint64_t token) {
        if (token == 3) { // the device goes on while the drain asks
            timer_.done[1] = {10, 11, 0};
            timer_.done[2] = {20, 21, 0};
        }
    };
    EXPECT_EQ(scopes(), (Words{"scope 1 @10 +1", "scope 1 @20 +1", "scope 1 @30 +1", "scope 1 @5 +55"}));
}

TEST_F(Collected, when_it_was_queued_and_submitted_is_written_before_a_scope_where_its_source_tells) {
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    timer_.done[1] = {500, 530, 0, 400, 470};
    { PLUMB_BRICK(recorder_, queue_, device_norm); }
    timer_.done[2] = {600, 630, 0, no_ticks, 601}; // a moment behind the begin is no lead
    EXPECT_EQ(round(),
              (Words{"context step+1=0 layer+1=0", "cause 1:2", "span_lead queued=100 submitted=30", "scope 1 @500 +30",
                     "context_end", "context step+1=0 layer+1=0", "cause 1:4", "scope 1 @600 +30", "context_end"}));
}

/// As a queue with captures and sampling does it.
class LabelTimer final : public HandTimer {
  public:
    [[nodiscard]] Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept override {
        labels.push_back(label);
        if (capturing) {
            return DeviceToken{token_noted | ++notes};
        }
        return label.timed ? HandTimer::begin() : Result<DeviceToken>(DeviceToken{token_not_timed});
    }
    [[nodiscard]] Status end_labelled(DeviceToken token, const Work* work) noexcept override {
        if ((token.value & token_noted) != 0) {
            noted_bytes.push_back(work != nullptr ? work->bytes : -1);
            return {};
        }
        EXPECT_NE(token.value, token_not_timed);
        return HandTimer::end(token);
    }
    [[nodiscard]] bool sampled_by_step() const noexcept override { return true; }

    std::vector<ScopeLabel> labels;
    std::vector<double> noted_bytes;
    bool capturing = false;
    std::uint64_t notes = 0;
};

TEST(DeviceLabels, a_scope_in_a_capture_is_noted_with_name_layer_and_work_and_recorded_nowhere) {
    LabelTimer timer;
    timer.capturing = true;
    TestRecorder recorder;
    const Queue queue{&timer, 7};
    {
        PLUMB_LAYER(recorder, 4);
        PLUMB_BRICK(recorder, queue, Brick::attention, bytes(64));
        PLUMB_LAP(recorder, queue, device_norm);
        PLUMB_LAP(recorder, queue, Brick::rope_embedding, bytes(8));
    }
    ASSERT_EQ(timer.labels.size(), 3u);
    EXPECT_EQ(timer.labels[0].recorder, &recorder);
    EXPECT_EQ(timer.labels[0].name, Name(Brick::attention).id);
    EXPECT_EQ(timer.labels[0].layer_plus_one, 5);
    EXPECT_FALSE(timer.labels[0].lap);
    EXPECT_TRUE(timer.labels[1].lap);
    EXPECT_EQ(timer.noted_bytes, (std::vector<double>{-1, 8, 64}));
    for (const std::string& word : recorder.take()) {
        EXPECT_EQ(word.find("device"), std::string::npos) << word;
    }
    EXPECT_EQ(recorder.all_drops(), 0u);
}

TEST(DeviceLabels, of_every_nth_step_all_scopes_are_timed_and_of_the_others_none) {
    LabelTimer timer;
    record::TestOptions options;
    options.stamps.device_every = 3;
    TestRecorder recorder(options);
    const Queue queue{&timer, 7};
    for (int step = 0; step < 9; ++step) {
        PLUMB_STEP(recorder, queue, Phase::decode);
        PLUMB_BRICK(recorder, queue, device_norm);
        PLUMB_LAP(recorder, queue, device_norm);
        PLUMB_LAP(recorder, queue, device_norm);
    }
    { PLUMB_BRICK(recorder, queue, device_norm); } // in no step: timed
    int scopes = 0;
    for (const std::string& word : recorder.take()) {
        scopes += word.rfind("device_scope", 0) == 0 ? 1 : 0;
    }
    EXPECT_EQ(scopes, 3 * 3 + 1);
    EXPECT_EQ(recorder.all_drops(), 0u);
    std::vector<bool> timed;
    for (const ScopeLabel& label : timer.labels) {
        timed.push_back(label.timed);
    }
    EXPECT_FALSE(timed[0]);
    EXPECT_TRUE(timed[6]);
}

TEST(DeviceLabels, a_launch_of_a_graph_is_one_event_of_its_thread) {
    LabelTimer timer;
    TestRecorder recorder;
    recorder.record_graph_launch(77, launch_instrumented, Queue{&timer, 7}, Timestamp{1000}, Timestamp{1005});
    EXPECT_EQ(recorder.take(), (Words{"device_submit @1000 +5", "graph_launch key=77 flags=1 track=7"}));
    recorder.record_graph_launch(77, 0, Queue{&timer, 7}, Timestamp{1005}, Timestamp{1000});
    EXPECT_EQ(recorder.drops(Drop::negative_span), 1u);
}

TEST(ClockPairs, on_which_clock_a_timer_reads_them_they_are_written_on_that_of_the_session) {
    struct Ahead final : HostClock {
        [[nodiscard]] std::uint64_t now_ticks() const noexcept override { return static_cast<std::uint64_t>(now_ns()); }
        [[nodiscard]] std::int64_t now_ns() const noexcept override { return clock::monotonic_ns() + 3'000'000'000; }
    };
    const Ahead ahead;
    const clock::HostClockSource injected = clock::host_clock(&ahead);
    const clock::HostClockSource monotonic;
    for (const clock::HostClockSource* const reads : {&monotonic, &injected}) {
        HandTimer timer;
        timer.reads = reads;
        DeviceCollector collector(1, injected);
        recording::TrackInfo track;
        track.id = queue_track;
        track.kind = recording::TrackKind::device_queue;
        auto writer = *recording::Writer::create({}, recording::Metadata{});
        const std::int64_t before = ahead.now_ns();
        collector.add(timer, track);
        ASSERT_TRUE(collector.write_clock_pairs(*writer).ok());
        const auto pairs = recording::Reader::from_bytes(writer->snapshot())->clock_pairs();
        ASSERT_EQ(pairs.size(), 2u);
        for (const recording::ClockPair& pair : pairs) {
            EXPECT_NEAR(static_cast<double>(pair.monotonic_ns - before), 0.0, 1e9) << "3 s lie between the two";
        }
    }
}

/// What a collector wrote: tracks, pairs and records in words by track.
struct Written {
    explicit Written(recording::Writer& writer) : reader(*recording::Reader::from_bytes(writer.snapshot())) {
        EXPECT_TRUE(reader
                        .for_each_batch([&](const recording::RecordBatch& batch) {
                            for (std::size_t i = 0; i < batch.count; ++i) {
                                records[batch.track].push_back(words(batch.records[i]));
                            }
                            return true;
                        })
                        .ok());
    }
    recording::Reader reader;
    std::map<std::uint32_t, Words> records;
};

TEST(ProcessQueue, is_found_by_its_track_by_every_collector_and_shares_the_clock_of_its_name) {
    static LabelTimer first; // registered queues live as long as the process
    static LabelTimer second;
    const std::uint32_t track = record::register_queue(first, "stream 1");
    const std::uint32_t other = record::register_queue(second, "stream 2");
    TestRecorder recorder;
    DeviceCollector collector(5);
    EXPECT_TRUE(collector.active());
    auto writer = *recording::Writer::create({}, recording::Metadata{});
    { PLUMB_BRICK(recorder, (Queue{&first, track}), device_norm); }
    { PLUMB_BRICK(recorder, (Queue{&second, other}), device_norm); }
    first.done[1] = {5, 6, 0};
    second.done[1] = {7, 9, 0};
    for (const auto& [thread, records] : recorder.take_tracks()) {
        collector.scan({thread, 0, records.data(), records.size()});
    }
    ASSERT_TRUE(collector.collect(*writer).ok());
    ASSERT_TRUE(collector.write_clock_pairs(*writer).ok());
    Written written(*writer);
    EXPECT_EQ(written.records[track][2], "scope 1 @5 +1");
    EXPECT_EQ(written.records[other][2], "scope 1 @7 +2");
    ASSERT_EQ(written.reader.tracks().size(), 2u);
    EXPECT_EQ(written.reader.tracks()[0].name, "stream 1");
    EXPECT_EQ(written.reader.tracks()[0].sampled_every, 5u);
    EXPECT_EQ(written.reader.tracks()[0].clock, written.reader.tracks()[1].clock);
    EXPECT_EQ(written.reader.clock_pairs().size(), 2u) << "one clock: a pair when it was met, and one now";
    EXPECT_EQ(collector.unresolved(), 0u);
}

class HandFeed final : public DeviceFeed {
  public:
    void collect(FeedRound& round) override { round = std::exchange(next, {}); }
    [[nodiscard]] std::uint64_t unresolved() const noexcept override { return lost; }
    FeedRound next;
    std::uint64_t lost = 0;
};

TEST(DeviceFeed, its_samples_lie_on_its_own_track_and_its_rows_in_the_recording) {
    HandFeed feed;
    HandTimer timer;
    DeviceCollector collector;
    collector.add_feed(feed);
    EXPECT_TRUE(collector.active());
    auto writer = *recording::Writer::create({}, recording::Metadata{});
    FeedTrack track;
    track.info.id = 500;
    track.info.kind = recording::TrackKind::captured_graph;
    track.info.graph_key = 16;
    track.info.source = "cuda_graph_event";
    track.clock_name = "hand";
    track.clock = &timer;
    feed.next.tracks.push_back(track);
    DeviceSample sample;
    sample.track = 500;
    sample.name = 1;
    sample.step_plus_one = 9;
    sample.layer_plus_one = 3;
    sample.begin_ticks = 100;
    sample.end_ticks = 150;
    sample.has_work = true;
    sample.work = make_work(bytes(32));
    feed.next.samples.push_back(sample);
    sample.track = 501; // nobody announced it
    feed.next.samples.push_back(sample);
    recording::GraphInfo row;
    row.key = 16;
    row.replays = 3;
    feed.next.graphs.push_back(row);
    feed.lost = 2;
    feed.next.cpu_ns = 40;
    ASSERT_TRUE(collector.collect(*writer).ok());
    feed.next.cpu_ns = 2;
    ASSERT_TRUE(collector.collect(*writer).ok());
    EXPECT_EQ(collector.feeds_cpu_ns(), 42u);
    ASSERT_TRUE(collector.write_clock_pairs(*writer).ok());
    Written written(*writer);
    EXPECT_EQ(written.records[500],
              (Words{"context step+1=9 layer+1=3", "work 1 bytes=32", "work 1 flops=none", "work 1 elements=none",
                     "work 1 bytes_per_kv=none", "scope 1 @100 +50 work", "context_end"}));
    ASSERT_EQ(written.reader.graphs().size(), 1u);
    EXPECT_EQ(written.reader.graphs()[0].replays, 3u);
    EXPECT_EQ(written.reader.tracks()[0].graph_key, 16u);
    EXPECT_EQ(written.reader.tracks()[0].clock_name, "hand");
    EXPECT_EQ(written.reader.clock_pairs().size(), 2u);
    EXPECT_EQ(collector.unresolved(), 3u);
    collector.remove_feed(feed);
    feed.next.samples.push_back(sample);
    ASSERT_TRUE(collector.collect(*writer).ok());
    EXPECT_EQ(feed.next.samples.size(), 1u) << "nobody asks a feed that was taken out";
}

TEST(DeviceFeed, F7_its_checks_lie_in_the_recording_in_its_order_and_wait_for_room) {
    HandFeed feed;
    DeviceCollector collector;
    collector.add_feed(feed);
    bool full = true;
    recording::WriterOptions options;
    options.path = testing::TempDir() + "plumb-checks-" + std::to_string(getpid()) + ".plumb";
    options.write = [&full, writes = 0](int file, const void* data, std::size_t size,
                                        std::uint64_t offset) mutable -> std::int64_t {
        if (full && writes++ > 0) { // all but the head
            errno = ENOSPC;
            return -1;
        }
        return pwrite(file, data, size, static_cast<off_t>(offset));
    };
    auto writer = *recording::Writer::create(options, recording::Metadata{});
    const auto give = [&feed](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = first; i < first + count; ++i) {
            feed.next.checks.emplace_back().order = i;
        }
    };
    give(0, 2);
    EXPECT_EQ(collector.collect(*writer).error().code, ErrorCode::no_space);
    give(2, 70'000);
    EXPECT_EQ(collector.collect(*writer).error().code, ErrorCode::no_space);
    constexpr std::uint64_t held = 65536;
    EXPECT_EQ(collector.dropped_checks(), 70'002 - held) << "counted, and the first are kept";
    full = false;
    give(70'002, 1);
    ASSERT_TRUE(collector.collect(*writer).ok());
    give(70'003, 1);
    ASSERT_TRUE(collector.collect(*writer).ok());
    ASSERT_TRUE(writer->close().ok());
    auto reader = *recording::Reader::open(options.path);
    std::vector<std::uint64_t> orders;
    ASSERT_TRUE(reader
                    .for_each_check([&orders](recording::TensorCheck&& check) {
                        orders.push_back(check.order);
                        return true;
                    })
                    .ok());
    std::vector<std::uint64_t> expected(held);
    std::iota(expected.begin(), expected.end(), 0u);
    expected.push_back(70'003); // the one before came while there was no place for it
    EXPECT_EQ(orders, expected);
    collector.remove_feed(feed);
    unlink(options.path.c_str());
}

} // namespace
} // namespace plumb::drain
