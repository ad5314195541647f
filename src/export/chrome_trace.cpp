// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "export/export.hpp"
#include "export/launch_arrows.hpp"
#include "export/span_lanes.hpp"
#include "export/text_sink.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr std::size_t event_room = 1024; // of one event without its name; every number has at most 24 bytes

std::string json_text(std::string_view text) {
    std::string out;
    base::append_json_string(out, text);
    return out;
}

std::string name_prefix(const NameWords::Entry& entry) {
    return R"("name":)" + json_text(entry.name) + R"(,"cat":")" + std::string(category_word(entry.category)) + '"';
}

std::string slice_prefix(const NameWords::Entry& entry) { return ",\n{\"ph\":\"X\"," + name_prefix(entry); }

std::string submission_prefix(const NameWords::Entry& entry) {
    return R"("name":)" + json_text("submit " + entry.name) + R"(,"cat":"submit")";
}

template <int kind>
std::string node_prefix(const NameWords::Entry& entry) {
    constexpr auto what = static_cast<resolve::RecordedKind>(kind);
    const bool nameless = what == resolve::RecordedKind::task && entry.name == "unnamed";
    return R"("name":)" + json_text(nameless ? "task" : entry.name) + R"(,"cat":")" + std::string(kind_word(what)) +
           '"';
}

/// The work of a name's last sample as a trace says it: mostly that of the next one, too.
class WorkText {
  public:
    [[nodiscard]] std::string_view of(const Sample& sample) {
        const std::array<double, 3> amounts = {sample.bytes, sample.flops, sample.elements};
        if (std::memcmp(&amounts, &amounts_, sizeof amounts) != 0) {
            amounts_ = amounts;
            write();
        }
        return {text_.data(), length_};
    }

  private:
    void write() {
        constexpr std::array<std::string_view, 3> keys = {R"(,"bytes":)", R"(,"flops":)", R"(,"elements":)"};
        TextPen pen(text_.data());
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (std::isfinite(amounts_[i])) {
                pen.put(keys[i]);
                pen.put_number(amounts_[i]);
            }
        }
        length_ = static_cast<std::size_t>(pen.at() - text_.data());
    }

    std::array<double, 3> amounts_ = {std::nan(""), std::nan(""), std::nan("")};
    std::size_t length_ = 0;
    std::array<char, 3 * 40> text_{};
};

/// Writes the events of one trace. Lanes: each track has its own id; lanes of spans, of submissions to devices, and of what
/// overlaps on a device (branches of a graph) follow after all tracks.
class TraceWriter {
  public:
    TraceWriter(const SampleFeed& source, std::ostream& out)
        : source_(source), sink_(out), names_(source.facts->names), prefix_(names_, name_prefix),
          slice_prefix_(names_, slice_prefix), submission_prefix_(names_, submission_prefix),
          node_prefix_{NameText(names_, node_prefix<0>), NameText(names_, node_prefix<1>),
                       NameText(names_, node_prefix<2>)},
          graphs_(graph_tracks(source.facts->tracks)), arrows_(graphs_), pid_(source.facts->metadata.pid),
          origin_ns_(origin_of(*source.facts)) {
        for (const recording::TrackInfo& track : source.facts->tracks) {
            next_lane_ = std::max(next_lane_, lane_of(track.id) + 1);
            if (track.kind != recording::TrackKind::host_thread) {
                devices_.emplace(track.id, SpanLanes());
            }
        }
    }

