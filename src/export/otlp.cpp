// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry traces (OTLP/JSON, one TracesData a line). A request is a span, in the trace that its server was asked in where
// it gave that, else in one of its own; its phases are children. Steps are the spans of one trace of the run; a request links to
// those that had it in their batch. Of a window: its steps, and the requests that were in their batches, whole, with links to
// those steps. Ids follow from the recording: written again, they are the same, whatever the window.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "analysis/request_lives.hpp"
#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "export/export.hpp"
#include "export/text_sink.hpp"
#include "export/words.hpp"

namespace plumb::exporting {
namespace {

using analysis::RequestLife;
using analysis::RequestStretch;

constexpr std::size_t spans_a_line = 500; // a line can be sent as it is: collectors refuse bodies of more than some MiB
constexpr analysis::RequestLives::Keep kept = {16,
                                               128}; // 128 links are what OpenTelemetry's own libraries keep of a span
constexpr unsigned kind_internal = 1, kind_server = 2;                           // of SpanKind
constexpr std::uint64_t most_integer = std::numeric_limits<std::int64_t>::max(); // of an attribute
constexpr unsigned parent_is_remote = 0x300;                                     // of SpanFlags: it is known, and so

struct TraceId {
    std::uint64_t high = 0, low = 0;
};

/// What an id is of; the numbers are part of every id.
enum class Of : std::uint8_t { run = 1, step = 2, request = 3, request_trace = 4 };

class Ids {
  public:
    explicit Ids(const recording::Metadata& run) : high_(run.recording_id[0]), low_(run.recording_id[1]) {}
    [[nodiscard]] std::uint64_t span(Of what, std::uint64_t number, std::uint64_t part = 0) const {
        const std::uint64_t id =
            mixed(mixed(mixed(high_ ^ mixed(low_ + static_cast<std::uint64_t>(what))) + number) + part);
        return id != 0 ? id : 1; // 0 is no id
    }
    [[nodiscard]] TraceId trace(Of what, std::uint64_t number) const {
        return {span(what, number, 1), span(what, number, 2)};
    }

  private:
    /// splitmix64's finalizer.
    static std::uint64_t mixed(std::uint64_t value) {
        value += 0x9e3779b97f4a7c15;
        value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
        value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
        return value ^ (value >> 31);
    }
    std::uint64_t high_, low_;
};

/// From the common clock to the nanoseconds since 1970 that OTLP counts: one offset for all, so that lengths stay as measured.
std::int64_t to_realtime(const recording::RunFacts& facts) {
    for (const recording::ClockPair& pair : facts.clock_pairs) {
        if (pair.clock == 0 && pair.realtime_ns != 0) {
            return pair.realtime_ns - pair.monotonic_ns;
        }
    }
    return facts.metadata.start_realtime_ns != 0 ? facts.metadata.start_realtime_ns - origin_of(facts) : 0;
}

/// The attributes of what is open, as OTLP/JSON has them: 64-bit integers are text.
class OtlpAttributes {
  public:
    explicit OtlpAttributes(base::JsonWriter& json) : json_(json) {
        json_.key("attributes");
        json_.begin_array();
    }
    OtlpAttributes(const OtlpAttributes&) = delete;
    OtlpAttributes& operator=(const OtlpAttributes&) = delete;
    ~OtlpAttributes() { json_.end(); }

    void text(std::string_view key, std::string_view value) { add(key, "stringValue", value); }
    void integer(std::string_view key, std::uint64_t value) { add(key, "intValue", std::to_string(value)); }
    void truth(std::string_view key) { add(key, "boolValue", true); }

