// SPDX-License-Identifier: Apache-2.0
// Samples sorted into rows: by phase, brick, lap or scope, leaf or parent, source, and layer on demand. One array look-up
// per sample. Memory is bounded by the number of rows, a budget of histogram blocks and one of moments, however many names,
// layers or samples a recording claims. Owned by one report; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/graph_table.hpp"
#include "analysis/row_statistics.hpp"
#include "plumb/results.hpp"
#include "resolve/name_table.hpp"
#include "resolve/sample.hpp"

namespace plumb::analysis {

inline constexpr std::size_t phase_count = 4;

/// What a note begins with that says what found no row.
inline constexpr const char* beyond_rows = "Rows beyond 8192";

/// What figures per step divide by, for each kind of row.
struct PhaseBases {
    std::array<PhaseBase, phase_count> steps; // the counted ones
    std::array<PhaseBase, phase_count> timed; // those in which device queues were timed, as long as counted ones
    const GraphTable* graphs = nullptr;
};

/// What a row's samples come from.
struct RowSource {
    std::string name;
    RowBasis basis = RowBasis::steps;
    bool device = false;
    std::string place = {}; // the device: "cuda:0"; empty: the host, not known, or several
};

/// How the times of a row of a report are spread.
struct RowSpread {
    Row row;
    stats::Bins bins;
};

class RowTable {
  public:
    static constexpr std::size_t max_rows = 8192; // of each kind: bricks, layers, bricks in layers, bricks in graphs
    static constexpr std::size_t max_sources = 16;
    static constexpr std::size_t max_kept = std::size_t{1} << 19; // moments of samples: 8 MiB

    RowTable(const resolve::NameTable& names, bool brick_layers) : names_(&names), brick_layers_(brick_layers) {}

    /// Number of a source; the last one collects what is above the limit.
    [[nodiscard]] unsigned source_number(const RowSource& source);
    [[nodiscard]] const RowSource& source(unsigned number) const { return sources_[number]; }
    /// Of what is added from now on: whether it is kept when each was, for Row::calls_at_once.
    void keep_moments(bool keep) noexcept { keep_ = keep; }
    /// `sample.kind` is scope, lap, span or layer.
    void add(const resolve::Sample& sample, unsigned source);
    /// A sample inside a replay: also counts in the rows of its graph.
    void add(const resolve::Sample& sample, unsigned source, std::uint32_t graph);

    [[nodiscard]] std::vector<Row> bricks(const PhaseBases& bases) const;
    /// Of the same rows, in the same order.
    [[nodiscard]] std::vector<RowSpread> spreads(const PhaseBases& bases, std::size_t bins) const;
    [[nodiscard]] std::vector<Row> graph_bricks(const PhaseBases& bases) const;
    [[nodiscard]] std::vector<Row> brick_layers(const PhaseBases& bases) const;
    [[nodiscard]] std::vector<Row> categories(const PhaseBases& bases) const;
    [[nodiscard]] std::vector<Row> layers(const PhaseBases& bases) const;
    /// What samples found no row, in a sentence that begins with beyond_rows; empty: all found one.
    [[nodiscard]] std::string left_out() const;

  private:
    struct Key {
        std::uint16_t name = 0;
        std::optional<std::uint32_t> layer;
        std::uint32_t graph = GraphTable::none;
        Phase phase = Phase::none;
        bool lap = false;
        bool leaf = true;
        std::uint8_t source = 0;
        bool named = true; // false in rows that sum over bricks
    };
    struct Entry {
        Entry(const Key& row_key, stats::BlockBudget* budget) : key(row_key), statistics(budget) {}
        Key key;
        RowStatistics statistics;
    };
    static constexpr std::size_t slots_per_name = phase_count * 2 * 2 * max_sources;
    using Slots = std::array<std::uint32_t, slots_per_name>; // 1 + index into bricks_; 0: none yet
    static std::size_t slot_of(Phase phase, bool lap, bool leaf, unsigned source) {
        return ((static_cast<std::size_t>(phase) * 2 + (lap ? 1 : 0)) * 2 + (leaf ? 1 : 0)) * max_sources + source;
    }

    /// Rows of one kind, found by what tells them apart.
    struct Indexed {
        std::vector<std::unique_ptr<Entry>> rows;
        std::unordered_map<std::uint64_t, std::uint32_t> index;
        std::uint64_t refused = 0; // samples
    };

    void add_to(Entry& entry, const resolve::Sample& sample) {
        entry.statistics.add(sample);
        if (keep_ && kept_ < max_kept) [[unlikely]] {
            entry.statistics.keep(sample);
            ++kept_;
        }
    }
    [[nodiscard]] Entry* brick_entry(const Key& key);
    void add_to(Indexed& table, std::uint32_t place, const Key& key, const resolve::Sample& sample);
    [[nodiscard]] Row finish(const Entry& entry, const PhaseBases& bases) const;
    [[nodiscard]] Row finish(const RowStatistics& statistics, RowKey key, unsigned source,
                             const PhaseBases& bases) const;
    void take_rate(Row& row, const GraphTable::Wanted& wanted, const PhaseBases& bases) const;
    [[nodiscard]] std::vector<Row> finish_all(const std::vector<std::unique_ptr<Entry>>& rows,
                                              const PhaseBases& bases) const;
    template <class Function>
    static void each_merged(const std::vector<std::unique_ptr<Entry>>& rows, Function&& fn);

    const resolve::NameTable* names_;
    bool brick_layers_;
    stats::BlockBudget budget_{std::size_t{40000}}; // 20 MiB
    bool keep_ = false;
    std::size_t kept_ = 0;
    std::vector<RowSource> sources_;
    std::vector<std::unique_ptr<Slots>> slots_; // by name id
    std::vector<std::unique_ptr<Entry>> bricks_;
    std::uint64_t bricks_refused_ = 0; // samples
    Indexed brick_layer_rows_, layer_rows_, graph_rows_;
};

} // namespace plumb::analysis
