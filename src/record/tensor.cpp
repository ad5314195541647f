// SPDX-License-Identifier: Apache-2.0
// The cold half of PLUMB_TENSOR: gathers what the calling thread knows and hands it to the sink.
#include "plumb/tensor.hpp"
#include "record/name_registry.hpp"
#include "record/recorder_access.hpp"
#include "record/tensor_sink.hpp"

namespace plumb {
inline namespace v1 {
namespace detail {

TensorName::TensorName(const char* text) noexcept : name(record::intern_name(text, Category::other)) {}

void take_tensor(Recorder& recorder, Queue queue, TensorName what, TensorRole role, const Tensor& tensor,
                 const TensorTags& tags) noexcept {
    record::TensorSink* sink = RecorderAccess::tensors(recorder);
    detail::ThreadRecorder* pen = recorder.enabled() ? recorder.thread() : nullptr;
    if (sink == nullptr || pen == nullptr) {
        return;
    }
    record::TensorCall call;
    call.recorder = &recorder;
    call.name = what.name;
    call.role = role;
    call.queue = queue;
    call.tensor = &tensor;
    call.tags = tags;
    call.step_plus_one = pen->step_plus_one;
    call.layer_plus_one = pen->layer_plus_one;
    call.track = pen->track;
    const RunningStep facts = RecorderAccess::step_facts(recorder, pen->step_plus_one);
    call.phase = facts.phase;
    if (call.tags.position < 0) {
        call.tags.position = facts.position;
    }
    sink->take(call);
}

} // namespace detail
} // namespace v1
} // namespace plumb
