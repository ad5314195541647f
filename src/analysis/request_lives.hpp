// SPDX-License-Identifier: Apache-2.0
// Marks of requests -> lives of requests: from arrival to end, phase by phase, and what each waited for longest.
// Marks of one request come from several threads, and threads are read a chunk at a time: so marks are put in the order of time
// first, within a window of most_marks. Memory is bounded whatever a recording claims; what was beyond is counted.
// One thread; the sink is called on it and keeps nothing it is given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "plumb/request.hpp"
#include "resolve/sample.hpp"

namespace plumb::analysis {

/// By RequestPhase, which has no 0.
inline constexpr const char* request_phase_words[] = {"", "queue", "prefill", "kv_transfer", "decode", "end"};

/// A request in one phase.
struct RequestStretch {
    RequestPhase phase = RequestPhase::queue;
    std::int64_t begin_ns = 0, end_ns = 0;
};

struct RequestLife {
    std::uint64_t id = 0;     // the caller's; may come again after its end
    std::uint64_t number = 0; // of this recording, in the order of their first marks, from 0
    std::int64_t begin_ns = 0,
                 end_ns = 0; // its first mark; its end, or the last that is known of it where there is none
    bool ended = false;
    bool arrived = false; // its first mark is `queue`: when it arrived is known
    /// Its prefill went over into kv_transfer or decode, or into the end of one that gave one token.
    std::optional<std::int64_t> first_token_ns;
    std::optional<std::uint64_t> tokens; // that it gave, as its end says
    resolve::RequestTrace trace;
    std::array<std::int64_t, 5> phase_ns{}; // by RequestPhase, less 1: the sum of the stretches that it left
    unsigned phases = 0;                    // a bit each that it left
    std::vector<RequestStretch> stretches;  // the first of them, and where it did not end the one that it was cut in
    std::vector<std::uint64_t> steps;       // the first of those that had it in their batch
    std::uint64_t step_count = 0;           // of all of them that were wanted
    RequestStretch longest_wait;            // in queue, or in prefill or decode while no step had it in its batch
    std::int64_t stalled_ns = 0;            // the sum of the latter
    bool stalls_unknown = false;            // it went on behind the begin of a step of which no end is known

    [[nodiscard]] bool left(RequestPhase phase) const { return (phases >> static_cast<unsigned>(phase) & 1) != 0; }
    [[nodiscard]] std::int64_t in(RequestPhase phase) const { return phase_ns[static_cast<std::size_t>(phase) - 1]; }
};

struct RequestCounts {
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::uint64_t ends_without_begin = 0;  // of one that had ended before, or whose marks are not in the recording
    std::uint64_t steps_without_begin = 0; // the same, of a request in the batch of a step
    std::uint64_t steps_without_end = 0;   // times that a request was in the batch of a step of which no end is known
    std::uint64_t out_of_order = 0;        // marks that lay too far behind others of an earlier time
    std::uint64_t not_followed = 0;        // requests beyond those followed at once
    bool rest_not_followed = false;        // and all that began later: most_forgotten of those were open
    std::uint64_t traces_unread = 0;
};

class RequestLives {
  public:
    static constexpr std::size_t most_marks = std::size_t{1} << 17;     // put in order, 80 bytes each
    static constexpr std::size_t most_open = std::size_t{1} << 16;      // requests followed at once
    static constexpr std::size_t most_forgotten = std::size_t{1} << 20; // ids of others, 48 bytes each

    struct Keep {
        std::size_t stretches = 0, steps = 0; // of each request
    };
    /// When the step ended; absent: that is not known.
    using StepEnd = std::function<std::optional<std::int64_t>(std::uint64_t step)>;
    using Sink = std::function<void(const RequestLife&)>;
    /// Whether a life is to name and count that step.
    using StepWanted = std::function<bool(std::uint64_t step)>;

    /// `step_end` may be empty: then nothing is known of stalls. So may `step_wanted`: all are.
    RequestLives(Keep keep, StepEnd step_end, Sink sink, StepWanted step_wanted = {});

    void take(const resolve::RequestEvent& event);
    /// Once: what is still open goes to the sink as it is, in the order of their first marks.
    void finish();
    [[nodiscard]] const RequestCounts& counts() const noexcept { return counts_; }

  private:
    struct Mark {
        resolve::RequestEvent event;
        std::uint64_t order;
    };
    struct Open {
        RequestLife life;
        RequestPhase phase = RequestPhase::queue;
        std::int64_t since_ns = 0; // begin of the phase
        std::int64_t idle_ns = 0;  // no step had it in its batch since then
        std::int64_t seen_ns = 0;  // it was still there
        bool in_endless = false;   // the last step that had it has no known end: it may be in it still
        RequestStretch longest_stall;
    };

    static bool later(const Mark& a, const Mark& b);
    void take_earliest();
    void mark(const resolve::RequestEvent& event);
    void in_step(const resolve::RequestEvent& event);
    /// In the batch of a step, which ended then.
    void join(Open& request, std::uint64_t step, const std::optional<std::int64_t>& end_ns);
    Open* open(const resolve::RequestEvent& event);
    [[nodiscard]] bool forgotten(std::uint64_t id) const;
    void leave_phase(Open& request, std::int64_t now_ns) const;
    void keep_stretch(RequestLife& life, const RequestStretch& stretch) const;
    void idle_until(Open& request, std::int64_t now_ns) const;
    void give(Open& request) const;
    static void waited(RequestStretch& longest, const RequestStretch& wait);

    Keep keep_;
    StepEnd step_end_;
    Sink sink_;
    StepWanted step_wanted_;
    std::vector<Mark> marks_; // a heap, the earliest first
    std::uint64_t order_ = 0;
    std::int64_t now_ns_;
    std::map<std::uint64_t, Open> open_;           // no hash that a recording could aim at
    std::map<std::uint64_t, std::uint64_t> early_; // id -> the last step that had it before its first mark
    std::set<std::uint64_t> forgotten_;            // that began while most_open were, and have not ended
    RequestCounts counts_;
};

} // namespace plumb::analysis
