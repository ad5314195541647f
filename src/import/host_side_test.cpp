// SPDX-License-Identifier: Apache-2.0
// Which call launched what, and what is made of it: wall, path, the number of layers. Plans, so that the truth is known.
#include <algorithm>
#include <random>

#include "analysis/path_builder.hpp"
#include "answers/wall/wall.hpp"
#include "import/import_testing.hpp"
#include "import/trace.hpp"
#include "plumb/answer.hpp"

namespace plumb::imported {
namespace {

TEST(Import, operations_of_a_replay_know_its_launch) {
    const TraceFolder folder;
    const PlannedTrace planned = plan({});
    save(folder / "trace", as_kineto(planned));
    const ReadBack read = read_back(import_file(folder / "trace", folder / "run.plumb").at(0).recording);
    for (const ReadBack::Op& op : read.ops) {
        EXPECT_TRUE(op.launched);
        EXPECT_EQ(op.launch, planned.calls[op.step].start - planned.calls[0].start) << op.step;
    }
}

TEST(Import, two_micro_batches_of_a_layer_are_two_layers_or_one_as_the_model_has) {
    const TraceFolder folder;
    PlannedRun run;
    run.layers = 12;
    run.two_batches = true;
    const PlannedTrace planned = plan(run);
    save(folder / "trace", as_kineto(planned));
    const ImportedRun open = import_file(folder / "trace", folder / "run.plumb").at(0);
    EXPECT_NE(note_with(open, "layers uncertain").find("micro-batches"), std::string::npos);
    ImportOptions options;
    options.layers = 12;
    const ImportedRun decided = import_file(folder / "trace", folder / "run.plumb", options).at(0);
    EXPECT_NE(note_with(decided, "layers certain, 12 layers"), "") << note_with(decided, "layers");
    const ReadBack read = read_back(decided.recording);
    ASSERT_EQ(read.ops.size(), planned.ops.size());
    for (std::size_t i = 0; i < read.ops.size(); ++i) { // both in the order of time
        EXPECT_EQ(read.ops[i].layer, planned.ops[i].layer) << i;
    }
}

TEST(Import, the_config_of_a_model_says_how_many_layers_it_has) {
    const TraceFolder folder;
    PlannedRun run;
    run.layers = 12;
    run.two_batches = true;
    save(folder / "trace", as_kineto(plan(run)));
    ImportOptions options;
    options.config = folder / "config.json";
    const auto layers = [&](const std::string& config) {
        save(options.config, config);
        return note_with(import_file(folder / "trace", folder / "run.plumb", options).at(0), "layers ");
    };
    for (const char* config : {R"({"model_type": "qwen3", "num_hidden_layers": 12})", R"({"n_layer": 12})",
                               R"({"num_layers": 12, "vision_config": {"num_hidden_layers": 27}})",
                               R"({"text_config": {"num_hidden_layers": 12}})"}) {
        EXPECT_NE(layers(config).find("layers certain, 12 layers"), std::string::npos) << config;
    }
    options.out = folder / "run.plumb";
    for (const std::string& config :
         {std::string("hello"), std::string("[12]"), std::string("{}"), std::string(R"({"num_hidden_layers": "12"})"),
          std::string(R"({"num_hidden_layers": 0})"), std::string(100'000, '['), std::string(2'000'000, ' ')}) {
        save(options.config, config);
        const auto made = import_traces({folder / "trace"}, options);
        ASSERT_FALSE(made.ok()) << config.substr(0, 40);
        EXPECT_NE(made.error().message.find("config.json"), std::string::npos);
        EXPECT_EQ(made.error().message.find('\n'), std::string::npos);
    }
    options.config = folder / "none";
    EXPECT_FALSE(import_traces({folder / "trace"}, options).ok());
}

/// Ids that fall with time number no launches; the calls do.
TEST(Import, launches_are_numbered_in_the_order_of_their_calls) {
    for (const bool falling : {false, true}) {
        TraceBuilder builder;
        std::vector<RawDeviceOp> ops(4);
        std::vector<RawHostOp> host(5); // the third launches nothing
        for (std::size_t i = 0; i < host.size(); ++i) {
            host[i].name = "call";
            host[i].op.start_ns = static_cast<std::int64_t>(10 * i);
            host[i].op.end_ns = host[i].op.start_ns + 5;
            host[i].op.correlation = falling ? 90 - i : 40 + 2 * i;
        }
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const std::size_t call = i < 2 ? i : i + 1;
            ops[i].name = "kernel";
            ops[i].op.start_ns = static_cast<std::int64_t>(100 + 10 * i);
            ops[i].op.end_ns = ops[i].op.start_ns + 5;
            ops[i].op.correlation = host[call].op.correlation;
        }
        builder.add(ops, host);
        const Trace trace = builder.finish();
        std::vector<std::uint64_t> numbers;
        for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
            numbers.push_back(trace.launch_number(i));
        }
        EXPECT_EQ(numbers,
                  falling ? (std::vector<std::uint64_t>{1, 2, 4, 5}) : (std::vector<std::uint64_t>{40, 42, 46, 48}));
    }
}

// ---- the host side, as wall and path tell it

PlannedOp planned_kernel(const std::string& name, std::int64_t begin, std::int64_t end, std::uint64_t correlation) {
    PlannedOp op;
    op.name = name;
    op.start = begin;
    op.end = end;
    op.correlation = correlation;
    return op;
}

/// Three replays, 100 us apart: launched in 9 us, the first of ten operations of 4 us begins 3 us later, and 1 us lies between
/// two of them, or nothing.
PlannedTrace planned_replays(std::int64_t between = 1000, std::int64_t apart = 100'000) {
    PlannedTrace made;
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * apart;
        made.calls.push_back({"cudaGraphLaunch", t, t + 9000, 100, 4711, step + 1});
        for (int i = 0; i < 10; ++i) {
            const std::int64_t begin = t + 12'000 + i * (4000 + between);
            made.ops.push_back(planned_kernel("kernel_" + std::to_string(i), begin, begin + 4000, step + 1));
        }
    }
    return made;
}

WallReport wall_of(const std::string& recording) {
    Result<WallReport> wall = read_wall({recording}, {});
    EXPECT_TRUE(wall.ok()) << wall.error().message;
    return *std::move(wall);
}

std::string imported(const TraceFolder& folder, const PlannedTrace& planned, const std::string& format) {
    save_as(format, planned, folder / (format + ".trace"));
    return import_file(folder / (format + ".trace"), folder / (format + ".plumb")).at(0).recording;
}

TEST(ImportHostSide, launches_queueing_and_gaps_of_replays_are_those_of_the_plan) {
    const TraceFolder folder;
    for (const char* format : {"kineto", "nsys", "rpd", "rocprofv3"}) {
        const std::string recording = imported(folder, planned_replays(), format);
        const WallPhase phase = wall_of(recording).phases.at(0);
        ASSERT_EQ(phase.lanes.size(), 2U);
        EXPECT_EQ(phase.steps, 3U);
        const WallLane& device = phase.lanes[1];
        EXPECT_EQ(device.busy_ns.value, 3 * 40'000.0) << format;
        EXPECT_EQ(device.idle.exposed_launch.value, 3 * 12'000.0) << "9 us in the launch, 3 us on the way";
        EXPECT_EQ(device.idle.queued.value, 3 * 9'000.0) << "nine gaps";
        EXPECT_EQ(device.idle.host_work.value, 2 * 39'000.0) << "before a launch, behind a step";
        ASSERT_EQ(device.idle.scopes.size(), 1U);
        EXPECT_EQ(device.idle.scopes[0].name, "code between calls");
        EXPECT_EQ(device.idle.total.value, 3 * 21'000.0 + 2 * 39'000.0);
        EXPECT_FALSE(device.host_waits_ns.value) << "nothing in the trace waits";
        EXPECT_EQ(phase.bound, WallBound::undecided);
        EXPECT_NE(phase.reason.find("no call in which a thread that launches waits"), std::string::npos);
        const Result<PathReport> path = analysis::build_path(*recording::open_run(recording), {});
        ASSERT_TRUE(path.ok()) << path.error().message;
        EXPECT_EQ(path->graph_launches, 1U);
        EXPECT_EQ(path->graph_kernels, 10U);
        const auto launch = std::find_if(path->rows.begin(), path->rows.end(),
                                         [](const PathRow& row) { return row.name.starts_with("launch graph"); });
        ASSERT_NE(launch, path->rows.end());
        EXPECT_EQ(launch->total_ns, 9000.0);
        EXPECT_EQ(launch->path_ns, 9000.0) << "the first operation waits for it";
        EXPECT_EQ(path->analysis.length_ns, 9'000 + 40'000);
    }
}

/// Launches in 2 us each; the device begins 5 us behind the first and works off what waits, at last what comes late.
TEST(ImportHostSide, eager_launches_that_wait_and_that_come_late_are_told_apart) {
    PlannedTrace planned;
    const auto launched = [&](std::int64_t at, std::int64_t begin, std::int64_t end) {
        const std::uint64_t id = planned.calls.size() + 1;
        planned.calls.push_back({"cudaLaunchKernel", at, at + 2000, 100, 4711, id});
        planned.ops.push_back(planned_kernel("kernel_" + std::to_string(id), begin, end, id));
    };
    launched(0, 5000, 20'000);
    launched(2000, 22'000, 40'000);   // waits: 2 us between the two
    launched(50'000, 55'000, 60'000); // late by 10 us, launched in 2, on its way for 3
    const TraceFolder folder;
    const WallLane device = wall_of(imported(folder, planned, "kineto")).phases.at(0).lanes.at(1);
    EXPECT_EQ(device.idle.exposed_launch.value, 5000.0 + 5000.0);
    EXPECT_EQ(device.idle.queued.value, 2000.0);
    EXPECT_EQ(device.idle.host_work.value, 10'000.0);
}

/// Each replay is waited for until 2 us after its end, in a call of the runtime that holds one of the driver.
PlannedTrace planned_waits(std::int64_t apart) {
    PlannedTrace made = planned_replays(1000, apart);
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * apart;
        made.calls.push_back({"cudaStreamSynchronize", t + 10'000, t + 63'000, 100, 4711, 100 + 2 * step});
        made.calls.push_back({"cuStreamSynchronize", t + 11'000, t + 62'000, 100, 4711, 101 + 2 * step});
    }
    return made;
}

TEST(ImportHostSide, calls_that_wait_for_the_device_give_a_verdict) {
    for (const char* format : {"kineto", "nsys", "rpd", "rocprofv3"}) {
        for (const auto& [apart, bound] :
             {std::pair(66'000, WallBound::device), std::pair(100'000, WallBound::undecided),
              std::pair(200'000, WallBound::host)}) {
            const TraceFolder folder;
            const WallReport wall = wall_of(imported(folder, planned_waits(apart), format));
            const WallPhase& phase = wall.phases.at(0);
            const WallLane& device = phase.lanes.at(1);
            EXPECT_EQ(phase.bound, bound) << format << apart << phase.reason;
            EXPECT_EQ(device.host_waits_ns.value, 3 * 40'000.0) << "all of its work is waited for";
            EXPECT_EQ(device.idle.exposed_launch.value, 3 * 12'000.0);
            EXPECT_EQ(device.idle.queued.value, 3 * 9'000.0);
            ASSERT_EQ(device.idle.scopes.size(), 2U);
            for (const WallScope& scope : device.idle.scopes) {
                EXPECT_EQ(scope.self_ns, scope.name == "code between calls" ? 2.0 * (apart - 63'000) : 2 * 2'000.0)
                    << scope.name;
            }
            EXPECT_EQ(phase.lanes[0].idle.for_device.value, 3 * 40'000.0) << "the host is idle in calls that wait";
            EXPECT_EQ(wall.notes, std::vector<std::string>()) << (wall.notes.empty() ? "" : wall.notes.front());
        }
    }
}

TEST(ImportHostSide, the_path_holds_no_wait_of_the_host_as_its_work) {
    const TraceFolder folder;
    PlannedTrace planned = planned_waits(66'000); // and in each step a launch behind its wait
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * 66'000;
        planned.calls.push_back({"cudaLaunchKernel", t + 63'500, t + 64'000, 100, 4711, 200 + step});
        planned.ops.push_back(planned_kernel("argmax_kernel", t + 64'500, t + 65'000, 200 + step));
    }
    const Result<PathReport> path = analysis::build_path(*recording::open_run(imported(folder, planned, "kineto")), {});
    ASSERT_TRUE(path.ok()) << path.error().message;
    double host = 0;
    for (const PathRow& row : path->rows) {
        host += row.name == "unattributed" ? row.total_ns : 0;
    }
    EXPECT_EQ(host, 1000.0 + 2000.0 + 500.0) << "between calls, and from the device's end to that of the wait";
}

/// Two threads that launch for one queue and wait now and then, and what each nanosecond of that is.
class RandomHost {
  public:
    explicit RandomHost(std::uint64_t seed) : random_(seed) {
        while (planned.ops.size() < 60) {
            act(now_[0] <= now_[1] ? 0 : 1);
        }
    }

    PlannedTrace planned;

    void expect(const WallLane& lane) const {
        std::vector<std::int64_t> found; // from the end of a launch, of operations that had nothing else to wait for
        std::int64_t before = 0;
        for (std::size_t i = 0; i < launches_.size(); ++i) {
            if (before <= launches_[i].end) {
                found.push_back(planned.ops[i].start - launches_[i].end);
            }
            before = planned.ops[i].end;
        }
        std::sort(found.begin(), found.end());
        const std::int64_t patience = 2 * found[found.size() / 2];
        double busy = 0, host_waits = 0, exposed = 0, queued = 0, waiting = 0, between = 0;
        for (std::int64_t t = launches_.front().begin; t < planned.ops.back().end; ++t) {
            bool runs = false, launching = false, flies = false, lies = false;
            for (std::size_t i = 0; i < launches_.size(); ++i) {
                const auto& [thread, begin, end] = launches_[i];
                runs = runs || (planned.ops[i].start <= t && t < planned.ops[i].end);
                launching = launching || (begin <= t && t < end);
                const bool launched = end <= t && t < planned.ops[i].start;
                (t < end + patience ? flies : lies) |= launched;
            }
            const auto next =
                std::find_if(launches_.begin(), launches_.end(), [t](const Span& launch) { return launch.begin >= t; });
            const std::uint64_t thread = next == launches_.end() ? launches_.back().thread : next->thread;
            const bool waits = std::any_of(waits_.begin(), waits_.end(), [&](const Span& wait) {
                return wait.thread == thread && wait.begin <= t && t < wait.end;
            });
            busy += runs ? 1 : 0;
            host_waits += runs && !launching && waits ? 1 : 0;
            (lies ? queued : flies || launching ? exposed : waits ? waiting : between) += runs ? 0 : 1;
        }
        EXPECT_GT(host_waits * exposed * queued * waiting * between, 0) << "all kinds are there";
        EXPECT_EQ(lane.busy_ns.value, busy);
        EXPECT_EQ(lane.host_waits_ns.value, host_waits);
        EXPECT_EQ(lane.idle.exposed_launch.value, exposed);
        EXPECT_EQ(lane.idle.queued.value, queued);
        EXPECT_EQ(lane.idle.host_work.value, waiting + between);
        for (const WallScope& scope : lane.idle.scopes) {
            EXPECT_EQ(scope.self_ns, scope.name == "code between calls" ? between : waiting);
        }
    }

  private:
    struct Span {
        std::uint64_t thread;
        std::int64_t begin, end;
    };

    std::int64_t some(std::int64_t most) {
        return 1 + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most));
    }

    void act(std::size_t thread) {
        std::int64_t& now = now_[thread];
        const bool launches = planned.ops.empty() || random_() % 3 != 0;
        const Span span{100 + thread, now, now + some(launches ? 900 : 2500)};
        now = span.end + some(1500);
        planned.calls.push_back({launches ? "cudaLaunchKernel" : "cudaEventSynchronize", span.begin, span.end,
                                 span.thread, 4711, planned.calls.size() + 1});
        (launches ? launches_ : waits_).push_back(span);
        if (launches) {
            const std::int64_t begin = std::max(span.end + some(300), free_) + (random_() % 4 == 0 ? some(1500) : 0);
            free_ = begin + some(1200);
            planned.ops.push_back(planned_kernel("kernel", begin, free_, planned.calls.size()));
        }
    }

    std::mt19937_64 random_;
    std::int64_t now_[2] = {0, 700}; // when each thread acts next
    std::int64_t free_ = 0;
    std::vector<Span> launches_, waits_; // each launch has the operation of its index
};

TEST(ImportHostSide, every_nanosecond_of_random_threads_is_what_it_was) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const TraceFolder folder;
        const RandomHost host(seed);
        const WallReport wall = wall_of(imported(folder, host.planned, "nsys"));
        SCOPED_TRACE(seed);
        host.expect(wall.phases.at(0).lanes.at(1));
    }
}

/// A copy that is begun behind 30 us of other work and in whose call the host stays until it is done.
TEST(ImportHostSide, a_copy_that_blocks_is_a_wait_and_no_long_launch) {
    PlannedTrace planned;
    planned.calls.push_back({"cudaLaunchKernel", 0, 2000, 100, 4711, 1});
    planned.ops.push_back(planned_kernel("kernel", 5000, 35'000, 1));
    planned.calls.push_back({"cudaMemcpyAsync", 3000, 46'000, 100, 4711, 2});
    planned.ops.push_back(planned_kernel("Memcpy DtoH (Device -> Pageable)", 36'000, 45'000, 2));
    planned.ops.back().kind = DeviceOpKind::memcpy;
    const TraceFolder folder;
    for (const char* format : {"kineto", "nsys"}) {
        const WallPhase phase = wall_of(imported(folder, planned, format)).phases.at(0);
        EXPECT_EQ(phase.lanes.at(1).host_waits_ns.value, 30'000.0 + 9'000.0) << format;
        EXPECT_EQ(phase.lanes.at(1).idle.exposed_launch.value, 5000.0) << format;
        EXPECT_EQ(phase.bound, WallBound::device) << phase.reason;
    }
}

/// What is launched before the window of the trace waits for something unknown.
TEST(ImportHostSide, idle_before_an_operation_without_a_launch_is_unknown) {
    PlannedTrace planned = planned_waits(66'000);
    planned.ops.push_back(planned_kernel("stray", 64'000, 65'000, 999));
    const TraceFolder folder;
    const WallLane device = wall_of(imported(folder, planned, "kineto")).phases.at(0).lanes.at(1);
    EXPECT_EQ(device.idle.unnamed.value, 1'000.0);
    EXPECT_EQ(device.idle.off_cpu.value, 2'000.0) << "while the host waited for the step before";
}

/// Two threads: one waits all the time, the other launches now and then. The device waits for the second.
TEST(ImportHostSide, a_thread_that_only_waits_does_not_make_the_host_wait) {
    PlannedTrace planned;
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::int64_t t = static_cast<std::int64_t>(i) * 10'000;
        planned.calls.push_back({"cudaLaunchKernel", t, t + 1000, i == 0 ? 101U : 100U, 4711, i + 1});
        planned.ops.push_back(planned_kernel("kernel", t + 2000, t + 9000, i + 1));
    }
    planned.calls.push_back({"cudaDeviceSynchronize", 1500, 100'000, 101, 4711, 50});
    const TraceFolder folder;
    const WallPhase phase = wall_of(imported(folder, planned, "kineto")).phases.at(0);
    EXPECT_EQ(phase.lanes.at(1).host_waits_ns.value, 0.0);
    EXPECT_EQ(phase.bound, WallBound::host) << phase.reason;
}

TEST(ImportHostSide, an_operation_as_long_as_its_step_is_in_the_account) {
    PlannedTrace planned;
    planned.ops.push_back(planned_kernel("ncclKernel_AllReduce", 100'000, 150'000, no_id));
    const TraceFolder folder;
    const WallReport wall = wall_of(imported(folder, planned, "kineto"));
    EXPECT_EQ(wall.phases.at(0).lanes.at(1).busy_ns.value, 50'000.0);
    EXPECT_EQ(wall.phases.at(0).lanes.at(0).busy_ns.value, 0.0) << "no thread is in the trace";
    EXPECT_EQ(wall.notes, std::vector<std::string>()) << (wall.notes.empty() ? "" : wall.notes.front());
}

TEST(ImportHostSide, where_operations_abut_idle_in_replays_is_not_known_and_a_comparison_says_so) {
    const TraceFolder folder;
    const std::string with_gaps = imported(folder, planned_replays(), "nsys");
    PlannedTrace abutting = planned_replays(0);
    abutting.ops.back().end += 1; // whole microseconds would not tell a gap from none
    const std::string without = imported(folder, abutting, "kineto");
    const WallLane device = wall_of(without).phases.at(0).lanes.at(1);
    EXPECT_EQ(device.busy_ns.value, 3 * 40'000.0 + 1);
    EXPECT_FALSE(device.idle.total.value);
    EXPECT_NE(device.idle.queued.reason.find("inside of durations"), std::string::npos) << device.idle.queued.reason;
    const Result<Answer> compared = ask("compare", {with_gaps, without});
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_NE(compared->text().find("gaps: between operations -> inside of durations"), std::string::npos)
        << compared->text();
}

/// nsys profile --cuda-graph-trace=graph: one row for each replay, and no kernels.
TEST(ImportHostSide, replays_in_one_piece_are_steps_whose_bricks_are_not_known) {
    PlannedTrace planned;
    for (std::uint64_t step = 0; step < 3; ++step) {
        const std::int64_t t = static_cast<std::int64_t>(step) * 100'000;
        planned.calls.push_back({"cudaGraphLaunch", t, t + 9000, 100, 4711, 2 * step + 1});
        planned.ops.push_back(planned_kernel("", t + 12'000, t + 60'000, 2 * step + 1));
        planned.ops.back().kind = DeviceOpKind::graph;
        planned.calls.push_back({"cudaLaunchKernel", t + 10'000, t + 12'000, 100, 4711, 2 * step + 2});
        planned.ops.push_back(planned_kernel("argmax_kernel", t + 61'000, t + 63'000, 2 * step + 2));
    }
    const TraceFolder folder;
    save_nsys(planned, folder / "trace");
    const ImportedRun made = import_file(folder / "trace", folder / "run.plumb").at(0);
    EXPECT_EQ(note_with(made, "in whole"), "");
    EXPECT_EQ(note_with(made, "bricks are n/a"),
              "3 replays of captured graphs stand there as a whole, so their bricks are n/a: record with nsys profile "
              "--cuda-graph-trace=node");
    EXPECT_EQ(made.steps, 3U);
    const ReadBack read = read_back(made.recording);
    ASSERT_EQ(read.ops.size(), 6U);
    for (std::size_t i = 0; i < read.ops.size(); ++i) {
        EXPECT_EQ(read.ops[i].name, i % 2 == 0 ? "graph" : "sampling");
        EXPECT_EQ(read.ops[i].step, i / 2);
        EXPECT_EQ(read.ops[i].layer, -1);
    }
}

} // namespace
} // namespace plumb::imported
