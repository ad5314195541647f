// SPDX-License-Identifier: Apache-2.0
// Two tables, a file each: scopes (every sample but the steps, and what was recorded one by one) and steps (docs/sql.md).
#include <algorithm>
#include <unordered_map>

#include "export/export.hpp"
#include "export/parquet_file.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

namespace {

using parquet::ColumnType;
using parquet::no_integer;
using parquet::no_text;
using parquet::no_truth;
using resolve::Sample;

constexpr std::size_t rows_of_a_group = std::size_t{1} << 20;

/// What every row of a recording says alike, and the words behind the codes in its rows.
class Recording {
  public:
    explicit Recording(const recording::RunFacts& facts)
        : recording_(recording_word(facts.metadata)), host_(facts.metadata.host), rank_(rank_number(facts.metadata)),
          names_(facts.names), start_(facts.metadata.start_realtime_ns) {
        for (const recording::TrackInfo& track : facts.tracks) {
            if (index_.emplace(track.id, tracks_.size()).second) {
                tracks_.push_back({track.id, track.name, track.source});
            }
        }
    }

    [[nodiscard]] const NameWords& names() const { return names_; }

    /// Index of a track; an unknown id gets a new one.
    [[nodiscard]] std::uint32_t track(std::uint32_t id) {
        const auto [found, fresh] = index_.emplace(id, tracks_.size());
        if (fresh) {
            tracks_.push_back({id, {}, {}});
        }
        return static_cast<std::uint32_t>(found->second);
    }

    struct Track {
        std::uint32_t id;
        std::string name, source;
    };
    [[nodiscard]] const Track& track_at(std::uint32_t index) const { return tracks_[index]; }

    /// The first columns of both tables.
    void put(parquet::ParquetWriter& file, std::size_t rows) const {
        const std::vector<std::uint32_t> same(rows, 0);
        file.texts(same, [&](std::uint32_t) { return recording_; });
        file.texts(same, [&](std::uint32_t) { return host_; });
        file.integers(std::vector<std::int64_t>(rows, rank_.value_or(no_integer)));
    }

    /// Of the file: what its table is, and when the run began, for who wants to put several on one line of time.
    [[nodiscard]] parquet::KeyValues facts(const char* schema) const {
        return {{"plumb.schema", schema},
                {"plumb.recording", recording_},
                {"plumb.start_realtime_ns", std::to_string(start_)}};
    }

  private:
    std::string recording_, host_;
    std::optional<std::int64_t> rank_;
    NameWords names_;
    std::int64_t start_;
    std::unordered_map<std::uint32_t, std::size_t> index_; // by id
    std::vector<Track> tracks_;
};

std::vector<parquet::ParquetColumn> with_first(std::vector<parquet::ParquetColumn> columns) {
    columns.insert(columns.begin(),
                   {{"recording", ColumnType::text}, {"host", ColumnType::text}, {"rank", ColumnType::integer, true}});
    return columns;
}

/// RowColumns of a row group, made out of its rows.
template <class Row>
class RowColumns {
  public:
    RowColumns(parquet::ParquetWriter& file, const std::vector<Row>& rows) : file_(file), rows_(rows) {}

    template <class Get>
    void truths(Get get) {
        file_.truths(filled(truths_, get));
    }
    template <class Get>
    void integers(Get get) {
        file_.integers(filled(integers_, get));
    }
    template <class Get>
    void reals(Get get) {
        file_.reals(filled(reals_, get));
    }
    template <class Get>
    void texts(Get get, const parquet::TextOfCode& text_of) {
        file_.texts(filled(codes_, get), text_of);
    }

  private:
    template <class T, class Get>
    const std::vector<T>& filled(std::vector<T>& room, Get get) {
        room.resize(rows_.size());
        std::transform(rows_.begin(), rows_.end(), room.begin(), get);
        return room;
    }

