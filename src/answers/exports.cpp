// SPDX-License-Identifier: Apache-2.0
// The forms of exports, which src/export writes as it reads: the lines of jsonl, and the trace. Forms only; tests hold what is written
// against them.
#include "answers/commands.hpp"

#include "answers/answer.hpp"

namespace plumb::exported {
namespace {

using page::FormFields;
using page::limited;

constexpr std::uint64_t count = 0;
constexpr std::int64_t time = 0;
constexpr double number = 0;
const std::string text;
const std::vector<std::uint64_t> counts;
const auto hex = limited(text, {.pattern = "^[0-9a-f]{16}$"});
constexpr bool truth = true;
const auto mark = limited(truth, {.least = 1}); // never false
constexpr bool optional = false; // the fourth argument of a field: written only where there is something to say

using Words = std::initializer_list<const char*>;
void word(FormFields& v, const char* name, Words words, const char* sentence) {
    v(name, page::Word{{}, {words.begin(), words.size()}}, sentence);
}

void put_place(FormFields& v) {
    v("phase", Phase(), "");
    v("step", count, "missing where it belongs to none", optional);
    v("layer", count, "missing where it belongs to none", optional);
}

void put_work(FormFields& v) {
    v("bytes", number, "as the program gave them; missing where not given, never 0 for unknown", optional);
    v("flops", number, "", optional);
    v("elements", number, "", optional);
}

void put_sample_marks(FormFields& v) {
    v("launch_wait", mark, "its time includes launch wait", optional);
    v("below_floor", mark, "shorter than the source resolves", optional);
    v("may_overlap", mark, "of a queue that runs out of order", optional);
    v("cut_by_neighbour", mark, "ran beside its neighbour, and is counted only from the end of that one", optional);
    v("sampled", mark, "in a step that sampling made different", optional);
}

void put_launch_marks(FormFields& v) {
    v("instrumented", mark, "of a launch: the twin ran", optional);
    v("first", mark, "of a launch: the first of its executable", optional);
    v("unread", mark, "of a launch: the last sample was unread", optional);
}

void put_shapes(FormFields& v, bool kernel, bool transfer, bool task) {
    if (kernel) {
        v("code", hex, "as in `kernels`: 16 hexadecimal digits; missing where not known", optional);
        v("grid", counts, "blocks in x, y, z", optional);
        v("block", counts, "threads in x, y, z", optional);
        v("shared_bytes", count, "", optional);
    }
    if (transfer) {
        v("source", hex, "buffer, 16 hexadecimal digits; missing where not known", optional);
        v("target", hex, "buffer, likewise", optional);
        v("transferred", count, "bytes", optional);
    }
    if (task) {
        v("polls", count, "", optional);
        v("yields", count, "", optional);
        v("polled_ns", count, "", optional);
    }
}

// ---- jsonl

struct TrackForm {};
void describe(FormFields& v, const TrackForm&) {
    v.type("track", "A host thread, a device queue or a captured graph.");
    v("id", count, "");
    v("name", text, "");
    v("device", bool(), "");
    v("os_thread", count, "");
    v("source", text, "what times it");
    v("sampled_every", count, "timed in one step out of so many; only where that is not 1", optional);
    v("graph", count, "key, of a captured graph", optional);
}

struct GraphForm {};
void describe(FormFields& v, const GraphForm&) {
    v.type("graph", "The life of a captured graph.");
    for (const char* name : {"graph", "captures", "instantiations", "updates", "uploads", "replays", "instrumented",
                             "unread", "evictions", "sites"}) {
        v(name, count, "");
    }
    word(v, "twin", {"", "event", "stamp"}, "empty: none");
}

struct KernelSourceForm {};
void describe(FormFields& v, const KernelSourceForm&) {
    v.type("kernel source", "The code of a kernel that was registered.");
    v("code", hex, "its hash");
    v("name", text, "");
    v("file", text, "");
    v("code_bytes", count, "");
    v("source_bytes", count, "");
    v("source", text, "where it is kept", optional);
}

struct HeaderForm {};
void describe(FormFields& v, const HeaderForm&) {
    const std::vector<std::pair<std::string, std::string>> pairs;
    v.type("header", "The first line.");
    v("start_realtime_ns", time, "");
    v("host", text, "");
    v("pid", count, "");
    v("rank", text, "");
    v("config", text, "");
    word(v, "sync_mode", {"deferred", "immediate", "per_layer", "none"}, "");
    v("warmup_steps", count, "");
    v.pairs("identity", "key", "value", pairs, "");
    v.pairs("comparability", "key", "value", pairs, "what `plumb compare` wants equal, but for the shape of the steps");
    v.pairs("description", "key", "value", pairs, "what the engine said of itself: model, device, layers and the like");
    v.pairs("costs", "what", "ns", std::vector<std::pair<std::string, double>>(), "measured when the run started");
    v("tracks", std::vector<TrackForm>(), "");
    v("notes", std::vector<std::string>(), "");
    v("graphs", std::vector<GraphForm>(), "only where there are some", optional);
    v("kernels", std::vector<KernelSourceForm>(), "only where some were registered", optional);
}
constexpr const char* schema_of(const HeaderForm&) { return "plumb.samples/1"; }

void put_times(FormFields& v) {
    v("track", count, "its `id` in the header");
    v("begin_ns", time, "on the common clock (CLOCK_MONOTONIC, or the one injected)");
    v("duration_ns", count, "with direct children");
    v("self_ns", time, "without them");
    v("leaf", bool(), "");
    v("warmup", bool(), "");
}

struct SampleForm {};
void describe(FormFields& v, const SampleForm&) {
    v.type("sample", "A time of a brick.");
    word(v, "kind", {"scope", "lap", "span"}, "");
    v("name", text, "of the brick");
    v("category", Category(), "");
    put_place(v);
    put_times(v);
    v("graph", count, "of scopes inside replays: key of the graph", optional);
    v("queue_delay_ns", number,
      "of device scopes whose source tells (`opencl_event`): from when the host enqueued the first command to `begin_ns`",
      optional);
    v("submit_delay_ns", number, "likewise, from when the driver handed it to the device", optional);
    v("barrier_wait_ns", number, "of its duration, where it is known: waiting for other threads of its team", optional);
    put_work(v);
    put_sample_marks(v);
}

struct StretchForm {};
void describe(FormFields& v, const StretchForm&) {
    v.type("stretch", "A step or a layer.");
    word(v, "kind", {"step", "layer"}, "");
    put_place(v);
    put_times(v);
    v("sampled", mark, "a step that sampling made different", optional);
}

void put_submission(FormFields& v) {
    put_place(v);
    v("track", count, "of the host thread");
    v("queue", count, "track it was given to");
    v("warmup", bool(), "");
    v("begin_ns", time, "", optional);
    v("duration_ns", count, "", optional);
}

struct SubmitForm {};
void describe(FormFields& v, const SubmitForm&) {
    v.type("submit", "The host's part of a device scope.");
    word(v, "kind", {"submit"}, "");
    v("name", text, "of the brick");
    v("category", Category(), "");
    put_submission(v);
}

struct LaunchForm {};
void describe(FormFields& v, const LaunchForm&) {
    v.type("launch", "The host's part of a graph's replay.");
    word(v, "kind", {"launch"}, "");
    v("graph", count, "its key");
    put_submission(v);
    put_launch_marks(v);
}

void put_node(FormFields& v) {
    put_place(v);
    v("track", count, "");
    v("sequence", count, "with `track` it names the node");
    v("warmup", bool(), "");
    v("begin_ns", time, "of one that was timed", optional);
    v("duration_ns", count, "of one that was timed", optional);
    v("told_ns", time, "of another: when it was told", optional);
    v("sampled", mark, "in a step that sampling made different", optional);
    put_work(v);
}

struct KernelForm {};
void describe(FormFields& v, const KernelForm&) {
    v.type("kernel", "A kernel that was recorded by itself ([path.md](path.md)).");
    word(v, "kind", {"kernel"}, "");
    v("name", text, "", optional);
    put_node(v);
    put_shapes(v, true, false, false);
}

struct TransferForm {};
void describe(FormFields& v, const TransferForm&) {
    v.type("transfer", "A transfer that was recorded by itself.");
    word(v, "kind", {"transfer"}, "");
    word(v, "direction", {"host_to_device", "device_to_host", "device_to_device"}, "");
    put_node(v);
    put_shapes(v, false, true, false);
}

struct TaskForm {};
void describe(FormFields& v, const TaskForm&) {
    v.type("task", "A task that was recorded by itself.");
    word(v, "kind", {"task"}, "");
    v("name", text, "", optional);
    put_node(v);
    put_shapes(v, false, false, true);
}

struct DependencyForm {};
void describe(FormFields& v, const DependencyForm&) {
    v.type("dependency", "Leads from one node to another; it may come before either.");
    word(v, "kind", {"dependency"}, "");
    v("from_track", count, "");
    v("from_sequence", count, "");
    v("track", count, "");
    v("sequence", count, "");
}

void put_fingerprint(FormFields& v) {
    v("count", count, "elements");
    v("nans", count, "");
    v("positive_infs", count, "");
    v("negative_infs", count, "");
    v("first_index", count, "number of its first element within the larger tensor of which it is a piece", optional);
    v("first_nonfinite", count, "index of the first NaN or Inf", optional);
    v("min", number, "of the finite elements", optional);
    v("max", number, "of the finite elements; of level `nonfinite` the largest magnitude", optional);
    v("hash", hex, "of all bits and their places", optional);
    v("largest", count, "index of the largest magnitude", optional);
    v("sum", number, "of the finite elements", optional);
    v("sum_of_squares", number, "of the finite elements", optional);
    v("sketch", std::vector<double>(), "from which distances are estimated", optional);
    v("argmax", count, "of logits: index of the largest", optional);
    v("margin", number, "of logits: its distance to the second largest", optional);
}

struct CheckForm {};
void describe(FormFields& v, const CheckForm&) {
    v.type("check", "A fingerprint that `tensors=` left ([fingerprints.md](fingerprints.md)).");
    word(v, "kind", {"check"}, "");
    v("name", text, "of the brick");
    v("category", Category(), "");
    word(v, "role", {"output", "input"}, "of the brick");
    put_place(v);
    v("occurrence", count, "among those of the same step, sequence, layer, name and role, in order");
    v("sequence", count, "of a batch");
    v("position", count, "in the sequence, of the tensor's first row", optional);
    v("order", count, "of the call among all checks of the run");
    v("track", count, "of the thread, or of the device queue");
    v("graph", count, "of a check inside a captured graph: its key", optional);
    v("replay", limited(count, {.least = 1}), "of that graph, from 1", optional);
    word(v, "level", {"all", "nonfinite"}, "`nonfinite`: only whether all is finite");
    word(v, "dtype", {"f32", "f64", "f16", "bf16", "i8", "i32"}, "");
    v("shape", counts, "", optional);
    put_fingerprint(v);
}

// ---- trace

const auto microseconds = limited(number, {.least = 0});

void put_head(FormFields& v, const char* ph, Words cats) {
    word(v, "ph", {ph}, "its sort");
    v("name", text, "");
    word(v, "cat", cats, "");
    v("pid", count, "");
    v("tid", count, "its lane");
    v("ts", microseconds, "microseconds");
}

constexpr Words brick_cats = {"other",  "norm",  "attention",  "ffn",      "moe",  "embedding",
                              "output", "cache", "collective", "transfer", "step", "layer"};
constexpr Words submission_cats = {"submit", "launch"};
constexpr Words node_cats = {"kernel", "transfer", "task"};

struct SampleArgsForm {};
void describe(FormFields& v, const SampleArgsForm&) {
    v.type("sample args", "Of a brick, a layer or a step.");
    put_place(v);
    v("graph", count, "", optional);
    v("lap", mark, "", optional);
    v("warmup", mark, "", optional);
    put_sample_marks(v);
    v("queue_delay_us", number, "as `queue_delay_ns` of the samples", optional);
    v("submit_delay_us", number, "as `submit_delay_ns` of the samples", optional);
    put_work(v);
}

struct SubmissionArgsForm {};
void describe(FormFields& v, const SubmissionArgsForm&) {
    v.type("submission args", "Of what a thread submitted to a device.");
    put_place(v);
    v("graph", count, "", optional);
    v("warmup", mark, "", optional);
    put_launch_marks(v);
}

struct RecordedArgsForm {};
void describe(FormFields& v, const RecordedArgsForm&) {
    v.type("recorded args", "Of a kernel, transfer or task that was recorded by itself.");
    put_place(v);
    v("warmup", mark, "", optional);
    v("told", mark, "`ts` is when it was told", optional);
    v("sampled", mark, "", optional);
    put_shapes(v, true, true, true);
    put_work(v);
}

void put_metadata(FormFields& v, Words names) {
    word(v, "ph", {"M"}, "its sort");
    v("pid", count, "");
    v("tid", count, "its lane");
    word(v, "name", names, "");
}

struct LaneNameForm {};
void describe(FormFields& v, const LaneNameForm&) {
    v.type("lane name", "");
    put_metadata(v, {"process_name", "thread_name"});
    v.group("args", "", [](FormFields& args) { args("name", text, ""); });
}

struct LaneOrderForm {};
void describe(FormFields& v, const LaneOrderForm&) {
    v.type("lane order", "");
    put_metadata(v, {"thread_sort_index"});
    v.group("args", "", [](FormFields& args) { args("sort_index", count, ""); });
}

struct CompleteForm {};
void describe(FormFields& v, const CompleteForm&) {
    v.type("complete", "A brick, a layer or a step.");
    put_head(v, "X", brick_cats);
    v("dur", microseconds, "microseconds");
    v("args", SampleArgsForm(), "");
}

struct OverlappingBeginForm {};
void describe(FormFields& v, const OverlappingBeginForm&) {
    v.type("overlapping begin", "Of a span that has no lane of its own.");
    put_head(v, "b", brick_cats);
    v("id", count, "");
    v("args", SampleArgsForm(), "");
}

struct OverlappingEndForm {};
void describe(FormFields& v, const OverlappingEndForm&) {
    v.type("overlapping end", "");
    put_head(v, "e", brick_cats);
    v("id", count, "that of its begin");
}

struct SubmissionForm {};
void describe(FormFields& v, const SubmissionForm&) {
    v.type("submission", "What a thread submitted to a device.");
    put_head(v, "X", submission_cats);
    v("dur", microseconds, "microseconds");
    v("args", SubmissionArgsForm(), "");
}

struct RecordedForm {};
void describe(FormFields& v, const RecordedForm&) {
    v.type("recorded", "A kernel, transfer or task that was timed.");
    put_head(v, "X", node_cats);
    v("dur", microseconds, "microseconds");
    v("args", RecordedArgsForm(), "");
}

struct ToldForm {};
void describe(FormFields& v, const ToldForm&) {
    v.type("told", "A kernel, transfer or task that was only told.");
    put_head(v, "i", node_cats);
    word(v, "s", {"t"}, "");
    v("args", RecordedArgsForm(), "");
}

void put_arrow(FormFields& v, const char* ph) {
    word(v, "ph", {ph}, "its sort");
    word(v, "name", {"launch"}, "");
    word(v, "cat", {"flow"}, "");
    v("id", count, "");
    v("pid", count, "");
    v("tid", count, "");
    v("ts", microseconds, "");
}

struct ArrowStartForm {};
void describe(FormFields& v, const ArrowStartForm&) {
    v.type("arrow start", "At the host.");
    put_arrow(v, "s");
}

struct ArrowEndForm {};
void describe(FormFields& v, const ArrowEndForm&) {
    v.type("arrow end", "At what it submitted.");
    put_arrow(v, "f");
    word(v, "bp", {"e"}, "");
}

struct EventForm {};

} // namespace
} // namespace plumb::exported

