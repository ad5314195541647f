// SPDX-License-Identifier: Apache-2.0
#include "attach/functions.hpp"

#include <cstring>

#include "attach/attachment.hpp"
#include "capi/handles.hpp"
#include "plumb/plumb.h"

namespace plumb::attach {
namespace {

using capi::fail;
using capi::guarded;

plumb_code open_shared(const char* spec, plumb_profiler** profiler) {
    if (spec != nullptr || profiler == nullptr) {
        return plumb_open(spec, profiler);
    }
    *profiler = nullptr;
    return guarded([&]() -> plumb_code {
        plumb_profiler* const shared = recording();
        if (const Status status = shared->profiler.status(); !status.ok()) {
            return fail(status.error());
        }
        *profiler = shared;
        return plumb_ok;
    });
}

/// The recording of this process goes on without what its scopes have open; that of a forked child, which no end of ours closes, ends.
plumb_code close_own(plumb_profiler* profiler) {
    constexpr double seconds = 5;
    if (profiler != recording() || profiler == nullptr) {
        return plumb_close(profiler);
    }
    return guarded([&]() -> plumb_code {
        if (!owns_recording()) {
            return capi::code_of(profiler->profiler.close());
        }
        profiler->profiler.disable();
        const Status status = profiler->profiler.enable();
        return status.ok() ? plumb_flush(profiler, seconds) : fail(status.error());
    });
}

plumb_code queue_of_stream(void* stream, plumb_queue* queue) {
    use_queues();
    return plumb_cuda(stream, queue);
}

struct Named {
    const char* name;
    void* address;
};
#define PLUMB_NAMED(name) \
    { #name, reinterpret_cast<void*>(&(name)) }
const Named functions[] = {
    {"plumb_open", reinterpret_cast<void*>(&open_shared)},
    {"plumb_close", reinterpret_cast<void*>(&close_own)},
    {"plumb_cuda", reinterpret_cast<void*>(&queue_of_stream)},
    PLUMB_NAMED(plumb_describe),
    PLUMB_NAMED(plumb_disable),
    PLUMB_NAMED(plumb_enable),
    PLUMB_NAMED(plumb_enabled),
    PLUMB_NAMED(plumb_end_request),
    PLUMB_NAMED(plumb_flush),
    PLUMB_NAMED(plumb_free),
    PLUMB_NAMED(plumb_get_context),
    PLUMB_NAMED(plumb_intern),
    PLUMB_NAMED(plumb_last_error),
    PLUMB_NAMED(plumb_now),
    PLUMB_NAMED(plumb_path),
    PLUMB_NAMED(plumb_pop_scope),
    PLUMB_NAMED(plumb_push_context),
    PLUMB_NAMED(plumb_push_layer),
    PLUMB_NAMED(plumb_push_scope),
    PLUMB_NAMED(plumb_push_step),
    PLUMB_NAMED(plumb_record_span),
    PLUMB_NAMED(plumb_request),
    PLUMB_NAMED(plumb_set_work),
    PLUMB_NAMED(plumb_step_request),
};
#undef PLUMB_NAMED

} // namespace

void* function(const char* name) {
    for (const Named& known : functions) {
        if (std::strcmp(known.name, name) == 0) {
            return wanted() ? known.address : nullptr;
        }
    }
    return nullptr;
}

} // namespace plumb::attach