    parquet::ParquetWriter& file_;
    const std::vector<Row>& rows_;
    std::vector<std::uint8_t> truths_;
    std::vector<std::int64_t> integers_;
    std::vector<double> reals_;
    std::vector<std::uint32_t> codes_;
};

std::int64_t step_value(std::uint64_t step) {
    return step == resolve::no_step ? no_integer : static_cast<std::int64_t>(step);
}
std::int64_t layer_value(std::optional<std::uint32_t> layer) { return layer ? std::int64_t{*layer} : no_integer; }

std::string phase_text(std::uint32_t code) { return phase_word(static_cast<Phase>(code)); }

/// Marks as one code, and the words of such a code. Those of nodes have words of their own.
constexpr std::uint32_t of_a_node = 1U << std::tuple_size_v<Marks>;
std::uint32_t code_of(const Marks& marks) {
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        code |= static_cast<std::uint32_t>(marks[i].set) << i;
    }
    return code;
}
std::string marks_text(std::uint32_t code) {
    const Marks marks = (code & of_a_node) != 0 ? marks_of(resolve::RecordedNode{}) : marks_of(Sample{});
    std::string text;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if ((code >> i & 1) != 0) {
            text += (text.empty() ? "" : " ") + std::string(marks[i].word);
        }
    }
    return text;
}

// ---- scopes

constexpr std::uint8_t first_node_kind = 16; // below it SampleKind, from it on RecordedKind

struct ScopeRow {
    std::int64_t begin, duration, step, layer;
    double bytes, flops;
    std::uint32_t track; // index
    std::uint16_t name;  // 0: a layer's
    std::uint8_t kind, phase, leaf, warmup, marks;
};

class ScopeTableWriter {
  public:
    ScopeTableWriter(const recording::RunFacts& facts, TextSink& sink)
        : recording_(facts), sink_(sink), file_(sink, with_first({{"kind", ColumnType::text},
                                                                  {"step", ColumnType::integer, true},
                                                                  {"phase", ColumnType::text},
                                                                  {"layer", ColumnType::integer, true},
                                                                  {"brick", ColumnType::text, true},
                                                                  {"category", ColumnType::text, true},
                                                                  {"track", ColumnType::integer},
                                                                  {"track_name", ColumnType::text},
                                                                  {"begin", ColumnType::integer},
                                                                  {"duration", ColumnType::integer, true},
                                                                  {"bytes", ColumnType::real, true},
                                                                  {"flops", ColumnType::real, true},
                                                                  {"source", ColumnType::text},
                                                                  {"leaf", ColumnType::truth, true},
                                                                  {"warmup", ColumnType::truth},
                                                                  {"flags", ColumnType::text}})) {}

    /// False: the output takes no more.
    bool take(const resolve::ResolvedBatch& batch) {
        for (const resolve::RecordedNode& node : batch.nodes) {
            add(row_of(node));
        }
        for (const Sample& sample : batch.samples) {
            if (sample.kind != resolve::SampleKind::step) {
                add(row_of(sample));
            }
        }
        return sink_.good() && file_.good();
    }

    [[nodiscard]] bool finish() {
        if (!rows_.empty()) {
            put_group();
        }
        file_.finish(begin_column, recording_.facts("plumb.scopes/1"));
        return file_.good();
    }

  private:
    static constexpr std::size_t begin_column = 11;

    ScopeRow row_of(const Sample& sample) {
        const bool layer = sample.kind == resolve::SampleKind::layer;
        return {.begin = sample.begin_ns,
                .duration = sample.duration_ns,
                .step = step_value(sample.step),
                .layer = layer_value(sample.layer),
                .bytes = sample.bytes,
                .flops = sample.flops,
                .track = track_of(sample.track),
                .name = sample.name,
                .kind = static_cast<std::uint8_t>(sample.kind),
                .phase = static_cast<std::uint8_t>(sample.phase),
                .leaf = layer ? no_truth : static_cast<std::uint8_t>(sample.leaf),
                .warmup = sample.warmup,
                .marks = static_cast<std::uint8_t>(code_of(marks_of(sample)))};
    }