    Status write() {
        sink_.append("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        write_metadata();
        Status read = source_.for_each_batch([this](const resolve::ResolvedBatch& batch) {
            for (const resolve::Submission& submission : batch.submissions) {
                write_submission(submission);
            }
            for (const resolve::RecordedNode& node : batch.nodes) {
                write_node(node);
            }
            launches_ = batch.launches;
            for (const Sample& sample : batch.samples) {
                write_sample(sample);
            }
            return sink_.good();
        });
        write_trailer(read);
        Status written = sink_.flush();
        return written.ok() ? read : written;
    }

  private:
    using LaneId = std::uint64_t;

    // Lane 0 would be shown as the process itself.
    static LaneId lane_of(std::uint32_t track) { return LaneId{track} + 1; }

    void write_metadata() {
        const recording::Metadata& run = source_.facts->metadata;
        const std::string where = run.host.empty() ? "plumb" : "plumb on " + run.host;
        write_name("process_name", 0, run.rank.empty() ? where : where + ", rank " + run.rank);
        for (const recording::TrackInfo& track : source_.facts->tracks) {
            std::string name = track.name.empty() ? "track " + std::to_string(track.id) : track.name;
            if (track.os_thread != 0) {
                name += " (" + std::to_string(track.os_thread) + ")";
            }
            track_names_[track.id] = name;
            write_name("thread_name", lane_of(track.id), name);
            write_order(lane_of(track.id), lane_of(track.id) * (SpanLanes::max_lanes + 1));
        }
    }

    void begin_event() {
        sink_.append(first_ ? "" : ",\n");
        first_ = false;
    }

    void write_name(const char* kind, LaneId lane, const std::string& name) {
        begin_event();
        sink_.append(R"({"ph":"M","pid":)" + std::to_string(pid_) + R"(,"tid":)" + std::to_string(lane) +
                     R"(,"name":")" + kind + R"(","args":{"name":)" + json_text(name) + "}}");
    }

    void write_order(LaneId lane, std::uint64_t order) {
        begin_event();
        sink_.append(R"({"ph":"M","pid":)" + std::to_string(pid_) + R"(,"tid":)" + std::to_string(lane) +
                     R"(,"name":"thread_sort_index","args":{"sort_index":)" + std::to_string(order) + "}}");
    }

    void write_sample(const Sample& sample) {
        // Neither occurs in samples that the resolver made; a trace must not show one whoever made them.
        if (sample.duration_ns < 0 || sample.begin_ns < origin_ns_) {
            ++left_out_;
            return;
        }
        if (const auto device = devices_.find(sample.track); device != devices_.end()) {
            write_device(sample, device->second);
            return;
        }
        if (sample.kind != SampleKind::span) {
            write_slice(sample, lane_of(sample.track));
            return;
        }
        const auto lane = spans_[sample.track].place(sample.begin_ns, sample.begin_ns + sample.duration_ns);
        if (lane) {
            write_slice(sample, extra_lane(span_lane_ids_[sample.track], sample.track, *lane, ", spans", 0));
        } else {
            write_async(sample);
        }
    }

    /// A lane beside that of a track; the `first`-th to the eye.
    LaneId extra_lane(std::vector<LaneId>& lanes, std::uint32_t track, std::size_t lane, const char* what,
                      std::size_t first) {
        while (lane >= lanes.size()) {
            lanes.push_back(next_lane_++);
            const auto name = track_names_.find(track);
            const std::size_t number = lanes.size() + first;
            write_name("thread_name", lanes.back(),
                       (name == track_names_.end() ? "track " + std::to_string(track) : name->second) + what +
                           (number == 1 ? "" : " " + std::to_string(number)));
            write_order(lanes.back(), lane_of(track) * (SpanLanes::max_lanes + 1) + lanes.size());
        }
        return lanes[lane];
    }

    void write_device(const Sample& sample, SpanLanes& lanes) {
        const auto place = lanes.place(sample.begin_ns, sample.begin_ns + sample.duration_ns);
        if (!place) {
            write_async(sample);
            return;
        }
        const LaneId lane = *place == 0 ? lane_of(sample.track)
                                        : extra_lane(span_lane_ids_[sample.track], sample.track, *place - 1, ",", 1);
        write_slice(sample, lane);
        if (const auto flow = arrows_.end_at(sample, launches_)) {
            write_flow("f", *flow, lane, sample.begin_ns);
        }
    }

    void write_submission(const resolve::Submission& submission) {
        if (!submission.timed) {
            return;
        }
        const auto place =
            submission.duration_ns < 0 || submission.begin_ns < origin_ns_
                ? std::nullopt
                : submitted_[submission.track].place(submission.begin_ns, submission.begin_ns + submission.duration_ns);
        if (!place) {
            ++left_out_;
            arrows_.leave_out(submission);
            return;
        }
        const LaneId lane =
            extra_lane(submission_lane_ids_[submission.track], submission.track, *place, ", submitted to devices", 0);
        sink_.reserve(event_room);
        sink_.put(",\n{\"ph\":\"X\",");
        if (submission.graph) {
            sink_.put(R"("name":"launch graph )");
            sink_.put_integer(submission.key);
            sink_.put(R"(","cat":"launch")");
        } else {
            sink_.append(submission_prefix_(submission.name));
            sink_.reserve(event_room);
        }
        put_place(lane);
        sink_.put_microseconds(submission.begin_ns - origin_ns_);
        sink_.put(R"(,"dur":)");
        sink_.put_microseconds(submission.duration_ns);
        put_where(submission.phase, submission.step, submission.layer);
        put_graph_key(submission.graph, submission.key);
        put_flag(submission.warmup, "warmup");
        put_marks(marks_of(submission));
        sink_.put("}}");
        if (submission.number == 0) {
            return;
        }
        arrows_.begin_at(submission);
        write_flow("s", submission.number, lane, submission.begin_ns);
    }

    /// A kernel, transfer or task that was recorded one by one: what has a time in lanes of its own, the rest as a moment.
    void write_node(const resolve::RecordedNode& node) {
        const auto place = node.timed && node.duration_ns >= 0
                               ? recorded_[node.key.track].place(node.begin_ns, node.begin_ns + node.duration_ns)
                               : std::nullopt;
        if (node.begin_ns < origin_ns_ || (node.timed && !place)) {
            ++left_out_;
            return;
        }
        const LaneId lane =
            place ? extra_lane(recorded_lane_ids_[node.key.track], node.key.track, *place, ", recorded", 0)
                  : lane_of(node.key.track);
        sink_.reserve(event_room);
        sink_.put(",\n{\"ph\":\"");
        sink_.put(place ? "X\"," : "i\",\"s\":\"t\",");
        const bool transfer = node.kind == resolve::RecordedKind::transfer;
        sink_.append(
            node_prefix_[static_cast<std::size_t>(node.kind)](transfer ? name_of(node.direction).id : node.name));
        sink_.reserve(event_room);
        put_place(lane);
        sink_.put_microseconds(node.begin_ns - origin_ns_);
        if (place) {
            sink_.put(R"(,"dur":)");
            sink_.put_microseconds(node.duration_ns);
        }
        put_where(node.phase, node.step, node.layer);
        put_flag(node.warmup, "warmup");
        put_marks(marks_of(node));
        put_shape(node);
        put_work(R"(,"bytes":)", node.bytes);
        put_work(R"(,"flops":)", node.flops);
        put_work(R"(,"elements":)", node.elements);
        sink_.put("}}");
    }

    void put_count(std::string_view key, std::uint64_t count) {
        sink_.put(key);
        sink_.put_integer(count);
    }

    /// More than a JSON number holds; no field where it is not known.
    void put_digits(std::string_view key, std::uint64_t value) {
        if (value != 0) {
            sink_.put(key);
            sink_.put(base::hex_digits(value));
            sink_.put("\"");
        }
    }

    void put_extent(std::string_view key, const Extent& extent) {
        sink_.put(key);
        sink_.put_integer(extent.x);
        sink_.put(",");
        sink_.put_integer(extent.y);
        sink_.put(",");
        sink_.put_integer(extent.z);
        sink_.put("]");
    }

    void put_shape(const resolve::RecordedNode& node) {
        if (!node.has_parts) {
            return;
        }
        switch (node.kind) {
        case resolve::RecordedKind::kernel:
            put_digits(R"(,"code":")", node.code_hash);
            put_extent(R"(,"grid":[)", node.grid);
            put_extent(R"(,"block":[)", node.block);
            put_count(R"(,"shared_bytes":)", node.shared_bytes);
            return;
        case resolve::RecordedKind::transfer:
            put_digits(R"(,"source":")", node.source);
            put_digits(R"(,"target":")", node.target);
            put_count(R"(,"transferred":)", node.transferred);
            return;
        case resolve::RecordedKind::task:
            put_count(R"(,"polls":)", node.polls);
            put_count(R"(,"yields":)", node.yields);
            put_count(R"(,"polled_ns":)", node.polled_ns);
            return;
        }
    }

    /// Binds to the event that begins at the same moment in the same lane.
    void write_flow(std::string_view end, std::uint64_t flow, LaneId lane, std::int64_t when_ns) {
        sink_.reserve(event_room);
        sink_.put(",\n{\"ph\":\"");
        sink_.put(end);
        sink_.put(end == "f" ? R"(","bp":"e","name":"launch","cat":"flow","id":)"
                             : R"(","name":"launch","cat":"flow","id":)");
        sink_.put_integer(flow);
        put_place(lane);
        sink_.put_microseconds(when_ns - origin_ns_);
        sink_.put("}");
    }

