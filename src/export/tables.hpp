// SPDX-License-Identifier: Apache-2.0
// The tables of scopes and of steps (docs/reference/sql.md): their rows, and their columns, said once for every format that writes tables. Owned
// by one export; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/column.hpp"
#include "export/export.hpp"
#include "export/words.hpp"

namespace plumb::exporting::tables {

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

    [[nodiscard]] std::int64_t start() const { return start_; }

  private:
    std::string word_, host_;
    std::int64_t rank_;
    NameWords names_;
    std::int64_t start_;                                   // on the clock of the calendar, ns
    std::unordered_map<std::uint32_t, std::size_t> index_; // by id
    std::vector<TrackWords> tracks_;
    std::size_t last_ = 0; // asked for
};

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

struct StepRow {
    resolve::ResolvedStep step;
    std::uint32_t track = 0; // index
};

/// False: no more are wanted.
template <class Row>
using RowTaker = std::function<bool(const Row&)>;

/// Every sample but the steps, and what was recorded one by one.
Status for_each_scope(const SampleFeed& source, Recording& recording, const RowTaker<ScopeRow>& take);
/// Every complete step.
Status for_each_step(const SampleFeed& source, Recording& recording, const RowTaker<StepRow>& take);

[[nodiscard]] std::string scope_kind_text(std::uint32_t code);
[[nodiscard]] std::string marks_text(std::uint32_t code);

// describe(to, recording, row) says the columns of a table, in order, to whoever has
//     to.integer("begin", Given::always, row.begin);  to.real(…), to.truth(…)
//     to.text("phase", Given::always, row.phase, phase_of_code);

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

template <class To>
void describe(To& to, const Recording& recording, const ScopeRow& row) {
    describe_origin(to, recording);
    to.text("kind", Given::always, row.kind, scope_kind_text);
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

} // namespace plumb::exporting::tables
