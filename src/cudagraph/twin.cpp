// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/twin.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

// A twin is launched by the host alone, and uploaded by a call of its own.
constexpr unsigned long long unwanted = instantiate_device_launch | instantiate_upload;

/// Places that any turn stamps, with the copies that it needs at most; of one turn, where stamps cannot be switched.
std::map<std::uint32_t, std::uint32_t> places_of(const StampPlans& plans, ProbeKind kind, std::size_t turn) {
    std::map<std::uint32_t, std::uint32_t> places;
    for (std::size_t i = 0; i < plans.turns.size(); ++i) {
        if (kind == ProbeKind::stamp || i == turn) {
            for (const PlannedStamp& stamp : plans.turns[i].stamps) {
                std::uint32_t& copies = places[stamp.place];
                copies = std::max(copies, stamp.copies);
            }
        }
    }
    return places;
}

/// The graph orders the two: less than nothing between them is no reading of a clock that goes forward.
Result<double> in_order(double span_ns) {
    return span_ns >= 0 ? Result<double>(span_ns)
                        : Result<double>(Error{ErrorCode::corrupt, "two stamps of an instrumented replay are in the "
                                                                   "wrong order, so that it is left out"});
}

} // namespace

Status Twin::failed(CuResult result, const char* call) const { return device_.timeline().failed(result, call); }

Result<std::shared_ptr<Twin>> Twin::build(GraphDevice& device, const TwinSource& source, const StampPlans& plans,
                                          std::size_t turn, ProbeKind kind, unsigned long long flags) {
    std::shared_ptr<Twin> twin(new Twin(device, kind));
    twin->turn_ = turn;
    Status status = twin->assemble(source, plans);
    if (status) {
        const CuResult made = device.driver().graph_instantiate(&twin->exec_, twin->graph_, flags & ~unwanted);
        if (made != CuResult::success) {
            twin->exec_ = nullptr;
            status = twin->failed(made, "cuGraphInstantiateWithFlags");
        }
    }
    if (status) {
        twin->choose(plans.turns[turn], turn);
        status = twin->kind_ == ProbeKind::stamp ? twin->switch_stamps() : Status();
    }
    if (status && (twin->kind_ == ProbeKind::event || plans.turns.size() == 1)) {
        status = twin->drop_graph();
    }
    if (status) {
        // On our own stream, so that the engine's first sampled replay does not pay for it. It may fail: the launch does
        // it then.
        const auto upload = device.driver().graph_upload;
        const CuResult up = upload != nullptr ? upload(twin->exec_, device.timeline().stream()) : CuResult::success;
        if (device.driver().vendor->is_sticky(up)) {
            status = twin->failed(up, "cuGraphUpload");
        }
    }
    if (!status) {
        std::vector<std::string> leaked;
        twin->destroy(leaked);
        return status.error();
    }
    return twin;
}

/// Nobody asks for its nodes any more, and the executable needs them not.
Status Twin::drop_graph() {
    const CuResult done = device_.driver().graph_destroy(std::exchange(graph_, nullptr));
    return done == CuResult::success ? Status() : failed(done, "cuGraphDestroy");
}

Status Twin::assemble(const TwinSource& source, const StampPlans& plans) {
    if (const CuResult cloned = device_.driver().graph_clone(&graph_, source.graph); cloned != CuResult::success) {
        graph_ = nullptr;
        return failed(cloned, "cuGraphClone");
    }
    const std::map<std::uint32_t, std::uint32_t> places = places_of(plans, kind_, turn_);
    for (const auto& [place, copies] : places) {
        slots_ += copies;
    }
    if (kind_ == ProbeKind::stamp) {
        const Result<RingMemory> ring =
            device_.take_ring(RingMemory::values_at + slots_ * ring_capacity * sizeof(std::uint64_t));
        if (!ring) {
            return ring.error();
        }
        ring_ = *ring;
        seen_.assign(slots_ * ring_capacity, 0);
        int least = 0;
        static_cast<void>(device_.driver().ctx_get_stream_priority_range(&least, &priority_)); // else 0, the lowest
    }
    // A graph in a line stays one: only a stamp that nothing waits for needs a node behind all of them.
    const std::uint32_t tail = places.rbegin()->first;
    advances_ = kind_ == ProbeKind::stamp && std::any_of(places.begin(), places.end(), [&](const auto& place) {
                    return place.first != tail && !source.map.places[place.first].in_line;
                });
    for (const auto& [place, copies] : places) {
        if (Status status = add_stamps_at(source, place, copies); !status) {
            return status;
        }
    }
    if (advances_) {
        if (Status status = add_advance(source); !status) {
            return status;
        }
    }
    node_count_ = source.nodes.size() + stamps_.size() + (advances_ ? 1 : 0);
    return {};
}

