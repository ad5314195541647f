// SPDX-License-Identifier: Apache-2.0
// CudaGraphCache: beginning and ending captures, and captures that are only compared.
#include "backends/cuda/capture_notes.hpp"
#include "cudagraph/graph_cache.hpp"
#include "cudagraph/node_image.hpp"
#include "fingerprint/cuda/captured_tensors.hpp"

namespace plumb::cudagraph {

using cuda::CaptureStatus;
using cuda::CuResult;

namespace {

const char* const nothing_begun = "nothing is captured; run the step eagerly";
const char* const given_up = "the capture was given up; run the step eagerly";

Error captures_already() {
    return {ErrorCode::invalid_argument,
            "this thread captures already: call end_capture() or abort_capture() before it begins again."};
}

/// What scopes noted in a capture is asked for while its graph is admitted, or never: the handle may be given out anew.
class NotesUntilEnd {
  public:
    explicit NotesUntilEnd(unsigned long long capture) noexcept : capture_(capture) {}
    ~NotesUntilEnd() { cuda::drop_capture_notes(capture_); }
    NotesUntilEnd(const NotesUntilEnd&) = delete;
    NotesUntilEnd& operator=(const NotesUntilEnd&) = delete;

  private:
    unsigned long long capture_;
};

/// Checks of a capture whose graph nobody will launch give their slots back.
class TensorsUntilKept {
  public:
    explicit TensorsUntilKept(unsigned long long capture) noexcept : capture_(capture) {}
    ~TensorsUntilKept() {
        if (!kept_) {
            fingerprint::discard_captured_tensors(capture_);
        }
    }
    TensorsUntilKept(const TensorsUntilKept&) = delete;
    TensorsUntilKept& operator=(const TensorsUntilKept&) = delete;
    void keep() noexcept { kept_ = true; }

