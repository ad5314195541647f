// SPDX-License-Identifier: Apache-2.0
#include "recording/chunk_bounds.hpp"

#include <algorithm>
#include <limits>

#include "recording/record_predictor.hpp"

namespace plumb::recording {
namespace {

constexpr std::uint32_t flag_entry = 1;
/// Carried records may take this share of a track's bytes, and no more than this at once.
constexpr std::size_t carried_share = 32;
constexpr std::size_t most_carried = 4096;

bool has_ticks(RecordKind kind) {
    return class_of(static_cast<unsigned>(kind)) != RecordClass::value || kind == RecordKind::kernel ||
           kind == RecordKind::transfer || kind == RecordKind::task;
}

bool has_duration(const Record& record) {
    switch (kind_of(record)) {
    case RecordKind::kernel:
    case RecordKind::transfer:
        return (record.second & flag_moment) == 0;
    case RecordKind::task:
        return false;
    default:
        return class_of(static_cast<unsigned>(kind_of(record))) != RecordClass::point;
    }
}

} // namespace

void append_bounds(Bytes& to, const ChunkBounds& bounds, const std::vector<Record>& carried) {
    append_le(to, bounds.first_step_plus_one);
    append_le(to, bounds.last_step_plus_one);
    append_le(to, bounds.first_ticks);
    append_le(to, bounds.last_ticks);
    append_le(to, bounds.decode_steps);
    append_le(to, bounds.entry ? flag_entry : 0);
    for (const Record& record : carried) {
        append_le(to, record.first);
        append_le(to, record.second);
    }
}

bool read_bounds(const std::byte* at, std::size_t size, ChunkBounds& bounds) {
    if (size < ChunkBounds::size) {
        return false;
    }
    bounds.first_step_plus_one = load_le<std::uint64_t>(at);
    bounds.last_step_plus_one = load_le<std::uint64_t>(at + 8);
    bounds.first_ticks = load_le<std::uint64_t>(at + 16);
    bounds.last_ticks = load_le<std::uint64_t>(at + 24);
    bounds.decode_steps = load_le<std::uint32_t>(at + 32);
    bounds.entry = (load_le<std::uint32_t>(at + 36) & flag_entry) != 0;
    return bounds.first_step_plus_one <= bounds.last_step_plus_one &&
           (bounds.first_step_plus_one != 0) == (bounds.last_step_plus_one != 0);
}

std::vector<Record> read_carried(const std::byte* at, std::size_t size) {
    std::vector<Record> carried((size - ChunkBounds::size) / sizeof(Record));
    for (std::size_t i = 0; i < carried.size(); ++i) {
        const std::byte* from = at + ChunkBounds::size + i * sizeof(Record);
        carried[i] = {load_le<std::uint64_t>(from), load_le<std::uint64_t>(from + 8)};
    }
    return carried;
}

void BoundsTracker::append(const RecordBatch& chunk, std::size_t bytes, Bytes& to) {
    Track& track = tracks_[chunk.track];
    if (chunk.first_sequence <
        track.next_sequence) { // written once more, since that failed: some were followed already
        const std::uint64_t known = std::min<std::uint64_t>(track.next_sequence - chunk.first_sequence, chunk.count);
        RecordBatch rest = chunk;
        rest.records += known;
        rest.count -= known;
        ChunkBounds unused;
        follow(track, rest, unused);
        track.next_sequence = std::max(track.next_sequence, chunk.first_sequence + chunk.count);
        return;
    }
    track.next_sequence = chunk.first_sequence + chunk.count;
    ChunkBounds bounds;
    const std::size_t carry = track.work.size() + track.frames.size();
    bounds.entry = !track.begun || (carry <= most_carried && chunk.first_sequence >= carry &&
                                    track.bytes_since_entry >= carry * sizeof(Record) * carried_share);
    std::vector<Record> carried;
    if (bounds.entry) {
        for (const auto& [key, record] : track.work) {
            carried.push_back(record);
        }
        for (const auto& frame : track.frames.frames()) {
            carried.push_back(frame.value.begin);
        }
        track.bytes_since_entry = 0;
    }
    track.begun = true;
    track.bytes_since_entry += bytes;
    follow(track, chunk, bounds);
    append_bounds(to, bounds, carried);
}

void BoundsTracker::follow(Track& track, const RecordBatch& chunk, ChunkBounds& bounds) {
    std::uint64_t first_ticks = std::numeric_limits<std::uint64_t>::max(), last_ticks = 0;
    std::uint64_t first_step = std::numeric_limits<std::uint64_t>::max(), last_step = 0;
    const auto innermost = [&track] {
        const Frame* frame = track.frames.innermost();
        return frame != nullptr ? frame->step_plus_one : 0;
    };
    const auto belongs_to = [&](std::uint64_t step_plus_one) {
        if (step_plus_one != 0) {
            first_step = std::min(first_step, step_plus_one);
            last_step = std::max(last_step, step_plus_one);
        }
    };
    belongs_to(innermost());
    for (std::size_t i = 0; i < chunk.count; ++i) {
        const Record& record = chunk.records[i];
        const RecordKind kind = kind_of(record);
        const std::uint64_t payload = payload_of(record);
        if (kind == RecordKind::scope && payload != payload_mask) [[likely]] { // as below, less what cannot be
            first_ticks = std::min(first_ticks, record.first);
            last_ticks = std::max(last_ticks, record.first + payload);
            track.long_value = 0;
            continue;
        }
        if (kind == RecordKind::long_value) {
            track.long_value = record.first;
            continue;
        }
        if (has_ticks(kind)) {
            const std::uint64_t length = payload == payload_mask ? track.long_value : payload;
            const std::uint64_t end = record.first + (has_duration(record) ? length : 0);
            first_ticks = std::min(first_ticks, record.first);
            last_ticks = std::max(last_ticks, end);
        }
        track.long_value = 0;
        switch (kind) {
        case RecordKind::scope:
            continue;
        case RecordKind::work:
            track.work[{id_of(record), payload}] = record;
            continue;
        case RecordKind::step_begin:
            (void)track.frames.push(FrameKind::step, record.first, {record, payload + 1});
            break;
        case RecordKind::layer_begin:
            (void)track.frames.push(FrameKind::layer, record.first, {record, innermost()});
            break;
        case RecordKind::context:
            (void)track.frames.push(FrameKind::context, 0, {record, record.first});
            break;
        case RecordKind::step_end:
            bounds.decode_steps += id_of(record) == static_cast<std::uint16_t>(Phase::decode) ? 1 : 0;
            (void)track.frames.pop(FrameKind::step, record.first);
            break;
        case RecordKind::layer_end:
            (void)track.frames.pop(FrameKind::layer, record.first);
            break;
        case RecordKind::context_end:
            (void)track.frames.pop_innermost(FrameKind::context);
            break;
        case RecordKind::mark:
            if (id_of(record) == static_cast<std::uint16_t>(Mark::cut_step)) {
                (void)track.frames.pop_innermost(FrameKind::step);
            } else if (id_of(record) == static_cast<std::uint16_t>(Mark::cut_layer)) {
                (void)track.frames.pop_innermost(FrameKind::layer);
            }
            break;
        default:
            continue;
        }
        belongs_to(innermost());
    }
    bounds.first_ticks = first_ticks;
    bounds.last_ticks = last_ticks;
    bounds.first_step_plus_one = last_step != 0 ? first_step : 0;
    bounds.last_step_plus_one = last_step;
}

} // namespace plumb::recording
