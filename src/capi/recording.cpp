// SPDX-License-Identifier: Apache-2.0
// The hot half of plumb.h. A wrong argument is said whether recording is on or off; a struct costs one comparison then.
#include "capi/handles.hpp"
#include "plumb/backend.hpp"
#include "plumb/record.hpp"
#include "plumb/request.hpp"
#include "record/device_label.hpp"
#include "record/scope_stack.hpp"

using namespace plumb::capi;
using plumb::ErrorCode;
using plumb::Name;

namespace {

/// Of a token that was begun while recording was off, or on a thread that could not record: from here on.
constexpr std::uint32_t tracks_of_nothing = ~std::uint32_t{0} - 1;

constexpr double known(double value) noexcept { return value != 0 ? value : PLUMB_NAN; }

plumb::Work work_of(const plumb_work& work) noexcept {
    return {known(work.bytes), known(work.flops), known(work.elements), known(work.bytes_per_kv)};
}
bool fits_work(const plumb_work* work) noexcept { return work == nullptr || fits(work, "plumb_work"); }

plumb::Extent extent_of(const std::uint32_t (&size)[3]) noexcept { return {size[0], size[1], size[2]}; }

} // namespace

plumb_code plumb_push_step(plumb_profiler* profiler, const plumb_queue* queue, const plumb_step* step) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits_queue(queue) || !fits(step, "plumb_step")) {
        return plumb_invalid_argument;
    }
    if (step->phase < plumb_phase_none || step->phase > plumb_phase_mixed) {
        return fail(ErrorCode::invalid_argument,
                    "the phase of a plumb_step is none of plumb_phase_…: give one of them");
    }
    profiler->profiler.push_step(queue_of(queue), static_cast<plumb::Phase>(step->phase),
                                 plumb::prefill_tokens(step->prefill_tokens), plumb::decode_tokens(step->decode_tokens),
                                 plumb::sequences(step->sequences), plumb::kv_length(step->kv_length));
    return plumb_ok;
}

plumb_code plumb_push_layer(plumb_profiler* profiler, uint32_t index) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (index >= plumb::max_layers) {
        return fail(ErrorCode::invalid_argument, "the index of a layer is beyond 65,534: count layers from 0");
    }
    profiler->profiler.push_layer(index);
    return plumb_ok;
}

plumb_code plumb_push_scope(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name,
                            const plumb_work* work) {
    if (PLUMB_UNLIKELY(profiler == nullptr)) {
        return no_profiler();
    }
    if (PLUMB_UNLIKELY(!fits_queue(queue) || !fits_work(work))) {
        return plumb_invalid_argument;
    }
    const plumb::Work given = work != nullptr ? work_of(*work) : plumb::Work{};
    plumb::record::push_scope(profiler->profiler, queue_of(queue), Name(name), work != nullptr ? &given : nullptr);
    return plumb_ok;
}

plumb_code plumb_collective(plumb_profiler* profiler, plumb_name name, plumb_name group, uint64_t sequence) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    plumb::detail::ThreadRecorder* pen = profiler->profiler.enabled() ? profiler->profiler.thread() : nullptr;
    if (pen != nullptr) {
        pen->push_collective(Name(name), {sequence + 1, group});
    }
    return plumb_ok;
}

plumb_code plumb_set_work(plumb_profiler* profiler, const plumb_work* work) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits(work, "plumb_work")) {
        return plumb_invalid_argument;
    }
    return plumb::record::set_pushed_work(profiler->profiler, work_of(*work))
               ? plumb_ok
               : fail(ErrorCode::invalid_argument,
                      "what this thread pushed last is no brick: call plumb_set_work() between "
                      "plumb_push_scope() and its plumb_pop_scope()");
}

plumb_code plumb_pop_scope(plumb_profiler* profiler) {
    if (PLUMB_UNLIKELY(profiler == nullptr)) {
        return no_profiler();
    }
    return PLUMB_LIKELY(plumb::record::pop_scope(profiler->profiler))
               ? plumb_ok
               : fail(ErrorCode::invalid_argument,
                      "there is nothing for plumb_pop_scope() to end on this thread: pop what "
                      "was pushed, once, on the thread that pushed it");
}

int plumb_timed(plumb_profiler* profiler) {
    const plumb::detail::ThreadRecorder* pen =
        profiler != nullptr && profiler->profiler.enabled() ? profiler->profiler.thread() : nullptr;
    return pen != nullptr && pen->step_plus_one != 0 && plumb::times_this_step(*pen) ? 1 : 0;
}

plumb_code plumb_begin(plumb_profiler* profiler, plumb_name name, const plumb_work* work, plumb_token* token) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits_work(work) || !has_room(token, sizeof *token, "plumb_token")) {
        return plumb_invalid_argument;
    }
    const plumb::Token begun =
        work == nullptr ? profiler->profiler.begin(Name(name)) : profiler->profiler.begin(Name(name), work_of(*work));
    *token = {token->struct_size,
              begun.mode,
              begun.begin,
              begun.bits,
              begun.track,
              0,
              {begun.work.bytes, begun.work.flops, begun.work.elements, begun.work.bytes_per_kv}};
    return plumb_ok;
}

