// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "analysis/compare_key.hpp"
#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "export/export.hpp"
#include "export/text_sink.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

namespace {

using resolve::Sample;

constexpr std::size_t line_room = 1024; // of one line without its name

void put_run(base::JsonWriter& json, const recording::RunFacts& facts) {
    const recording::Metadata& run = facts.metadata;
    json.field("start_realtime_ns", run.start_realtime_ns);
    json.field("host", run.host);
    json.field("pid", run.pid);
    json.field("rank", run.rank);
    json.field("config", run.config);
    json.field("sync_mode", run.sync_mode);
    json.field("warmup_steps", run.warmup_steps);
    put_pairs(json, "identity", run.identity);
    put_pairs(json, "comparability", analysis::head_key(run.comparability, facts.descriptions));
    put_pairs(json, "description", facts.descriptions);
    json.key("costs");
    json.begin_array();
    for (const auto& [what, cost] : run.costs) {
        json.begin_object();
        json.field("what", what);
        json.field("ns", cost);
        json.end();
    }
    json.end();
}

void put_graphs(base::JsonWriter& json, const std::vector<recording::GraphInfo>& graphs) {
    if (graphs.empty()) {
        return;
    }
    json.key("graphs");
    json.begin_array();
    for (const recording::GraphInfo& graph : graphs) {
        json.begin_object();
        json.field("graph", graph.key);
        json.field("captures", graph.captures);
        json.field("instantiations", graph.instantiations);
        json.field("updates", graph.updates);
        json.field("uploads", graph.uploads);
        json.field("replays", graph.replays);
        json.field("instrumented", graph.instrumented);
        json.field("unread", graph.unread);
        json.field("evictions", graph.evictions);
        json.field("sites", graph.sites.size());
        json.field("twin", graph.twin);
        json.end();
    }
    json.end();
}

void put_kernels(base::JsonWriter& json, const std::vector<recording::KernelInfo>& kernels) {
    if (kernels.empty()) {
        return;
    }
    json.key("kernels");
    json.begin_array();
    for (const recording::KernelInfo& kernel : kernels) {
        json.begin_object();
        json.field("code", base::hex_digits(kernel.code_hash));
        json.field("name", kernel.name);
        json.field("file", kernel.file);
        json.field("code_bytes", kernel.code_bytes);
        json.field("source_bytes", kernel.source_bytes);
        if (!kernel.source.empty()) {
            json.field("source", kernel.source);
        }
        json.end();
    }
    json.end();
}

std::string header_line(const SampleFeed& source) {
    std::string line;
    base::JsonWriter json(line);
    json.begin_object();
    json.field("schema", "plumb.samples/1");
    put_run(json, *source.facts);
    json.key("tracks");
    json.begin_array();
    for (const recording::TrackInfo& track : source.facts->tracks) {
        json.begin_object();
        json.field("id", track.id);
        json.field("name", track.name);
        json.field("device", track.kind != recording::TrackKind::host_thread);
        json.field("os_thread", track.os_thread);
        json.field("source", track.source);
        if (track.sampled_every != 1) {
            json.field("sampled_every", track.sampled_every);
        }
        if (track.kind == recording::TrackKind::captured_graph) {
            json.field("graph", track.graph_key);
        }
        json.end();
    }
    json.end();
    put_graphs(json, source.facts->graphs);
    put_kernels(json, source.facts->kernels);
    json.key("notes");
    json.begin_array();
    for (const std::string& note : source.facts->notes) {
        json.value(note);
    }
    json.finish();
    return line + '\n';
}

std::string name_fields(const NameWords::Entry& entry) {
    std::string text = R"(,"name":)";
    base::append_json_string(text, entry.name);
    return text + R"(,"category":")" + std::string(category_word(entry.category)) + '"';
}

template <class T>
void put_field(TextSink& sink, std::string_view key, T value) {
    sink.put(key);
    sink.put_integer(value);
}

void put_work(TextSink& sink, std::string_view key, double amount) {
    if (std::isfinite(amount)) {
        sink.put(key);
        sink.put_number(amount);
    }
}

void put_marks(TextSink& sink, const Marks& marks) {
    for (const MarkWord& mark : marks) {
        if (mark.set) {
            sink.put(",\"");
            sink.put(mark.word);
            sink.put("\":true");
        }
    }
}

void put_place(TextSink& sink, Phase phase, std::uint64_t step, std::optional<std::uint32_t> layer) {
    sink.put(R"(,"phase":")");
    sink.put(phase_word(phase));
    sink.put('"');
    if (step != resolve::no_step) {
        put_field(sink, R"(,"step":)", step);
    }
    if (layer) {
        put_field(sink, R"(,"layer":)", *layer);
    }
}

