// SPDX-License-Identifier: Apache-2.0
// What tests of graph probes share: an engine on the virtual GPU that captures graphs with scopes in them, and the truth
// about what it captured. One bench per process: queues and timelines live as long as that. Test-only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/timeline.hpp"
#include "cudagraph/probes.hpp"
#include "plumb/cuda.hpp"
#include "record/recorder_testing.hpp"
#include "virtual_gpu/control.hpp"
#include "virtual_gpu/engine_driver.hpp"

namespace plumb::cudagraph {

inline constexpr std::uint16_t first_name = 1000; // of scopes: each has a name of its own
/// The gap before a scope's first kernel, what a stamp costs, two ticks.
inline constexpr double near_truth = 1'000 + 800 + 64;

/// How many random workloads a test runs: a share of them, unless the environment says more.
inline std::uint64_t random_workloads(std::uint64_t share) {
    const char* const value = std::getenv("PLUMB_RANDOM_WORKLOADS");
    return value != nullptr ? std::strtoull(value, nullptr, 10) : share;
}

/// A scope that was captured: which kernels ran inside it.
struct KnownScope {
    std::uint16_t name = 0;
    std::uint16_t layer_plus_one = 0;
    std::vector<std::string> kernels;
};

struct KnownGraph {
    vgpu::Graph graph = nullptr;
    vgpu::GraphExec exec = nullptr;
    std::vector<KnownScope> scopes;
    std::uint64_t kernels = 0;
};

struct Truth {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
};

class ProbeBench {
  public:
    explicit ProbeBench(vgpu::Config config = {}, ProbeOptions options = {})
        : engine(small_ledger(config)), recorder(record::TestOptions{}), stream(engine.stream()), side(engine.stream()),
          probes(std::make_unique<GraphProbes>(recorder, on_virtual_time(options))) {
        queue = plumb::cuda(stream);
        side_queue = plumb::cuda(side);
    }

