// SPDX-License-Identifier: Apache-2.0
// What is known of each captured graph, once: an account per graph key. Probes and the graph cache write it, each fact by
// one of them; the recording (collect()) and CudaGraphCache::rows() read it.
// Owned by a Session's probes; a cache without a profiler has one of its own. Thread rule: any thread. An account's lock is
// held for moments, around no driver call, and no other lock is taken inside it. Launches touch atomic counters only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudagraph/graph_shape.hpp"
#include "plumb/cuda_graph.hpp"
#include "recording/recording.hpp"

namespace plumb::cudagraph {

/// Where samples of a key go.
struct AccountTrack {
    std::uint32_t id = 0;
    std::string source;
    std::string clock;
};

/// What probes found in a captured graph beside its shape.
struct CapturedScopes {
    std::vector<recording::GraphSite> sites;
    std::vector<recording::NamedCount> unattributed;
    std::shared_ptr<const recording::GraphContent> content;
    std::string told_by; // GraphInfo::sites_told_by
};

/// Where the samples of a capture go. 0: there is no track.
struct TrackChoice {
    std::uint32_t id = 0;
    bool is_new = false;
};

class GraphAccount {
  public:
    static constexpr std::size_t most_tracks = 64;
    static constexpr std::size_t most_reasons = 32; // of eager steps; more are counted together
    using Change = std::function<void(recording::GraphInfo&)>;

    GraphAccount(std::uint64_t key, bool recorded) : recorded_(recorded) { info_.key = key; }

    /// False beyond the ledger's bound: its graph is launched plainly and not looked into.
    [[nodiscard]] bool recorded() const noexcept { return recorded_; }

    // --- Captures: told by the probes, and by the cache for graphs that have none ---

    /// Forgets what was known of the graph before, and its twin. Returns the number of this capture, from 1.
    std::uint64_t captured();
    std::uint64_t captured(const GraphShape& shape, CapturedScopes scopes);
    /// Where nobody has looked into the last capture yet.
    void look_into(const GraphShape& shape);
    /// The track for samples of capture `number`: the last one where graph, source and clock are the same, else a new one,
    /// of which there are at most `most_tracks`; then an older one of that source and clock.
    [[nodiscard]] TrackChoice choose_track(std::uint64_t number, const std::string& source, const std::string& clock,
                                           const std::function<std::uint32_t()>& make);
    /// Its graph and twin were given up. The kind and figures of the twin stay: they were measured.
    void dropped();

    // --- Launches: told by the probe that makes them, and by the cache for graphs that have none ---

    /// The driver took it.
    void count_launch(std::int64_t ns) noexcept {
        launch_ns_.fetch_add(static_cast<std::uint64_t>(ns > 0 ? ns : 0), std::memory_order_relaxed);
        replays_.fetch_add(1, std::memory_order_release); // whoever sees the replay sees its time
    }
    [[nodiscard]] std::uint64_t replays() const noexcept { return replays_.load(std::memory_order_acquire); }
    // Relaxed: totals that nothing else is ordered by.
    std::atomic<std::uint64_t> instrumented{0};
    std::atomic<std::uint64_t> unread{0};

    // --- All else. `how` must not call back ---

    /// In kind: handed over at once.
    void change(const Change& how) { update(how, changed_, any_capture); }
    /// What moves with every step: handed over once a second.
    void measure(const Change& how) { update(how, measured_, any_capture); }
    /// What belongs to one capture: nothing where another has taken its place.
    void change_of(std::uint64_t number, const Change& how) { update(how, changed_, number); }
    void measure_of(std::uint64_t number, const Change& how) { update(how, measured_, number); }
    void count_eager(const std::string& reason);
    void count_invalidation();
    void found_stale(std::vector<std::string> texts); // StaleInput::text
    void probed(const std::string& why_not);          // empty: it is

    // --- Readers ---

    /// Estimated, of its twin; 0 where there is none.
    [[nodiscard]] std::uint64_t twin_bytes() const;
    /// As CudaGraphCache::rows() tells it; `live` is the cache's to say.
    [[nodiscard]] CudaGraphRow row() const;
    /// As the recording keeps it; false: nothing to hand over now.
    bool hand_over(recording::GraphInfo& to, std::int64_t now_ns, bool all);

  private:
    static constexpr std::uint64_t any_capture = std::numeric_limits<std::uint64_t>::max();

    void update(const Change& how, bool& flag, std::uint64_t number);
    void begin_capture();
    void compare(const GraphShape& shape);
    [[nodiscard]] double launch_ns(std::uint64_t replays) const noexcept {
        return replays != 0 ? static_cast<double>(launch_ns_.load(std::memory_order_relaxed))
                            : recording::GraphInfo::unknown;
    }

    const bool recorded_;
    std::atomic<std::uint64_t> replays_{0};
    std::atomic<std::uint64_t> launch_ns_{0}; // ordered by replays_

    mutable std::mutex mutex_;  // guards what follows
    recording::GraphInfo info_; // without replays, instrumented, unread and launch_ns: those are counted above
    std::uint64_t invalidations_ = 0;
    std::vector<std::string> stale_inputs_; // StaleInput::text
    std::string not_probed_;                // why the cache launches plainly
    std::vector<recording::NamedCount> kernels_;
    std::uint64_t kernels_of_ = 0;     // the capture that had them; 0: none
    std::uint64_t capture_ = 0;        // number of the last one
    std::vector<AccountTrack> tracks_; // all there ever were
    bool dropped_ = false;             // that capture
    bool mixed_ = false;               // its samples share a track with others
    bool same_graph_ = false;          // as the one that the last track was made for: its samples are of this graph too
    bool changed_ = false;
    bool measured_ = false;
    bool handed_over_ = false;
    std::int64_t handed_over_ns_ = 0;
    std::uint64_t replays_handed_over_ = 0;
};

/// To a sum of the ledger's: NaN is nothing yet.
inline void add(double& sum, double more) { sum = sum == sum ? sum + more : more; }

class GraphLedger {
  public:
    /// At most so many keys are recorded; accounts beyond them live as long as somebody holds them.
    explicit GraphLedger(std::size_t most_recorded) : most_(most_recorded) {}
    GraphLedger(const GraphLedger&) = delete;
    GraphLedger& operator=(const GraphLedger&) = delete;

    /// The one account of that key.
    [[nodiscard]] std::shared_ptr<GraphAccount> account(std::uint64_t key);
    /// Accounts that changed in kind, and those whose counters did a second ago; all that changed where `all`.
    void collect(std::vector<recording::GraphInfo>& out, std::int64_t now_ns, bool all);

  private:
    const std::size_t most_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<GraphAccount>> recorded_;
    std::map<std::uint64_t, std::weak_ptr<GraphAccount>> others_;
    std::size_t sweep_at_ = 1024; // others: then those that ended are forgotten
};

} // namespace plumb::cudagraph
