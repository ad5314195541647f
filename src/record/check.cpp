// SPDX-License-Identifier: Apache-2.0
// The cold half of PLUMB_CHECK: gathers what the calling thread knows and hands it to the sink.
#include "plumb/check.hpp"
#include "record/check_sink.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_access.hpp"

namespace plumb {
inline namespace v1 {

CheckName::CheckName(const char* text) noexcept : name(record::intern_name(text, Category::other)) {}

void check_tensor(Recorder& recorder, Queue queue, CheckName what, CheckRole role, const Tensor& tensor,
                  const CheckPlace& place) noexcept {
    record::CheckSink* sink = RecorderAccess::checks(recorder);
    ThreadRecorder* pen = recorder.enabled() ? recorder.thread() : nullptr;
    if (sink == nullptr || pen == nullptr) {
        return;
    }
    record::CheckCall call;
    call.recorder = &recorder;
    call.name = what.name;
    call.role = role;
    call.queue = queue;
    call.tensor = &tensor;
    call.place = place;
    call.step_plus_one = pen->step_plus_one;
    call.layer_plus_one = pen->layer_plus_one;
    call.track = pen->track;
    const StepFacts facts = RecorderAccess::step_facts(recorder, pen->step_plus_one);
    call.phase = facts.phase;
    if (call.place.position < 0) {
        call.place.position = facts.position;
    }
    sink->check(call);
}

} // namespace v1
} // namespace plumb