Status Twin::add_stamps_at(const TwinSource& source, std::uint32_t index, std::uint32_t copies) {
    const StampPlace& place = source.map.places[index];
    std::vector<GraphNode> after;
    for (const std::uint32_t node : place.after) {
        const Result<GraphNode> here = in_clone(source, node);
        if (!here) {
            return here.error();
        }
        after.push_back(*here);
    }
    if (place.in_line) {
        if (Status status = cut(source, place); !status) {
            return status;
        }
    }
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
        const bool last = index + 1 == source.map.places.size() && copy + 1 == copies;
        if (Status status = add_stamp(after, index, copy, last); !status) {
            return status;
        }
        after.assign(1, stamps_.back().node);
    }
    return place.in_line ? rejoin(source, place, index == 0) : Status();
}

Result<GraphNode> Twin::in_clone(const TwinSource& source, std::uint32_t node) {
    GraphNode here = nullptr;
    const CuResult found = device_.driver().graph_node_find_in_clone(&here, source.nodes[node], graph_);
    return found == CuResult::success ? Result<GraphNode>(here)
                                      : Result<GraphNode>(failed(found, "cuGraphNodeFindInClone").error());
}

Status Twin::cut(const TwinSource& source, const StampPlace& place) {
    std::vector<GraphNode> from;
    std::vector<GraphNode> to;
    for (const std::uint32_t edge : place.cut) {
        const Result<GraphNode> begin = in_clone(source, source.shape.edges[edge].from);
        const Result<GraphNode> end = in_clone(source, source.shape.edges[edge].to);
        if (!begin || !end) {
            return begin ? end.error() : begin.error();
        }
        from.push_back(*begin);
        to.push_back(*end);
    }
    if (from.empty()) {
        return {};
    }
    const std::vector<EdgeData> plain(from.size(), EdgeData{});
    const CuResult removed = device_.driver().remove_edges(graph_, from.data(), to.data(), plain.data(), from.size());
    return removed == CuResult::success ? Status() : failed(removed, "cuGraphRemoveDependencies");
}

/// What waited for the place's nodes waits for its last stamp now.
Status Twin::rejoin(const TwinSource& source, const StampPlace& place, bool is_head) {
    std::vector<std::uint32_t> targets = is_head ? source.map.roots : std::vector<std::uint32_t>();
    for (const std::uint32_t edge : place.cut) {
        targets.push_back(source.shape.edges[edge].to);
    }
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    std::vector<GraphNode> to;
    for (const std::uint32_t target : targets) {
        const Result<GraphNode> here = in_clone(source, target);
        if (!here) {
            return here.error();
        }
        to.push_back(*here);
    }
    if (to.empty()) {
        return {};
    }
    const std::vector<GraphNode> from(to.size(), stamps_.back().node);
    const std::vector<EdgeData> plain(to.size(), EdgeData{});
    const CuResult added = device_.driver().add_edges(graph_, from.data(), to.data(), plain.data(), to.size());
    return added == CuResult::success ? Status() : failed(added, "cuGraphAddDependencies");
}

