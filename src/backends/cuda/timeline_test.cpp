// SPDX-License-Identifier: Apache-2.0
// Ticks, anchors and clock pairs against the virtual GPU's truth.
#include "backends/cuda/timeline.hpp"

#include <cmath>
#include <set>
#include <thread>

#include "backends/cuda/bench_testing.hpp"

namespace plumb::backends::cuda {
namespace {

std::shared_ptr<Timeline> timeline_on(Stream stream) {
    Result<std::shared_ptr<Timeline>> made = timeline_of(VirtualBench::calls(), stream, &vgpu::host_clock());
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
    return made ? *made : nullptr;
}

TEST(Timeline, the_tick_is_found_by_measuring) {
    for (const unsigned tick : {32u, 500u, 1'024u}) {
        vgpu::Config config;
        config.event_tick_ns = tick;
        VirtualBench bench(config);
        const Stream stream = bench.new_stream();
        const auto timeline = timeline_on(stream);
        for (int i = 0; i < 200; ++i) { // kernels of many lengths
            const auto a = timeline->acquire(), b = timeline->acquire();
            ASSERT_TRUE(a.ok() && b.ok());
            bench.calls().event_record(*a, stream);
            bench.kernel(stream, 3'000 + 317 * i);
            bench.calls().event_record(*b, stream);
            vgpu::run_dry();
            ASSERT_TRUE(timeline->between(*a, *b).ok());
            timeline->release(*a);
            timeline->release(*b);
        }
        EXPECT_EQ(timeline->tick_ns(), tick);
    }
}

TEST(Timeline, one_that_is_being_made_holds_up_no_other_device) {
    vgpu::Config config;
    config.devices = 2;
    VirtualBench bench(config);
    const Stream first = bench.new_stream();
    Context context = nullptr;
    ASSERT_EQ(bench.calls().primary_ctx_retain(&context, 1), CuResult::success);
    Stream second = nullptr;
    {
        const CurrentContext current(bench.calls(), context);
        ASSERT_EQ(bench.calls().stream_create(&second, stream_non_blocking), CuResult::success);
    }
    vgpu::Hold hold("cuStreamCreateWithPriority");
    std::thread slow([&] { EXPECT_NE(timeline_on(first), nullptr); });
    hold.wait_until_inside();
    EXPECT_EQ(timeline_on(second)->clock_name().substr(0, 6), "cuda:1"); // else it would never come back
    hold.release();
    slow.join();
}

TEST(Timeline, an_engine_whose_streams_fill_their_channel_holds_up_no_clock_pair) {
    vgpu::Config config;
    config.streams_alias = true;
    VirtualBench bench(config);
    const Stream stream = bench.new_stream();
    const auto timeline = timeline_on(stream);
    bench.kernel(stream, 1'000'000'000);
    const auto pair = timeline->clock_pair();
    ASSERT_TRUE(pair.ok()) << pair.error().message;
    EXPECT_EQ(bench.calls().stream_query(stream), CuResult::not_ready);
}

TEST(Timeline, streams_of_green_contexts_are_on_the_timeline_of_their_device) {
    VirtualBench bench;
    const Stream plain = bench.new_stream(), green = bench.new_stream();
    vgpu::make_green(green);
    Context asked = nullptr;
    EXPECT_EQ(bench.calls().stream_get_ctx(green, &asked), CuResult::not_supported);
    EXPECT_EQ(timeline_on(green), timeline_on(plain));
}

TEST(Timeline, events_minutes_apart_are_placed_to_the_tick) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    VirtualBench bench(config);
    const Stream stream = bench.new_stream();
    const auto timeline = timeline_on(stream);
    std::int64_t first_ticks = 0, first_stamp = 0;
    double worst = 0;
    for (int i = 0; i < 2'000; ++i) {
        vgpu::advance(100'000'000 + 37 * i);
        timeline->tend(vgpu::now_ns(), true);
        const auto event = timeline->acquire();
        ASSERT_TRUE(event.ok());
        bench.calls().event_record(*event, stream);
        vgpu::run_dry();
        const auto ticks = timeline->place(*event);
        ASSERT_TRUE(ticks.ok()) << ticks.error().message;
        const std::int64_t stamp = VirtualBench::stamp(last_operation(vgpu::OpKind::event_record).end_ns);
        if (i == 0) {
            first_ticks = static_cast<std::int64_t>(*ticks);
            first_stamp = stamp;
        }
        const std::int64_t measured = static_cast<std::int64_t>(*ticks) - first_ticks;
        worst = std::max(worst, std::abs(static_cast<double>(measured - (stamp - first_stamp))));
        timeline->release(*event);
    }
    EXPECT_LE(worst, 32.0) << "over " << vgpu::now_ns() << " ns";
}

TEST(Timeline, events_of_ten_seconds_ago_are_placed_by_the_anchors_of_their_time) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    const auto timeline = timeline_on(stream);
    const auto record = [&](Event event) {
        bench.calls().event_record(event, stream);
        vgpu::run_dry();
        return VirtualBench::stamp(last_operation(vgpu::OpKind::event_record).end_ns);
    };
    std::vector<Event> events;
    std::vector<std::int64_t> stamps;
    for (int i = 0; i < 120; ++i) {
        vgpu::advance(100'000'123);
        timeline->tend(vgpu::now_ns(), i % 2 == 0);
        if (i < 20 || i == 119) {
            const auto event = timeline->acquire();
            ASSERT_TRUE(event.ok());
            events.push_back(*event);
            stamps.push_back(record(*event));
        }
    }
    const auto last = timeline->place(events.back());
    ASSERT_TRUE(last.ok());
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto ticks = timeline->place(events[i]);
        ASSERT_TRUE(ticks.ok());
        EXPECT_NEAR(static_cast<double>(*last - *ticks), static_cast<double>(stamps.back() - stamps[i]), 32.0);
    }
}

TEST(Timeline, clock_pairs_hold_the_truth_and_places_keep_their_bound) {
    vgpu::Config config;
    config.clock_drift_ppm = -40;
    VirtualBench bench(config);
    const Stream stream = bench.new_stream();
    const auto timeline = timeline_on(stream);
    for (int i = 0; i < 300; ++i) {
        vgpu::advance(20'000'000 + 1'237 * i);
        timeline->tend(vgpu::now_ns(), true);
        const auto event = timeline->acquire();
        ASSERT_TRUE(event.ok());
        bench.calls().event_record(*event, stream);
        vgpu::run_dry();
        const std::int64_t truth = last_operation(vgpu::OpKind::event_record).end_ns;
        const auto ticks = timeline->place(*event);
        ASSERT_TRUE(ticks.ok());
        const auto host = timeline->to_host(*ticks);
        ASSERT_TRUE(host.ok());
        EXPECT_LE(std::abs(static_cast<double>(host->monotonic_ns - truth)), host->bound_ns + 32.0);
        if (i > 20) {
            EXPECT_LT(host->bound_ns, 20'000.0) << "after a while the bound is tight";
        }
        timeline->release(*event);
        const auto pair = timeline->clock_pair();
        ASSERT_TRUE(pair.ok()) << pair.error().message;
        EXPECT_LT(pair->uncertainty_ticks, 20'000u);
    }
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

/// A timeline on a stream of its own, on a device that can be made slow to answer.
struct OneStream {
    vgpu::Config config;
    VirtualBench bench{config};
    Stream stream = bench.new_stream();
    std::shared_ptr<Timeline> timeline = timeline_on(stream);

    void answer_after(std::int64_t ns) {
        config.submit_ns = ns;
        vgpu::configure(config);
    }
};

TEST(Timeline, a_device_that_does_not_answer_gives_no_pair_and_is_not_waited_for) {
    OneStream on;
    on.answer_after(10'000'000);
    const std::int64_t before = vgpu::now_ns();
    const auto pair = on.timeline->clock_pair();
    ASSERT_FALSE(pair.ok());
    EXPECT_EQ(pair.error().code, ErrorCode::pending);
    EXPECT_LT(vgpu::now_ns() - before, 100'000);
    on.answer_after(3'000);
    vgpu::run_dry();
    EXPECT_TRUE(on.timeline->clock_pair().ok());
}

TEST(Timeline, a_device_that_is_busy_at_first_contact_is_timed_all_the_same) {
    vgpu::Config config;
    config.submit_ns = 500'000'000;
    VirtualBench bench(config);
    const Stream stream = bench.new_stream();
    const std::int64_t before = vgpu::now_ns();
    const auto timer = bench.timer(stream);
    ASSERT_NE(timer, nullptr);
    EXPECT_LT(vgpu::now_ns() - before, 5'000'000) << "the engine's thread was not held up";
    const auto timeline = timeline_on(stream);
    EXPECT_EQ(timeline->tick_ns(), 0.0);
    const auto token = timer->begin();
    ASSERT_TRUE(token.ok()) << token.error().message;
    bench.kernel(stream, 700'000);
    ASSERT_TRUE(timer->end(*token).ok());
    EXPECT_EQ(timer->collect(*token).error().code, ErrorCode::pending);
    vgpu::run_dry();
    config.submit_ns = 3'000;
    vgpu::configure(config);
    const auto span = timer->collect(*token);
    ASSERT_TRUE(span.ok()) << span.error().message;
    const vgpu::Operation kernel = last_operation(vgpu::OpKind::kernel);
    const std::int64_t truth = kernel.end_ns - kernel.start_ns;
    EXPECT_NEAR(static_cast<double>(span->end_ticks - span->begin_ticks), static_cast<double>(truth), 3'000.0);
    EXPECT_EQ(timeline->tick_ns(), 32.0) << "learnt by the first collection";
    const auto host = timeline->to_host(span->begin_ticks);
    ASSERT_TRUE(host.ok()) << host.error().message;
    EXPECT_LE(std::abs(static_cast<double>(host->monotonic_ns - kernel.start_ns)), host->bound_ns + 3'000.0);
    EXPECT_EQ(vgpu::synchronisations().size(), 0u);
}

TEST(Timeline, anchors_go_on_while_the_device_is_too_busy_for_clock_pairs) {
    OneStream on;
    const auto& [bench, stream, timeline] = std::tie(on.bench, on.stream, on.timeline);
    on.answer_after(10'000'000); // no pair is read in time
    std::vector<Event> events;
    std::vector<std::int64_t> stamps;
    for (int i = 0; i < 80; ++i) {
        vgpu::advance(100'000'123);
        timeline->tend(vgpu::now_ns(), true);
        if (i % 8 == 3) {
            const auto event = timeline->acquire();
            ASSERT_TRUE(event.ok());
            bench.calls().event_record(*event, stream);
            vgpu::run_dry();
            events.push_back(*event);
            stamps.push_back(VirtualBench::stamp(last_operation(vgpu::OpKind::event_record).end_ns));
        }
    }
    const auto first = timeline->place(events.front());
    ASSERT_TRUE(first.ok());
    for (std::size_t i = 1; i < events.size(); ++i) {
        const auto ticks = timeline->place(events[i]);
        ASSERT_TRUE(ticks.ok());
        EXPECT_NEAR(static_cast<double>(*ticks - *first), static_cast<double>(stamps[i] - stamps.front()), 32.0);
    }
}

TEST(Timeline, a_pair_whose_second_try_is_not_answered_moves_no_anchor) {
    vgpu::Config config;
    config.streams_alias = true;
    VirtualBench bench(config);
    const Stream stream = bench.new_stream();
    int least = 0, greatest = 0;
    Stream urgent = nullptr; // its work holds up our stream
    ASSERT_EQ(bench.calls().ctx_get_stream_priority_range(&least, &greatest), CuResult::success);
    ASSERT_EQ(bench.calls().stream_create_with_priority(&urgent, stream_non_blocking, greatest), CuResult::success);
    const auto timeline = timeline_on(stream);
    const auto off = [&] { // of the place of an event from its stamp
        const auto event = timeline->acquire();
        EXPECT_TRUE(event.ok());
        bench.calls().event_record(*event, stream);
        vgpu::run_dry();
        const std::int64_t stamp = VirtualBench::stamp(last_operation(vgpu::OpKind::event_record).end_ns);
        const auto ticks = timeline->place(*event);
        EXPECT_TRUE(ticks.ok());
        timeline->release(*event);
        return static_cast<double>(static_cast<std::int64_t>(*ticks) - stamp);
    };
    vgpu::advance(2 * Timeline::anchor_gap_ns); // an anchor is due with the pair
    const double before = off();
    {
        vgpu::Hold hold("cuEventRecord", 2);
        std::thread drain([&] { EXPECT_TRUE(timeline->clock_pair().ok()) << "its first try was answered"; });
        hold.wait_until_inside();
        bench.kernel(urgent, 5'000'000);
        hold.release();
        drain.join();
    }
    vgpu::run_dry();
    EXPECT_NEAR(off(), before, 32.0);
    for (int i = 0; i < 10; ++i) {
        vgpu::advance(Timeline::anchor_gap_ns);
        timeline->tend(vgpu::now_ns(), true);
    }
    EXPECT_NEAR(off(), before, 32.0 * 2) << "nor those that are chained to it";
}

TEST(Timeline, two_timelines_never_share_a_clock_name) {
    std::set<std::string> names;
    for (int i = 0; i < 3; ++i) {
        VirtualBench bench;
        const auto timeline = timeline_on(bench.new_stream());
        EXPECT_TRUE(names.insert(timeline->clock_name()).second) << timeline->clock_name();
    }
}

TEST(Timeline, one_context_has_one_timeline_as_long_as_it_is_used) {
    VirtualBench bench;
    const Stream a = bench.new_stream(), b = bench.new_stream();
    const std::size_t before = vgpu::alive().total();
    {
        const auto one = timeline_on(a), other = timeline_on(b), legacy = timeline_on(nullptr);
        EXPECT_EQ(one, other);
        EXPECT_EQ(one, legacy);
        EXPECT_EQ(one->clock_name().substr(0, 6), "cuda:0");
    }
    EXPECT_EQ(vgpu::alive().total(), before);
}

TEST(Timeline, devices_have_clocks_of_their_own) {
    vgpu::Config config;
    config.devices = 2;
    VirtualBench bench(config);
    const auto first = timeline_on(bench.new_stream());
    Context second_context = nullptr, popped = nullptr;
    ASSERT_EQ(bench.calls().primary_ctx_retain(&second_context, 1), CuResult::success);
    bench.calls().ctx_push_current(second_context);
    const Stream stream = bench.new_stream();
    bench.calls().ctx_pop_current(&popped);
    const auto second = timeline_on(stream); // while the first device's context is current
    EXPECT_EQ(first->clock_name().substr(0, 6), "cuda:0");
    EXPECT_EQ(second->clock_name().substr(0, 6), "cuda:1");
    EXPECT_TRUE(second->clock_pair().ok());
    EXPECT_TRUE(first->clock_pair().ok());
}

TEST(Timeline, its_events_are_bounded) {
    VirtualBench bench;
    const auto timeline = timeline_on(bench.new_stream());
    std::vector<Event> taken;
    Result<Event> event = timeline->acquire();
    for (; event; event = timeline->acquire()) {
        taken.push_back(*event);
        ASSERT_LE(taken.size(), Timeline::max_events);
    }
    EXPECT_EQ(event.error().code, ErrorCode::out_of_memory);
    for (const Event one : taken) {
        timeline->release(one);
    }
    EXPECT_TRUE(timeline->acquire().ok());
}

TEST(TickFinder, a_long_duration_is_put_back_on_the_grid_and_a_wrong_tick_never_moves_one) {
    TickFinder finder;
    for (int i = 1; i < 40; ++i) {
        finder.add(32.0 * i);
    }
    EXPECT_EQ(finder.tick_ns(), 32.0);
    const double truth = 32.0 * 7'000'001; // 0.224 s
    const auto read = static_cast<double>(static_cast<float>(truth / 1e6)) * 1e6;
    EXPECT_NE(read, truth) << "a float cannot hold it";
    EXPECT_EQ(finder.on_grid(read), truth);
    EXPECT_EQ(finder.on_grid(48.0), 48.0) << "no multiple: left as it is";
}

} // namespace
} // namespace plumb::backends::cuda
