// SPDX-License-Identifier: Apache-2.0
#include "analysis/request_lives.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace plumb::analysis {

using resolve::RequestEvent;

RequestLives::RequestLives(Keep keep, StepEnd step_end, Sink sink, StepWanted step_wanted)
    : keep_(keep), step_end_(std::move(step_end)), sink_(std::move(sink)), step_wanted_(std::move(step_wanted)),
      now_ns_(std::numeric_limits<std::int64_t>::min()) {}

bool RequestLives::later(const Mark& a, const Mark& b) {
    return std::tuple(a.event.time_ns, a.order) > std::tuple(b.event.time_ns, b.order);
}

void RequestLives::take(const RequestEvent& event) {
    if (marks_.size() == most_marks) {
        take_earliest();
    }
    marks_.push_back({event, order_++});
    std::push_heap(marks_.begin(), marks_.end(), later);
}

void RequestLives::take_earliest() {
    std::pop_heap(marks_.begin(), marks_.end(), later);
    const RequestEvent event = marks_.back().event;
    marks_.pop_back();
    counts_.out_of_order += event.time_ns < now_ns_ ? 1 : 0;
    now_ns_ = std::max(now_ns_, event.time_ns);
    event.mark == RequestMark::in_step ? in_step(event) : mark(event);
}

/// Where there is no room for more ids, whatever is not known was forgotten.
bool RequestLives::forgotten(std::uint64_t id) const {
    return counts_.rest_not_followed || forgotten_.find(id) != forgotten_.end();
}

RequestLives::Open* RequestLives::open(const RequestEvent& event) {
    if (const auto known = open_.find(event.id); known != open_.end()) {
        return &known->second;
    }
    if (forgotten(event.id)) { // for good: what is left of it would look like a request that began here
        return nullptr;
    }
    if (open_.size() == most_open) {
        forgotten_.insert(event.id);
        ++counts_.not_followed;
        counts_.rest_not_followed = forgotten_.size() == most_forgotten;
        return nullptr;
    }
    Open& made = open_[event.id];
    made.life.id = event.id;
    made.life.number = counts_.begun++;
    made.life.begin_ns = made.life.end_ns = made.since_ns = made.idle_ns = made.seen_ns = event.time_ns;
    made.life.arrived = event.mark == RequestMark::queue;
    made.phase = static_cast<RequestPhase>(event.mark);
    if (const auto early = early_.find(event.id); early != early_.end()) {
        const std::optional<std::int64_t> end_ns = step_end_ ? step_end_(early->second) : event.time_ns;
        if (end_ns && *end_ns >= event.time_ns) {
            join(made, early->second, end_ns);
        } else {
            ++counts_.steps_without_begin;
            made.in_endless = !end_ns;
        }
        early_.erase(early);
    }
    return &made;
}

void RequestLives::waited(RequestStretch& longest, const RequestStretch& wait) {
    if (wait.end_ns - wait.begin_ns > longest.end_ns - longest.begin_ns) {
        longest = wait;
    }
}

void RequestLives::keep_stretch(RequestLife& life, const RequestStretch& stretch) const {
    if (life.stretches.size() < keep_.stretches) {
        life.stretches.push_back(stretch);
    }
}

void RequestLives::leave_phase(Open& request, std::int64_t now_ns) const {
    RequestLife& life = request.life;
    const RequestStretch stretch{request.phase, request.since_ns, now_ns};
    life.phase_ns[static_cast<std::size_t>(stretch.phase) - 1] += stretch.end_ns - stretch.begin_ns;
    life.phases |= 1u << static_cast<unsigned>(stretch.phase);
    keep_stretch(life, stretch);
    if (stretch.phase == RequestPhase::queue) {
        waited(life.longest_wait, stretch);
    }
    idle_until(request, now_ns);
}

