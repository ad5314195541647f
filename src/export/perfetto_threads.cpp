// SPDX-License-Identifier: Apache-2.0
#include "export/perfetto_threads.hpp"

#include <charconv>
#include <cmath>

namespace plumb::exporting {
namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr std::size_t packet_room = PerfettoPackets::packet_room;
constexpr std::size_t most_held = std::size_t{1} << 16;  // slices that wait for what is around them
constexpr std::size_t most_notes = std::size_t{1} << 20; // bytes of what they say

/// Names of annotations, by iid; each sequence says them once.
enum class Note : std::uint8_t { bytes = 1, flops, elements, layer, phase, graph, warmup, barrier_wait_us };
constexpr std::string_view note_words[] = {"bytes", "flops", "elements", "layer",
                                           "phase", "graph", "warmup",   "barrier_wait_us"};
constexpr std::uint64_t lap_category = 32, submit_category = 33, launch_category = 34;

/// An integer as one: it is shorter.
void put_amount(ProtoPen& pen, Note note, double amount) {
    constexpr double exact = 9007199254740992.0; // 2^53
    if (!std::isfinite(amount)) {
        return;
    }
    pen.message(field::TrackEvent::debug_annotations, [&] {
        pen.number(field::DebugAnnotation::name_iid, static_cast<std::uint64_t>(note));
        const bool whole = amount >= 0 && amount < exact && std::floor(amount) == amount;
        if (whole) {
            pen.number(field::DebugAnnotation::uint_value, static_cast<std::uint64_t>(amount));
        } else {
            pen.real(field::DebugAnnotation::double_value, amount);
        }
    });
}

void put_note(ProtoPen& pen, Note note, unsigned kind, std::uint64_t value) {
    pen.message(field::TrackEvent::debug_annotations, [&] {
        pen.number(field::DebugAnnotation::name_iid, static_cast<std::uint64_t>(note));
        pen.number(kind, value);
    });
}

} // namespace

void PerfettoThreads::add_track(const recording::TrackInfo& info) {
    const std::string name = info.name.empty() ? "track " + std::to_string(info.id) : info.name;
    Track& made = tracks_[info.id];
    made.name = name;
    made.uuid = packets_.new_uuid();
    ProtoText track;
    track.number(field::TrackDescriptor::uuid, made.uuid);
    if (pid_ != 0 && info.os_thread != 0 && os_threads_.insert(info.os_thread).second) {
        track.message(field::TrackDescriptor::thread, ProtoText()
                                                          .number(field::ThreadDescriptor::pid, pid_)
                                                          .number(field::ThreadDescriptor::tid, info.os_thread)
                                                          .text(field::ThreadDescriptor::thread_name, name));
    } else { // names of siblings that are alike would be one track
        made.name = name + " (" + std::to_string(info.os_thread != 0 ? info.os_thread : info.id) + ")";
        track.number(field::TrackDescriptor::parent_uuid, PerfettoPackets::process_uuid)
            .text(field::TrackDescriptor::name, made.name);
    }
    packets_.describe(track);
}

void PerfettoThreads::add(const Sample& sample) {
    Track& track = track_of(sample.track);
    if (sample.step != track.step) {
        flush(track);
        track.step = sample.step;
    }
    Slice slice;
    slice.begin_ns = sample.begin_ns;
    slice.end_ns = sample.begin_ns + sample.duration_ns;
    slice.step = sample.step;
    slice.layer_plus_one = sample.layer ? *sample.layer + 1 : 0;
    slice.name = sample.name;
    slice.phase = sample.phase;
    slice.what = sample.kind == SampleKind::step    ? What::step
                 : sample.kind == SampleKind::layer ? What::layer
                                                    : What::scope;
    slice.lap = sample.kind == SampleKind::lap;
    slice.warmup = sample.warmup;
    add_notes(slice, sample);
    (sample.kind == SampleKind::span ? track.spans : track.scopes).add(slice);
    ++held_;
}

