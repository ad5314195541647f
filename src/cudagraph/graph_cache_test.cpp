// SPDX-License-Identifier: Apache-2.0
// The life of keys in a graph cache.
#include <algorithm>
#include <thread>

#include "backends/cuda/capture_notes.hpp"
#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

class GraphCache : public CacheTest {};

std::size_t ran(const std::string& kernel) {
    vgpu::run_dry();
    const std::vector<vgpu::Operation> operations = vgpu::operations();
    return static_cast<std::size_t>(std::count_if(operations.begin(), operations.end(), [&](const auto& operation) {
        return operation.kind == vgpu::OpKind::kernel && operation.name == kernel;
    }));
}

TEST_F(GraphCache, a_captured_step_runs_when_it_is_replayed_and_not_before) {
    cache = make_cache();
    ASSERT_EQ(message_of(engine->capture(*cache, 8, 3)), "");
    EXPECT_EQ(ran("gemm"), 0u);
    EXPECT_TRUE(replays(8));
    EXPECT_TRUE(replays(8));
    EXPECT_EQ(ran("gemm"), 6u);
    EXPECT_EQ(cache->size(), 1u);
    EXPECT_GT(cache->bytes(), 0u);
}

TEST_F(GraphCache, a_key_without_a_graph_replays_nothing_and_counts_an_eager_step_with_its_reason) {
    cache = make_cache();
    EXPECT_FALSE(replays(5));
    ASSERT_TRUE(engine->capture(*cache, 5));
    EXPECT_TRUE(cache->invalidate(5));
    EXPECT_FALSE(cache->invalidate(5));
    EXPECT_FALSE(replays(5));
    EXPECT_FALSE(replays(5));
    cache->note_eager(5, "prefill");
    const std::vector<CudaGraphRow::Count> expected = {{"invalidated", 2}, {"never captured", 1}, {"prefill", 1}};
    EXPECT_EQ(row(5).eager_steps, expected);
    EXPECT_EQ(row(5).invalidations, 1u);
    EXPECT_EQ(row(5).evictions, 0u);
}

TEST_F(GraphCache, begin_twice_is_an_error_and_leaves_the_first_capture_alone) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    const Status again = cache->begin_capture(engine->stream);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
    engine->kernels("gemm", 1);
    EXPECT_EQ(message_of(cache->end_capture(1)), "");
    EXPECT_TRUE(replays(1));
}

TEST_F(GraphCache, a_stream_that_somebody_else_captures_is_refused_and_left_alone) {
    cache = make_cache();
    Engine::check(engine->calls.stream_begin_capture(engine->stream, cuda::CaptureMode::relaxed));
    const Status begun = cache->begin_capture(engine->stream);
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(cache->abort_capture());
    cuda::Graph theirs = nullptr;
    Engine::check(engine->calls.stream_end_capture(engine->stream, &theirs));
    Engine::check(engine->calls.graph_destroy(theirs));
}

TEST_F(GraphCache, end_without_begin_and_on_another_thread_are_errors) {
    cache = make_cache();
    const Status ended = cache->end_capture(1);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(message_of(ended).find("begin_capture"), std::string::npos);

    ASSERT_TRUE(cache->begin_capture(engine->stream));
    Status elsewhere;
    std::thread([&] { elsewhere = cache->end_capture(1); }).join();
    EXPECT_FALSE(elsewhere);
    EXPECT_TRUE(cache->abort_capture());
}

TEST_F(GraphCache, an_empty_graph_is_an_error_and_the_key_keeps_what_it_had) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1, 2));
    const Status empty = engine->capture(*cache, 1, 0);
    ASSERT_FALSE(empty);
    EXPECT_NE(message_of(empty).find("empty"), std::string::npos);
    EXPECT_TRUE(replays(1));
    EXPECT_EQ(ran("gemm"), 2u);
}

TEST_F(GraphCache, an_aborted_capture_leaves_nothing_and_the_stream_runs_on) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    engine->kernels("gemm", 2);
    EXPECT_TRUE(cache->abort_capture());
    EXPECT_EQ(vgpu::alive().graphs, 0u);
    EXPECT_FALSE(replays(1));
    engine->kernels("gemm", 1);
    EXPECT_EQ(ran("gemm"), 1u);
}