    void put_what(const Sample& sample) {
        switch (sample.kind) {
        case SampleKind::step:
            sink_.put(R"("name":"step )");
            sink_.put_integer(sample.step);
            sink_.put(R"(","cat":"step")");
            return;
        case SampleKind::layer:
            sink_.put(R"("name":"layer )");
            sink_.put_integer(*sample.layer);
            sink_.put(R"(","cat":"layer")");
            return;
        default:
            sink_.append(prefix_(sample.name));
            sink_.reserve(event_room);
        }
    }

    const std::string& place_in(LaneId lane) {
        if (lane != place_lane_) {
            place_lane_ = lane;
            place_ = R"(,"pid":)" + std::to_string(pid_) + R"(,"tid":)" + std::to_string(lane) + R"(,"ts":)";
        }
        return place_;
    }

    void put_place(LaneId lane) { sink_.put(place_in(lane)); }

    /// From begin to end in one event. Nearly all of a trace is these.
    void write_slice(const Sample& sample, LaneId lane) {
        if (sample.kind == SampleKind::step || sample.kind == SampleKind::layer) {
            sink_.reserve(event_room);
            sink_.put(",\n{\"ph\":\"X\",");
            put_what(sample);
        } else {
            sink_.append(slice_prefix_(sample.name));
            sink_.reserve(event_room);
        }
        TextPen pen = sink_.pen();
        pen.put(place_in(lane));
        pen.put_microseconds(sample.begin_ns - origin_ns_);
        pen.put(R"(,"dur":)");
        pen.put_microseconds(sample.duration_ns);
        sink_.take(put_arguments(pen, sample));
    }

