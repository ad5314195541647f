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

struct Row {
    explicit Row(std::uint64_t row_key) { info.key = row_key; }

    // Relaxed: totals that nothing else is ordered by.
    std::atomic<std::uint64_t> replays{0};
    std::atomic<std::uint64_t> instrumented{0};
    std::atomic<std::uint64_t> unread{0};
    std::atomic<std::uint64_t> launch_ns{0};

    std::mutex mutex; // guards what follows
    recording::GraphInfo info;
    std::vector<recording::NamedCount> kernels; // of the last capture
    bool changed = true;                        // in kind: to be handed over at once
    bool measured = false;                      // figures are newer: to be handed over with the counters

    // Of collect() alone.
    std::int64_t handed_over_ns = 0;
    std::uint64_t replays_handed_over = 0;

    void change(const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        how(info);
        changed = true;
    }
    void measure(const std::function<void(recording::GraphInfo&)>& how) {
        const std::lock_guard lock(mutex);
        how(info);
        measured = true;
    }
};

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