Status Twin::add_stamp(const std::vector<GraphNode>& after, std::uint32_t place, std::uint32_t copy, bool last) {
    Stamp stamp;
    stamp.place = place;
    stamp.copy = copy;
    if (kind_ == ProbeKind::event) {
        const GraphNode* const list = after.empty() ? nullptr : after.data();
        const Result<Event> event = device_.timeline().acquire();
        if (!event) {
            return event.error();
        }
        stamp.event = *event;
        stamps_.push_back(stamp);
        const CuResult added =
            device_.driver().graph_add_event_record_node(&stamps_.back().node, graph_, list, after.size(), *event);
        return added == CuResult::success ? Status() : failed(added, "cuGraphAddEventRecordNode");
    }
    StampParameters values{
        ring_.device + RingMemory::values_at, ring_.device,      static_cast<std::uint32_t>(stamps_.size()),
        static_cast<std::uint32_t>(slots_),   ring_capacity - 1, last && !advances_ ? 1U : 0U};
    void* pointers[6];
    values.fill(pointers);
    stamps_.push_back(stamp);
    return add_kernel(after, device_.stamps()->stamp, pointers, stamps_.back().node);
}

/// Behind the last stamp in line, which is behind all others in line, and the leaves: the next replay writes the next slots.
Status Twin::add_advance(const TwinSource& source) {
    std::vector<GraphNode> after;
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
        const bool last_copy = i + 1 == stamps_.size() || stamps_[i + 1].place != stamps_[i].place;
        if (i + 1 == stamps_.size() || (last_copy && !source.map.places[stamps_[i].place].in_line)) {
            after.push_back(stamps_[i].node);
        }
    }
    DevicePointer counter = ring_.device;
    void* pointers[1] = {&counter};
    GraphNode node = nullptr;
    return add_kernel(after, device_.stamps()->advance, pointers, node);
}

/// Of one thread, ahead of whatever else is ready where nodes have priorities.
Status Twin::add_kernel(const std::vector<GraphNode>& after, Function function, void** parameters, GraphNode& node) {
    const Driver& driver = device_.driver();
    KernelNodeParams params{};
    params.func = function;
    params.grid_x = params.grid_y = params.grid_z = params.block_x = params.block_y = params.block_z = 1;
    params.kernel_params = parameters;
    const GraphNode* const list = after.empty() ? nullptr : after.data();
    const CuResult added = driver.add_kernel(&node, graph_, list, after.size(), &params);
    if (added != CuResult::success) {
        return failed(added, "cuGraphAddKernelNode");
    }
    LaunchAttributeValue priority{};
    priority.priority = priority_;
    const CuResult set = driver.graph_kernel_node_set_attribute(node, attribute_priority, &priority);
    return driver.vendor->is_sticky(set) ? failed(set, "cuGraphKernelNodeSetAttribute")
                                         : Status(); // else it has its own
}

void Twin::choose(const StampPlan& plan, std::size_t turn) {
    plan_ = plan;
    turn_ = turn;
    at_.assign(plan.stamps.size(), Copies{});
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < plan.stamps.size(); ++i) {
        while (stamps_[next].place != plan.stamps[i].place) {
            ++next;
        }
        at_[i].first = next;
        at_[i].last = next + plan.stamps[i].copies - 1;
    }
}

Status Twin::switch_stamps() {
    std::vector<bool> wanted(stamps_.size(), false);
    for (const Copies& copies : at_) {
        wanted[copies.first] = wanted[copies.last] = true;
    }
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
        if (wanted[i] == stamps_[i].on) {
            continue;
        }
        const CuResult done = device_.driver().graph_node_set_enabled(exec_, stamps_[i].node, wanted[i] ? 1U : 0U);
        if (done != CuResult::success) {
            return failed(done, "cuGraphNodeSetEnabled");
        }
        stamps_[i].on = wanted[i];
    }
    return {};
}

Status Twin::turn_to(const StampPlan& plan, std::size_t turn) {
    choose(plan, turn);
    return switch_stamps();
}