  private:
    template <class T>
    void add(std::string_view key, std::string_view kind, const T& value) {
        json_.begin_object();
        json_.field("key", key);
        json_.key("value");
        json_.begin_object();
        json_.field(kind, value);
        json_.end();
        json_.end();
    }
    base::JsonWriter& json_;
};

struct SpanHead {
    TraceId trace;
    std::uint64_t id = 0, parent = 0; // parent 0: none
    std::string_view name;
    unsigned kind = kind_internal, flags = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
};

std::string hex(TraceId id) { return base::hex_digits(id.high) + base::hex_digits(id.low); }

class Spans {
  public:
    Spans(const SampleFeed& source, std::ostream& out)
        : facts_(*source.facts), ids_(facts_.metadata), run_trace_(ids_.trace(Of::run, 0)),
          offset_ns_(to_realtime(facts_)), sink_(out), windowed_(static_cast<bool>(source.for_each_request)),
          lives_(
              kept, {}, [this](const RequestLife& life) { request(life); },
              [this](std::uint64_t step) { return !windowed_ || written(step); }) {
        open_line();
    }

    /// False: the stream refuses more.
    bool take(const resolve::ResolvedBatch& batch) {
        for (const resolve::RequestEvent& event : batch.requests) {
            lives_.take(event);
        }
        for (const resolve::Sample& sample : batch.samples) {
            if (sample.kind == resolve::SampleKind::step) {
                step(sample);
            }
        }
        return sink_.good();
    }
    /// Behind all batches of a window: those requests that one of its steps had in its batch.
    Status take_requests(const SampleFeed& source) {
        std::sort(steps_.begin(), steps_.end());
        return steps_.empty() || !sink_.good()
                   ? Status{}
                   : source.for_each_request([this](const resolve::RequestEvent& event) { lives_.take(event); });
    }
    Status finish() {
        lives_.finish();
        if (first_ns_ <= last_ns_) {
            begin({run_trace_, ids_.span(Of::run, 0), 0, "run", kind_internal, 0, first_ns_, last_ns_});
            end();
        }
        close_line();
        sink_.append("\n");
        return sink_.flush();
    }

  private:
    void open_line() {
        json_.begin_object();
        json_.key("resourceSpans");
        json_.begin_array();
        json_.begin_object();
        json_.key("resource");
        json_.begin_object();
        {
            const recording::Metadata& run = facts_.metadata;
            OtlpAttributes resource(json_);
            resource.text("service.name", "plumb");
            resource.text("host.name", run.host);
            resource.integer("process.pid", run.pid);
            if (!run.rank.empty()) {
                resource.text("plumb.rank", run.rank);
            }
            for (const auto& [key, value] : facts_.descriptions) {
                resource.text("plumb.description." + key, value);
            }
        }
        json_.end();
        json_.key("scopeSpans");
        json_.begin_array();
        json_.begin_object();
        json_.key("scope");
        json_.begin_object();
        json_.field("name", "plumb");
        json_.end();
        json_.key("spans");
        json_.begin_array();
    }
    void close_line() {
        json_.finish(); // the next line begins with the newline between two documents
        sink_.append(line_);
        line_.clear();
        spans_ = 0;
    }

    /// Opens a span; end() closes it.
    void begin(const SpanHead& head) {
        if (spans_ == spans_a_line) {
            close_line();
            open_line();
        }
        ++spans_;
        json_.begin_object();
        json_.field("traceId", hex(head.trace));
        json_.field("spanId", base::hex_digits(head.id));
        if (head.parent != 0) {
            json_.field("parentSpanId", base::hex_digits(head.parent));
        }
        if (head.flags != 0) {
            json_.field("flags", head.flags);
        }
        json_.field("name", head.name);
        json_.field("kind", head.kind);
        json_.field("startTimeUnixNano", time(head.begin_ns));
        json_.field("endTimeUnixNano", time(head.end_ns));
    }
    void end() { json_.end(); }
    [[nodiscard]] std::string time(std::int64_t ns) const {
        return std::to_string(std::max<std::int64_t>(ns + offset_ns_, 0));
    }

    [[nodiscard]] bool written(std::uint64_t step) const {
        return std::binary_search(steps_.begin(), steps_.end(), step);
    }
    void step(const resolve::Sample& sample);
    void request(const RequestLife& life);
    void links(const RequestLife& life);