void write_line(TextSink& sink, const resolve::Submission& submission, NameText& names) {
    sink.reserve(line_room);
    sink.put(R"({"kind":")");
    sink.put(kind_word(submission));
    sink.put('"');
    if (submission.graph) {
        put_field(sink, R"(,"graph":)", submission.key);
    } else {
        sink.append(names(submission.name));
        sink.reserve(line_room);
    }
    put_place(sink, submission.phase, submission.step, submission.layer);
    put_field(sink, R"(,"track":)", submission.track);
    put_field(sink, R"(,"queue":)", submission.queue);
    if (submission.timed) {
        put_field(sink, R"(,"begin_ns":)", submission.begin_ns);
        put_field(sink, R"(,"duration_ns":)", submission.duration_ns);
    }
    sink.put(submission.warmup ? R"(,"warmup":true)" : R"(,"warmup":false)");
    put_marks(sink, marks_of(submission));
    sink.put("}\n");
}

void write_line(TextSink& sink, const Sample& sample, NameText& names, const GraphTracks& graphs) {
    sink.reserve(line_room);
    sink.put(R"({"kind":")");
    sink.put(kind_word(sample.kind));
    sink.put('"');
    if (sample.kind != resolve::SampleKind::step && sample.kind != resolve::SampleKind::layer) {
        sink.append(names(sample.name));
        sink.reserve(line_room);
    }
    put_place(sink, sample.phase, sample.step, sample.layer);
    put_field(sink, R"(,"track":)", sample.track);
    if (const auto graph = graphs.find(sample.track); graph != graphs.end()) {
        put_field(sink, R"(,"graph":)", graph->second);
    }
    put_field(sink, R"(,"begin_ns":)", sample.begin_ns);
    put_field(sink, R"(,"duration_ns":)", sample.duration_ns);
    put_field(sink, R"(,"self_ns":)", sample.self_ns);
    put_work(sink, R"(,"queue_delay_ns":)", sample.queue_delay_ns);
    put_work(sink, R"(,"submit_delay_ns":)", sample.submit_delay_ns);
    put_work(sink, R"(,"barrier_wait_ns":)", sample.barrier_wait_ns);
    sink.put(sample.leaf ? R"(,"leaf":true)" : R"(,"leaf":false)");
    sink.put(sample.warmup ? R"(,"warmup":true)" : R"(,"warmup":false)");
    put_work(sink, R"(,"bytes":)", sample.bytes);
    put_work(sink, R"(,"flops":)", sample.flops);
    put_work(sink, R"(,"elements":)", sample.elements);
    put_marks(sink, marks_of(sample));
    sink.put("}\n");
}

void put_known(base::JsonWriter& json, std::string_view key, double value);

void put_extent(base::JsonWriter& json, std::string_view key, Extent extent) {
    json.key(key);
    json.begin_array();
    for (const std::uint32_t size : {extent.x, extent.y, extent.z}) {
        json.value(size);
    }
    json.end();
}

/// More than a JSON number holds; no field where it is not known.
void put_digits(base::JsonWriter& json, std::string_view key, std::uint64_t value) {
    if (value != 0) {
        json.field(key, base::hex_digits(value));
    }
}

void put_kernel(base::JsonWriter& json, const resolve::RecordedNode& node) {
    put_digits(json, "code", node.code_hash);
    put_extent(json, "grid", node.grid);
    put_extent(json, "block", node.block);
    json.field("shared_bytes", node.shared_bytes);
}

void put_transfer(base::JsonWriter& json, const resolve::RecordedNode& node) {
    constexpr const char* words[] = {"host_to_device", "device_to_host", "device_to_device"};
    json.field("direction", words[static_cast<std::size_t>(node.direction)]);
    if (node.has_parts) {
        put_digits(json, "source", node.source);
        put_digits(json, "target", node.target);
        json.field("transferred", node.transferred);
    }
}

std::string node_line(const resolve::RecordedNode& node, const NameWords& names) {
    std::string line;
    base::JsonWriter json(line);
    json.begin_object();
    json.field("kind", kind_word(node.kind));
    if (node.kind != resolve::RecordedKind::transfer && node.name != 0) {
        json.field("name", names.entry(node.name).name);
    }
    json.field("phase", phase_word(node.phase));
    if (node.step != resolve::no_step) {
        json.field("step", node.step);
    }
    if (node.layer) {
        json.field("layer", *node.layer);
    }
    json.field("track", node.key.track);
    json.field("sequence", node.key.sequence);
    json.field(node.timed ? "begin_ns" : "told_ns", node.begin_ns);
    if (node.timed) {
        json.field("duration_ns", node.duration_ns);
    }
    json.field("warmup", node.warmup);
    if (node.left_out) {
        json.field("sampled", true);
    }
    if (node.kind == resolve::RecordedKind::transfer) {
        put_transfer(json, node);
    } else if (node.has_parts && node.kind == resolve::RecordedKind::kernel) {
        put_kernel(json, node);
    } else if (node.has_parts) {
        json.field("polls", node.polls);
        json.field("yields", node.yields);
        json.field("polled_ns", node.polled_ns);
    }
    put_known(json, "bytes", node.bytes);
    put_known(json, "flops", node.flops);
    put_known(json, "elements", node.elements);
    json.finish();
    return line + '\n';
}

