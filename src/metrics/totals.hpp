// SPDX-License-Identifier: Apache-2.0
// Running totals of a recording that is being written. What a batch costs does not depend on how much there was before; memory
// is bounded but for a few bytes a thread and a name.
// Ticks become nanoseconds batch by batch, by the clock pairs so far: a total never goes back when the clock is known better.
// Owned by an Exporter; one thread at a time: the one that writes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/figures.hpp"
#include "recording/recording.hpp"

namespace plumb::metrics {

class Totals {
  public:
    explicit Totals(const recording::Metadata& metadata, bool redact = false);

    void add(const recording::TrackInfo& track);
    void add(const recording::NameInfo& name);
    void add(const recording::ClockPair& pair);
    void add(const recording::RecordBatch& batch);
    void add(const recording::Counters& counters);
    void add(const recording::GraphInfo& row);
    void describe(std::string_view key, std::string_view value);
    [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

  private:
    static constexpr std::size_t slots = 128; // names kept apart; the first is "other"
    static constexpr std::uint8_t no_slot = 255;
    static constexpr std::uint8_t pending_phase = 255; // the step's begin has not come yet, from its thread's ring
    static constexpr std::size_t steps_a_page = 4096;
    static constexpr std::size_t least_pages = 16, most_pages = 4096;
    static constexpr std::size_t most_pending = 16384; // steps
    static constexpr std::size_t most_sources = 8;     // the last is "other"

    struct Amount {
        std::uint64_t ticks = 0, calls = 0;
    };
    struct Clock {
        bool has_first = false;
        recording::ClockPair first;
        double ns_per_tick = 0; // 0: not known yet
    };
    /// What was stamped with one clock in one way, and is not converted yet.
    struct Stream {
        std::uint32_t clock = 0;
        std::size_t source = 0;
        std::vector<Amount> amounts;                                           // by slot and phase
        std::map<std::pair<std::uint8_t, std::uint64_t>, std::uint64_t> steps; // by phase and ticks: how many
        std::vector<std::pair<std::uint16_t, std::uint64_t>> collectives; // name of the group, 0 where not said; ticks
    };
    struct Frame {
        bool step = false; // else a context
        std::uint8_t phase = 0;
        std::uint64_t id = 0; // of the step; meaningless where the phase is that of no step
        std::uint64_t prefill_tokens = 0, decode_tokens = 0;
    };
    struct Track {
        std::size_t stream = 0;
        std::vector<Frame> frames; // innermost last
        bool has_long = false;     // the duration of the next record
        std::uint64_t long_value = 0;
        std::vector<std::pair<std::uint16_t, std::uint16_t>> announced; // of the next scope of that name: its group
    };
    struct KnownName {
        std::uint8_t slot = no_slot;
        bool collective = false;
    };
    struct PendingEntry {
        std::size_t stream = 0;
        std::uint8_t slot = 0;
        Amount amount;
    };
    struct Pending { // of a step whose begin has not come
        std::vector<PendingEntry> entries;
        std::uint64_t since = 0; // seconds_
    };
    /// Phases of the steps that began, a byte each. The ring of a worker may lag behind that of the steps by a second: a page is
    /// remembered for as long, however many steps that are.
    struct BegunSteps {
        std::array<std::uint8_t, steps_a_page> phase_plus_one{}; // 0: its begin has not come
        std::uint64_t since = 0;                                 // seconds_, of the last begin
    };
    struct Counted { // of a graph
        std::uint64_t replays = 0;
        std::map<std::string, std::uint64_t> eager;
    };

    Track& track_of(std::uint32_t id);
    std::size_t stream_of(std::uint32_t clock, const std::string& source);
    KnownName meet(std::uint16_t name);
    static void announce(Track& track, std::uint16_t name, std::optional<std::uint16_t> group);
    void count_collective(Track& track, std::uint16_t name, std::uint64_t ticks);
    [[nodiscard]] std::uint8_t phase_of(std::uint64_t step) const;
    [[nodiscard]] std::uint8_t phase_now(Track& track) const;
    void scope(Track& track, const Record& record, std::uint64_t ticks);
    void wait_for_step(const Track& track, std::uint8_t slot, std::uint64_t ticks);
    void remember(std::uint64_t step, std::uint8_t phase);
    void settle(std::map<std::uint64_t, Pending>::iterator which, std::uint8_t phase);
    void step_begin(Track& track, const Record& record);
    void step_value(Track& track, const Record& record) const;
    void step_end(Track& track, const Record& record, std::uint64_t ticks);
    void push(Track& track, const Frame& frame) const;
    static bool pop(Track& track, bool step, Frame* popped = nullptr);
    void note_time(const recording::RecordBatch& batch);
    void convert(Stream& stream);
    void convert_step(std::uint8_t phase, double ns, std::uint64_t count);
    BrickFigures& figure_of(std::size_t source, std::size_t slot, std::size_t phase);
    void note_other(std::size_t slot);
    void update_own_cost();

    Figures figures_;
    bool redact_ = false;
    double scope_price_ = -1, lap_price_ = -1, cpu_time_price_ = -1; // ns; negative: not measured
    std::uint64_t scopes_ = 0, laps_ = 0, cpu_times_ = 0;
    std::uint64_t first_ticks_ = ~std::uint64_t{0}, last_ticks_ = 0; // of the host's clock
    std::uint64_t drain_cpu_ns_ = 0;

    std::unordered_map<std::uint32_t, Clock> clocks_;
    std::vector<std::string> sources_;
    std::vector<Stream> streams_;
    std::unordered_map<std::uint32_t, Track> tracks_;
    std::unordered_map<std::uint16_t, recording::NameInfo> names_;
    std::vector<KnownName> known_names_; // by id
    std::vector<std::string> slot_names_;
    std::vector<bool> slot_in_other_;
    std::vector<std::uint8_t> figure_places_;   // by source, slot and phase: index into figures_.bricks
    std::map<std::uint64_t, BegunSteps> begun_; // by id / steps_a_page
    std::uint64_t forgotten_ = 0;               // of steps with lower ids nothing is known any more
    std::map<std::uint64_t, Pending> pending_;
    std::uint64_t seconds_ = 0; // clock pairs of the host so far: about one a second
    std::unordered_map<std::uint64_t, Counted> graphs_;
};

} // namespace plumb::metrics