    ScopeRow row_of(const resolve::RecordedNode& node) {
        using resolve::RecordedKind;
        const bool transfer = node.kind == RecordedKind::transfer;
        return {.begin = node.begin_ns,
                .duration = node.timed ? node.duration_ns : no_integer,
                .step = step_value(node.step),
                .layer = layer_value(node.layer),
                .bytes = transfer && node.has_parts ? static_cast<double>(node.transferred) : node.bytes,
                .flops = node.flops,
                .track = track_of(node.key.track),
                .name = transfer ? name_of(node.direction).id : node.name,
                .kind = static_cast<std::uint8_t>(first_node_kind + static_cast<std::uint8_t>(node.kind)),
                .phase = static_cast<std::uint8_t>(node.phase),
                .leaf = no_truth,
                .warmup = node.warmup,
                .marks = static_cast<std::uint8_t>(code_of(marks_of(node)) | of_a_node)};
    }

    /// Samples come by the hundred from one track.
    std::uint32_t track_of(std::uint32_t id) {
        if (id != last_id_ || !any_track_) {
            last_track_ = recording_.track(id);
            last_id_ = id;
            any_track_ = true;
        }
        return last_track_;
    }

    void add(const ScopeRow& row) {
        rows_.push_back(row);
        if (rows_.size() == rows_of_a_group) {
            put_group();
        }
    }

    static std::string kind_text(std::uint32_t code) {
        return std::string(code < first_node_kind
                               ? kind_word(static_cast<resolve::SampleKind>(code))
                               : kind_word(static_cast<resolve::RecordedKind>(code - first_node_kind)));
    }
    [[nodiscard]] static bool named(const ScopeRow& row) {
        return row.kind != static_cast<std::uint8_t>(resolve::SampleKind::layer);
    }

    void put_group() {
        std::stable_sort(rows_.begin(), rows_.end(),
                         [](const ScopeRow& a, const ScopeRow& b) { return a.begin < b.begin; });
        file_.begin_group(rows_.size());
        recording_.put(file_, rows_.size());
        RowColumns columns(file_, rows_);
        columns.texts([](const ScopeRow& row) { return row.kind; }, kind_text);
        columns.integers([](const ScopeRow& row) { return row.step; });
        columns.texts([](const ScopeRow& row) { return row.phase; }, phase_text);
        columns.integers([](const ScopeRow& row) { return row.layer; });
        columns.texts(
            [](const ScopeRow& row) { return named(row) ? row.name : no_text; },
            [&](std::uint32_t name) { return recording_.names().entry(static_cast<std::uint16_t>(name)).name; });
        columns.texts([](const ScopeRow& row) { return named(row) ? row.name : no_text; },
                      [&](std::uint32_t name) {
                          return std::string(
                              category_word(recording_.names().entry(static_cast<std::uint16_t>(name)).category));
                      });
        columns.integers([&](const ScopeRow& row) { return std::int64_t{recording_.track_at(row.track).id}; });
        columns.texts([](const ScopeRow& row) { return row.track; },
                      [&](std::uint32_t track) { return recording_.track_at(track).name; });
        columns.integers([](const ScopeRow& row) { return row.begin; });
        columns.integers([](const ScopeRow& row) { return row.duration; });
        columns.reals([](const ScopeRow& row) { return row.bytes; });
        columns.reals([](const ScopeRow& row) { return row.flops; });
        columns.texts([](const ScopeRow& row) { return row.track; },
                      [&](std::uint32_t track) { return recording_.track_at(track).source; });
        columns.truths([](const ScopeRow& row) { return row.leaf; });
        columns.truths([](const ScopeRow& row) { return row.warmup; });
        columns.texts([](const ScopeRow& row) { return row.marks; }, marks_text);
        rows_.clear();
    }

    Recording recording_;
    TextSink& sink_;
    parquet::ParquetWriter file_;
    std::vector<ScopeRow> rows_;
    std::uint32_t last_id_ = 0, last_track_ = 0;
    bool any_track_ = false;
};

Status ended(const Status& read, bool good, TextSink& sink) {
    const Status written = sink.flush();
    if (!written.ok()) {
        return written;
    }
    return !read.ok() || good ? read
                              : Status(Error{ErrorCode::out_of_memory,
                                             "out of memory for a row group; give the process 300 MiB more"});
}