void write_line(TextSink& sink, const resolve::NodeDependency& edge) {
    sink.reserve(line_room);
    put_field(sink, R"({"kind":"dependency","from_track":)", edge.earlier.track);
    put_field(sink, R"(,"from_sequence":)", edge.earlier.sequence);
    put_field(sink, R"(,"track":)", edge.later.track);
    put_field(sink, R"(,"sequence":)", edge.later.sequence);
    sink.put("}\n");
}

void put_known(base::JsonWriter& json, std::string_view key, double value) {
    if (std::isfinite(value)) {
        json.field(key, value);
    }
}

template <class T>
void put_list(base::JsonWriter& json, std::string_view key, const std::vector<T>& values) {
    if (values.empty()) {
        return;
    }
    json.key(key);
    json.begin_array();
    for (const T& value : values) {
        json.value(value);
    }
    json.end();
}

void put_check_place(base::JsonWriter& json, const recording::TensorCheck& check) {
    json.field("phase", phase_word(check.phase));
    if (check.step_plus_one != 0) {
        json.field("step", check.step_plus_one - 1);
    }
    if (check.layer_plus_one != 0) {
        json.field("layer", check.layer_plus_one - 1);
    }
    json.field("occurrence", check.occurrence);
    json.field("sequence", check.sequence);
    if (check.position >= 0) {
        json.field("position", check.position);
    }
    json.field("order", check.order);
    json.field("track", check.track);
    if (check.in_graph) {
        json.field("graph", check.graph_key);
        json.field("replay", check.replay);
    }
}

void put_fingerprint(base::JsonWriter& json, const Fingerprint& print) {
    json.field("hash", base::hex_digits(print.hash));
    if (print.largest != no_index) {
        json.field("largest", print.largest);
    }
    put_known(json, "sum", print.sum);
    put_known(json, "sum_of_squares", print.sum_of_squares);
    put_list(json, "sketch", print.sketch);
}

std::string check_line(const recording::TensorCheck& check, const NameWords& names) {
    std::string line;
    base::JsonWriter json(line);
    const NameWords::Entry name = names.entry(check.name);
    const Fingerprint& print = check.fingerprint;
    json.begin_object();
    json.field("kind", "check");
    json.field("name", name.name);
    json.field("category", category_word(name.category));
    json.field("role", check.role == TensorRole::input ? "input" : "output");
    put_check_place(json, check);
    json.field("level", check.level == recording::CheckLevel::full ? "all" : "nonfinite");
    json.field("dtype", dtype_word(check.dtype));
    put_list(json, "shape", check.shape);
    if (check.first_index != 0) {
        json.field("first_index", check.first_index);
    }
    json.field("count", print.count);
    json.field("nans", print.nans);
    json.field("positive_infs", print.positive_infs);
    json.field("negative_infs", print.negative_infs);
    if (print.first_nonfinite != no_index) {
        json.field("first_nonfinite", print.first_nonfinite);
    }
    put_known(json, "min", print.min);
    put_known(json, "max", print.max);
    if (check.level == recording::CheckLevel::full) {
        put_fingerprint(json, print);
    }
    if (check.argmax != no_index) {
        json.field("argmax", check.argmax);
        put_known(json, "margin", check.margin);
    }
    json.finish();
    return line + '\n';
}

Status write_checks(const SampleFeed& source, const NameWords& names, TextSink& sink) {
    return source.for_each_check([&](recording::TensorCheck&& check) {
        sink.append(check_line(check, names));
        return sink.good();
    });
}

Status write(const SampleFeed& source, std::ostream& out) {
    TextSink sink(out);
    const NameWords table(source.facts->names);
    NameText names(table, name_fields);
    sink.append(header_line(source));
    const GraphTracks graphs = graph_tracks(source.facts->tracks);
    Status read = source.for_each_batch([&](const resolve::ResolvedBatch& batch) {
        for (const resolve::Submission& submission : batch.submissions) {
            write_line(sink, submission, names);
        }
        for (const resolve::RecordedNode& node : batch.nodes) {
            sink.append(node_line(node, table));
        }
        for (const resolve::NodeDependency& edge : batch.dependencies) {
            write_line(sink, edge);
        }
        for (const Sample& sample : batch.samples) {
            write_line(sink, sample, names, graphs);
        }
        return sink.good();
    });
    if (read.ok()) {
        read = write_checks(source, table, sink);
    }
    Status written = sink.flush();
    return written.ok() ? read : written;
}

} // namespace

const Format& jsonl_format() {
    static const Format format{
        "jsonl", "A header line (schema plumb.samples/1), then a sample per line, then a check of a tensor per line",
        write};
    return format;
}

} // namespace plumb::exporting
