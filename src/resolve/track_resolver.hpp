// SPDX-License-Identifier: Apache-2.0
// The state machine that turns one track's records into samples, and keeps step, layer, work and nesting between batches.
// Owned by one resolution; one thread. Never fails: what cannot be resolved is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recording/frame_stack.hpp"
#include "resolve/duration_reader.hpp"
#include "resolve/launches.hpp"
#include "resolve/losses.hpp"
#include "resolve/nesting.hpp"
#include "resolve/node.hpp"
#include "resolve/node_reader.hpp"
#include "resolve/request_reader.hpp"
#include "resolve/resolve.hpp"
#include "resolve/sample.hpp"
#include "resolve/step_table.hpp"
#include "resolve/work_cache.hpp"

namespace plumb::resolve {

/// Buffers a batch is resolved into; reused from batch to batch.
struct ResolvedBuffers {
    std::vector<Sample> samples;
    std::vector<CpuStamp> cpu_stamps;
    std::vector<LabelValue> labels;
    std::vector<Submission> submissions;
    std::vector<Launch> launches;
    std::vector<CollectiveMark> collectives;
    std::vector<RecordedNode> nodes;
    std::vector<NodeDependency> dependencies;
    std::vector<RequestEvent> requests;

    void clear() {
        samples.clear();
        cpu_stamps.clear();
        labels.clear();
        submissions.clear();
        launches.clear();
        collectives.clear();
        nodes.clear();
        dependencies.clear();
        requests.clear();
    }
};

using recording::FrameKind;
using recording::FrameStack;

class TrackResolver {
  public:
    TrackResolver(const Track& track, const StepFactsSource& steps, WorkPool& pool, Launches& launches, Losses& losses)
        : track_(&track), steps_(&steps), launches_(&launches), losses_(&losses), work_(pool),
          queue_(track.info.kind == recording::TrackKind::device_queue) {
        refresh();
    }

    /// Records of this track follow that are not consecutive with those before.
    void records_are_missing();
    /// The records before the first ones were removed by a limit: what is cut there was old, and is not lost.
    void begins_behind_removed() { may_be_cut_ = deepest; }

    /// Appends to the buffers. `sequence` is that of the first record.
    void consume(const Record* records, std::size_t count, std::uint64_t sequence, ResolvedBuffers& out);

  private:
    // What a sample inherits from the frames around it.
    struct Surroundings {
        std::uint64_t step = no_step;
        std::optional<std::uint32_t> layer;
        Phase phase = Phase::none;
        bool warmup = false;
        bool left_out = false;
        double kv_length = std::numeric_limits<double>::quiet_NaN();
    };

    /// What lay before a device scope, in ticks of its clock.
    struct Lead {
        std::uint64_t queued = 0;    // no_ticks: not known
        std::uint64_t submitted = 0; // payload_mask: not known
    };

    struct Submitted {
        std::uint64_t begin = 0;
        std::uint64_t duration = 0;
    };

    void scope(const Record& record, bool wanted, ResolvedBuffers& out);
    /// One of a device queue, with a record before it that tells more, of a long duration, or with no time.
    void special_scope(const Record& record, bool wanted, ResolvedBuffers& out);
    /// Null where there is no sample.
    Sample* add_scope(const Record& record, std::uint64_t duration, const Nesting::Outcome& nest, bool wanted,
                      ResolvedBuffers& out);
    void span(const Record& record, bool wanted, ResolvedBuffers& out);
    void step_begin(const Record& record);
    void layer_begin(const Record& record);
    void context(const Record& record);
    void frame_end(const Record& record, FrameKind kind, bool wanted, ResolvedBuffers& out);
    void mark(const Record& record);
    void work(const Record& record);
    void cpu_time(const Record& record, bool wanted, ResolvedBuffers& out);
    void other(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out);
    void node(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out);
    void dependency(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out);
    void request(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out);
    void announce_submission(const Record& record);
    void submission(const Record& record, bool wanted, std::uint64_t sequence, ResolvedBuffers& out);
    void announce_collective(const Record& record);
    [[nodiscard]] std::optional<CollectiveMark> take_announced(std::uint16_t name);
    /// Of the sample appended last.
    static void mark_collective(const std::optional<CollectiveMark>& mark, ResolvedBuffers& out);
    void link(Sample& scope, const std::optional<Cause>& cause, ResolvedBuffers& out) const;

    /// The record's interval, or false with the reason counted (only where it is wanted).
    bool interval(const Record& record, bool wanted, std::uint64_t& duration);
    void unresolved(Loss reason, bool wanted);
    Sample& append(ResolvedBuffers& out, SampleKind kind, std::uint64_t begin, std::uint64_t duration) const;
    void place(Sample& sample, const Surroundings& around) const;
    void add_lead(Sample& to, std::uint64_t begin, const Lead& lead) const;
    template <class Worked>
    void add_work(Worked& to, std::uint64_t bits) const;
    [[nodiscard]] Surroundings surroundings_of_step(std::uint64_t id) const;
    void push(FrameKind kind, std::uint64_t begin, const Surroundings& around);
    void refresh();
    void incomplete(Loss reason) {
        losses_->count(reason, may_be_cut_ != 0 ? 0 : 1);
        if (may_be_cut_ != 0) {
            --may_be_cut_;
        }
    }

    const Track* track_;
    const StepFactsSource* steps_;
    Launches* launches_;
    Losses* losses_;
    WorkCache work_;
    Nesting nesting_;
    FrameStack<Surroundings> frames_;
    DurationReader duration_;
    NodeReader nodes_;
    RequestReader requests_;
    Surroundings now_;
    Sample blank_; // what every sample has in these surroundings
    bool queue_;   // scopes of this track were submitted by host threads
    bool missing_ = false;
    static constexpr std::uint8_t deepest = 64;                       // that frames are nested
    std::uint8_t may_be_cut_ = 0;                                     // ends whose begins were removed, at most
    std::uint8_t quality_ = 0;                                        // flags of the next scope
    std::optional<Lead> lead_;                                        // of the next scope
    std::optional<Cause> cause_;                                      // of the next scope
    std::optional<std::uint64_t> waited_;                             // ticks, of the next scope
    std::vector<std::pair<std::uint16_t, CollectiveMark>> announced_; // by name of the scope that comes
    std::optional<Submitted> submitted_; // when the next device scope or graph was submitted
};

} // namespace plumb::resolve