    /// From begin to end in two events, for what fits in no lane.
    void write_async(const Sample& sample) {
        sink_.reserve(event_room);
        sink_.put(",\n{\"ph\":\"b\",");
        put_what(sample);
        put_place(lane_of(sample.track));
        sink_.put_microseconds(sample.begin_ns - origin_ns_);
        sink_.put(R"(,"id":)");
        sink_.put_integer(++async_);
        sink_.take(put_arguments(sink_.pen(), sample));
        sink_.reserve(event_room);
        sink_.put(",\n{\"ph\":\"e\",");
        put_what(sample);
        put_place(lane_of(sample.track));
        sink_.put_microseconds(sample.begin_ns + sample.duration_ns - origin_ns_);
        sink_.put(R"(,"id":)");
        sink_.put_integer(async_);
        sink_.put("}");
    }

    [[nodiscard]] TextPen put_arguments(TextPen pen, const Sample& sample) {
        pen.put(where(sample.phase, sample.step, sample.layer));
        const bool plain = sample.kind != SampleKind::lap && !sample.warmup && !sample.left_out && sample.flags == 0 &&
                           std::isnan(sample.queue_delay_ns) && std::isnan(sample.submit_delay_ns) && graphs_.empty();
        if (!plain) {
            sink_.take(pen);
            put_marks(sample);
            pen = sink_.pen();
        }
        if (sample.name >= work_texts_.size()) {
            work_texts_.resize(std::size_t{sample.name} + 1);
        }
        pen.put(work_texts_[sample.name].of(sample));
        pen.put("}}");
        return pen;
    }

    void put_marks(const Sample& sample) {
        if (const auto graph = graphs_.find(sample.track); graph != graphs_.end()) {
            put_graph_key(true, graph->second);
        }
        put_flag(sample.kind == SampleKind::lap, "lap");
        put_flag(sample.warmup, "warmup");
        put_marks(marks_of(sample));
        put_work(R"(,"queue_delay_us":)", sample.queue_delay_ns / 1e3);
        put_work(R"(,"submit_delay_us":)", sample.submit_delay_ns / 1e3);
    }

