// SPDX-License-Identifier: Apache-2.0
// Two tables, a file each: scopes (every sample but the steps, and what was recorded one by one) and steps (docs/sql.md).
#include <unordered_map>

#include "export/export.hpp"
#include "export/parquet_rows.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

namespace {

using parquet::Given;
using parquet::no_integer;
using parquet::no_text;
using parquet::no_truth;
using resolve::Sample;

/// What every row of a recording says alike, and the words behind the codes in its rows.
class Recording {
  public:
    explicit Recording(const recording::RunFacts& facts)
        : word_(recording_word(facts.metadata)), host_(facts.metadata.host),
          rank_(rank_number(facts.metadata).value_or(no_integer)), names_(facts.names),
          start_(facts.metadata.start_realtime_ns) {
        for (const recording::TrackInfo& track : facts.tracks) {
            if (index_.emplace(track.id, tracks_.size()).second) {
                tracks_.push_back({track.id, track.name, track.source});
            }
        }
    }

    [[nodiscard]] const std::string& word() const { return word_; }
    [[nodiscard]] const std::string& host() const { return host_; }
    [[nodiscard]] std::int64_t rank() const { return rank_; }
    [[nodiscard]] NameWords::Entry brick(std::uint32_t name) const {
        return names_.entry(static_cast<std::uint16_t>(name));
    }

    /// Index of a track; an unknown id gets a new one. Samples come by the hundred from one track.
    [[nodiscard]] std::uint32_t track(std::uint32_t id) {
        if (last_ >= tracks_.size() || tracks_[last_].id != id) {
            const auto [found, fresh] = index_.emplace(id, tracks_.size());
            if (fresh) {
                tracks_.push_back({id, {}, {}});
            }
            last_ = found->second;
        }
        return static_cast<std::uint32_t>(last_);
    }

    struct TrackWords {
        std::uint32_t id = 0;
        std::string name, source;
    };
    /// Of an index that track() gave; an empty one where there is no track at all.
    [[nodiscard]] const TrackWords& track_at(std::uint32_t index) const {
        static const TrackWords none{};
        return index < tracks_.size() ? tracks_[index] : none;
    }

    /// Of the file: what its table is, and when the run began, for who wants to put several on one line of time.
    [[nodiscard]] parquet::KeyValues facts(const char* schema) const {
        return {
            {"plumb.schema", schema}, {"plumb.recording", word_}, {"plumb.start_realtime_ns", std::to_string(start_)}};
    }

  private:
    std::string word_, host_;
    std::int64_t rank_;
    NameWords names_;
    std::int64_t start_;
    std::unordered_map<std::uint32_t, std::size_t> index_; // by id
    std::vector<TrackWords> tracks_;
    std::size_t last_ = 0; // asked for
};

template <class To>
void describe_origin(To& to, const Recording& recording) {
    to.text("recording", Given::always, 0, [&](std::uint32_t) { return recording.word(); });
    to.text("host", Given::always, 0, [&](std::uint32_t) { return recording.host(); });
    to.integer("rank", Given::sometimes, recording.rank());
}

template <class To>
void describe_phase(To& to, Phase phase) {
    to.text("phase", Given::always, static_cast<std::uint32_t>(phase),
            [](std::uint32_t code) { return std::string(phase_word(static_cast<Phase>(code))); });
}

/// `index`: of the track.
template <class To>
void describe_track(To& to, const Recording& recording, std::uint32_t index) {
    to.integer("track", Given::always, recording.track_at(index).id);
    to.text("track_name", Given::always, index, [&](std::uint32_t track) { return recording.track_at(track).name; });
}

/// `describe(to, recording, row)` says the columns.
template <class Row>
class TableOfRows {
  public:
    TableOfRows(const recording::RunFacts& facts, std::ostream& out)
        : recording_(facts), sink_(out), file_(sink_, columns_of(rows_, recording_)) {}

    [[nodiscard]] Recording& recording() { return recording_; }

    void add(const Row& row) {
        parquet::Values values(rows_);
        describe(values, recording_, row);
        rows_.end_row();
        if (rows_.full()) {
            rows_.put(file_);
        }
    }
    /// False: the output takes no more.
    [[nodiscard]] bool good() const { return sink_.good() && file_.good(); }