TEST_F(GraphCache, what_scopes_noted_in_a_capture_ends_with_it_whichever_way_it_ends) {
    cache = make_cache({}, &host);
    ScopeLabel label;
    label.recorder = reinterpret_cast<const Recorder*>(std::uintptr_t{0x1000});
    cuda::drop_capture_notes(label.recorder);
    cuda::Graph graph = nullptr; // as the notes know it
    const auto scope = [&] {
        cuda::CaptureStatus status = cuda::CaptureStatus::none;
        unsigned long long id = 0;
        Engine::check(engine->calls.capture_info(engine->stream, &status, &id, &graph, nullptr, nullptr, nullptr));
        const Result<DeviceToken> token = cuda::note_begin(engine->calls, engine->stream, label);
        ASSERT_EQ(message_of(token), "");
        engine->kernels("gemm", 1);
        ASSERT_EQ(message_of(cuda::note_end(engine->calls, engine->stream, *token, nullptr)), "");
    };
    const auto left = [&] {
        return cuda::take_capture_notes(label.recorder, graph).size();
    };
    ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
    scope();
    EXPECT_EQ(message_of(cache->abort_capture()), "");
    EXPECT_EQ(left(), 0u) << "aborted";

    ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
    scope();
    vgpu::fail("cuStreamEndCapture", cuda::CuResult::stream_capture_invalidated);
    EXPECT_FALSE(cache->end_capture(1));
    EXPECT_EQ(left(), 0u) << "failed";

    EXPECT_TRUE(cache->verify_capture(1, engine->stream, [&](std::int32_t, std::int32_t) {
        scope();
        return Status();
    }));
    EXPECT_EQ(left(), 0u) << "compared";

    ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
    scope();
    EXPECT_EQ(message_of(cache->end_capture(1)), "");
    EXPECT_EQ(left(), 0u) << "admitted, and nobody asked";

    ASSERT_EQ(message_of(cache->begin_capture(engine->stream)), "");
    scope();
    cache.reset();
    EXPECT_EQ(left(), 0u) << "the cache ended first";
}

TEST_F(GraphCache, a_cache_that_ends_during_a_capture_gives_it_up) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    engine->kernels("gemm", 2);
    cache.reset();
    EXPECT_EQ(vgpu::alive().captures, 0u);
    EXPECT_EQ(vgpu::alive().graphs, 0u);
}

TEST_F(GraphCache, recapture_of_the_same_topology_updates_in_place) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1, 3, "old"));
    ASSERT_TRUE(replays(1));
    const std::uint64_t instantiated = vgpu::calls("cuGraphInstantiateWithFlags");
    ASSERT_EQ(message_of(engine->capture(*cache, 1, 3, "new")), "");
    EXPECT_EQ(vgpu::calls("cuGraphInstantiateWithFlags"), instantiated);
    ASSERT_TRUE(replays(1));
    EXPECT_EQ(ran("old"), 3u);
    EXPECT_EQ(ran("new"), 3u);
    EXPECT_EQ(row(1).updates, 1u);
    EXPECT_EQ(row(1).instantiations, 1u);
    EXPECT_EQ(row(1).captures, 2u);
    EXPECT_EQ(vgpu::alive().graphs, 1u);
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

TEST_F(GraphCache, recapture_of_another_topology_instantiates_anew_and_names_what_changed) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1, 4, "rope"));
    EXPECT_TRUE(row(1).node_changes.empty());
    ASSERT_EQ(message_of(engine->capture(*cache, 1, 2, "rope")), "");
    EXPECT_EQ(row(1).updates, 0u);
    EXPECT_EQ(row(1).instantiations, 2u);
    EXPECT_EQ(row(1).node_changes, std::vector<std::string>{"rope: 4 before, 2 now"});
    ASSERT_TRUE(replays(1));
    EXPECT_EQ(ran("rope"), 2u);
    EXPECT_EQ(vgpu::alive().graphs, 1u);
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

TEST_F(GraphCache, graphs_are_uploaded_once_or_before_each_launch) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1));
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(replays(1));
    }
    EXPECT_EQ(row(1).uploads, 1u);

    CudaGraphOptions each;
    each.upload_each = true;
    cache = make_cache(each);
    ASSERT_TRUE(engine->capture(*cache, 1));
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(replays(1));
    }
    EXPECT_EQ(row(1).uploads, 5u);
    EXPECT_GT(row(1).upload_ns.value.value_or(0), 0.0);
}