CuResult Twin::copy_back(Stream stream, std::uint64_t replay) noexcept {
    const std::size_t at = RingMemory::values_at + row_of(replay) * sizeof(std::uint64_t);
    return device_.driver().memcpy_dtoh_async(static_cast<char*>(ring_.host) + at, ring_.device + at,
                                              slots_ * sizeof(std::uint64_t), stream);
}

std::uint64_t Twin::timer_at(std::uint32_t stamp, std::uint64_t replay) const {
    // Relaxed: the device wrote it; the event behind the copy, which has completed, orders that before this.
    return __atomic_load_n(ring_.values() + row_of(replay) + stamp, __ATOMIC_RELAXED);
}

void Twin::tell_timers(std::uint64_t replay, TimerTick& tick) const {
    for (const Copies& copies : at_) {
        if (kind_ == ProbeKind::stamp) {
            tick.add(timer_at(copies.first, replay));
        }
        if (kind_ == ProbeKind::stamp && copies.last != copies.first) {
            tick.add(timer_at(copies.last, replay));
            tick.add_step(timer_at(copies.first, replay), timer_at(copies.last, replay));
        }
    }
}

Result<bool> Twin::over(std::uint64_t replay) {
    if (kind_ == ProbeKind::event) {
        return device_.timeline().reached(stamps_[at_.back().last].event);
    }
    Timeline& timeline = device_.timeline();
    if (asked_ == nullptr) { // the counter lies on the device: a copy of it is there when we are asked again
        const Result<Event> event = timeline.acquire();
        if (!event) {
            return event.error();
        }
        CuResult asked =
            device_.driver().memcpy_dtoh_async(ring_.host, ring_.device, sizeof(std::uint64_t), timeline.stream());
        asked = asked == CuResult::success ? device_.driver().event_record(*event, timeline.stream()) : asked;
        if (asked != CuResult::success) {
            timeline.release(*event);
            return timeline.failed(asked, "cuMemcpyDtoHAsync");
        }
        asked_ = *event;
        return false;
    }
    const Result<bool> there = timeline.reached(asked_);
    if (!there || !*there) {
        return there;
    }
    timeline.release(std::exchange(asked_, nullptr));
    return __atomic_load_n(static_cast<const std::uint64_t*>(ring_.host), __ATOMIC_RELAXED) > replay;
}

Result<double> Twin::between(std::uint32_t first, std::uint32_t second, std::uint64_t replay) {
    if (kind_ == ProbeKind::event) {
        const Result<double> span = device_.timeline().between(stamps_[first].event, stamps_[second].event);
        return span ? in_order(*span) : span;
    }
    const std::uint64_t begin = timer_at(first, replay);
    const std::uint64_t end = timer_at(second, replay);
    if (begin == seen_[row_of(replay) + first] || end == seen_[row_of(replay) + second]) {
        return Error{ErrorCode::corrupt,
                     "a stamp kernel of an instrumented replay wrote nothing; use graph.stamps=events"};
    }
    return in_order(static_cast<double>(static_cast<std::int64_t>(end - begin)));
}

void Twin::forget(std::uint64_t replay) noexcept {
    if (ring_.host == nullptr) {
        return;
    }
    for (std::uint32_t stamp = 0; stamp < slots_; ++stamp) {
        seen_[row_of(replay) + stamp] = timer_at(stamp, replay);
    }
}

Status Twin::read(std::uint64_t replay, ReplayReadings& readings) {
    readings.since_anchor.assign(plan_.stamps.size(), 0);
    readings.pair.assign(plan_.stamps.size(), unknown_cost);
    for (std::size_t i = 0; i < plan_.stamps.size(); ++i) {
        const PlannedStamp& stamp = plan_.stamps[i];
        if (stamp.anchor != no_index) {
            const Result<double> since = between(at_[stamp.anchor].last, at_[i].first, replay);
            if (!since) {
                return since.error();
            }
            readings.since_anchor[i] = *since;
        }
        if (stamp.copies > 1) {
            const Result<double> pair = between(at_[i].first, at_[i].last, replay);
            if (!pair) {
                return pair.error();
            }
            readings.pair[i] = *pair;
        }
    }
    return {};
}