    /// `read`: how reading the rows ended.
    [[nodiscard]] Status finish(const Status& read, const char* schema) {
        if (!rows_.empty()) {
            rows_.put(file_);
        }
        file_.finish(rows_.begin_column(), recording_.facts(schema));
        const Status written = sink_.flush();
        if (!written.ok() || !read.ok() || file_.good()) {
            return written.ok() ? read : written;
        }
        return Error{ErrorCode::out_of_memory, "out of memory for a row group; give the process 300 MiB more"};
    }

  private:
    static std::vector<parquet::ParquetColumn> columns_of(parquet::RowGroup& rows, const Recording& recording) {
        parquet::Schema schema(rows);
        describe(schema, recording, Row{});
        return rows.columns();
    }

    Recording recording_;
    TextSink sink_;
    parquet::RowGroup rows_;
    parquet::ParquetWriter file_;
};

std::int64_t step_value(std::uint64_t step) {
    return step == resolve::no_step ? no_integer : static_cast<std::int64_t>(step);
}
std::int64_t layer_value(std::optional<std::uint32_t> layer) { return layer ? std::int64_t{*layer} : no_integer; }

/// What gives marks, as one code, and their words. Nodes have words of their own.
constexpr std::uint16_t of_a_sample(const Sample& sample) {
    return static_cast<std::uint16_t>(sample.flags | (sample.left_out ? 0x100 : 0));
}
constexpr std::uint16_t of_a_node(const resolve::RecordedNode& node) {
    return static_cast<std::uint16_t>(0x200 | (node.timed ? 1 : 0) | (node.left_out ? 0x100 : 0));
}
std::string marks_text(std::uint32_t code) {
    Sample sample;
    sample.flags = static_cast<std::uint8_t>(code);
    resolve::RecordedNode node;
    node.timed = (code & 1) != 0;
    sample.left_out = node.left_out = (code & 0x100) != 0;
    std::string text;
    for (const MarkWord& mark : (code & 0x200) != 0 ? marks_of(node) : marks_of(sample)) {
        if (mark.set) {
            text += (text.empty() ? "" : " ") + std::string(mark.word);
        }
    }
    return text;
}

// ---- scopes

constexpr std::uint32_t first_node_kind = 16; // below it SampleKind, from it on RecordedKind

std::string kind_text(std::uint32_t code) {
    return std::string(code < first_node_kind ? kind_word(static_cast<resolve::SampleKind>(code))
                                              : kind_word(static_cast<resolve::RecordedKind>(code - first_node_kind)));
}

struct ScopeRow {
    std::uint32_t kind = 0;
    Phase phase = Phase::none;
    std::uint32_t brick = no_text; // layers have none
    std::uint32_t track = 0;       // index
    std::int64_t step = no_integer, layer = no_integer;
    std::int64_t begin = 0, duration = 0;
    double bytes = 0, flops = 0;
    std::uint8_t leaf = no_truth;
    bool warmup = false;
    std::uint32_t marks = 0;
};

ScopeRow row_of(const Sample& sample, std::uint32_t track) {
    const bool layer = sample.kind == resolve::SampleKind::layer;
    return {.kind = static_cast<std::uint32_t>(sample.kind),
            .phase = sample.phase,
            .brick = layer ? no_text : sample.name,
            .track = track,
            .step = step_value(sample.step),
            .layer = layer_value(sample.layer),
            .begin = sample.begin_ns,
            .duration = sample.duration_ns,
            .bytes = sample.bytes,
            .flops = sample.flops,
            .leaf = layer ? no_truth : static_cast<std::uint8_t>(sample.leaf),
            .warmup = sample.warmup,
            .marks = of_a_sample(sample)};
}

ScopeRow row_of(const resolve::RecordedNode& node, std::uint32_t track) {
    const bool transfer = node.kind == resolve::RecordedKind::transfer;
    return {.kind = first_node_kind + static_cast<std::uint32_t>(node.kind),
            .phase = node.phase,
            .brick = transfer ? name_of(node.direction).id : node.name,
            .track = track,
            .step = step_value(node.step),
            .layer = layer_value(node.layer),
            .begin = node.begin_ns,
            .duration = node.timed ? node.duration_ns : no_integer,
            .bytes = transfer && node.has_parts ? static_cast<double>(node.transferred) : node.bytes,
            .flops = node.flops,
            .leaf = no_truth,
            .warmup = node.warmup,
            .marks = of_a_node(node)};
}

template <class To>
void describe(To& to, const Recording& recording, const ScopeRow& row) {
    describe_origin(to, recording);
    to.text("kind", Given::always, row.kind, kind_text);
    to.integer("step", Given::sometimes, row.step);
    describe_phase(to, row.phase);
    to.integer("layer", Given::sometimes, row.layer);
    to.text("brick", Given::sometimes, row.brick, [&](std::uint32_t name) { return recording.brick(name).name; });
    to.text("category", Given::sometimes, row.brick,
            [&](std::uint32_t name) { return std::string(category_word(recording.brick(name).category)); });
    describe_track(to, recording, row.track);
    to.integer("begin", Given::always, row.begin);
    to.integer("duration", Given::sometimes, row.duration);
    to.real("bytes", Given::sometimes, row.bytes);
    to.real("flops", Given::sometimes, row.flops);
    to.text("source", Given::always, row.track, [&](std::uint32_t track) { return recording.track_at(track).source; });
    to.truth("leaf", Given::sometimes, row.leaf);
    to.truth("warmup", Given::always, static_cast<std::uint8_t>(row.warmup));
    to.text("flags", Given::always, row.marks, marks_text);
}

Status write_scopes(const SampleFeed& source, std::ostream& out) {
    TableOfRows<ScopeRow> table(*source.facts, out);
    const Status read = source.for_each_batch([&](const resolve::ResolvedBatch& batch) {
        for (const resolve::RecordedNode& node : batch.nodes) {
            table.add(row_of(node, table.recording().track(node.key.track)));
        }
        for (const Sample& sample : batch.samples) {
            if (sample.kind != resolve::SampleKind::step) {
                table.add(row_of(sample, table.recording().track(sample.track)));
            }
        }
        return table.good();
    });
    return table.finish(read, "plumb.scopes/1");
}

// ---- steps

struct StepRow {
    resolve::ResolvedStep step;
    std::uint32_t track = 0; // index
};

template <class To>
void describe(To& to, const Recording& recording, const StepRow& row) {
    const resolve::ResolvedStep& step = row.step;
    describe_origin(to, recording);
    to.integer("step", Given::always, static_cast<std::int64_t>(step.id));
    describe_phase(to, step.phase);
    describe_track(to, recording, row.track);
    to.integer("begin", Given::always, step.begin_ns);
    to.integer("duration", Given::always, step.end_ns - step.begin_ns);
    to.integer("period", Given::always, step.end_ns - step.period_begin_ns);
    to.integer("prefill_tokens", Given::always, step.prefill_tokens);
    to.integer("decode_tokens", Given::always, static_cast<std::int64_t>(step.decode_tokens));
    to.integer("sequences", Given::always, step.sequences);
    to.integer("kv_length", Given::sometimes,
               step.has_kv_length ? static_cast<std::int64_t>(step.kv_length) : no_integer);
    to.truth("warmup", Given::always, static_cast<std::uint8_t>(step.warmup));
    to.text("flags", Given::always, static_cast<std::uint32_t>(step.left_out),
            [](std::uint32_t left_out) { return std::string(left_out != 0 ? "sampled" : ""); });
}

Status write_steps(const SampleFeed& source, std::ostream& out) {
    TableOfRows<StepRow> table(*source.facts, out);
    const Status read = source.for_each_step([&](const resolve::ResolvedStep& step, std::uint32_t track) {
        if (step.counted) {
            table.add({step, table.recording().track(track)});
        }
        return table.good();
    });
    return table.finish(read, "plumb.steps/1");
}

} // namespace

const Format& parquet_format() {
    static const Format format{
        "parquet",
        "Tables of scopes and of steps for DuckDB, Spark and the like: a file of each for every recording, below the folder "
        "that -o names",
        nullptr,
        0,
        {{"scopes", write_scopes}, {"steps", write_steps}}};
    return format;
}

} // namespace plumb::exporting