PerfettoThreads::Track& PerfettoThreads::track_of(std::uint32_t id) {
    const auto known = tracks_.find(id);
    if (known != tracks_.end()) [[likely]] {
        return known->second;
    }
    recording::TrackInfo unknown;
    unknown.id = id;
    add_track(unknown);
    return tracks_[id];
}

/// What a slice says beyond its name and time, as the fields of its event, kept until it is written.
void PerfettoThreads::keep_notes(Slice& slice, std::string_view fields) {
    slice.notes_at = static_cast<std::uint32_t>(notes_.size());
    slice.notes_size = static_cast<std::uint16_t>(fields.size());
    notes_.append(fields);
}

void PerfettoThreads::add_notes(Slice& slice, const Sample& sample) {
    const bool worked = !std::isnan(sample.bytes) || !std::isnan(sample.flops) || !std::isnan(sample.elements);
    if (!worked && std::isnan(sample.barrier_wait_ns)) [[likely]] {
        return;
    }
    char room[packet_room];
    ProtoPen pen(room);
    put_amount(pen, Note::bytes, sample.bytes);
    put_amount(pen, Note::flops, sample.flops);
    put_amount(pen, Note::elements, sample.elements);
    put_amount(pen, Note::barrier_wait_us, sample.barrier_wait_ns / 1e3);
    keep_notes(slice, {room, static_cast<std::size_t>(pen.at() - room)});
}

void PerfettoThreads::add(const resolve::Submission& submission) {
    Slice slice;
    slice.begin_ns = submission.begin_ns;
    slice.end_ns = submission.begin_ns + submission.duration_ns;
    slice.step = submission.step;
    slice.layer_plus_one = submission.layer ? *submission.layer + 1 : 0;
    slice.name = submission.name;
    slice.phase = submission.phase;
    slice.what = submission.graph ? What::launch : What::submit;
    slice.number = submission.number;
    slice.warmup = submission.warmup;
    if (submission.graph) {
        char room[packet_room];
        ProtoPen pen(room);
        put_note(pen, Note::graph, field::DebugAnnotation::uint_value, submission.key);
        keep_notes(slice, {room, static_cast<std::size_t>(pen.at() - room)});
    }
    track_of(submission.track).submitted.add(slice);
    ++held_;
    if (submission.number != 0) {
        arrows_.begin_at(submission);
    }
}

void PerfettoThreads::keep_bounded() {
    if (held_ > most_held || notes_.size() > most_notes) {
        flush();
    }
}

void PerfettoThreads::flush() {
    for (auto& [id, track] : tracks_) {
        flush(track);
    }
    notes_.clear();
    held_ = 0;
}

std::uint64_t PerfettoThreads::left_out() const {
    std::uint64_t all = 0;
    for (const auto& [id, track] : tracks_) {
        all += track.scopes.left_out() + track.spans.left_out() + track.submitted.left_out();
    }
    return all;
}

void PerfettoThreads::flush(Track& track) {
    held_ -= std::min(held_, track.scopes.size() + track.spans.size() + track.submitted.size());
    flush(track, track.scopes, track.scope_lanes, "");
    flush(track, track.spans, track.span_lanes, ", spans");
    flush(track, track.submitted, track.submitted_lanes, ", submitted to devices");
    if (held_ == 0) {
        notes_.clear();
    }
}

void PerfettoThreads::flush(Track& track, SliceTrees<Slice>& slices, std::vector<Lane>& lanes, const char* what) {
    if (slices.size() == 0) {
        return;
    }
    slices.flush(
        [&](std::size_t lane, const Slice& slice, const Slice* parent) {
            while (lane >= lanes.size()) {
                add_lane(track, lanes, what, slice.begin_ns);
            }
            write_begin(lanes[lane], slice, parent);
        },
        [&](std::size_t lane, const Slice& slice) { write_end(lanes[lane], slice); });
}