plumb_code plumb_end(plumb_profiler* profiler, plumb_token* token) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!has_room(token, sizeof *token, "plumb_token")) {
        return plumb_invalid_argument;
    }
    const auto& work = token->work;
    plumb::Token begun{token->begin, token->bits, token->mode, token->track, {work[0], work[1], work[2], work[3]}};
    const bool open = begun.bits != 0 || begun.track >= tracks_of_nothing;
    profiler->profiler.end(begun);
    token->bits = 0;
    token->track = 0;
    return open ? plumb_ok
                : fail(ErrorCode::invalid_argument,
                       "this plumb_token is not open: plumb_end() ends each plumb_begin() once");
}

plumb_code plumb_request(plumb_profiler* profiler, uint64_t id, int32_t phase, const char* trace_parent) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (phase < plumb_request_queue || phase > plumb_request_end) {
        return fail(ErrorCode::invalid_argument, "the phase of a request is none of plumb_request_…: give one of them");
    }
    PLUMB_REQUEST(profiler->profiler, id, static_cast<plumb::RequestPhase>(phase), plumb::trace_parent(trace_parent));
    return plumb_ok;
}

plumb_code plumb_end_request(plumb_profiler* profiler, uint64_t id, uint64_t tokens) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    PLUMB_REQUEST(profiler->profiler, id, plumb::RequestPhase::end, plumb::tokens(tokens));
    return plumb_ok;
}

plumb_code plumb_step_request(plumb_profiler* profiler, uint64_t id) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    PLUMB_STEP_REQUEST(profiler->profiler, id);
    return plumb_ok;
}

uint64_t plumb_now(const plumb_profiler* profiler) { return profiler == nullptr ? 0 : profiler->profiler.now().ticks; }

plumb_code plumb_record_span(plumb_profiler* profiler, plumb_name name, uint64_t begin, uint64_t end,
                             const plumb_work* work) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits_work(work)) {
        return plumb_invalid_argument;
    }
    if (end < begin) {
        return fail(ErrorCode::invalid_argument, "a span ends before it begins: give two moments from plumb_now(), the "
                                                 "earlier one first");
    }
    if (work == nullptr) {
        profiler->profiler.record_span(Name(name), {begin}, {end});
    } else {
        profiler->profiler.record_span(Name(name), {begin}, {end}, work_of(*work));
    }
    return plumb_ok;
}

plumb_code plumb_record_command(plumb_profiler* profiler, const plumb_queue* queue, plumb_name name, void* event,
                                const plumb_work* work) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits(queue, "plumb_queue") || !fits_work(work)) {
        return plumb_invalid_argument;
    }
    if (queue->timer == nullptr) {
        return fail(ErrorCode::invalid_argument,
                    "this plumb_queue is the calling thread: give the device queue that the "
                    "command is in");
    }
    if (!profiler->profiler.enabled()) {
        return plumb_ok;
    }
    return guarded([&]() -> plumb_code {
        const plumb::Queue here = queue_of(queue);
        const plumb::Result<plumb::DeviceToken> token = here.timer->attach(event);
        if (!token.ok()) {
            return fail(token.error());
        }
        const plumb::Work given = work != nullptr ? work_of(*work) : plumb::Work{};
        profiler->profiler.record_device(Name(name), here, *token, work != nullptr ? &given : nullptr);
        return plumb_ok;
    });
}

plumb_code plumb_get_context(plumb_profiler* profiler, plumb_context* context) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!has_room(context, sizeof *context, "plumb_context")) {
        return plumb_invalid_argument;
    }
    const plumb::Context now = profiler->profiler.context();
    context->step_plus_one = now.step_plus_one;
    context->layer_plus_one = now.layer_plus_one;
    return plumb_ok;
}

plumb_code plumb_push_context(plumb_profiler* profiler, const plumb_context* context) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits(context, "plumb_context")) {
        return plumb_invalid_argument;
    }
    if (context->layer_plus_one > plumb::max_layers) {
        return fail(ErrorCode::invalid_argument, "this plumb_context has a layer beyond 65,534: give what "
                                                 "plumb_get_context() filled");
    }
    plumb::record::push_context(profiler->profiler, {context->step_plus_one, context->layer_plus_one});
    return plumb_ok;
}

plumb_code plumb_record_kernel(plumb_profiler* profiler, const plumb_kernel* kernel) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    if (!fits(kernel, "plumb_kernel") || !fits_work(kernel->work)) {
        return plumb_invalid_argument;
    }
    if (kernel->end < kernel->begin) {
        return fail(ErrorCode::invalid_argument,
                    "a plumb_kernel ends before it begins: give two moments from plumb_now(), "
                    "or 0 and 0");
    }
    const auto record = [&](auto... tags) noexcept {
        (void)profiler->profiler.record_kernel(Name(kernel->name), kernel->hash, extent_of(kernel->grid),
                                               extent_of(kernel->block), kernel->shared_bytes, tags...);
    };
    const auto record_timed = [&](auto... tags) noexcept {
        if (kernel->end != 0) {
            record(plumb::timed({kernel->begin}, {kernel->end}), tags...);
        } else {
            record(tags...);
        }
    };
    if (kernel->work == nullptr) {
        record_timed();
    } else {
        const plumb::Work work = work_of(*kernel->work);
        record_timed(plumb::bytes(work.bytes), plumb::flops(work.flops), plumb::elements(work.elements),
                     plumb::bytes_per_kv(work.bytes_per_kv));
    }
    return plumb_ok;
}