TEST_F(GraphCache, a_replay_waits_for_the_device_only_where_it_was_told_to) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1));
    const std::uint64_t before = vgpu::synchronising_calls();
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(replays(1));
    }
    EXPECT_TRUE(cache->invalidate(1));
    EXPECT_EQ(vgpu::synchronising_calls(), before);

    CudaGraphOptions waiting;
    waiting.sync = true;
    cache = make_cache(waiting);
    ASSERT_TRUE(engine->capture(*cache, 1));
    EXPECT_TRUE(replays(1));
    EXPECT_EQ(vgpu::synchronising_calls(), before + 1);
}

TEST_F(GraphCache, a_replay_becomes_part_of_a_greater_capture_without_waiting_or_uploading) {
    CudaGraphOptions options;
    options.sync = true;
    options.upload_each = true;
    options.profile_every = 1;
    options.profile_path = testing::TempDir() + "plumb_greater_capture.jsonl";
    cache = make_cache(options);
    ASSERT_TRUE(engine->capture(*cache, 1, 2));
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    EXPECT_TRUE(replays(1));
    ASSERT_EQ(message_of(cache->end_capture(2)), "");
    EXPECT_TRUE(replays(2));
    EXPECT_EQ(ran("gemm"), 2u);
}

TEST_F(GraphCache, the_row_of_a_key_tells_its_life) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    engine->kernels("gemm", 5);
    ASSERT_TRUE(cache->end_capture(7));
    ASSERT_TRUE(replays(7));
    cache->note_padding(7, 3, 8);
    cache->note_padding(7, 5, 8);
    const CudaGraphRow life = row(7);
    EXPECT_TRUE(life.live);
    EXPECT_EQ(life.captures, 1u);
    EXPECT_EQ(life.replays, 1u);
    EXPECT_EQ(life.nodes, (std::vector<CudaGraphRow::Count>{{"kernel", 5}}));
    EXPECT_EQ(life.rows_used, 8u);
    EXPECT_EQ(life.rows_padded, 16u);
    EXPECT_GT(life.capture_ns.value.value_or(0), 0.0);
    EXPECT_GT(life.instantiate_ns.value.value_or(0), 0.0);
    EXPECT_GT(life.upload_ns.value.value_or(0), 0.0);
    EXPECT_GE(life.launch_ns.value.value_or(0), 5000.0);
    EXPECT_GT(life.bytes.value.value_or(0), 0u);
    EXPECT_EQ(life.not_probed, "no profiler");
}

TEST_F(GraphCache, F1_a_time_that_nobody_took_is_absent_and_never_0) {
    CudaGraphOptions options;
    options.upload_each = true;
    cache = make_cache(options);
    cache->note_eager(1, "prefill");
    const CudaGraphRow before = row(1);
    EXPECT_EQ(before.capture_ns.reason, "never captured");
    EXPECT_EQ(before.instantiate_ns.reason, "never instantiated");
    EXPECT_EQ(before.bytes.reason, "never captured");
    ASSERT_TRUE(engine->capture(*cache, 1));
    const CudaGraphRow captured = row(1);
    EXPECT_EQ(captured.upload_ns.reason, "never uploaded");
    EXPECT_EQ(captured.launch_ns.reason, "never replayed");
    for (const Figure* const figure : {&before.capture_ns, &before.instantiate_ns, &before.upload_ns, &before.launch_ns,
                                       &before.bytes, &captured.upload_ns, &captured.launch_ns}) {
        EXPECT_FALSE(figure->value.has_value()) << figure->reason;
    }
    ASSERT_TRUE(replays(1));
    const CudaGraphRow replayed = row(1);
    EXPECT_GT(replayed.upload_ns.value.value_or(0), 0);
    EXPECT_GT(replayed.launch_ns.value.value_or(0), 0);
    EXPECT_GT(replayed.bytes.value.value_or(0), 0);
    ASSERT_TRUE(cache->invalidate(1));
    EXPECT_FALSE(row(1).bytes.value.has_value());
    EXPECT_EQ(row(1).bytes.reason, "invalidated");
    EXPECT_EQ(row(1).upload_ns.value, replayed.upload_ns.value) << "what it took stays";
}

