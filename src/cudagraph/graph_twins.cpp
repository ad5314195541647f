// SPDX-License-Identifier: Apache-2.0
// The building side of a probe: our own thread makes, turns and destroys twins.
#include <algorithm>
#include <optional>
#include <utility>

#include "cudagraph/graph_entry.hpp"

namespace plumb::cudagraph {

using namespace backends::cuda;

bool GraphEntry::work() {
    if (graph_.device == nullptr) {
        const std::lock_guard lock(mutex_);
        source_gone_ = true;
        return false;
    }
    destroy_twins();
    bool build = false;
    bool turn = false;
    {
        const std::lock_guard lock(mutex_);
        const bool room = retiring_.empty() && !retired_ && !refused_ && !graph_.device->timeline().lost();
        // At a fixed rate a step's time decides how many stamps one sample may hold.
        const bool known = state_->options().every == 0 || plain_spans_.count() >= 2;
        build = room && wanted_ && known && twin_ == nullptr && state_->open();
        turn = room && wants_turn();
    }
    if (build) {
        build_twin();
    } else if (turn && turn_twin()) {
        return true;
    }
    destroy_source();
    return false;
}

/// The twin has enough samples of these layers, or stamps by a clock that is too coarse by now.
bool GraphEntry::wants_turn() const {
    const bool other = framing_ || plans_.turns.size() > 1 || wants_frame();
    const std::uint32_t samples = framing_ ? frame_samples : state_->options().samples_per_turn;
    return twin_ != nullptr && ((other && samples_of_turn_ >= samples) || has_coarse_twin());
}

void GraphEntry::destroy_twins() {
    std::vector<std::shared_ptr<Twin>> idle;
    {
        const std::lock_guard lock(mutex_);
        const auto busy = std::partition(retiring_.begin(), retiring_.end(), [&](const std::shared_ptr<Twin>& twin) {
            return in_flight(*twin) && !graph_.device->timeline().lost();
        });
        idle.assign(busy, retiring_.end());
    }
    if (idle.empty()) {
        return;
    }
    const ProbesState::HeavyCalls heavy(*state_);
    std::vector<std::string> leaked;
    {
        std::optional<OurThread> ours;
        if (!graph_.device->timeline().lost()) {
            ours.emplace(graph_.device->timeline());
        }
        for (const std::shared_ptr<Twin>& twin : idle) {
            twin->destroy(leaked);
        }
    }
    for (const std::string& what : leaked) {
        state_->leaked(what);
    }
    const std::lock_guard lock(mutex_);
    const auto gone = [&](const std::shared_ptr<Twin>& twin) {
        return std::find(idle.begin(), idle.end(), twin) != idle.end();
    };
    retiring_.erase(std::remove_if(retiring_.begin(), retiring_.end(), gone), retiring_.end());
    tell_device();
}

/// For twins to come: the first, frames and what follows them, with event nodes that of the next turn, and those with event
/// nodes where a clock grows too coarse.
bool GraphEntry::needs_source() const {
    const bool turns = plans_.turns.size() > 1 && kind_ == ProbeKind::event;
    const bool frames = framing_ || (frames_ < most_frames && sites_.lacks_frames());
    const bool other_kind = kind_ == ProbeKind::stamp && state_->options().kind == ProbeKind::automatic;
    return !retired_ && !refused_ && (twin_ == nullptr || turns || frames || other_kind);
}

/// As soon as it can be: it holds what the caller's graph held, and communicators wait for that.
void GraphEntry::destroy_source() {
    {
        const std::lock_guard lock(mutex_);
        if (needs_source() || source_gone_) {
            return;
        }
        source_gone_ = true;
    }
    if (graph_.device->timeline().lost()) {
        state_->leaked("1 clone of a captured graph");
        return;
    }
    const OurThread ours(graph_.device->timeline());
    if (graph_.device->timeline().lost()) {
        state_->leaked("1 clone of a captured graph");
        return;
    }
    const CuResult done = state_->driver().graph_destroy(graph_.source.graph);
    if (done != CuResult::success) {
        state_->leaked(graph_.device->timeline().failed(done, "cuGraphDestroy").message);
    }
}

/// The median of what is timed; before anything was, a plain replay's share.
double GraphEntry::brick_ns() const {
    const double part = book_.median_part();
    return std::isnan(part)
               ? plain_spans_.median() / static_cast<double>(std::max<std::size_t>(graph_.source.map.places.size(), 1))
               : part;
}

/// The clock of its stamps is too coarse by now.
bool GraphEntry::has_coarse_twin() const {
    return state_->options().kind == ProbeKind::automatic && twin_ != nullptr && !framing_ && !source_gone_ &&
           twin_->kind() == ProbeKind::stamp && best_kind() == ProbeKind::event;
}

/// Where launches are programmatic, blocks of the next kernel hold their places before it begins: a stamp kernel beside it
/// would wait for one until that kernel ends. An event takes none.
ProbeKind GraphEntry::best_kind() const {
    return graph_.leaves_beside_programmatic ? ProbeKind::event : graph_.device->kind_for(brick_ns());
}

/// Figures of stamps of one kind say nothing about the other.
void GraphEntry::plan(ProbeKind kind) {
    if (kind != kind_) {
        kind_ = kind;
        pairs_ = Readings(96);
        sites_ = SiteBook();
        cost_was_known_ = false;
        book_.forget_stamps();
        frames_ = 0;
    }
    if (plans_.turns.empty()) {
        const std::size_t most =
            std::min(state_->options().max_stamps,
                     SamplingRate::most_stamps(state_->options().every, site_cost().pair, plain_spans_.median()));
        plans_ = plan_stamps(graph_.source.map.places, graph_.places, most);
        book_.expect_parts(plans_.parts);
    }
}

/// Not once the clone is gone, though replays may begin to wait for their launch, or no longer do, and lack frames again.
bool GraphEntry::wants_frame() const { return !source_gone_ && frames_ < most_frames && sites_.wants_frame(); }

/// The others go on without.
void GraphEntry::give_up_frames() {
    const std::lock_guard lock(mutex_);
    framing_ = false;
    frames_ = most_frames;
}

StampPlans GraphEntry::frame_plan() const {
    StampPlan frame;
    const auto tail = static_cast<std::uint32_t>(graph_.source.map.places.size() - 1);
    frame.stamps = {PlannedStamp{0, 2, no_index}, PlannedStamp{tail, 1, 0}};
    return StampPlans{{frame}, 0};
}

void GraphEntry::build_twin() {
    GraphDevice& device = *graph_.device;
    const OurThread ours(device.timeline());
    if (device.timeline().lost()) {
        return;
    }
    std::optional<ProbesState::HeavyCalls> heavy;
    if (!device.calibrated()) {
        heavy.emplace(*state_);
        device.calibrate(state_->options().kind);
    }
    if (const Status& events = device.event_nodes(); !events) {
        if (events.error().code != ErrorCode::pending) { // else the next round asks again
            drop_twin("unsupported (" + events.error().message + ")");
        }
        return;
    }
    if (state_->options().kind == ProbeKind::stamp && device.stamps() == nullptr) {
        drop_twin("n/a (no stamp kernels: " + device.no_stamps() + ")");
        return;
    }
    StampPlans plans;
    std::size_t turn = 0;
    unsigned long long flags = 0;
    ProbeKind kind{};
    bool frame = false;
    bool programmatic = false; // and that is why it has events
    {
        const std::lock_guard lock(mutex_);
        frame = framing_;
        kind = frame ? kind_ : best_kind();
        programmatic = kind == ProbeKind::event && device.kind_for(brick_ns()) == ProbeKind::stamp;
        if (!frame) {
            plan(kind);
            turn = next_turn_;
        }
        plans = frame ? frame_plan() : plans_;
        flags = twin_flags_ = plain_flags_;
    }
    NodeCounts nodes = graph_.source.shape.nodes_by_type;
    std::size_t stamps = 0;
    for (std::size_t i = 0; i < plans.turns.size(); ++i) {
        stamps += kind == ProbeKind::stamp || i == turn ? plans.turns[i].cost_units() : 0;
    }
    nodes.emplace_back(kind == ProbeKind::stamp ? "kernel" : "event record", stamps);
    const Result<bool> room = state_->room_for_twin(device, state_->twin_memory.bytes(nodes));
    if (!room && frame) {
        give_up_frames();
        return;
    }
    if (!room) {
        drop_twin("n/a (" + room.error().message + ")");
        return;
    }
    if (!*room) {
        return; // come again
    }
    if (!heavy) {
        heavy.emplace(*state_);
    }
    const std::uint64_t free_before = state_->free_bytes();
    const std::int64_t begin = state_->now_ns();
    Result<std::shared_ptr<Twin>> twin = Twin::build(device, graph_.source, plans, turn, kind, flags);
    const auto took = static_cast<double>(state_->now_ns() - begin);
    if (const std::uint64_t free_after = state_->free_bytes(); twin && free_before != 0 && free_after != 0) {
        state_->twin_memory.watched(nodes, free_before, free_after);
    }
    if (!twin && frame) {
        give_up_frames();
        return;
    }
    if (!twin) {
        const bool memory = twin.error().code == ErrorCode::out_of_memory;
        drop_twin((memory ? "n/a (out of memory): " : "n/a: ") + twin.error().message);
        return;
    }
    static_cast<void>(device.timeline().reserve(32)); // so that launches find their events in the pool
    graph_.account->change_of(graph_.capture, [&](recording::GraphInfo& info) {
        if (!frame) {
            info.twin = kind == ProbeKind::stamp ? "stamp" : "event";
        }
        info.twin_reason = !device.no_stamps().empty() ? "no stamp kernels: " + device.no_stamps()
                           : programmatic              ? "events: its launches are programmatic"
                                                       : "";
        info.twin_build_ns = (info.twin_build_ns > 0 ? info.twin_build_ns : 0) + took;
        // The same bytes per node as the plain graph's, as far as anybody estimated those.
        const double bytes = info.bytes * static_cast<double>((*twin)->nodes()) /
                             static_cast<double>(std::max<std::size_t>(graph_.source.nodes.size(), 1));
        info.twin_bytes = bytes;
    });
    const std::lock_guard lock(mutex_);
    samples_of_turn_ = 0;
    twin_bytes_ = state_->twin_memory.bytes(nodes);
    twin_used_ns_ = state_->now_ns();
    rate_.learn((*twin)->cost_units(), site_cost().pair, plain_spans_.median());
    if (!frame) {
        begin_turn();
    }
    if (retired_) {
        retiring_.push_back(std::move(*twin));
    } else {
        twin_ = std::move(*twin);
    }
    tell_device();
}

/// The next group of layers. True: come again soon.
bool GraphEntry::turn_twin() {
    std::shared_ptr<Twin> twin;
    {
        const std::lock_guard lock(mutex_);
        if (twin_ == nullptr || in_flight(*twin_)) {
            return false;
        }
        const bool was_frame = std::exchange(framing_, false);
        const bool coarse = has_coarse_twin();
        framing_ = !was_frame && !coarse && wants_frame();
        frames_ += framing_ ? 1 : 0;
        next_turn_ = was_frame || coarse ? next_turn_ : (twin_->turn() + 1) % plans_.turns.size();
        samples_of_turn_ = 0;
        if (twin_->kind() == ProbeKind::event || was_frame || framing_ || coarse) {
            retiring_.push_back(std::move(twin_)); // one live per key: the old one goes first
            twin_ = nullptr;
            tell_device();
            return true;
        }
        turning_ = true;
        twin = twin_;
    }
    const OurThread ours(graph_.device->timeline());
    const Status turned = twin->turn_to(plans_.turns[next_turn_], next_turn_);
    {
        const std::lock_guard lock(mutex_);
        turning_ = false;
        begin_turn();
    }
    if (!turned) {
        drop_twin("n/a: " + turned.error().message);
    }
    return true;
}

void GraphEntry::give_up() {
    retire();
    std::size_t left = 0;
    {
        const std::lock_guard lock(mutex_);
        for (Shot& shot : shots_) {
            left += shot.used ? 2 : 0; // their events stay with the driver
            if (shot.used && shot.twin != nullptr) {
                left += shot.twin->plan().cost_units();
            }
        }
        shots_.fill(Shot{});
        left == 0 ? void() : retiring_.clear();
        tell_device();
    }
    if (left != 0) {
        state_->leaked("a replay that was still in flight at the end: " + std::to_string(left) + " events or stamps");
    }
    static_cast<void>(work());
}

} // namespace plumb::cudagraph
