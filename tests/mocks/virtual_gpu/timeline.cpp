// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/timeline.hpp"

#include <algorithm>

namespace plumb::vgpu {

void schedule_effect(std::int64_t time_ns, std::function<void()> act) {
    Gpu& g = gpu();
    g.effects.push({time_ns, g.next_order++, std::move(act)});
    if (g.config.time == Time::real_time) {
        wake_service();
    }
}

void settle() {
    Gpu& g = gpu();
    if (g.settling) {
        return;
    }
    g.settling = true;
    ThreadState& thread = this_thread_state();
    while (!g.effects.empty() && g.effects.top().time_ns <= host_now()) {
        const std::function<void()> act = g.effects.top().act;
        g.effects.pop();
        if (g.lost != CuResult::success) {
            continue;
        }
        thread.in_host_function = true;
        act();
        thread.in_host_function = false;
    }
    g.settling = false;
}

std::int64_t ready_ns(const StreamObject& stream) {
    const auto context = context_of(stream.context);
    std::int64_t ready = stream.tail_ns;
    if (context && stream.legacy) {
        ready = std::max(ready, context->blocking_tail_ns);
    } else if (context && stream.blocking()) {
        ready = std::max(ready, context->legacy_tail_ns);
    }
    if (gpu().config.streams_alias) {
        gpu().streams.for_each([&](Stream, const StreamObject& other) {
            const bool same = other.device == stream.device && other.priority == stream.priority;
            ready = same ? std::max(ready, other.tail_ns) : ready;
        });
    }
    return ready;
}

void occupy(StreamObject& stream, std::int64_t end_ns) {
    stream.tail_ns = std::max(stream.tail_ns, end_ns);
    const auto context = context_of(stream.context);
    if (!context) {
        return;
    }
    context->busy_until_ns = std::max(context->busy_until_ns, end_ns);
    if (stream.legacy) {
        context->legacy_tail_ns = std::max(context->legacy_tail_ns, end_ns);
    } else if (stream.blocking()) {
        context->blocking_tail_ns = std::max(context->blocking_tail_ns, end_ns);
    }
}

std::int64_t busy_until(Context context) {
    const auto object = context_of(context);
    return object ? object->busy_until_ns : 0;
}

void wait_for_place(Call& call, StreamObject& stream) {
    const auto forget_done = [&stream] {
        while (!stream.launches.empty() && stream.launches.front() <= host_now()) {
            stream.launches.pop_front();
        }
    };
    forget_done();
    const std::int64_t begin = host_now();
    bool waited = false;
    while (stream.launches.size() >= gpu().config.launch_queue_depth) {
        waited = true;
        call.wait_until(stream.launches.front());
        forget_done();
    }
    if (waited) {
        ++gpu().ledger.blocked.launches;
        gpu().ledger.blocked.waited_ns += host_now() - begin;
    }
}

void take_place(StreamObject& stream, std::int64_t end_ns) { stream.launches.push_back(end_ns); }

Span run_kernel(int device, const KernelWork& kernel, std::int64_t ready_ns, std::int64_t duration_ns) {
    const Config& config = gpu().config;
    DeviceState& state = gpu().devices[device];
    Span span{ready_ns, 0};
    const std::uint64_t blocks =
        std::min<std::uint64_t>(std::uint64_t{kernel.grid[0]} * kernel.grid[1] * kernel.grid[2], config.sm_slots);
    auto& resident = state.resident;
    resident.erase(
        std::remove_if(resident.begin(), resident.end(), [](const auto& one) { return one.span.end_ns <= host_now(); }),
        resident.end());
    for (bool found = config.sm_slots == 0; !found;) {
        std::uint64_t taken = 0;
        std::int64_t next_ns = INT64_MAX;
        for (const auto& one : resident) {
            if (one.span.start_ns <= span.start_ns && span.start_ns < one.span.end_ns) {
                taken += one.blocks;
                next_ns = std::min(next_ns, one.span.end_ns);
            }
        }
        found = taken + blocks <= config.sm_slots;
        span.start_ns = found ? span.start_ns : next_ns;
    }
    if (span.start_ns - state.last_end_ns > config.idle_after_ns) {
        state.awake_since_ns = span.start_ns;
    }
    const bool idle = span.start_ns - state.awake_since_ns < config.boost_after_ns;
    const double slower = idle ? config.idle_slowdown : 1;
    span.end_ns = span.start_ns + static_cast<std::int64_t>(static_cast<double>(duration_ns) * slower);
    state.last_end_ns = std::max(state.last_end_ns, span.end_ns);
    if (config.sm_slots != 0) {
        resident.push_back({span, blocks});
    }
    return span;
}

CuResult submit(Call& call, StreamObject& stream, Work work, bool programmatic) {
    if (stream.capture) {
        return capture_work(stream, std::move(work), programmatic);
    }
    wait_for_place(call, stream);
    const Config& config = gpu().config;
    const std::int64_t gap = stream.had_work ? config.gap_ns : 0;
    std::int64_t start = std::max(host_now() + config.submit_ns, ready_ns(stream) + gap);
    if (programmatic && stream.had_work) {
        start = std::max(host_now() + config.submit_ns, ready_ns(stream) - config.programmatic_overlap_ns);
    }
    Span span{start, start + duration_of(work, false)};
    if (work.type == NodeType::kernel) {
        span = run_kernel(stream.device, work.kernel, start, span.end_ns - start);
        start = span.start_ns;
    }
    const std::int64_t end = std::max(span.end_ns, ready_ns(stream));
    stream.had_work = true;
    occupy(stream, end);
    take_place(stream, end);

    Operation operation;
    operation.kind = kind_of(work);
    operation.name = name_of(work);
    operation.device = stream.device;
    operation.stream_id = stream.id;
    operation.submit_ns = call.began_ns();
    operation.start_ns = start;
    operation.end_ns = end;
    note_geometry(work, operation);
    operation.priority = stream.priority;
    ledger_operation(operation);
    schedule_effect(
        end, [work = std::move(work), device = stream.device, start, end] { carry_out(work, device, start, end); });
    return CuResult::success;
}

void record_event(EventObject& event, std::int64_t submit_ns, std::int64_t done_ns, bool replayed) {
    bool newer = false;
    if (const EventRecord* last = happened(event, &newer)) {
        // Everything older than the newest record that has happened can be seen no more.
        while (&event.records.front() != last) {
            event.records.pop_front();
        }
    }
    event.records.push_back({submit_ns, done_ns, replayed});
    event.capture_id = 0;
    event.frontier.clear();
}

const EventRecord* happened(const EventObject& event, bool* newer_enqueued) {
    const EventRecord* newest = nullptr;
    *newer_enqueued = false;
    for (const EventRecord& record : event.records) {
        if (record.done_ns <= host_now()) {
            newest = &record;
        } else {
            *newer_enqueued = true;
        }
    }
    return newest;
}

} // namespace plumb::vgpu