Status write_scopes(const SampleFeed& source, std::ostream& out) {
    TextSink sink(out);
    ScopeTableWriter scopes(*source.facts, sink);
    const Status read = source.for_each_batch([&](const resolve::ResolvedBatch& batch) { return scopes.take(batch); });
    const bool good = scopes.finish();
    return ended(read, good, sink);
}

// ---- steps

struct StepRow {
    resolve::ResolvedStep step;
    std::uint32_t track; // index
};

class StepTableWriter {
  public:
    StepTableWriter(const recording::RunFacts& facts, TextSink& sink)
        : recording_(facts), sink_(sink), file_(sink, with_first({{"step", ColumnType::integer},
                                                                  {"phase", ColumnType::text},
                                                                  {"track", ColumnType::integer},
                                                                  {"track_name", ColumnType::text},
                                                                  {"begin", ColumnType::integer},
                                                                  {"duration", ColumnType::integer},
                                                                  {"period", ColumnType::integer},
                                                                  {"prefill_tokens", ColumnType::integer},
                                                                  {"decode_tokens", ColumnType::integer},
                                                                  {"sequences", ColumnType::integer},
                                                                  {"kv_length", ColumnType::integer, true},
                                                                  {"warmup", ColumnType::truth},
                                                                  {"flags", ColumnType::text}})) {}

    bool take(const resolve::ResolvedStep& step, std::uint32_t track) {
        if (step.counted) {
            rows_.push_back({step, recording_.track(track)});
        }
        if (rows_.size() == rows_of_a_group) {
            put_group();
        }
        return sink_.good() && file_.good();
    }

    [[nodiscard]] bool finish() {
        if (!rows_.empty()) {
            put_group();
        }
        file_.finish(begin_column, recording_.facts("plumb.steps/1"));
        return file_.good();
    }

  private:
    static constexpr std::size_t begin_column = 7;

    void put_group() {
        std::stable_sort(rows_.begin(), rows_.end(),
                         [](const StepRow& a, const StepRow& b) { return a.step.begin_ns < b.step.begin_ns; });
        file_.begin_group(rows_.size());
        recording_.put(file_, rows_.size());
        RowColumns columns(file_, rows_);
        columns.integers([](const StepRow& row) { return static_cast<std::int64_t>(row.step.id); });
        columns.texts([](const StepRow& row) { return static_cast<std::uint32_t>(row.step.phase); }, phase_text);
        columns.integers([&](const StepRow& row) { return std::int64_t{recording_.track_at(row.track).id}; });
        columns.texts([](const StepRow& row) { return row.track; },
                      [&](std::uint32_t track) { return recording_.track_at(track).name; });
        columns.integers([](const StepRow& row) { return row.step.begin_ns; });
        columns.integers([](const StepRow& row) { return row.step.end_ns - row.step.begin_ns; });
        columns.integers([](const StepRow& row) { return row.step.end_ns - row.step.period_begin_ns; });
        columns.integers([](const StepRow& row) { return std::int64_t{row.step.prefill_tokens}; });
        columns.integers([](const StepRow& row) { return static_cast<std::int64_t>(row.step.decode_tokens); });
        columns.integers([](const StepRow& row) { return std::int64_t{row.step.sequences}; });
        columns.integers([](const StepRow& row) {
            return row.step.has_kv_length ? static_cast<std::int64_t>(row.step.kv_length) : no_integer;
        });
        columns.truths([](const StepRow& row) { return static_cast<std::uint8_t>(row.step.warmup); });
        columns.texts([](const StepRow& row) { return static_cast<std::uint32_t>(row.step.left_out); },
                      [](std::uint32_t left_out) { return std::string(left_out != 0 ? "sampled" : ""); });
        rows_.clear();
    }

    Recording recording_;
    TextSink& sink_;
    parquet::ParquetWriter file_;
    std::vector<StepRow> rows_;
};

Status write_steps(const SampleFeed& source, std::ostream& out) {
    TextSink sink(out);
    StepTableWriter steps(*source.facts, sink);
    const Status read = source.for_each_step(
        [&](const resolve::ResolvedStep& step, std::uint32_t track) { return steps.take(step, track); });
    const bool good = steps.finish();
    return ended(read, good, sink);
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