template <>
plumb::page::Form plumb::page::form_of<plumb::exported::EventForm>() {
    using namespace exported;
    return choice_of<LaneNameForm, LaneOrderForm, CompleteForm, OverlappingBeginForm, OverlappingEndForm,
                     SubmissionForm, RecordedForm, ToldForm, ArrowStartForm, ArrowEndForm>();
}

namespace plumb::exported {
namespace {

struct TraceForm {};
void describe(FormFields& v, const TraceForm&) {
    v.type("trace", "The Chrome trace format in its object form (`plumb trace`).");
    word(v, "displayTimeUnit", {"ns"}, "");
    v("traceEvents", std::vector<EventForm>(), "");
    v.group("otherData", "", [](FormFields& other) {
        word(other, "schema", {"plumb.trace/1"}, "");
        other("origin_ns", time, "that `ts` counts from");
        other("left_out", count, "samples with a negative time: 0 in every sound recording");
        other("sync_mode", text, "");
        other.pairs("description", "key", "value", std::vector<std::pair<std::string, std::string>>(),
                    "as of the samples");
        other("notes", std::vector<std::string>(), "");
    });
}

} // namespace
} // namespace plumb::exported

std::vector<plumb::answers::Document> plumb::answers::documents_of_exports() {
    using namespace exported;
    return {{schema_of(HeaderForm{}), &page::choice_of<HeaderForm, SampleForm, StretchForm, SubmitForm, LaunchForm,
                                                       KernelForm, TransferForm, TaskForm, DependencyForm, CheckForm>},
            {"plumb.trace/1", &page::form_of<TraceForm>}};
}
