// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/stamp_cost.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "cudagraph/calibration.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

constexpr int runs = 3;
constexpr std::size_t links = 12; // of a chain: start, middle and end are in it
constexpr int longest_wait_ms = 2000;
constexpr int quick_polls = 2000;

enum class Link { event, stamp };

/// One chain of nodes, replayed on our stream: an event at each end, `links` between.
class Chain {
  public:
    Chain(Timeline& timeline, const StampModule* module, RingMemory ring, TimerTick& tick)
        : timeline_(timeline), driver_(timeline.driver()), module_(module), ring_(ring), tick_(tick) {}

    ~Chain() {
        if (exec_ != nullptr && !timeline_.lost()) {
            static_cast<void>(driver_.graph_exec_destroy(exec_));
        }
        if (graph_ != nullptr && !timeline_.lost()) {
            static_cast<void>(driver_.graph_destroy(graph_));
        }
        for (std::size_t i = 0; !stuck_ && i < events_.size(); ++i) {
            timeline_.release(events_[i]);
        }
    }
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;

    /// Nanoseconds from the first event to the last: the middle of some replays.
    Result<double> span(Link link) {
        if (!check(driver_.graph_create(&graph_, 0), "cuGraphCreate") || !add_event()) {
            return status_.error();
        }
        for (std::size_t i = 0; i < links; ++i) {
            if (!(link == Link::event ? add_event() : add_stamp())) {
                return status_.error();
            }
        }
        if (!add_event() || !check(driver_.graph_instantiate(&exec_, graph_, 0), "cuGraphInstantiateWithFlags")) {
            return status_.error();
        }
        Readings readings;
        for (int run = 0; run <= runs; ++run) {
            const Result<double> once = replay();
            if (!once) {
                return once.error();
            }
            if (run > 0) { // the first uploads
                readings.add(*once);
            }
            if (stamps_ != 0) { // over: the device wrote them
                for (std::size_t i = 0; i < stamps_; ++i) {
                    tick_.add(ring_.values()[i]);
                    i > 0 ? tick_.add_step(ring_.values()[i - 1], ring_.values()[i]) : void();
                }
            }
        }
        return readings.sound_mean();
    }

    [[nodiscard]] bool unfinished() const { return unfinished_; }

  private:
    bool check(CuResult result, const char* call) {
        if (result != CuResult::success && status_) {
            status_ = timeline_.failed(result, call);
        }
        return result == CuResult::success;
    }

    bool add_event() {
        const Result<Event> event = timeline_.acquire();
        if (!event) {
            status_ = event.error();
            return false;
        }
        events_.push_back(*event);
        GraphNode node = nullptr;
        const bool added =
            check(driver_.graph_add_event_record_node(&node, graph_, &last_, last_ != nullptr ? 1U : 0U, *event),
                  "cuGraphAddEventRecordNode");
        last_ = node;
        return added;
    }

    bool add_stamp() {
        StampParameters stamp{
            ring_.device + RingMemory::values_at, ring_.device, stamps_++, static_cast<std::uint32_t>(links), 0, 0};
        void* pointers[6];
        stamp.fill(pointers);
        KernelNodeParams params{};
        params.func = module_->stamp;
        params.grid_x = params.grid_y = params.grid_z = params.block_x = params.block_y = params.block_z = 1;
        params.kernel_params = pointers;
        GraphNode node = nullptr;
        const bool added = check(driver_.add_kernel(&node, graph_, &last_, last_ != nullptr ? 1U : 0U, &params),
                                 "cuGraphAddKernelNode");
        last_ = node;
        return added;
    }

    Result<double> replay() {
        const Result<Event> done = timeline_.acquire();
        if (!done) {
            return done.error();
        }
        Result<double> span =
            Error{ErrorCode::pending, "the calibration of stamps did not finish in time; it is left out"};
        unfinished_ = true;
        if (!check(driver_.graph_launch(exec_, timeline_.stream()), "cuGraphLaunch") ||
            !check(copy_back(), "cuMemcpyDtoHAsync") ||
            !check(driver_.event_record(*done, timeline_.stream()), "cuEventRecord")) {
            span = status_.error();
        } else {
            const Status reached = wait(*done);
            unfinished_ = !reached;
            stuck_ = !reached; // a replay may still be under way: it writes its events once more
            span = reached ? timeline_.between(events_.front(), events_.back()) : Result<double>(reached.error());
        }
        if (!stuck_) {
            timeline_.release(*done);
        }
        return span;
    }

    /// What stamps wrote, into the ring's pinned side.
    CuResult copy_back() {
        const std::size_t at = RingMemory::values_at;
        return stamps_ == 0 ? CuResult::success
                            : driver_.memcpy_dtoh_async(static_cast<char*>(ring_.host) + at, ring_.device + at,
                                                        stamps_ * sizeof(std::uint64_t), timeline_.stream());
    }

    Status wait(Event event) {
        using Clock = std::chrono::steady_clock;
        const auto end = Clock::now() + std::chrono::milliseconds(longest_wait_ms);
        for (int polls = 0;;) {
            const Result<bool> reached = timeline_.reached(event);
            if (timeline_.lost()) {
                return reached.error();
            }
            if (reached && *reached) { // one query that failed says nothing about the device
                return {};
            }
            if (Clock::now() > end) {
                return Error{ErrorCode::pending, "the device was too busy to calibrate stamps; events are used"};
            }
            if (++polls < quick_polls) {
                std::this_thread::yield(); // it is over in a tenth of a millisecond, unless the device is busy
            } else {
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
        }
    }

    Timeline& timeline_;
    const Driver& driver_;
    const StampModule* module_;
    RingMemory ring_;
    TimerTick& tick_;
    std::uint32_t stamps_ = 0;
    Graph graph_ = nullptr;
    GraphExec exec_ = nullptr;
    GraphNode last_ = nullptr;
    std::vector<Event> events_;
    Status status_;
    bool stuck_ = false;
    bool unfinished_ = false; // a replay was launched and not seen to end
};

} // namespace

StampCosts measure_stamp_costs(Timeline& timeline, const StampModule* module, RingMemory ring) {
    StampCosts costs;
    TimerTick tick;
    const auto span = [&](Link link) {
        Chain chain(timeline, module, ring, tick);
        const Result<double> read = chain.span(link);
        costs.ring_in_use |= chain.unfinished();
        if (!read && costs.status) {
            costs.status = read.error();
        }
        return read ? *read : unknown_cost;
    };
    const auto number = static_cast<double>(links);
    costs.event = span(Link::event) / (number + 1);
    if (module == nullptr || !costs.status) {
        return costs;
    }
    costs.stamp = (span(Link::stamp) - costs.event) / number;
    costs.stamp_tick = tick.ns();
    return costs;
}

} // namespace plumb::cudagraph
