// SPDX-License-Identifier: Apache-2.0
// An engine that computes: random graphs whose replays pass a chain of values on, through kernels, their grids and
// parameters, copies and memsets. What plain replays and twins in turn leave in memory is what plain ones leave. Beside
// that: bounds of memory, communicators that end, captures of other streams.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cudagraph/probe_testing.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;
using vgpu::DevicePointer;

constexpr std::size_t cells = 8; // the first half is the main stream's, the other that of the stream beside it
using State = std::array<std::uint64_t, cells>;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t hash = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U))) * 0xbf58476d1ce4e5b9ULL;
    return hash ^ (hash >> 31U);
}

/// Device memory of cells, and who touched each of them until when: a kernel that begins before that leaves nonsense.
class Memory {
  public:
    explicit Memory(vgpu::Engine& engine) { EXPECT_EQ(engine.cu.mem_alloc(&begin_, cells * 8), CuResult::success); }
    [[nodiscard]] DevicePointer cell(std::size_t index) const { return begin_ + index * 8; }
    [[nodiscard]] State state() const {
        State all{};
        std::memcpy(all.data(), vgpu::at<std::uint64_t>(begin_, cells), sizeof all);
        return all;
    }
    void set(const State& all) { std::memcpy(vgpu::at<std::uint64_t>(begin_, cells), all.data(), sizeof all); }

    /// *to = mixed with *from, the constant, the grid and the kernel's name.
    void run(const vgpu::KernelRun& run) {
        const std::size_t to = index_of(run.param<DevicePointer>(0));
        const std::size_t from = index_of(run.param<DevicePointer>(1));
        const bool race = run.start_ns < written_[from] || run.start_ns < written_[to] || run.start_ns < read_[to];
        const std::uint64_t what = mixed(run.param<std::uint32_t>(2), run.grid[0]);
        const State now = state();
        std::uint64_t value = mixed(mixed(now[to], now[from]), mixed(what, std::hash<std::string>()(run.name)));
        value = race ? mixed(value, 1) : value;
        std::memcpy(vgpu::at<std::uint64_t>(cell(to)), &value, sizeof value);
        written_[to] = std::max(written_[to], run.end_ns);
        read_[from] = std::max(read_[from], run.end_ns);
    }

  private:
    [[nodiscard]] std::size_t index_of(DevicePointer address) const { return (address - begin_) / 8; }

    DevicePointer begin_ = 0;
    std::array<std::int64_t, cells> written_{}, read_{};
};

/// Each kernel reads what the one before it on its stream wrote, so that each edge between two of them counts.
class ComputingGraph {
  public:
    ComputingGraph(ProbeBench& bench, Memory& memory, std::uint64_t seed, bool branches)
        : bench_(bench), memory_(memory), random_(seed), branches_(branches) {}

    KnownGraph capture() {
        bench_.begin_capture();
        last_ = 0; // what the replay before left
        for (int layer = between(1, 4); layer > 0; --layer) {
            bench_.layer(static_cast<std::uint32_t>(layer), [&] {
                for (int brick = between(1, 3); brick > 0; --brick) {
                    bench_.scope([&] { inside(1); });
                }
            });
        }
        kernel(0, false);
        return bench_.end_capture();
    }

