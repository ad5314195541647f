// SPDX-License-Identifier: Apache-2.0
// Scopes of captured streams: what is noted, that nothing is added, and what other captures see of us.
#include "backends/cuda/capture_notes.hpp"

#include <algorithm>
#include <thread>

#include "backends/cuda/bench_testing.hpp"

namespace plumb::backends::cuda {
namespace {

const auto* const recorder = reinterpret_cast<const Recorder*>(std::uintptr_t{0x1000});
const auto* const other_recorder = reinterpret_cast<const Recorder*>(std::uintptr_t{0x2000});

ScopeLabel label(std::uint16_t name, const Recorder* whose = recorder) {
    ScopeLabel made;
    made.recorder = whose;
    made.name = name;
    made.layer_plus_one = static_cast<std::uint16_t>(name + 1);
    return made;
}

class CaptureNotes : public testing::Test {
  protected:
    void begin_capture(CaptureMode mode = CaptureMode::relaxed) {
        ASSERT_EQ(calls().stream_begin_capture(stream_, mode), CuResult::success);
    }
    Graph end_capture() {
        Graph graph = nullptr;
        EXPECT_EQ(calls().stream_end_capture(stream_, &graph), CuResult::success);
        return graph;
    }
    static const Driver& calls() { return VirtualBench::calls(); }
    static std::vector<GraphNode> nodes_of(Graph graph) {
        std::size_t count = 0;
        EXPECT_EQ(calls().graph_get_nodes(graph, nullptr, &count), CuResult::success);
        std::vector<GraphNode> nodes(count);
        EXPECT_EQ(calls().graph_get_nodes(graph, nodes.data(), &count), CuResult::success);
        return nodes;
    }