    const std::string& where(Phase phase, std::uint64_t step, std::optional<std::uint32_t> layer) {
        if (where_.empty() || phase != where_phase_ || step != where_step_ || layer != where_layer_) {
            where_phase_ = phase;
            where_step_ = step;
            where_layer_ = layer;
            where_ = std::string(R"(,"args":{"phase":")") + phase_word(phase) + '"';
            if (step != resolve::no_step) {
                where_ += R"(,"step":)" + std::to_string(step);
            }
            if (layer) {
                where_ += R"(,"layer":)" + std::to_string(*layer);
            }
        }
        return where_;
    }

    void put_where(Phase phase, std::uint64_t step, std::optional<std::uint32_t> layer) {
        sink_.put(where(phase, step, layer));
    }

    void put_graph_key(bool given, std::uint64_t key) {
        if (given) {
            sink_.put(R"(,"graph":)");
            sink_.put_integer(key);
        }
    }

    void put_flag(bool set, std::string_view word) {
        if (set) {
            sink_.put(",\"");
            sink_.put(word);
            sink_.put("\":true");
        }
    }

    void put_marks(const Marks& marks) {
        for (const MarkWord& mark : marks) {
            put_flag(mark.set, mark.word);
        }
    }

    void put_work(std::string_view key, double amount) {
        if (std::isfinite(amount)) {
            sink_.put(key);
            sink_.put_number(amount);
        }
    }

    void write_trailer(const Status& read) {
        if (left_out_ != 0 && source_.tell) {
            source_.tell(left_out_note(left_out_));
        }
        std::string text;
        base::JsonWriter json(text);
        json.begin_object();
        json.field("schema", "plumb.trace/1");
        json.field("origin_ns", origin_ns_);
        json.field("left_out", left_out_);
        json.field("sync_mode", source_.facts->metadata.sync_mode);
        put_pairs(json, "description", source_.facts->descriptions);
        json.key("notes");
        json.begin_array();
        for (const std::string& note : source_.facts->notes) {
            json.value(note);
        }
        if (arrows_.inferred()) {
            json.value(resolve::inferred_launches_note);
        }
        if (!read.ok()) {
            json.value("cut short: " + read.error().message);
        }
        json.finish();
        sink_.append("\n],\"otherData\":" + text + "}\n");
    }

    const SampleFeed& source_;
    TextSink sink_;
    NameWords names_;
    NameText prefix_;
    NameText slice_prefix_;
    std::vector<WorkText> work_texts_; // by name
    NameText submission_prefix_;
    std::array<NameText, 3> node_prefix_; // by kind
    GraphTracks graphs_;
    LaunchArrows arrows_;
    std::uint32_t pid_;
    std::int64_t origin_ns_;
    bool first_ = true; // only until write_metadata() has named the process
    std::uint64_t left_out_ = 0;
    std::uint64_t async_ = 0;
    LaneId next_lane_ = 1;
    // What neighbours share is put together once: lane, and step with layer.
    LaneId place_lane_ = 0; // none
    std::string place_;
    Phase where_phase_ = Phase::none;
    std::uint64_t where_step_ = 0;
    std::optional<std::uint32_t> where_layer_;
    std::string where_;
    std::map<std::uint32_t, std::string> track_names_;
    std::unordered_map<std::uint32_t, SpanLanes> spans_;
    std::unordered_map<std::uint32_t, std::vector<LaneId>> span_lane_ids_;
    std::unordered_map<std::uint32_t, SpanLanes> devices_; // lanes of what lies on a device, the track's own first
    std::unordered_map<std::uint32_t, SpanLanes> submitted_;
    std::unordered_map<std::uint32_t, std::vector<LaneId>> submission_lane_ids_;
    std::unordered_map<std::uint32_t, SpanLanes> recorded_;
    std::unordered_map<std::uint32_t, std::vector<LaneId>> recorded_lane_ids_;
    std::span<const resolve::Launch> launches_; // of the batch that is written
};

Status write(const SampleFeed& source, std::ostream& out) { return TraceWriter(source, out).write(); }

} // namespace

const Format& chrome_trace_format() {
    static const Format format{"chrome_trace",
                               "For Chrome and Perfetto trace viewers: a lane per track (schema plumb.trace/1)", write};
    return format;
}

} // namespace plumb::exporting
