// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>

#include "base/utf8.hpp"
#include "export/export.hpp"
#include "export/text_sink.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

namespace {

using resolve::Sample;

constexpr std::size_t row_room = 1024; // of one row without its name

std::string name_cells(const NameWords::Entry& entry) {
    std::string cell = base::valid_utf8(entry.name);
    if (cell.find_first_of(",\"\r\n") != std::string::npos) {
        for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) {
            cell.insert(at, 1, '"');
        }
        cell = '"' + cell + '"';
    }
    return cell + ',' + std::string(category_word(entry.category));
}

void put_work(TextSink& sink, double amount) {
    sink.put(',');
    if (std::isfinite(amount)) {
        sink.put_number(amount);
    }
}

template <class T>
void put_cell(TextSink& sink, T value) {
    sink.put(',');
    sink.put_integer(value);
}

void put_marks(TextSink& sink, const Marks& marks) {
    sink.put(',');
    bool first = true;
    for (const MarkWord& mark : marks) {
        if (mark.set) {
            sink.put(first ? "" : " ");
            sink.put(mark.word);
            first = false;
        }
    }
}

void put_place(TextSink& sink, std::uint64_t step, std::optional<std::uint32_t> layer) {
    if (step != resolve::no_step) {
        sink.put_integer(step);
    }
    sink.put(',');
    if (layer) {
        sink.put_integer(*layer);
    }
}

void write_row(TextSink& sink, const resolve::Submission& submission, NameText& names) {
    sink.reserve(row_room);
    sink.put(kind_word(submission));
    sink.put(',');
    if (submission.graph) {
        sink.put(',');
    } else {
        sink.append(names(submission.name));
        sink.reserve(row_room);
    }
    sink.put(',');
    sink.put(phase_word(submission.phase));
    sink.put(',');
    put_place(sink, submission.step, submission.layer);
    put_cell(sink, submission.track);
    if (submission.timed) {
        put_cell(sink, submission.begin_ns);
        put_cell(sink, submission.duration_ns);
    } else {
        sink.put(",,");
    }
    sink.put(submission.warmup ? ",,,1,,,," : ",,,0,,,,");
    if (submission.graph) {
        sink.put_integer(submission.key);
    }
    put_cell(sink, submission.queue);
    put_marks(sink, marks_of(submission));
    sink.put('\n');
}

/// One that was only told has no length and the mark told; a transfer's bytes are those it moved.
void write_row(TextSink& sink, const resolve::RecordedNode& node, NameText& names) {
    using resolve::RecordedKind;
    sink.reserve(row_room);
    sink.put(kind_word(node.kind));
    sink.put(',');
    sink.append(names(node.kind == RecordedKind::transfer ? name_of(node.direction).id : node.name));
    sink.reserve(row_room);
    sink.put(',');
    sink.put(phase_word(node.phase));
    sink.put(',');
    put_place(sink, node.step, node.layer);
    put_cell(sink, node.key.track);
    put_cell(sink, node.begin_ns);
    sink.put(',');
    if (node.timed) {
        sink.put_integer(node.duration_ns);
    }
    sink.put(node.warmup ? ",,,1" : ",,,0");
    const bool moved = node.kind == RecordedKind::transfer && node.has_parts;
    put_work(sink, moved ? static_cast<double>(node.transferred) : node.bytes);
    put_work(sink, node.flops);
    put_work(sink, node.elements);
    sink.put(",,");
    put_marks(sink, marks_of(node));
    sink.put('\n');
}

void write_row(TextSink& sink, const Sample& sample, NameText& names, const GraphTracks& graphs) {
    sink.reserve(row_room);
    sink.put(kind_word(sample.kind));
    sink.put(',');
    if (sample.kind == resolve::SampleKind::step || sample.kind == resolve::SampleKind::layer) {
        sink.put(',');
    } else {
        sink.append(names(sample.name));
        sink.reserve(row_room);
    }
    sink.put(',');
    sink.put(phase_word(sample.phase));
    sink.put(',');
    put_place(sink, sample.step, sample.layer);
    put_cell(sink, sample.track);
    put_cell(sink, sample.begin_ns);
    put_cell(sink, sample.duration_ns);
    put_cell(sink, sample.self_ns);
    sink.put(sample.leaf ? ",1" : ",0");
    sink.put(sample.warmup ? ",1" : ",0");
    put_work(sink, sample.bytes);
    put_work(sink, sample.flops);
    put_work(sink, sample.elements);
    sink.put(',');
    if (const auto graph = graphs.find(sample.track); graph != graphs.end()) {
        sink.put_integer(graph->second);
    }
    sink.put(',');
    put_marks(sink, marks_of(sample));
    sink.put('\n');
}

Status write(const SampleFeed& source, std::ostream& out) {
    TextSink sink(out);
    const NameWords table(source.facts->names);
    NameText names(table, name_cells);
    sink.append("kind,name,category,phase,step,layer,track,begin_ns,duration_ns,self_ns,leaf,warmup,bytes,flops,"
                "elements,graph,queue,marks\n");
    const GraphTracks graphs = graph_tracks(source.facts->tracks);
    Status read = source.for_each_batch([&](const resolve::ResolvedBatch& batch) {
        for (const resolve::Submission& submission : batch.submissions) {
            write_row(sink, submission, names);
        }
        for (const resolve::RecordedNode& node : batch.nodes) {
            write_row(sink, node, names);
        }
        for (const Sample& sample : batch.samples) {
            write_row(sink, sample, names, graphs);
        }
        return sink.good();
    });
    Status written = sink.flush();
    return written.ok() ? read : written;
}

} // namespace

const Format& csv_format() {
    static const Format format{
        "csv", "A header row, then one row per sample (RFC 4180); empty cells where nothing was given", write};
    return format;
}

} // namespace plumb::exporting
