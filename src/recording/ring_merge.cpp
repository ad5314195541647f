// SPDX-License-Identifier: Apache-2.0
#include "recording/ring_merge.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/ring_source.hpp"
#include "recording/drop_reasons.hpp"

namespace plumb::recording {
namespace {

void add_missing_track(Index& index, const RingRemainder& ring) {
    if (index.track(ring.track) != nullptr) {
        return;
    }
    TrackInfo track;
    track.id = ring.track;
    track.os_thread = ring.os_thread;
    track.name = ring.thread_name;
    // All host threads of a run read the same clock.
    for (const TrackInfo& other : index.tracks) {
        if (other.kind == TrackKind::host_thread && other.source != base::nvtx_source) {
            track.clock = other.clock;
            track.source = other.source;
            break;
        }
    }
    if (track.source.empty() && !index.metadata.clocks.empty() && index.metadata.clocks.front().id == 0) {
        track.clock = index.metadata.clocks.front().id;
        track.source = "cpu_" + index.metadata.clocks.front().name;
    }
    if (ring.of_ranges) {
        track.source = base::nvtx_source;
    }
    index.tracks.push_back(std::move(track));
}

/// Total = rings given up before the writer's last note of it, plus these. The writer's own total wins where it is larger:
/// it may have given up a ring since.
void merge_drops(Index& index, const std::vector<RingRemainder>& rings) {
    for (std::size_t reason = 0; reason < drop_reasons; ++reason) {
        std::uint64_t total = index.counters.ended_drops[reason];
        for (const RingRemainder& ring : rings) {
            total += ring.drops[reason];
        }
        if (total == 0) {
            continue;
        }
        const std::string text = drop_reason_text(static_cast<Drop>(reason));
        auto& drops = index.counters.drops;
        const auto known = std::find_if(drops.begin(), drops.end(), [&](const auto& d) { return d.first == text; });
        if (known == drops.end()) {
            drops.emplace_back(text, total);
        } else {
            known->second = std::max(known->second, total);
        }
    }
}

/// Drops from `ring` what the recording has; what is missing between the two is noted.
void keep_new_records(Index& index, RingRemainder& ring) {
    const auto [entry, first] = index.next_sequence.emplace(ring.track, ring.first_sequence);
    std::uint64_t& next = entry->second;
    if (ring.first_sequence > next) {
        index.notes.push_back(index.track_name(ring.track) + " misses " + std::to_string(ring.first_sequence - next) +
                              " records before those of its ring");
    }
    const std::uint64_t known = next > ring.first_sequence ? next - ring.first_sequence : 0;
    const auto have = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(known, ring.records.size()));
    ring.records.erase(ring.records.begin(), ring.records.begin() + have);
    ring.first_sequence += static_cast<std::uint64_t>(have);
    if (!ring.records.empty()) {
        next = ring.first_sequence + ring.records.size();
    }
}

std::vector<NameInfo> missing_names(const Index& index, const std::vector<NameInfo>& names) {
    std::set<std::uint16_t> known;
    for (const NameInfo& name : index.names) {
        known.insert(name.id);
    }
    std::vector<NameInfo> missing;
    std::copy_if(names.begin(), names.end(), std::back_inserter(missing),
                 [&known](const NameInfo& name) { return known.insert(name.id).second; });
    return missing;
}

} // namespace

RingMerge merge_ring(Index& index, RingFile file) {
    RingMerge merge;
    if (file.recording_id[0] != index.metadata.recording_id[0] ||
        file.recording_id[1] != index.metadata.recording_id[1]) {
        index.notes.push_back("the ring " + file.path + " belongs to another recording and was left alone");
        return merge;
    }
    merge.found = true;
    for (const std::string& note : file.notes) {
        index.notes.push_back(file.path + ": " + note);
    }
    merge_drops(index, file.rings);
    merge.names = missing_names(index, file.names);
    index.names.insert(index.names.end(), merge.names.begin(), merge.names.end());
    for (RingRemainder& ring : file.rings) {
        keep_new_records(index, ring);
        if (!ring.records.empty()) {
            add_missing_track(index, ring);
            merge.records += ring.records.size();
            merge.rings.push_back(std::move(ring));
        }
    }
    return merge;
}

RingMerge merge_ring(Index& index) {
    const std::string path = locate_ring(index.metadata.ring_path);
    if (!is_ring_name(path)) {
        return {};
    }
    Result<RingFile> file = read_ring_file(path);
    if (!file) {
        if (file.error().code != ErrorCode::not_found) {
            index.notes.push_back(file.error().message);
        }
        return {};
    }
    return merge_ring(index, std::move(*file));
}

} // namespace plumb::recording