  private:
    int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    void kernel(std::size_t to, bool aside) {
        const std::string name = "compute" + std::to_string(between(0, 20));
        vgpu::KernelModel model{{8, 8, 4}, 2'000, 2'000 + 1'500 * std::int64_t{between(0, 20)}, {}};
        model.min_ns = model.max_ns;
        model.function = [&memory = memory_](const vgpu::KernelRun& run) {
            memory.run(run);
        };
        vgpu::kernel(name, model);
        std::size_t& last = aside ? last_aside_ : last_;
        DevicePointer out = memory_.cell(to);
        DevicePointer in = memory_.cell(last);
        auto constant = static_cast<std::uint32_t>(random_());
        void* params[] = {&out, &in, &constant};
        const auto grid = static_cast<unsigned>(between(1, 64));
        EXPECT_EQ(bench_.engine.cu.launch_kernel(bench_.engine.function(name.c_str()), grid, 1, 1, 32, 1, 1, 0,
                                                 aside ? bench_.side : bench_.stream, params, nullptr),
                  CuResult::success);
        last = to;
    }
    /// One of the stream's own cells; not the one that the stream beside it reads meanwhile.
    std::size_t own(bool aside) {
        const std::size_t cell = static_cast<std::size_t>(between(0, cells / 2 - 1)) + (aside ? cells / 2 : 0);
        return cell == shared_ ? cell ^ 1U : cell;
    }
    void transfer() {
        const std::size_t to = own(false);
        if (between(0, 1) == 0 || to == last_) {
            const std::size_t from = std::exchange(last_, to);
            EXPECT_EQ(bench_.engine.cu.memcpy_dtod_async(memory_.cell(to), memory_.cell(from), 8, bench_.stream),
                      CuResult::success);
        } else {
            EXPECT_EQ(
                bench_.engine.cu.memset_d32_async(memory_.cell(to), static_cast<unsigned>(random_()), 2, bench_.stream),
                CuResult::success);
        }
    }
    void inside(int depth) {
        kernel(own(false), false);
        for (int item = between(0, 3); item > 0; --item) {
            switch (between(0, 4)) {
            case 0:
                depth < 3 ? bench_.scope([&] { inside(depth + 1); }) : kernel(own(false), false);
                break;
            case 1:
                branches_ ? branch() : kernel(own(false), false);
                break;
            case 2:
                transfer();
                break;
            default:
                kernel(own(false), false);
            }
        }
    }
    void branch() {
        shared_ = last_aside_ = last_;
        bench_.fork([&] {
            for (int i = between(1, 3); i > 0; --i) {
                kernel(own(true), true);
            }
        });
        for (int i = between(0, 2); i > 0; --i) {
            kernel(own(false), false);
        }
        bench_.join();
        shared_ = cells;
        const std::size_t main = std::exchange(last_, last_aside_);
        kernel(main, false); // of both
    }

    ProbeBench& bench_;
    Memory& memory_;
    std::mt19937_64 random_;
    bool branches_;
    std::size_t last_ = 0, last_aside_ = 0;
    std::size_t shared_ = cells; // none
};

State first_state(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    State state{};
    for (std::uint64_t& value : state) {
        value = random();
    }
    return state;
}

/// What memory holds after each of so many replays of an executable.
std::vector<State> replay_plainly(ProbeBench& bench, Memory& memory, vgpu::GraphExec exec, const State& from,
                                  std::size_t count) {
    std::vector<State> states;
    memory.set(from);
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(bench.engine.cu.graph_launch(exec, bench.stream), CuResult::success);
        vgpu::run_dry();
        states.push_back(memory.state());
    }
    return states;
}

/// An edge between two kernels of which the second waits for nothing else.
bool only_edge(const vgpu::EngineDriver& cu, vgpu::Graph graph, vgpu::GraphNode& from, vgpu::GraphNode& to) {
    std::size_t count = 0;
    EXPECT_EQ(cu.graph_get_edges_v10000(graph, nullptr, nullptr, &count), CuResult::success);
    std::vector<vgpu::GraphNode> begins(count), ends(count);
    EXPECT_EQ(cu.graph_get_edges_v10000(graph, begins.data(), ends.data(), &count), CuResult::success);
    const auto is_kernel = [&](vgpu::GraphNode node) {
        vgpu::NodeType type{};
        return cu.graph_node_get_type(node, &type) == CuResult::success && type == vgpu::NodeType::kernel;
    };
    for (std::size_t i = count; i-- > 0;) {
        if (is_kernel(begins[i]) && is_kernel(ends[i]) && std::count(ends.begin(), ends.end(), ends[i]) == 1) {
            from = begins[i];
            to = ends[i];
            return true;
        }
    }
    return false;
}