TEST_F(GraphCache, the_profiler_hears_of_captures_and_evictions_and_gets_what_only_the_cache_knows) {
    CudaGraphOptions options;
    options.max_graphs = 1;
    cache = make_cache(options, &host);
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(replays(1));
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(engine->capture(*cache, 2));
    cache->note_padding(2, 1, 4);
    EXPECT_FALSE(replays(1));
    const std::vector<std::string> expected = {"captured 1", "captured 1", "captured 2", "dropped 1"};
    EXPECT_EQ(host.told, expected);
    const recording::GraphInfo first = host.row(1);
    EXPECT_EQ(first.instantiations, 1u);
    EXPECT_EQ(first.updates, 1u);
    EXPECT_EQ(first.uploads, 2u);
    EXPECT_EQ(first.captures, 2u) << "the probe counts captures, and nobody else";
    EXPECT_EQ(first.replays, 1u) << "and replays";
    EXPECT_EQ(first.launch_ns, static_cast<double>(FakeHost::probe_launch_ns)) << "and their time";
    EXPECT_EQ(first.nodes, (std::vector<recording::NamedCount>{{"kernel", 3}})) << "where it did not look";
    EXPECT_EQ(first.eager_steps, (std::vector<recording::NamedCount>{{"evicted", 1}}));
    EXPECT_EQ(first.evictions, 1u);
    EXPECT_TRUE(cache->invalidate(2));
    EXPECT_EQ(host.row(2).evictions, 0u) << "invalidated is not evicted";
    EXPECT_GT(first.bytes, 0.0);
    EXPECT_GT(first.instantiate_ns, 0.0);
    EXPECT_EQ(host.row(2).rows_padded, 4u);
    EXPECT_EQ(row(1).not_probed, "");
    EXPECT_EQ(row(1).evictions, 1u);
    EXPECT_EQ(row(1).launch_ns.value, first.launch_ns) << "one ledger, two readers";
    EXPECT_EQ(row(2).invalidations, 1u);
}

TEST_F(GraphCache, without_a_probe_the_cache_counts_alone_and_says_why) {
    host.refusal = "graph.stamps=off";
    cache = make_cache({}, &host);
    ASSERT_TRUE(engine->capture(*cache, 1, 4, "rope"));
    ASSERT_TRUE(replays(1));
    ASSERT_TRUE(engine->capture(*cache, 1, 3, "rope"));
    EXPECT_TRUE(cache->invalidate(1));
    const recording::GraphInfo life = host.row(1);
    EXPECT_EQ(life.captures, 2u);
    EXPECT_EQ(life.replays, 1u);
    EXPECT_GT(life.launch_ns, 0.0);
    EXPECT_EQ(life.node_checks, 1u);
    EXPECT_EQ(life.twin_reason, "n/a: graph.stamps=off");
    ASSERT_EQ(life.node_changes.size(), 1u);
    EXPECT_EQ(life.node_changes[0].before, 4u);
    EXPECT_EQ(life.node_changes[0].after, 3u);
    EXPECT_EQ(row(1).not_probed, "graph.stamps=off");
}

TEST_F(GraphCache, without_a_driver_every_call_says_what_to_do) {
    CudaGraphCache none(
        new Cache(nullptr, Error{ErrorCode::unavailable, "install the driver."}, CudaGraphOptions{}, nullptr, nullptr));
    EXPECT_EQ(message_of(none.begin_capture(nullptr)), "install the driver.");
    EXPECT_EQ(message_of(none.set_decode_state(1, 2, nullptr)), "install the driver.");
    EXPECT_EQ(message_of(none.decode_state(nullptr)), "install the driver.");
    EXPECT_EQ(message_of(none.status()), "install the driver.");
    const Result<bool> replayed = none.replay(1, nullptr);
    ASSERT_TRUE(replayed);
    EXPECT_FALSE(*replayed);
    EXPECT_EQ(none.rows().at(0).eager_steps, (std::vector<CudaGraphRow::Count>{{"no CUDA driver", 1}}));
    EXPECT_FALSE(none.lost());
}

TEST_F(GraphCache, reasons_of_eager_steps_and_keys_are_bounded) {
    cache = make_cache();
    for (int i = 0; i < 1000; ++i) {
        cache->note_eager(1, "reason " + std::to_string(i));
    }
    EXPECT_LE(row(1).eager_steps.size(), GraphAccount::most_reasons + 1);
    for (std::uint64_t key = 0; key < Cache::max_keys + 5000; ++key) {
        cache->note_eager(key, "never captured");
    }
    EXPECT_LE(cache->rows().size(), Cache::max_keys);
}

} // namespace
} // namespace plumb::cudagraph