void RequestLives::idle_until(Open& request, std::int64_t now_ns) const {
    const bool works = request.phase == RequestPhase::prefill || request.phase == RequestPhase::decode;
    if (works && step_end_ && now_ns > request.idle_ns && request.in_endless) {
        request.life.stalls_unknown = true;
    } else if (works && step_end_ && now_ns > request.idle_ns) {
        request.life.stalled_ns += now_ns - request.idle_ns;
        waited(request.longest_stall, {request.phase, request.idle_ns, now_ns});
    }
}

void RequestLives::give(Open& request) const {
    if (request.life.step_count != 0) { // else nothing says which steps had it
        waited(request.life.longest_wait, request.longest_stall);
    }
    sink_(request.life);
}

void RequestLives::mark(const RequestEvent& event) {
    const bool ends = event.mark == RequestMark::end;
    if (ends && open_.find(event.id) == open_.end()) {
        counts_.ends_without_begin += forgotten(event.id) ? 0 : 1;
        forgotten_.erase(event.id);
        return;
    }
    Open* const request = open(event);
    if (request == nullptr) {
        return;
    }
    RequestLife& life = request->life;
    if (event.trace_given && !event.trace.known()) {
        ++counts_.traces_unread;
    } else if (event.trace_given) {
        life.trace = event.trace;
    }
    const std::int64_t now_ns = std::max(event.time_ns, life.end_ns);
    const auto phase = static_cast<RequestPhase>(event.mark);
    life.end_ns = now_ns;
    if (ends && event.has_tokens) {
        life.tokens = event.tokens;
    }
    if (phase == request->phase) { // said again
        return;
    }
    const bool first_token = ends ? life.tokens == 1U : phase != RequestPhase::queue;
    if (request->phase == RequestPhase::prefill && first_token && !life.first_token_ns) {
        life.first_token_ns = now_ns;
    }
    leave_phase(*request, now_ns);
    request->phase = phase;
    request->since_ns = now_ns;
    request->idle_ns = std::max(request->idle_ns, now_ns); // a mark may stand inside a step
    if (ends) {
        life.ended = true;
        ++counts_.ended;
        give(*request);
        open_.erase(event.id);
    }
}

void RequestLives::in_step(const RequestEvent& event) {
    const auto known = open_.find(event.id);
    if (known == open_.end()) {
        if (!forgotten(event.id)) { // perhaps it begins within the step
            const bool follows = early_.size() < most_open || early_.find(event.id) != early_.end();
            const bool fresh = follows && early_.insert_or_assign(event.id, event.step).second;
            counts_.steps_without_begin += fresh ? 0 : 1;
        }
        return;
    }
    Open& request = known->second;
    request.seen_ns = event.time_ns;
    const std::optional<std::int64_t> end_ns = step_end_ ? step_end_(event.step) : std::nullopt;
    idle_until(request, event.time_ns);
    join(request, event.step, end_ns);
}

void RequestLives::join(Open& request, std::uint64_t step, const std::optional<std::int64_t>& end_ns) {
    RequestLife& life = request.life;
    const bool wanted = !step_wanted_ || step_wanted_(step);
    life.step_count += wanted ? 1 : 0;
    if (wanted && life.steps.size() < keep_.steps) {
        life.steps.push_back(step);
    }
    request.idle_ns = std::max(request.idle_ns, end_ns.value_or(request.seen_ns));
    request.in_endless = step_end_ && !end_ns;
    counts_.steps_without_end += request.in_endless ? 1 : 0;
}

void RequestLives::finish() {
    while (!marks_.empty()) {
        take_earliest();
    }
    counts_.steps_without_begin += early_.size();
    early_.clear();
    std::vector<Open*> left;
    left.reserve(open_.size());
    for (auto& [id, request] : open_) {
        left.push_back(&request);
    }
    std::sort(left.begin(), left.end(), [](const Open* a, const Open* b) { return a->life.number < b->life.number; });
    for (Open* request : left) {
        request->life.end_ns = std::max({request->life.end_ns, request->seen_ns, request->idle_ns});
        keep_stretch(request->life, {request->phase, request->since_ns, request->life.end_ns});
        give(*request);
    }
    open_.clear();
}

} // namespace plumb::analysis