/// What the comparison is worth: executables that are not quite the engine's.
TEST(ProbesOutputs, a_cut_edge_a_dropped_node_and_a_stale_parameter_are_seen) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ProbeBench bench;
        Memory memory(bench.engine);
        const vgpu::EngineDriver& cu = bench.engine.cu;
        const KnownGraph graph = ComputingGraph(bench, memory, seed, true).capture();
        const State from = first_state(seed);
        const std::vector<State> right = replay_plainly(bench, memory, graph.exec, from, 3);
        EXPECT_EQ(replay_plainly(bench, memory, graph.exec, from, 3), right) << "the same once more";
        vgpu::GraphNode first = nullptr;
        vgpu::GraphNode second = nullptr;
        if (!only_edge(cu, graph.graph, first, second)) {
            continue;
        }
        vgpu::GraphExec other = nullptr;
        ASSERT_EQ(cu.graph_instantiate(&other, graph.graph, 0), CuResult::success);
        EXPECT_EQ(replay_plainly(bench, memory, other, from, 3), right);
        ASSERT_EQ(cu.graph_node_set_enabled(other, first, 0), CuResult::success);
        EXPECT_NE(replay_plainly(bench, memory, other, from, 3), right) << "a dropped node";
        ASSERT_EQ(cu.graph_node_set_enabled(other, first, 1), CuResult::success);
        vgpu::KernelNodeParams params{};
        ASSERT_EQ(cu.graph_kernel_node_get_params(second, &params), CuResult::success);
        std::uint32_t constant = *static_cast<std::uint32_t*>(params.kernel_params[2]) + 1;
        void* changed[] = {params.kernel_params[0], params.kernel_params[1], &constant};
        params.kernel_params = changed;
        ASSERT_EQ(cu.graph_exec_kernel_node_set_params(other, second, &params), CuResult::success);
        EXPECT_NE(replay_plainly(bench, memory, other, from, 3), right) << "a stale parameter";
        ASSERT_EQ(cu.graph_exec_destroy(other), CuResult::success);
        ASSERT_EQ(cu.graph_remove_dependencies_v10000(graph.graph, &first, &second, 1), CuResult::success);
        ASSERT_EQ(cu.graph_instantiate(&other, graph.graph, 0), CuResult::success);
        EXPECT_NE(replay_plainly(bench, memory, other, from, 3), right) << "a cut edge";
    }
}

/// Graphs of one engine that take turns, tied to a communicator, with twins that have little room.
class Workload {
  public:
    static constexpr std::uint64_t twin_bytes = 400'000;

    Workload(std::uint64_t seed, bool on)
        : random_(seed), bench_(config_of(seed, on), options_of(seed)), memory_(bench_.engine), seed_(seed) {
        other_ = bench_.engine.stream();
        vgpu::kernel("of another capture", {{}, 3'000, 3'000, {}});
    }