void PerfettoThreads::add_lane(const Track& track, std::vector<Lane>& lanes, const std::string& what,
                               std::int64_t now_ns) {
    std::uint64_t uuid = track.uuid;
    const std::size_t number = lanes.size() + 1;
    if (!what.empty() || number != 1) {
        uuid = packets_.new_uuid();
        packets_.describe(
            ProtoText()
                .number(field::TrackDescriptor::uuid, uuid)
                .number(field::TrackDescriptor::parent_uuid, PerfettoPackets::process_uuid)
                .text(field::TrackDescriptor::name,
                      track.name + what + (number == 1 ? "" : (what.empty() ? ", " : " ") + std::to_string(number))));
    }
    ProtoText interned;
    for (std::size_t i = 0; i < std::size(note_words); ++i) {
        interned.message(field::InternedData::debug_annotation_names, PerfettoPackets::named(i + 1, note_words[i]));
    }
    packets_.begin_sequence(lanes.emplace_back(), now_ns, uuid, interned);
}

/// Number of a name within a lane: small, since it stands in each of its slices.
template <class Name>
std::uint32_t PerfettoThreads::iid_of(Lane& lane, std::vector<std::uint32_t>& known, std::size_t index,
                                      const Name& name) {
    if (index >= known.size()) {
        known.resize(index + 1);
    }
    if (known[index] == 0) [[unlikely]] {
        known[index] = ++lane.names;
        packets_.intern(lane, field::InternedData::event_names, PerfettoPackets::named(known[index], name()));
    }
    return known[index];
}

void PerfettoThreads::say_category(Lane& lane, std::uint64_t iid, std::string_view word) {
    if (lane.categories.insert(iid).second) {
        packets_.intern(lane, field::InternedData::event_categories, PerfettoPackets::named(iid, word));
    }
}

/// Its iid.
std::uint64_t PerfettoThreads::category_of(std::uint16_t name) {
    if (name >= category_of_name_.size()) {
        category_of_name_.resize(std::size_t{name} + 1);
    }
    if (category_of_name_[name] == 0) {
        category_of_name_[name] = static_cast<std::uint8_t>(static_cast<unsigned>(names_.entry(name).category) + 1);
    }
    return category_of_name_[name];
}

/// What a slice is called, said before where its lane has not said it yet.
PerfettoThreads::Words PerfettoThreads::words_of(Lane& lane, const Slice& slice) {
    switch (slice.what) {
    case What::scope: {
        const std::uint64_t category = category_of(slice.name);
        return {iid_of(lane, lane.iid_of_name, slice.name,
                       [&] {
                           say_category(lane, category, category_word(names_.entry(slice.name).category));
                           return names_.entry(slice.name).name;
                       }),
                category};
    }
    case What::submit:
        return {iid_of(lane, lane.iid_of_name, slice.name,
                       [&] {
                           say_category(lane, submit_category, "submit");
                           return "submit " + names_.entry(slice.name).name;
                       }),
                submit_category};
    case What::launch:
        return {iid_of(lane, lane.iid_of_launch, 0,
                       [&] {
                           say_category(lane, launch_category, "launch");
                           return std::string("launch graph");
                       }),
                launch_category};
    case What::layer:
        return {iid_of(lane, lane.iid_of_layer, slice.layer_plus_one,
                       [&] { return "layer " + std::to_string(slice.layer_plus_one - 1); }),
                0};
    case What::step:
        break;
    }
    return {};
}

