// SPDX-License-Identifier: Apache-2.0
#include "export/words.hpp"

#include "base/layout.hpp"
#include "plumb/backend.hpp"

namespace plumb::exporting {

std::string_view kind_word(resolve::SampleKind kind) noexcept {
    switch (kind) {
    case resolve::SampleKind::lap:
        return "lap";
    case resolve::SampleKind::span:
        return "span";
    case resolve::SampleKind::layer:
        return "layer";
    case resolve::SampleKind::step:
        return "step";
    case resolve::SampleKind::scope:
        break;
    }
    return "scope";
}

std::string_view kind_word(resolve::RecordedKind kind) noexcept {
    constexpr std::string_view words[] = {"kernel", "transfer", "task"};
    return words[static_cast<std::size_t>(kind)];
}

Name name_of(TransferDirection direction) noexcept {
    constexpr Brick copies[] = {Brick::copy_h2d, Brick::copy_d2h, Brick::copy_d2d};
    return copies[static_cast<std::size_t>(direction)];
}

GraphTracks graph_tracks(const std::vector<recording::TrackInfo>& tracks) {
    GraphTracks found;
    for (const recording::TrackInfo& track : tracks) {
        if (track.kind == recording::TrackKind::captured_graph) {
            found.emplace(track.id, track.graph_key);
        }
    }
    return found;
}

Marks marks_of(const resolve::Sample& sample) noexcept {
    return {{{(sample.flags & span_includes_launch_wait) != 0, "launch_wait"},
             {(sample.flags & span_below_floor) != 0, "below_floor"},
             {(sample.flags & span_may_overlap) != 0, "may_overlap"},
             {(sample.flags & span_cut_by_neighbour) != 0, "cut_by_neighbour"},
             {sample.left_out, "sampled"}}};
}

Marks marks_of(const resolve::Submission& submission) noexcept {
    return {{{(submission.flags & launch_instrumented) != 0, "instrumented"},
             {(submission.flags & launch_first) != 0, "first"},
             {(submission.flags & launch_unread) != 0, "unread"},
             {(submission.flags & launch_linked) != 0, "linked"},
             {(submission.flags & launch_gapless) != 0, "gapless"},
             {(submission.flags & launch_beside_build) != 0, "beside_build"}}};
}

Marks marks_of(const resolve::RecordedNode& node) noexcept {
    return {{{!node.timed, "told"}, {node.left_out, "sampled"}, {}, {}, {}, {}}};
}

NameWords::NameWords(const std::vector<recording::NameInfo>& names) {
    entries_.resize(first_interned_id);
#define PLUMB_BRICK_ENTRY(name, id, category, aliases) entries_[id] = {#name, Category::category};
    PLUMB_WELL_KNOWN_BRICKS(PLUMB_BRICK_ENTRY)
#undef PLUMB_BRICK_ENTRY
    for (const recording::NameInfo& info : names) {
        if (info.id >= entries_.size()) {
            entries_.resize(std::size_t{info.id} + 1);
        }
        entries_[info.id] = {info.name, info.category};
    }
}

NameWords::Entry NameWords::entry(std::uint16_t id) const {
    if (id < entries_.size() && !entries_[id].name.empty()) {
        return entries_[id];
    }
    return {id == 0 ? "unnamed" : "name " + std::to_string(id), Category::other};
}

std::string left_out_note(std::uint64_t slices) {
    return std::to_string(slices) + " slices are left out: they have no place on the time line";
}

void put_pairs(base::JsonWriter& json, std::string_view name,
               const std::vector<std::pair<std::string, std::string>>& pairs) {
    json.key(name);
    json.begin_array();
    for (const auto& [key, text] : pairs) {
        json.begin_object();
        json.field("key", key);
        json.field("value", text);
        json.end();
    }
    json.end();
}

} // namespace plumb::exporting