    const recording::RunFacts& facts_;
    const Ids ids_;
    const TraceId run_trace_;
    const std::int64_t offset_ns_;
    TextSink sink_;
    std::string line_;
    base::JsonWriter json_{line_};
    std::size_t spans_ = 0;                                            // in this line
    std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max(); // of the steps
    std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
    const bool windowed_;
    std::vector<std::uint64_t> steps_; // of a window, that have a span
    analysis::RequestLives lives_;
};

void Spans::step(const resolve::Sample& sample) {
    const std::int64_t end_ns = sample.begin_ns + sample.duration_ns;
    first_ns_ = std::min(first_ns_, sample.begin_ns);
    last_ns_ = std::max(last_ns_, end_ns);
    if (windowed_) {
        steps_.push_back(sample.step);
    }
    begin({run_trace_, ids_.span(Of::step, sample.step), ids_.span(Of::run, 0), "step", kind_internal, 0,
           sample.begin_ns, end_ns});
    {
        OtlpAttributes said(json_);
        said.integer("plumb.step", sample.step);
        said.text("plumb.phase", phase_word(sample.phase));
        if (sample.warmup) {
            said.truth("plumb.warmup");
        }
        if (sample.left_out) {
            said.truth("plumb.sampled");
        }
    }
    end();
}

void Spans::links(const RequestLife& life) {
    if (life.steps.empty()) {
        return;
    }
    json_.key("links");
    json_.begin_array();
    for (const std::uint64_t step : life.steps) {
        json_.begin_object();
        json_.field("traceId", hex(run_trace_));
        json_.field("spanId", base::hex_digits(ids_.span(Of::step, step)));
        json_.end();
    }
    json_.end();
    if (life.step_count != life.steps.size()) {
        json_.field("droppedLinksCount", std::min<std::uint64_t>(life.step_count - life.steps.size(),
                                                                 std::numeric_limits<std::uint32_t>::max()));
    }
}

void Spans::request(const RequestLife& life) {
    if (windowed_ && life.step_count == 0) {
        return;
    }
    const bool joined = life.trace.known();
    const TraceId trace =
        joined ? TraceId{life.trace.high, life.trace.low} : ids_.trace(Of::request_trace, life.number);
    const std::uint64_t id = ids_.span(Of::request, life.number);
    begin({trace, id, life.trace.parent_span, "request", kind_server, joined ? parent_is_remote | life.trace.flags : 0,
           life.begin_ns, life.end_ns});
    {
        OtlpAttributes said(json_);
        said.text("plumb.request", std::to_string(life.id)); // OTLP's integers have a sign
        if (life.tokens && *life.tokens <= most_integer) {
            said.integer("gen_ai.usage.output_tokens", *life.tokens);
        }
        if (life.arrived && life.first_token_ns) {
            said.integer("plumb.time_to_first_token_ns",
                         static_cast<std::uint64_t>(*life.first_token_ns - life.begin_ns));
        }
        if (!life.ended) {
            said.truth("plumb.cut"); // its end is only the last that is known of it
        }
    }
    links(life);
    end();
    for (std::size_t i = 0; i < life.stretches.size(); ++i) {
        const RequestStretch& stretch = life.stretches[i];
        begin({trace, ids_.span(Of::request, life.number, i + 1), id,
               analysis::request_phase_words[static_cast<std::size_t>(stretch.phase)], kind_internal, 0,
               stretch.begin_ns, stretch.end_ns});
        end();
    }
}

Status write(const SampleFeed& source, std::ostream& out) {
    Spans spans(source, out);
    Status read = source.for_each_batch([&](const resolve::ResolvedBatch& batch) { return spans.take(batch); });
    if (read.ok() && source.for_each_request) {
        read = spans.take_requests(source);
    }
    const Status written = spans.finish();
    return written.ok() ? read : written;
}

} // namespace

const Format& otlp_format() {
    static const Format format{"otlp", "OpenTelemetry traces of requests and steps: OTLP/JSON, one TracesData a line",
                               write};
    return format;
}

} // namespace plumb::exporting