  private:
    unsigned long long capture_;
    bool kept_ = false;
};

} // namespace

Status Cache::begin_on_stream(Capture& capture) {
    const cuda::Driver& calls = driver_.calls();
    CaptureStatus capturing = CaptureStatus::none;
    Status status =
        driver_.check(calls.stream_is_capturing(capture.stream, &capturing), "cuStreamIsCapturing", nothing_begun);
    if (!status) {
        return status;
    }
    if (capturing != CaptureStatus::none) {
        return Error{ErrorCode::invalid_argument,
                     "that stream is being captured already: end that capture first, or capture another stream."};
    }
    status = driver_.check(calls.context_of(capture.stream, &capture.context), "cuStreamGetCtx", nothing_begun);
    if (!status) {
        return status;
    }
    capture.begin_ns = now_ns();
    status = driver_.check(calls.stream_begin_capture(capture.stream, cuda::CaptureMode::relaxed),
                           "cuStreamBeginCapture", nothing_begun);
    if (!status) {
        return status;
    }
    cuda::Graph graph = nullptr;
    status =
        driver_.check(calls.capture_info(capture.stream, &capturing, &capture.id, &graph, nullptr, nullptr, nullptr),
                      "cuStreamGetCaptureInfo", nothing_begun);
    if (!status && driver_.usable()) {
        (void)end_stream(capture);
    }
    return status;
}

Status Cache::begin_capture(cuda::Stream stream) {
    if (Status status = driver_.status(); !status) {
        return status;
    }
    const std::thread::id self = std::this_thread::get_id();
    {
        std::lock_guard lock(captures_mutex_);
        if (!captures_.try_emplace(self).second) {
            return captures_already();
        }
    }
    Capture capture;
    capture.stream = stream;
    Status status = begin_on_stream(capture);
    capture.begun = status.ok();
    std::lock_guard lock(captures_mutex_);
    if (status) {
        captures_[self] = capture;
    } else {
        captures_.erase(self);
    }
    return status;
}

Result<Cache::Capture> Cache::take_capture() {
    std::lock_guard lock(captures_mutex_);
    const auto found = captures_.find(std::this_thread::get_id());
    if (found == captures_.end()) {
        return Error{ErrorCode::invalid_argument,
                     "this thread captures nothing: call begin_capture() on the thread that ends the capture."};
    }
    const Capture capture = found->second;
    captures_.erase(found);
    return capture;
}

/// Whatever goes wrong, the stream captures no more afterwards.
Result<GraphHolder> Cache::end_stream(const Capture& capture) {
    const cuda::Driver& calls = driver_.calls();
    cuda::Graph graph = nullptr;
    Status status = driver_.check(calls.stream_end_capture(capture.stream, &graph), "cuStreamEndCapture", given_up);
    if (status) {
        return GraphHolder(driver_, graph, capture.context);
    }
    if (driver_.usable()) {
        driver_.release(Owned::graph, graph, capture.context);
        CaptureStatus capturing = CaptureStatus::none;
        graph = nullptr;
        if (calls.stream_is_capturing(capture.stream, &capturing) == CuResult::success &&
            capturing != CaptureStatus::none) {
            (void)calls.stream_end_capture(capture.stream, &graph);
            driver_.release(Owned::graph, graph, capture.context);
        }
    }
    return status.error();
}

Status Cache::end_capture(std::uint64_t key) {
    const Result<Capture> capture = take_capture();
    if (!capture) {
        return capture.error();
    }
    const NotesUntilEnd notes(capture->id);
    TensorsUntilKept checks(capture->id);
    if (Status status = driver_.status(); !status) {
        return status;
    }
    const cuda::RelaxedCapture relaxed(driver_.calls());
    Result<GraphHolder> graph = end_stream(*capture);
    if (!graph) {
        return graph.error();
    }
    const auto capture_ns = static_cast<double>(now_ns() - capture->begin_ns);
    Status admitted = admit(key, std::move(*graph), *capture, capture_ns);
    if (admitted) {
        checks.keep();
    }
    return admitted;
}

Status Cache::abort_capture() {
    const Result<Capture> capture = take_capture();
    if (!capture) {
        return capture.error();
    }
    const NotesUntilEnd notes(capture->id);
    const TensorsUntilKept checks(capture->id);
    if (Status status = driver_.status(); !status) {
        return status;
    }
    const cuda::RelaxedCapture relaxed(driver_.calls());
    const Result<GraphHolder> graph = end_stream(*capture);
    // A capture that was invalidated is given up all the same: that is no failure here.
    return graph || driver_.usable() ? Status() : Status(graph.error());
}

Result<GraphHolder> Cache::capture_step(cuda::Stream stream, const Callback<Status()>& step) {
    if (Status status = begin_capture(stream); !status) {
        return status.error();
    }
    const Status stepped = step();
    const Result<Capture> capture = take_capture();
    if (!capture) {
        return Error{ErrorCode::invalid_argument, "the step ended the capture itself: it must only enqueue."};
    }
    const NotesUntilEnd notes(capture->id);
    const TensorsUntilKept checks(capture->id);
    if (Status status = driver_.status(); !status) {
        return status.error();
    }
    const cuda::RelaxedCapture relaxed(driver_.calls());
    Result<GraphHolder> graph = end_stream(*capture);
    if (!stepped) {
        return stepped.error();
    }
    return graph;
}

Result<std::vector<BakedIn>> Cache::verify_capture(std::uint64_t key, cuda::Stream stream,
                                                   const Callback<Status(std::int32_t, std::int32_t)>& step,
                                                   const CudaVerifyOptions& options) {
    if (!step || options.tokens[0] == options.tokens[1] || options.positions[0] == options.positions[1]) {
        return Error{ErrorCode::invalid_argument,
                     "verify_capture() needs a step, and two captures that differ in token and position."};
    }
    std::vector<GraphImage> images;
    for (int variant = 0; variant < 2; ++variant) {
        const Result<GraphHolder> graph =
            capture_step(stream, [&] { return step(options.tokens[variant], options.positions[variant]); });
        if (!graph) {
            return graph.error();
        }
        const cuda::RelaxedCapture relaxed(driver_.calls());
        Result<GraphImage> image = image_of(driver_, graph->get());
        if (!image) {
            return image.error();
        }
        images.push_back(std::move(*image));
    }
    std::vector<BakedIn> found = differences(images[0], images[1]);
    std::vector<std::string> texts;
    for (const BakedIn& baked : found) {
        texts.push_back(baked.text);
    }
    find_or_make(key)->account->change([&texts](recording::GraphInfo& info) { info.baked_in = std::move(texts); });
    return found;
}

} // namespace plumb::cudagraph