    VirtualBench bench_;
    Stream stream_ = bench_.new_stream();
    std::unique_ptr<CudaQueueTimer> timer_ = bench_.timer(stream_);
};

TEST_F(CaptureNotes, F3_scopes_work_in_a_capture_and_add_no_node) {
    begin_capture(CaptureMode::global);
    const auto outer = timer_->begin_labelled(label(1));
    ASSERT_TRUE(outer.ok()) << outer.error().message;
    EXPECT_NE(outer->value & token_noted, 0u);
    bench_.kernel(stream_, 1'000);
    const auto inner = timer_->begin_labelled(label(2));
    ASSERT_TRUE(inner.ok());
    bench_.kernel(stream_, 2'000);
    bench_.kernel(stream_, 3'000);
    Work work = make_work();
    work.bytes = 64;
    ASSERT_TRUE(timer_->end_labelled(*inner, &work).ok());
    ASSERT_TRUE(timer_->end_labelled(*outer, nullptr).ok());
    const Graph graph = end_capture();
    EXPECT_EQ(nodes_of(graph).size(), 3u);
    EXPECT_EQ(timer_->in_flight(), 0u);

    const std::vector<ScopeNote> notes = take_capture_notes(recorder, graph);
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0].label.name, 1u);
    EXPECT_EQ(notes[0].label.layer_plus_one, 2u);
    EXPECT_EQ(notes[0].parent, no_parent);
    EXPECT_TRUE(notes[0].begin_frontier.empty()) << "the capture had just begun";
    EXPECT_FALSE(notes[0].has_work);
    EXPECT_EQ(notes[1].parent, 0u);
    ASSERT_EQ(notes[1].begin_frontier.size(), 1u);
    ASSERT_EQ(notes[1].end_frontier.size(), 1u);
    EXPECT_EQ(notes[1].end_frontier, notes[0].end_frontier);
    EXPECT_NE(notes[1].begin_frontier, notes[1].end_frontier);
    EXPECT_TRUE(notes[1].ended && notes[1].has_work && !notes[1].lossy && !notes[1].programmatic);
    EXPECT_EQ(notes[1].work.bytes, 64);
    EXPECT_TRUE(take_capture_notes(recorder, graph).empty()) << "once";
    EXPECT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
    EXPECT_TRUE(vgpu::invalidations().empty());
}

TEST_F(CaptureNotes, T4_the_graph_is_the_same_with_and_without_scopes) {
    std::vector<std::size_t> counts;
    for (const bool profiled : {false, true}) {
        begin_capture();
        for (int i = 0; i < 5; ++i) {
            const auto token = profiled ? timer_->begin_labelled(label(1)) : Result<DeviceToken>(DeviceToken{});
            bench_.kernel(stream_, 1'000 * (i + 1));
            ASSERT_TRUE(token.ok());
            ASSERT_TRUE(timer_->end_labelled(*token, nullptr).ok());
        }
        const Graph graph = end_capture();
        std::size_t edges = 0;
        ASSERT_EQ(calls().edges_of(graph, nullptr, nullptr, nullptr, &edges), CuResult::success);
        counts.push_back(nodes_of(graph).size());
        counts.push_back(edges);
        take_capture_notes(recorder, graph);
    }
    EXPECT_EQ(counts[0], counts[2]);
    EXPECT_EQ(counts[1], counts[3]);
}

TEST_F(CaptureNotes, laps_end_where_the_next_begins) {
    begin_capture();
    auto token = timer_->begin_labelled(label(1));
    for (std::uint16_t i = 2; i < 6; ++i) {
        ASSERT_TRUE(token.ok());
        bench_.kernel(stream_, 1'000);
        token = timer_->lap(*token, nullptr, label(i));
    }
    ASSERT_TRUE(token.ok());
    ASSERT_TRUE(timer_->end_labelled(*token, nullptr).ok());
    const std::vector<ScopeNote> notes = take_capture_notes(recorder, end_capture());
    ASSERT_EQ(notes.size(), 5u);
    for (std::size_t i = 1; i < notes.size(); ++i) {
        EXPECT_EQ(notes[i].begin_frontier, notes[i - 1].end_frontier);
        EXPECT_EQ(notes[i].parent, no_parent) << "a lap is nobody's child";
    }
}

TEST_F(CaptureNotes, a_joined_stream_and_two_recorders_keep_their_own) {
    const Stream side = bench_.new_stream();
    const auto side_timer = bench_.timer(side);
    Event fork = nullptr, join = nullptr;
    calls().event_create(&fork, event_disable_timing);
    calls().event_create(&join, event_disable_timing);
    begin_capture();
    const auto outer = timer_->begin_labelled(label(1));
    bench_.kernel(stream_, 1'000);
    calls().event_record(fork, stream_);
    calls().stream_wait_event(side, fork, 0);
    const auto on_side = side_timer->begin_labelled(label(2));
    ASSERT_TRUE(on_side.ok()) << "the side stream is captured too";
    EXPECT_NE(on_side->value & token_noted, 0u);
    const auto others = timer_->begin_labelled(label(3, other_recorder));
    bench_.kernel(side, 2'000);
    bench_.kernel(stream_, 2'000);
    ASSERT_TRUE(side_timer->end_labelled(*on_side, nullptr).ok());
    ASSERT_TRUE(timer_->end_labelled(*others, nullptr).ok());
    calls().event_record(join, side);
    calls().stream_wait_event(stream_, join, 0);
    ASSERT_TRUE(timer_->end_labelled(*outer, nullptr).ok());
    const Graph graph = end_capture();
    const std::vector<ScopeNote> mine = take_capture_notes(recorder, graph);
    ASSERT_EQ(mine.size(), 2u);
    EXPECT_EQ(mine[1].stream, side);
    EXPECT_EQ(mine[1].parent, no_parent) << "a queue of its own";
    EXPECT_EQ(mine[0].end_frontier.size(), 2u) << "both branches";
    const std::vector<ScopeNote> others_notes = take_capture_notes(other_recorder, graph);
    ASSERT_EQ(others_notes.size(), 1u);
    EXPECT_EQ(others_notes[0].label.name, 3u);
    EXPECT_EQ(others_notes[0].parent, no_parent);
}

TEST_F(CaptureNotes, a_scope_that_crosses_the_border_of_a_capture_is_refused_on_both_sides) {
    const auto eager = timer_->begin_labelled(label(1));
    ASSERT_TRUE(eager.ok());
    begin_capture();
    const std::uint64_t records = vgpu::calls("cuEventRecord");
    bench_.kernel(stream_, 1'000);
    const Status crossed = timer_->end_labelled(*eager, nullptr);
    ASSERT_FALSE(crossed.ok());
    EXPECT_EQ(crossed.error().code, ErrorCode::unsupported);
    timer_->cancel(*eager);
    EXPECT_EQ(vgpu::calls("cuEventRecord"), records) << "an event recorded in a capture cannot be read";
    const auto inside = timer_->begin_labelled(label(2));
    ASSERT_TRUE(inside.ok());
    const Graph graph = end_capture();
    EXPECT_EQ(timer_->end_labelled(*inside, nullptr).error().code, ErrorCode::unsupported);
    const std::vector<ScopeNote> notes = take_capture_notes(recorder, graph);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_FALSE(notes[0].ended);
    EXPECT_EQ(timer_->in_flight(), 0u);
    const auto after = timer_->begin_labelled(label(1));
    ASSERT_TRUE(after.ok());
    EXPECT_TRUE(timer_->end_labelled(*after, nullptr).ok()) << "and then all is as before";
}

TEST_F(CaptureNotes, an_unlabelled_scope_in_a_capture_says_what_to_use) {
    begin_capture();
    const auto token = timer_->begin();
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().code, ErrorCode::unsupported);
    bench_.kernel(stream_, 1'000);
    EXPECT_NE(end_capture(), nullptr);
}

TEST_F(CaptureNotes, an_invalidated_capture_gets_no_stamp) {
    begin_capture(CaptureMode::global);
    std::thread([&] { // a careless thread of the engine
        calls().ctx_push_current(bench_.context());
        Event event = nullptr;
        calls().event_create(&event, event_default);
        calls().event_query(event);
        calls().stream_synchronize(stream_);
    })
        .join();
    ASSERT_FALSE(vgpu::invalidations().empty());
    const std::uint64_t records = vgpu::calls("cuEventRecord");
    EXPECT_FALSE(timer_->begin_labelled(label(1)).ok());
    EXPECT_EQ(vgpu::calls("cuEventRecord"), records);
    Graph graph = nullptr;
    EXPECT_NE(calls().stream_end_capture(stream_, &graph), CuResult::success);
    EXPECT_TRUE(timer_->begin_labelled(label(1)).ok());
}

TEST_F(CaptureNotes, the_legacy_stream_is_left_alone_while_a_blocking_stream_is_captured) {
    const Stream blocking = bench_.new_stream(0);
    const auto legacy = bench_.timer(nullptr);
    ASSERT_EQ(calls().stream_begin_capture(blocking, CaptureMode::relaxed), CuResult::success);
    const auto token = legacy->begin_labelled(label(1));
    ASSERT_FALSE(token.ok());
    EXPECT_EQ(token.error().code, ErrorCode::unsupported);
    bench_.kernel(blocking, 1'000);
    Graph graph = nullptr;
    EXPECT_EQ(calls().stream_end_capture(blocking, &graph), CuResult::success);
    EXPECT_TRUE(vgpu::invalidations().empty());
    EXPECT_TRUE(legacy->begin_labelled(label(1)).ok());
}

TEST_F(CaptureNotes, captures_that_nobody_asks_for_are_forgotten_oldest_first) {
    const std::uint64_t forgotten = capture_note_counts().forgotten;
    std::vector<Graph> graphs;
    for (int i = 0; i < 200; ++i) {
        begin_capture();
        const auto token = timer_->begin_labelled(label(7));
        bench_.kernel(stream_, 1'000);
        ASSERT_TRUE(token.ok() && timer_->end_labelled(*token, nullptr).ok());
        graphs.push_back(end_capture());
    }
    EXPECT_LE(capture_note_counts().captures, 64u);
    EXPECT_GE(capture_note_counts().forgotten - forgotten, 136u);
    EXPECT_TRUE(take_capture_notes(recorder, graphs.front()).empty());
    EXPECT_EQ(take_capture_notes(recorder, graphs.back()).size(), 1u);
}

TEST_F(CaptureNotes, a_graph_handle_that_is_given_out_anew_does_not_bring_back_old_notes) {
    Graph last = nullptr;
    for (std::uint16_t i = 0; i < 10; ++i) {
        begin_capture();
        const auto token = timer_->begin_labelled(label(i));
        bench_.kernel(stream_, 1'000);
        ASSERT_TRUE(token.ok() && timer_->end_labelled(*token, nullptr).ok());
        const Graph graph = end_capture();
        EXPECT_TRUE(last == nullptr || last == graph) << "the virtual GPU hands out what was destroyed last";
        last = graph;
        if (i < 9) {
            calls().graph_destroy(graph);
        }
    }
    const std::vector<ScopeNote> notes = take_capture_notes(recorder, last);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].label.name, 9u);
}

TEST_F(CaptureNotes, a_capture_of_too_many_scopes_refuses_the_rest_and_counts_them) {
    const std::uint64_t refused = capture_note_counts().refused;
    begin_capture();
    bench_.kernel(stream_, 1'000);
    std::size_t noted = 0;
    for (int i = 0; i < 70'000; ++i) {
        const auto token = timer_->begin_labelled(label(1));
        noted += token.ok();
        if (token) {
            ASSERT_TRUE(timer_->end_labelled(*token, nullptr).ok());
        }
    }
    EXPECT_EQ(noted, 65'536u);
    EXPECT_EQ(capture_note_counts().refused - refused, 70'000u - noted);
    EXPECT_EQ(take_capture_notes(recorder, end_capture()).size(), noted);
}

TEST_F(CaptureNotes, our_threads_disturb_nobodys_capture_in_global_mode) {
    const Stream eager = bench_.new_stream();
    const auto eager_timer = bench_.timer(eager);
    for (int round = 0; round < 20; ++round) {
        const auto token = eager_timer->begin_labelled(label(1));
        ASSERT_TRUE(token.ok());
        bench_.kernel(eager, 5'000);
        ASSERT_TRUE(eager_timer->end_labelled(*token, nullptr).ok());
        begin_capture(CaptureMode::global);
        bench_.kernel(stream_, 1'000);
        std::thread([&] { // the drain
            vgpu::advance(1'000'000'000);
            EXPECT_TRUE(eager_timer->collect(*token).ok());
            EXPECT_TRUE(eager_timer->clock_pair().ok());
            EXPECT_TRUE(eager_timer->floor_ns().ok());
            const auto second = bench_.timer(eager); // a new queue in the middle of it
        })
            .join();
        const Graph graph = end_capture();
        ASSERT_NE(graph, nullptr) << "round " << round;
        EXPECT_EQ(nodes_of(graph).size(), 1u);
    }
    EXPECT_TRUE(vgpu::invalidations().empty()) << vgpu::invalidations().front().call;
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

TEST_F(CaptureNotes, notes_of_a_capture_given_up_or_of_an_ended_recorder_never_reach_a_later_graph) {
    const auto capture = [&](const Recorder* whose, unsigned long long& id) {
        begin_capture();
        CaptureStatus status = CaptureStatus::none;
        Graph graph = nullptr;
        EXPECT_EQ(calls().capture_info(stream_, &status, &id, &graph, nullptr, nullptr, nullptr), CuResult::success);
        const auto token = timer_->begin_labelled(label(1, whose));
        bench_.kernel(stream_, 1'000);
        EXPECT_TRUE(timer_->end_labelled(*token, nullptr).ok());
        return end_capture();
    };
    drop_capture_notes(recorder); // of other tests
    drop_capture_notes(other_recorder);
    unsigned long long given_up = 0, kept = 0, ended = 0;
    const Graph first = capture(recorder, given_up);
    const Graph second = capture(recorder, kept);
    const Graph third = capture(other_recorder, ended);
    drop_capture_notes(given_up);
    drop_capture_notes(other_recorder);
    EXPECT_TRUE(take_capture_notes(recorder, first).empty());
    EXPECT_TRUE(take_capture_notes(other_recorder, third).empty());
    EXPECT_EQ(take_capture_notes(recorder, second).size(), 1u);
}

TEST_F(CaptureNotes, immediate_timers_do_not_wait_in_a_capture) {
    TimerOptions options;
    options.immediate = true;
    const auto timer = bench_.timer(stream_, options);
    begin_capture();
    const auto token = timer->begin_labelled(label(1));
    ASSERT_TRUE(token.ok());
    bench_.kernel(stream_, 1'000);
    ASSERT_TRUE(timer->end_labelled(*token, nullptr).ok());
    EXPECT_TRUE(timer->wait(*token).ok());
    EXPECT_NE(end_capture(), nullptr);
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
    const auto capabilities = timer->capabilities();
    EXPECT_TRUE(std::any_of(capabilities.begin(), capabilities.end(), [](const Capability& capability) {
        return capability.name == "immediate_in_capture" && !capability.supported;
    }));
}

TEST_F(CaptureNotes, every_call_of_a_capture_fails_once_and_the_capture_goes_on) {
    for (const char* call : {"cuStreamIsCapturing", "cuStreamGetCaptureInfo"}) {
        for (std::uint64_t use = 1; use <= 6; ++use) {
            begin_capture();
            vgpu::fail(call, CuResult::unknown, use);
            const auto first = timer_->begin_labelled(label(1));
            bench_.kernel(stream_, 1'000);
            const auto second = first ? timer_->lap(*first, nullptr, label(2)) : timer_->begin_labelled(label(2));
            bench_.kernel(stream_, 1'000);
            const Status ended = second ? timer_->end_labelled(*second, nullptr) : Status();
            if (vgpu::all_failures_struck()) {
                EXPECT_FALSE(first.ok() && second.ok() && ended.ok()) << call << " " << use;
            }
            vgpu::clear_failures();
            const Graph graph = end_capture();
            ASSERT_NE(graph, nullptr);
            EXPECT_EQ(nodes_of(graph).size(), 2u);
            for (const ScopeNote& note : take_capture_notes(recorder, graph)) {
                EXPECT_TRUE(!note.ended || note.end_frontier.size() == 1u);
            }
        }
    }
    EXPECT_EQ(timer_->in_flight(), 0u);
}

} // namespace
} // namespace plumb::backends::cuda