void PerfettoThreads::write_begin(Lane& lane, const Slice& slice, const Slice* parent) {
    const Words words = words_of(lane, slice);
    if (slice.lap) {
        say_category(lane, lap_category, "lap");
    }
    packets_.sink().reserve(packet_room);
    packets_.put_packet([&](ProtoPen& pen) {
        PerfettoPackets::put_time(pen, lane, slice.begin_ns);
        pen.raw(lane.prefix);
        pen.message(field::TracePacket::track_event, [&] {
            pen.number(field::TrackEvent::type, field::TrackEventType::TYPE_SLICE_BEGIN);
            if (words.name != 0) {
                pen.number(field::TrackEvent::name_iid, words.name);
            } else {
                char text[32] = "step ";
                const char* const end = std::to_chars(text + 5, text + sizeof text, slice.step).ptr;
                pen.text(field::TrackEvent::name, {text, static_cast<std::size_t>(end - text)});
            }
            if (words.category != 0) {
                pen.number(field::TrackEvent::category_iids, words.category);
            }
            if (slice.lap) {
                pen.number(field::TrackEvent::category_iids, lap_category);
            }
            put_place(pen, slice, parent);
            pen.raw(std::string_view(notes_).substr(slice.notes_at, slice.notes_size));
            if (slice.number != 0) {
                pen.message(field::TrackEvent::gpu_correlation, [&] {
                    pen.number(field::GpuCorrelation::render_stage_submission_event_ids, slice.number * 2);
                });
            }
        });
    });
}

/// Step and layer, where nothing around the slice says it.
void PerfettoThreads::put_place(ProtoPen& pen, const Slice& slice, const Slice* parent) {
    if (slice.step != resolve::no_step && (parent == nullptr || parent->step != slice.step)) {
        pen.number(field::TrackEvent::correlation_id, slice.step);
    }
    if (slice.layer_plus_one != 0 && slice.what != What::layer &&
        (parent == nullptr || parent->layer_plus_one != slice.layer_plus_one)) {
        put_note(pen, Note::layer, field::DebugAnnotation::uint_value, slice.layer_plus_one - 1);
    }
    if (parent != nullptr && slice.what != What::step) {
        return;
    }
    if (slice.phase != Phase::none) {
        pen.message(field::TrackEvent::debug_annotations, [&] {
            pen.number(field::DebugAnnotation::name_iid, static_cast<std::uint64_t>(Note::phase));
            pen.text(field::DebugAnnotation::string_value, phase_word(slice.phase));
        });
    }
    if (slice.warmup) {
        put_note(pen, Note::warmup, field::DebugAnnotation::bool_value, 1);
    }
}

void PerfettoThreads::write_end(Lane& lane, const Slice& slice) {
    packets_.sink().reserve(packet_room);
    packets_.put_packet([&](ProtoPen& pen) {
        PerfettoPackets::put_time(pen, lane, slice.end_ns);
        pen.raw(lane.prefix);
        pen.message(field::TracePacket::track_event,
                    [&] { pen.number(field::TrackEvent::type, field::TrackEventType::TYPE_SLICE_END); });
    });
}

void PerfettoThreads::write(const resolve::RecordedNode& node, std::uint16_t name) {
    Track& track = track_of(node.key.track);
    if (track.scope_lanes.empty()) {
        add_lane(track, track.scope_lanes, "", node.begin_ns);
    }
    Lane& lane = track.scope_lanes.front();
    const bool nameless = node.kind == resolve::RecordedKind::task && name == 0;
    const std::uint32_t iid =
        iid_of(lane, lane.iid_of_name, name, [&] { return nameless ? std::string("task") : names_.entry(name).name; });
    Slice place;
    place.step = node.step;
    place.layer_plus_one = node.layer ? *node.layer + 1 : 0;
    place.phase = node.phase;
    packets_.sink().reserve(packet_room);
    packets_.put_packet([&](ProtoPen& pen) {
        PerfettoPackets::put_time(pen, lane, node.begin_ns);
        pen.raw(lane.prefix);
        pen.message(field::TracePacket::track_event, [&] {
            pen.number(field::TrackEvent::type, field::TrackEventType::TYPE_INSTANT);
            pen.number(field::TrackEvent::name_iid, iid);
            put_place(pen, place, nullptr);
        });
    });
}

} // namespace plumb::exporting