    void run(std::uint64_t& replays, std::uint64_t& sampled) {
        SCOPED_TRACE("workload " + std::to_string(seed_));
        constexpr std::size_t most = 60;
        const std::size_t count = 1 + seed_ % 3;
        for (std::size_t key = 0; key < count; ++key) {
            Engines one;
            one.graph = tied(ComputingGraph(bench_, memory_, seed_ * 8 + key, pick(2) == 0).capture());
            one.states = replay_plainly(bench_, memory_, one.graph.exec, first_state(key), most);
            one.now = first_state(key);
            one.probe = bench_.captured(key, one.graph);
            engines_.push_back(std::move(one));
        }
        const std::uint64_t used = used_bytes();
        for (std::size_t round = 0; round < most && !testing::Test::HasFailure(); ++round) {
            for (Engines& one : engines_) {
                replay(one, round);
            }
            EXPECT_LE(used_bytes(), used + twin_bytes + 200'000) << "rings, and what the first twin shows";
        }
        for (std::size_t key = 0; key < count; ++key) {
            replays += most;
            sampled += bench_.row(key).instrumented;
        }
        end();
        EXPECT_TRUE(vgpu::invalidations().empty());
        EXPECT_EQ(vgpu::synchronising_calls(), 0u);
        EXPECT_EQ(vgpu::destroyed_in_flight(), 0u);
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }

  private:
    struct Engines {
        KnownGraph graph;
        std::shared_ptr<Probe> probe;
        std::vector<State> states;
        State now{};
    };

    static vgpu::Config config_of(std::uint64_t seed, bool on) {
        vgpu::Config config;
        config.seed = seed;
        config.keep_operations = 200;
        config.node_bytes = 4'000;
        if (!on) {
            return config;
        }
        config.sm_slots = 64;
        config.idle_slowdown = 3;
        config.mapped_access_ns = 1'200;
        config.graph_start_node_ns = 20;
        config.branch_launch_node_ns = 30;
        config.stamp_before_work_ns = static_cast<std::int64_t>(seed % 3) * 200;
        config.memset_apart_ns = 2'000;
        config.programmatic_holds_slots = true;
        config.loading_synchronises = true;
        config.stamp_node_ns = seed % 2 == 0 ? 1'700 : 500;
        config.globaltimer_change_ns = 1 + static_cast<std::int64_t>(seed % 20) * 1'000'000;
        config.globaltimer_tick_later_ns = 1'024;
        return config;
    }
    static ProbeOptions options_of(std::uint64_t seed) {
        ProbeOptions options;
        options.kind = seed % 3 == 0 ? ProbeKind::event : seed % 3 == 1 ? ProbeKind::stamp : ProbeKind::automatic;
        options.every = 2;
        options.samples_per_turn = 4;
        options.max_stamps = seed % 5 == 0 ? 12 : 512;
        options.max_twin_bytes = twin_bytes;
        return options;
    }
    int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

    std::uint64_t used_bytes() {
        std::size_t free = 0;
        std::size_t total = 0;
        EXPECT_EQ(bench_.engine.cu.mem_get_info(&free, &total), CuResult::success);
        return total - free;
    }

    /// As a library of collectives does it: the graph holds a reference of its communicator.
    KnownGraph tied(KnownGraph graph) {
        vgpu::UserObject object = nullptr;
        ++held_;
        EXPECT_EQ(bench_.engine.cu.graph_exec_destroy(graph.exec), CuResult::success);
        EXPECT_EQ(bench_.engine.cu.user_object_create(
                      &object, this, [](void* self) { --static_cast<Workload*>(self)->held_; }, 1,
                      vgpu::user_object_no_destructor_sync),
                  CuResult::success);
        EXPECT_EQ(bench_.engine.cu.graph_retain_user_object(graph.graph, object, 1, vgpu::graph_user_object_move),
                  CuResult::success);
        EXPECT_EQ(bench_.engine.cu.graph_instantiate(&graph.exec, graph.graph, 0), CuResult::success);
        return graph;
    }

    /// Somebody else captures, for all threads, while twins are built, turned and destroyed.
    void capture_beside() {
        vgpu::Graph graph = nullptr;
        ASSERT_EQ(bench_.engine.cu.stream_begin_capture(other_, vgpu::CaptureMode::global), CuResult::success);
        EXPECT_EQ(bench_.engine.launch("of another capture", other_), CuResult::success);
        bench_.settle();
        ASSERT_EQ(bench_.engine.cu.stream_end_capture(other_, &graph), CuResult::success) << "it was invalidated";
        EXPECT_EQ(bench_.engine.cu.graph_destroy(graph), CuResult::success);
    }

    void replay(Engines& one, std::size_t round) {
        memory_.set(one.now);
        ASSERT_TRUE(one.probe->launch(one.graph.exec, bench_.stream).ok());
        vgpu::run_dry();
        one.now = memory_.state();
        EXPECT_EQ(one.now, one.states[round]) << "replay " << round << " computed something else";
        bench_.samples.clear();
        bench_.collect();
        if (round == 2 || pick(6) == 0) {
            pick(3) == 0 ? capture_beside() : bench_.settle();
        }
    }

    /// The engine's own graphs go first, or last; then its communicator must end.
    void end() {
        const bool first = pick(2) == 0;
        for (std::size_t key = 0; key < engines_.size(); ++key) {
            if (first) {
                bench_.destroy(engines_[key].graph);
            }
            if (seed_ % 2 == 0) {
                bench_.probes->evicted(key);
            }
            if (!first) {
                bench_.destroy(engines_[key].graph);
            }
        }
        EXPECT_TRUE(bench_.probes->evicted_all(std::chrono::seconds(20)).ok());
        EXPECT_EQ(held_, 0) << "the communicator's end would hang";
        EXPECT_EQ(vgpu::alive().graphs, 0u);
        EXPECT_EQ(vgpu::alive().execs, 0u);
    }

    std::mt19937_64 random_;
    ProbeBench bench_;
    Memory memory_;
    std::uint64_t seed_;
    vgpu::Stream other_ = nullptr;
    std::atomic<int> held_{0};
    std::vector<Engines> engines_;
};

void run_workloads(bool on) {
    std::uint64_t replays = 0;
    std::uint64_t sampled = 0;
    const std::uint64_t count = random_workloads(60);
    for (std::uint64_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) {
        Workload(seed, on).run(replays, sampled);
    }
    std::printf("[ OUTPUTS  ] switches %s: %llu workloads, %llu replays, %llu of them by twins\n", on ? "on" : "off",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(replays),
                static_cast<unsigned long long>(sampled));
    EXPECT_GT(sampled, replays / 10);
}

TEST(ProbesOutputs, of_plain_replays_and_twins_in_turn_are_those_of_plain_ones_on_a_simple_device) {
    run_workloads(false);
}
TEST(ProbesOutputs, of_plain_replays_and_twins_in_turn_are_those_of_plain_ones_with_every_switch_on) {
    run_workloads(true);
}

} // namespace
} // namespace plumb::cudagraph
