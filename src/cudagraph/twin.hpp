// SPDX-License-Identifier: Apache-2.0
// The instrumented twin of a captured graph: a clone with stamps, its executable, and how its stamps are read.
// Owned by the probe of its key, which destroys it when its last launch has completed. Thread rule: build(), read(),
// turn_to() and destroy() on a thread of ours that holds RelaxedCapture and has the context current, while no launch of
// it is enqueued; launch() under the lock of its probe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cudagraph/calibration.hpp"
#include "cudagraph/graph_device.hpp"
#include "cudagraph/stamp_plan.hpp"

namespace plumb::cudagraph {

/// What twins are cloned from: our own clone of the caller's graph. Lives as long as its probe.
struct TwinSource {
    backends::cuda::Graph graph = nullptr;
    std::vector<backends::cuda::GraphNode> nodes; // of that clone, in the order of `shape`
    GraphShape shape;
    NodeMap map;
};

class Twin {
  public:
    /// Replays that may be unread at once: events are overwritten by the next, rings of stamp kernels are not. A power of two.
    static constexpr std::uint32_t ring_capacity = 4;

    /// Event twins hold the stamps of one turn; stamp twins those of all, of which one turn is switched on. `flags`: of the
    /// caller's executable, by which a graph of several branches is scheduled.
    [[nodiscard]] static Result<std::shared_ptr<Twin>> build(GraphDevice& device, const TwinSource& source,
                                                             const StampPlans& plans, std::size_t turn, ProbeKind kind,
                                                             unsigned long long flags);
    /// Of a graph with so many places, at most.
    [[nodiscard]] static constexpr std::size_t ring_bytes(std::size_t places) {
        return RingMemory::values_at + (places + places / 2 + 16) * ring_capacity * sizeof(std::uint64_t);
    }
    ~Twin();
    Twin(const Twin&) = delete;
    Twin& operator=(const Twin&) = delete;

    [[nodiscard]] backends::cuda::CuResult launch(backends::cuda::Stream stream) noexcept {
        return device_.driver().graph_launch(exec_, stream);
    }
    /// Launches so far, under the lock of its probe too; count_launch() gives the number of the one just enqueued.
    [[nodiscard]] std::uint64_t launches() const noexcept { return launches_; }
    std::uint64_t count_launch() noexcept { return launches_++; }
    /// Stamp twins only: enqueues the copy of what that replay writes, behind it. Under the lock of its probe too.
    [[nodiscard]] backends::cuda::CuResult copy_back(backends::cuda::Stream stream, std::uint64_t replay) noexcept;
    /// Where no event could be recorded behind a replay: whether its own last stamp says that it is over.
    [[nodiscard]] Result<bool> over(std::uint64_t replay);
    [[nodiscard]] ProbeKind kind() const noexcept { return kind_; }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return kind_ == ProbeKind::stamp ? ring_capacity : 1; }
    [[nodiscard]] const StampPlan& plan() const noexcept { return plan_; }
    /// A stamp at either end and none between: against it the others are measured (SiteBook).
    [[nodiscard]] bool is_frame() const noexcept { return plan_.parts.empty(); }
    /// One-thread kernels behind the moment of the last stamp: itself, and one of its own that moves the ring on.
    [[nodiscard]] std::size_t behind() const noexcept { return kind_ == ProbeKind::event || !advances_ ? 1 : 2; }
    [[nodiscard]] std::size_t turn() const noexcept { return turn_; }
    [[nodiscard]] std::size_t nodes() const noexcept { return node_count_; }
    /// What a sampled replay takes longer, in stamps: the copy of a ring is taken to cost as much as two.
    [[nodiscard]] std::size_t cost_units() const { return plan_.cost_units() + (kind_ == ProbeKind::stamp ? 2 : 0); }

