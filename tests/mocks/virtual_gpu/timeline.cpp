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
    const std::int64_t end = std::max(start + duration_of(work, false), ready_ns(stream));
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
