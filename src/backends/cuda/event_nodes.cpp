// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/event_nodes.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "backends/cuda/timeline_guard.hpp"

namespace plumb::backends::cuda {
namespace {

constexpr std::size_t links = 16; // so many that a coarse tick still moves between the first and the last
constexpr std::int64_t limit_ns = 20'000'000;
constexpr const char* plainly = "; graphs are replayed plainly, and what is inside them is not timed";

Status unsupported(const std::string& what) { return Error{ErrorCode::unsupported, what + plainly}; }

class Trial {
  public:
    explicit Trial(Timeline& timeline) : timeline_(timeline), driver_(timeline.driver()) {}

    ~Trial() {
        if (timeline_.lost()) {
            return;
        }
        if (exec_ != nullptr) {
            static_cast<void>(driver_.graph_exec_destroy(exec_));
        }
        if (graph_ != nullptr) {
            static_cast<void>(driver_.graph_destroy(graph_));
        }
        // A replay that may still be under way writes its events once more: they stay with the driver.
        for (std::size_t i = 0; !in_flight_ && i < events_.size(); ++i) {
            timeline_.release(events_[i]);
        }
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

    Status run() {
        Status status = build();
        for (int replay = 0; status && replay < 2; ++replay) {
            status = launch();
            status = status ? judge() : status;
        }
        return status;
    }

  private:
    Result<Event> event() {
        const Result<Event> taken = timeline_.acquire();
        if (taken) {
            events_.push_back(*taken);
        }
        return taken;
    }

    Status check(CuResult result, const char* call) {
        if (result == CuResult::success) {
            return {};
        }
        static_cast<void>(timeline_.failed(result, call)); // a sticky one ends the timeline
        return Error{ErrorCode::unsupported, error_of(driver_, result, call, plainly + 2).message};
    }

    Status build() {
        Status status = check(driver_.graph_create(&graph_, 0), "cuGraphCreate");
        GraphNode last = nullptr;
        for (std::size_t i = 0; status && i < links; ++i) {
            const Result<Event> one = event();
            if (!one) {
                return one.error();
            }
            GraphNode node = nullptr;
            status = check(
                driver_.graph_add_event_record_node(&node, graph_, i == 0 ? nullptr : &last, i == 0 ? 0U : 1U, *one),
                "cuGraphAddEventRecordNode");
            last = node;
        }
        if (status) {
            status = check(driver_.graph_instantiate(&exec_, graph_, 0), "cuGraphInstantiateWithFlags");
        }
        for (Event* const around : {&before_, &after_}) {
            const Result<Event> one = status ? event() : Result<Event>(status.error());
            if (!one) {
                return one.error();
            }
            *around = *one;
        }
        return status;
    }

    Status launch() {
        Status status = check(driver_.event_record(before_, timeline_.stream()), "cuEventRecord");
        if (status) {
            in_flight_ = true;
            status = check(driver_.graph_launch(exec_, timeline_.stream()), "cuGraphLaunch");
        }
        if (status) {
            status = check(driver_.event_record(after_, timeline_.stream()), "cuEventRecord");
        }
        if (status) {
            status = timeline_.wait_for(after_, limit_ns);
        }
        in_flight_ = in_flight_ && !status;
        return status;
    }

    /// Nanoseconds between two events that the device has passed.
    Result<double> between(Event first, Event second, const char* which) {
        Result<double> span = timeline_.between(first, second);
        if (!span && span.error().code == ErrorCode::pending) {
            if (const Result<bool> over = timeline_.reached(after_); !over) {
                return over.error(); // something is captured now: nothing is known
            }
            span = timeline_.between(first, second);
        }
        if (span && std::isfinite(*span)) {
            return span;
        }
        const std::string why = span ? "no number came" : span.error().message;
        return unsupported(std::string("the time ") + which + " cannot be read (" + why + ")").error();
    }

    Status judge() {
        const Event first = events_.front();
        const Event last = events_[links - 1];
        const Result<double> inside = between(first, last, "between event nodes of a graph");
        if (!inside) {
            return inside.error();
        }
        if (*inside <= 0) {
            return unsupported("event nodes of a graph that follow each other read " + std::to_string(*inside) + " ns");
        }
        const Result<double> lead = between(before_, first, "from an event to a graph's event node");
        const Result<double> rest = between(last, after_, "from a graph's event node to an event");
        if (!lead || !rest) {
            return lead ? rest.error() : lead.error();
        }
        const double slack = 2 * std::max(timeline_.tick_ns(), timeline_.empty_pair_ns());
        if (*lead < -slack || *rest < -slack) {
            return unsupported("event nodes of a graph keep the times of an earlier replay, or of another clock");
        }
        return {};
    }

    Timeline& timeline_;
    const Driver& driver_;
    Graph graph_ = nullptr;
    GraphExec exec_ = nullptr;
    std::vector<Event> events_; // the nodes', then the two around them
    Event before_ = nullptr;
    Event after_ = nullptr;
    bool in_flight_ = false;
};

} // namespace

Status try_event_nodes(Timeline& timeline) { return Trial(timeline).run(); }

Status Timeline::event_nodes() {
    if (!driver_.vendor->doubts_event_nodes) {
        return {};
    }
    const std::lock_guard lock(nodes_mutex_);
    if (nodes_) {
        return *nodes_;
    }
    const Guard guard(*this);
    Status can = guard.status();
    can = can ? askable() : can;
    if (!can) {
        return can;
    }
    Status tried = try_event_nodes(*this);
    if (tried || tried.error().code == ErrorCode::unsupported) {
        nodes_ = tried;
    }
    return tried;
}

} // namespace plumb::backends::cuda