    /// The stamps of replay number `replay` (from 0), which has completed. Error where one is missing or the later of two
    /// was first.
    [[nodiscard]] Status read(std::uint64_t replay, ReplayReadings& readings);
    /// What the timer of stamp kernels read in that replay; nothing of an event twin.
    void tell_timers(std::uint64_t replay, TimerTick& tick) const;
    /// What is read of that replay once more is an error: its slots are as before the first write.
    void forget(std::uint64_t replay) noexcept;
    /// Ticks of the head's last stamp on the queue clock. `before` and `after`: events around the replay; `waited`: the wait
    /// for its launch is between them.
    [[nodiscard]] Result<std::uint64_t> head_ticks(const ReplayReadings& readings, backends::cuda::Event before,
                                                   backends::cuda::Event after, bool waited);
    /// Where event nodes are doubted (HIP), the trial at the start says nothing about this replay: its stamps must go forward
    /// and lie between the plain events around it. Error unsupported: they do not, and no replay of it can be trusted.
    [[nodiscard]] Status stamped_between(backends::cuda::Event before, backends::cuda::Event after);
    /// Stamp twins only: switches to the stamps of another turn.
    [[nodiscard]] Status turn_to(const StampPlan& plan, std::size_t turn);
    /// Gives everything back. After a sticky error nothing is called and `leaked` gains a line.
    void destroy(std::vector<std::string>& leaked);

  private:
    struct Stamp {
        std::uint32_t place = 0;
        std::uint32_t copy = 0;
        backends::cuda::GraphNode node = nullptr;
        backends::cuda::Event event = nullptr; // of an event twin
        bool on = true;
    };
    struct Copies {
        std::uint32_t first = 0; // indexes of stamps_
        std::uint32_t last = 0;
    };

    Twin(GraphDevice& device, ProbeKind kind) : device_(device), kind_(kind) {}
    [[nodiscard]] Status failed(backends::cuda::CuResult result, const char* call) const;
    Status drop_graph();
    Status assemble(const TwinSource& source, const StampPlans& plans);
    Status add_stamps_at(const TwinSource& source, std::uint32_t place, std::uint32_t copies);
    Status add_kernel(const std::vector<backends::cuda::GraphNode>& after, backends::cuda::Function function,
                      void** parameters, backends::cuda::GraphNode& node);
    Status add_stamp(const std::vector<backends::cuda::GraphNode>& after, std::uint32_t place, std::uint32_t copy,
                     bool last);
    Status add_advance(const TwinSource& source);
    Status cut(const TwinSource& source, const StampPlace& place);
    Status rejoin(const TwinSource& source, const StampPlace& place, bool is_head);
    [[nodiscard]] Result<backends::cuda::GraphNode> in_clone(const TwinSource& source, std::uint32_t node);
    void choose(const StampPlan& plan, std::size_t turn);
    Status switch_stamps();
    [[nodiscard]] Result<double> between(std::uint32_t first, std::uint32_t second, std::uint64_t replay);
    [[nodiscard]] std::uint64_t timer_at(std::uint32_t stamp, std::uint64_t replay) const;
    /// Where the values of a replay begin in the ring.
    [[nodiscard]] std::size_t row_of(std::uint64_t replay) const { return (replay & (ring_capacity - 1)) * slots_; }

    GraphDevice& device_;
    ProbeKind kind_;
    backends::cuda::Graph graph_ = nullptr;
    backends::cuda::GraphExec exec_ = nullptr;
    RingMemory ring_;
    backends::cuda::Event asked_ = nullptr; // behind a copy of the counter, on our own stream
    std::vector<std::uint64_t> seen_; // what was read of the ring before: a value found again was not written anew
    std::size_t slots_ = 0;
    int priority_ = 0;          // of stamp kernels: the highest of this device
    std::vector<Stamp> stamps_; // in order of time, copies next to each other
    std::vector<Copies> at_;    // per planned stamp
    StampPlan plan_;
    std::size_t turn_ = 0;
    std::size_t node_count_ = 0;
    std::uint64_t launches_ = 0;
    bool advances_ = false; // by a node of its own
};

} // namespace plumb::cudagraph