    static ProbeOptions on_virtual_time(ProbeOptions options) {
        options.host_clock = &vgpu::host_clock();
        return options;
    }
    static vgpu::Config small_ledger(vgpu::Config config) {
        config.keep_operations = std::min<std::size_t>(config.keep_operations, 20'000);
        return config;
    }

    // --- Capturing ---

    void begin_capture() {
        now_ = KnownGraph{};
        ASSERT_EQ(engine.cu.stream_begin_capture(stream, vgpu::CaptureMode::relaxed), vgpu::CuResult::success);
    }
    KnownGraph end_capture() {
        EXPECT_EQ(engine.cu.stream_end_capture(stream, &now_.graph), vgpu::CuResult::success);
        EXPECT_EQ(engine.cu.graph_instantiate(&now_.exec, now_.graph, 0), vgpu::CuResult::success);
        return std::move(now_);
    }
    void destroy(const KnownGraph& graph) {
        EXPECT_EQ(engine.cu.graph_exec_destroy(graph.exec), vgpu::CuResult::success);
        EXPECT_EQ(engine.cu.graph_destroy(graph.graph), vgpu::CuResult::success);
    }

    /// A kernel of so many nanoseconds, with a name of its own. On the side stream if `aside`.
    void kernel(std::int64_t ns, bool aside = false) {
        const std::string name = "k" + std::to_string(kernels_made_++);
        named_kernel(name, ns, aside);
    }
    void named_kernel(const std::string& name, std::int64_t ns, bool aside = false) {
        vgpu::KernelModel model;
        model.min_ns = model.max_ns = ns;
        vgpu::kernel(name, model);
        EXPECT_EQ(engine.launch(name.c_str(), aside ? side : stream), vgpu::CuResult::success);
        ++now_.kernels;
        for (const std::size_t scope : open_) {
            now_.scopes[scope].kernels.push_back(name);
        }
    }
    /// Everything that `body` launches is inside one scope.
    template <class Body>
    void scope(Body body, bool aside = false) {
        const std::size_t index = open_scope();
        {
            Scope brick = recorder.scope(aside ? side_queue : queue, name_of(index));
            body();
        }
        open_.pop_back();
    }
    /// `count` laps inside the scope that is open, each with what body(i) launches.
    template <class Body>
    void laps(int count, Body body) {
        for (int i = 0; i < count; ++i) {
            const std::size_t index = open_scope();
            detail::lap(recorder, recorder.mode(), queue, name_of(index));
            body(i);
            open_.pop_back();
        }
        detail::end_lap(recorder, queue);
    }
    template <class Body>
    void layer(std::uint32_t index, Body body) {
        const Layer of_model(recorder, recorder.mode(), index);
        layer_plus_one_ = static_cast<std::uint16_t>(index + 1);
        body();
        layer_plus_one_ = 0;
    }
    /// What `body` launches on the side stream runs beside what follows, until join().
    template <class Body>
    void fork(Body body) {
        const vgpu::Event forked = engine.event(vgpu::event_disable_timing);
        EXPECT_EQ(engine.cu.event_record(forked, stream), vgpu::CuResult::success);
        EXPECT_EQ(engine.cu.stream_wait_event(side, forked, 0), vgpu::CuResult::success);
        body();
        engine.cu.event_destroy(forked);
    }
    void join() {
        const vgpu::Event joined = engine.event(vgpu::event_disable_timing);
        EXPECT_EQ(engine.cu.event_record(joined, side), vgpu::CuResult::success);
        EXPECT_EQ(engine.cu.stream_wait_event(stream, joined, 0), vgpu::CuResult::success);
        engine.cu.event_destroy(joined);
    }

    // --- Replaying ---

    std::shared_ptr<Probe> captured(std::uint64_t key, const KnownGraph& graph) {
        Result<std::shared_ptr<Probe>> probe = probes->captured(key, graph.graph);
        EXPECT_TRUE(probe.ok()) << (probe ? "" : probe.error().message);
        return probe ? *probe : nullptr;
    }
    /// The one that samples lie on.
    [[nodiscard]] std::shared_ptr<backends::cuda::Timeline> timeline() const {
        const auto found = backends::cuda::timeline_of(stream, &vgpu::host_clock());
        EXPECT_TRUE(found.ok());
        return found ? *found : nullptr;
    }
    /// Replays that follow each other: none waits for its launch, but the first.
    void replay_in_a_row(Probe& probe, const KnownGraph& graph, int count) {
        for (int i = 0; i < count; ++i) {
            EXPECT_TRUE(probe.launch(graph.exec, stream).ok());
        }
        vgpu::run_dry();
        collect();
    }
    void settle() { EXPECT_TRUE(probes->settle(std::chrono::seconds(20))); }
    /// Launches, lets the device finish, and collects.
    Status replay(Probe& probe, const KnownGraph& graph) {
        Status status = probe.launch(graph.exec, stream);
        vgpu::run_dry();
        collect();
        return status;
    }
    void collect(bool all = false) {
        drain::FeedRound round;
        if (all) {
            probes->publish_all();
        }
        probes->collect(round);
        tracks.insert(tracks.end(), round.tracks.begin(), round.tracks.end());
        samples.insert(samples.end(), round.samples.begin(), round.samples.end());
        cpu_ns += round.cpu_ns;
        for (recording::GraphInfo& info : round.graphs) {
            rows[info.key] = std::move(info);
        }
    }
    recording::GraphInfo row(std::uint64_t key) {
        collect(true);
        return rows[key];
    }
    /// Replays until `enough` (or too often), with a twin from the third launch on. A twin that a background thread makes anew
    /// is waited for in between: else the replays of a busy machine run out before it is there.
    template <class Enough>
    int replay_until(Probe& probe, const KnownGraph& graph, int most, Enough enough) {
        int count = 0;
        for (; count < most && !enough(); ++count) {
            EXPECT_TRUE(replay(probe, graph).ok());
            if (count == 2 || count % 100 == 99) {
                settle();
            }
        }
        return count;
    }

    // --- Truth ---

    /// When each kernel of the last plain replay of `graph` ran.
    std::map<std::string, Truth> plain_truth(const KnownGraph& graph) {
        EXPECT_EQ(engine.cu.graph_launch(graph.exec, stream), vgpu::CuResult::success);
        vgpu::run_dry();
        return last_replay();
    }
    static std::map<std::string, Truth> last_replay() {
        const std::vector<vgpu::Operation> all = vgpu::operations();
        std::map<std::string, Truth> truth;
        for (auto row = all.rbegin(); row != all.rend() && row->kind != vgpu::OpKind::graph; ++row) {
            if (row->kind == vgpu::OpKind::kernel) {
                truth[row->name] = Truth{row->start_ns, row->end_ns};
            }
        }
        return truth;
    }
    static Truth truth_of(const KnownScope& scope, const std::map<std::string, Truth>& kernels) {
        Truth truth{INT64_MAX, 0};
        for (const std::string& name : scope.kernels) {
            const Truth& one = kernels.at(name);
            truth.begin_ns = std::min(truth.begin_ns, one.begin_ns);
            truth.end_ns = std::max(truth.end_ns, one.end_ns);
        }
        return truth;
    }

    vgpu::Engine engine;
    record::TestRecorder recorder;
    vgpu::Stream stream;
    vgpu::Stream side;
    Queue queue;
    Queue side_queue;
    std::unique_ptr<GraphProbes> probes;
    std::vector<drain::FeedTrack> tracks;
    std::vector<drain::DeviceSample> samples;
    std::map<std::uint64_t, recording::GraphInfo> rows;
    std::uint64_t cpu_ns = 0; // of the thread that builds twins

  private:
    static Name name_of(std::size_t index) { return Name{static_cast<std::uint16_t>(first_name + index)}; }
    std::size_t open_scope() {
        KnownScope scope;
        scope.name = static_cast<std::uint16_t>(first_name + now_.scopes.size());
        scope.layer_plus_one = layer_plus_one_;
        now_.scopes.push_back(std::move(scope));
        open_.push_back(now_.scopes.size() - 1);
        return open_.back();
    }

    KnownGraph now_;
    std::vector<std::size_t> open_;
    std::uint16_t layer_plus_one_ = 0;
    std::uint64_t kernels_made_ = 0;
};

/// `scopes` scopes with a kernel of so many nanoseconds each.
inline KnownGraph capture_scopes(ProbeBench& bench, int scopes = 4, std::int64_t ns = 20'000) {
    bench.begin_capture();
    for (int i = 0; i < scopes; ++i) {
        bench.scope([&] { bench.named_kernel("work", ns); });
    }
    return bench.end_capture();
}

} // namespace plumb::cudagraph