Status Twin::stamped_between(Event before, Event after) {
    Timeline& timeline = device_.timeline();
    if (kind_ != ProbeKind::event || !device_.driver().vendor->doubts_event_nodes || at_.size() < 2) {
        return {};
    }
    const Event first = stamps_[at_.front().first].event;
    const Event last = stamps_[at_.back().last].event;
    const Result<double> lead = timeline.between(before, first);
    const Result<double> inside = lead ? timeline.between(first, last) : lead;
    const Result<double> rest = inside ? timeline.between(last, after) : inside;
    if (!rest) {
        return rest.error();
    }
    constexpr const char* plainly = "; later replays are plain, and what is inside them is not timed";
    const double slack = 2 * std::max(timeline.tick_ns(), timeline.empty_pair_ns());
    if (*lead < -slack || *rest < -slack) {
        return Error{ErrorCode::unsupported,
                     std::string("event nodes of a replay kept the times of an earlier one, or of another clock") +
                         plainly};
    }
    if (*inside <= 0) {
        return Error{ErrorCode::unsupported, "the event nodes of a replay read " + std::to_string(*inside) +
                                                 " ns from the first to the last" + plainly};
    }
    return {};
}

Result<std::uint64_t> Twin::head_ticks(const ReplayReadings& readings, Event before, Event after, bool waited) {
    Timeline& timeline = device_.timeline();
    if (kind_ == ProbeKind::event) {
        return timeline.place(stamps_[at_[0].last].event);
    }
    // %globaltimer and the event clock start elsewhere: the replay lies between its two events. In the middle of them, unless
    // it waited: then it lies at the end. Behind the moment when the last stamp began are that one and, if there
    // is one, the kernel that moves the ring on.
    const Result<std::uint64_t> begin = timeline.place(before);
    const Result<double> whole = begin ? timeline.between(before, after) : Result<double>(begin.error());
    if (!whole) {
        return whole.error();
    }
    double inside = 0;
    for (std::size_t i = plan_.stamps.size() - 1; i != no_index && i != 0; i = plan_.stamps[i].anchor) {
        inside += readings.since_anchor[i];
        inside += std::isnan(readings.pair[i]) ? 0 : readings.pair[i];
    }
    const double slack = *whole - inside;
    const double cost = device_.prior(kind_);
    const double after_last = std::isfinite(cost) ? static_cast<double>(behind()) * cost : 0;
    return *begin + static_cast<std::uint64_t>(std::max(0.0, waited ? slack - after_last : slack / 2));
}

void Twin::destroy(std::vector<std::string>& leaked) {
    Timeline& timeline = device_.timeline();
    const Driver& driver = device_.driver();
    if (timeline.lost()) {
        leaked.push_back("1 instrumented executable, its graph and " + std::to_string(stamps_.size()) + " stamps");
        exec_ = nullptr, graph_ = nullptr;
        return;
    }
    if (exec_ != nullptr) {
        if (const CuResult done = driver.graph_exec_destroy(exec_); done != CuResult::success) {
            leaked.push_back(failed(done, "cuGraphExecDestroy").error().message);
        }
    }
    if (graph_ != nullptr) {
        if (const CuResult done = driver.graph_destroy(graph_); done != CuResult::success) {
            leaked.push_back(failed(done, "cuGraphDestroy").error().message);
        }
    }
    exec_ = nullptr, graph_ = nullptr;
    for (const Stamp& stamp : stamps_) {
        if (stamp.event != nullptr) {
            timeline.release(stamp.event);
        }
    }
    stamps_.clear();
    if (asked_ != nullptr) {
        timeline.release(std::exchange(asked_, nullptr));
    }
    if (ring_.host != nullptr) {
        device_.return_ring(ring_);
        ring_ = RingMemory{};
    }
}

Twin::~Twin() = default;

} // namespace plumb::cudagraph
