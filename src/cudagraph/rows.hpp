// SPDX-License-Identifier: Apache-2.0
// Life-cycle rows of graph keys. Shared by a Session's probes and by whoever captures graphs for it (the graph cache).
// Thread rule: any thread; launches touch a row's counters only, which are atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::cudagraph {

/// Where samples of a key go.
struct RowTrack {
    std::uint32_t id = 0;
    std::string source;
    std::string clock;
};

struct Row {
    static constexpr std::size_t most_tracks = 64;
    explicit Row(std::uint64_t row_key) { info.key = row_key; }

    // Relaxed: totals that nothing else is ordered by.
    std::atomic<std::uint64_t> replays{0};
    std::atomic<std::uint64_t> instrumented{0};
    std::atomic<std::uint64_t> unread{0};
    std::atomic<std::uint64_t> launch_ns{0};

    std::mutex mutex; // guards what follows
    recording::GraphInfo info;
    std::vector<recording::NamedCount> kernels; // of the last capture
    std::uint64_t capture = 0;                  // number of the last capture, from 1
    std::vector<RowTrack> tracks;               // all there ever were
    bool evicted = false;                       // that capture
    bool mixed = false;                         // its samples share a track with others
    bool same_graph = false; // as the one that the last track was made for: its samples are of this graph too
    bool changed = true;     // in kind: to be handed over at once
    bool measured = false;   // figures are newer: to be handed over with the counters

    // Of collect() alone.
    std::int64_t handed_over_ns = 0;
    std::uint64_t replays_handed_over = 0;

    void change(const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        how(info);
        changed = true;
    }
    /// What belongs to one capture: nothing where another has taken its place.
    void change_of(std::uint64_t number, const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        if (number == capture) {
            how(info);
            changed = true;
        }
    }
    void measure_of(std::uint64_t number, const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        if (number == capture) {
            how(info);
            measured = true;
        }
    }
    void measure(const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        how(info);
        measured = true;
    }
};

/// Forgets what was measured of the graph that was captured before, and its twin. The caller holds the row's lock.
void begin_capture(Row& row);
/// The track of samples of capture `number`: the last one where graph, source and clock are the same, else a new one, of
/// which there are at most Row::most_tracks; then an older one of that source and clock. 0: there is none.
struct TrackChoice {
    std::uint32_t id = 0;
    bool is_new = false;
};
[[nodiscard]] TrackChoice choose_track(Row& row, std::uint64_t number, const std::string& source,
                                       const std::string& clock, const std::function<std::uint32_t()>& make);

class RowTable {
  public:
    explicit RowTable(std::size_t most) : most_(most) {}

    /// Null beyond the bound.
    std::shared_ptr<Row> row(std::uint64_t key);
    /// Rows that changed in kind, and those whose counters did a second ago; all that changed where `all`.
    void collect(std::vector<recording::GraphInfo>& out, std::int64_t now_ns, bool all);

  private:
    const std::size_t most_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<Row>> rows_;
};

} // namespace plumb::cudagraph
