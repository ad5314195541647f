// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/rows.hpp"

#include <algorithm>

namespace plumb::cudagraph {

namespace {
constexpr std::int64_t one_second = 1'000'000'000;
}

void begin_capture(Row& row) {
    ++row.capture;
    ++row.info.captures;
    row.changed = true;
    row.evicted = false;
    recording::GraphInfo& info = row.info;
    info.twin.clear();
    info.twin_reason.clear();
    info.every = 0;
    for (double* const figure : {&info.twin_build_ns, &info.twin_bytes, &info.site_cost_ns, &info.plain_span_ns,
                                 &info.closure_raw, &info.closure}) {
        *figure = recording::GraphInfo::unknown;
    }
}

TrackChoice choose_track(Row& row, std::uint64_t number, const std::string& source, const std::string& clock,
                         const std::function<std::uint32_t()>& make) {
    const std::lock_guard lock(row.mutex);
    if (number != row.capture) {
        return {}; // that graph was replaced before its first sample was read
    }
    const auto fits = [&](const RowTrack& track) {
        return track.source == source && track.clock == clock;
    };
    TrackChoice choice;
    if (row.same_graph && !row.tracks.empty() && fits(row.tracks.back())) {
        choice.id = row.tracks.back().id;
    } else if (row.tracks.size() < Row::most_tracks) {
        choice = TrackChoice{make(), true};
        row.tracks.push_back(RowTrack{choice.id, source, clock});
    } else {
        const auto older = std::find_if(row.tracks.rbegin(), row.tracks.rend(), fits);
        choice.id = older != row.tracks.rend() ? older->id : 0;
        row.mixed = choice.id != 0;
    }
    row.same_graph = row.same_graph || choice.is_new;
    row.info.track = choice.id;
    row.changed = true;
    return choice;
}

std::shared_ptr<Row> RowTable::row(std::uint64_t key) {
    const std::lock_guard lock(mutex_);
    const auto known = rows_.find(key);
    if (known != rows_.end()) {
        return known->second;
    }
    if (rows_.size() >= most_) {
        return nullptr;
    }
    return rows_.emplace(key, std::make_shared<Row>(key)).first->second;
}

void RowTable::collect(std::vector<recording::GraphInfo>& out, std::int64_t now_ns, bool all) {
    std::vector<std::shared_ptr<Row>> rows;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [key, row] : rows_) {
            rows.push_back(row);
        }
    }
    for (const std::shared_ptr<Row>& row : rows) {
        const std::uint64_t replays = row->replays.load(std::memory_order_relaxed);
        const std::lock_guard lock(row->mutex);
        const bool counted = row->measured || replays != row->replays_handed_over;
        const bool due = all || now_ns - row->handed_over_ns >= one_second;
        if (!row->changed && !(counted && due)) {
            continue;
        }
        row->changed = false;
        row->measured = false;
        row->handed_over_ns = now_ns;
        row->replays_handed_over = replays;
        recording::GraphInfo info = row->info;
        info.replays += replays;
        info.instrumented += row->instrumented.load(std::memory_order_relaxed);
        info.unread += row->unread.load(std::memory_order_relaxed);
        if (replays != 0) {
            info.launch_ns = static_cast<double>(row->launch_ns.load(std::memory_order_relaxed));
        }
        if (row->mixed) {
            info.twin_reason += std::string(info.twin_reason.empty() ? "" : "; ") + "changed in more than " +
                                std::to_string(Row::most_tracks) +
                                " captures: samples of the last ones are not told apart";
        }
        out.push_back(std::move(info));
    }
}

} // namespace plumb::cudagraph
