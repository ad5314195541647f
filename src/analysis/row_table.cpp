// SPDX-License-Identifier: Apache-2.0
#include "analysis/row_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

// Prefill, decode, mixed, then what belongs to no step; the longest first within a phase.
bool reads_before(const Row& a, const Row& b) {
    const auto order = [](Phase phase) {
        return phase == Phase::none ? 4 : static_cast<int>(phase);
    };
    if (order(a.key.phase) != order(b.key.phase)) {
        return order(a.key.phase) < order(b.key.phase);
    }
    // Samples of a row that only some steps or replays give are fewer than it stands for.
    const bool by_step = a.basis != b.basis || a.basis != RowBasis::steps;
    const double longest_a = by_step ? a.sum_per_step_ns : a.time.total_ns;
    const double longest_b = by_step ? b.sum_per_step_ns : b.time.total_ns;
    if (longest_a != longest_b) {
        return longest_a > longest_b;
    }
    return std::tie(a.key.name, a.lap, a.parent, a.source) < std::tie(b.key.name, b.lap, b.parent, b.source);
}

std::uint64_t packed_key(std::uint32_t place, std::uint16_t name, Phase phase, bool lap, bool leaf,
                         std::uint8_t source) {
    return (std::uint64_t{place} << 32) | (std::uint64_t{name} << 16) | (static_cast<std::uint64_t>(phase) << 8) |
           (lap ? 128u : 0u) | (leaf ? 64u : 0u) | source;
}

bool reads_before_by_layer(const Row& a, const Row& b) {
    if (a.key.phase != b.key.phase || a.key.layer == b.key.layer) {
        return reads_before(a, b);
    }
    return a.key.layer < b.key.layer;
}

} // namespace

unsigned RowTable::source_number(const RowSource& source) {
    const auto found = std::find_if(sources_.begin(), sources_.end(), [&source](const RowSource& known) {
        return known.name == source.name && known.basis == source.basis && known.device == source.device;
    });
    if (found != sources_.end()) {
        if (found->place != source.place) {
            found->place.clear();
        }
        return static_cast<unsigned>(found - sources_.begin());
    }
    if (sources_.size() == max_sources) {
        return max_sources - 1;
    }
    sources_.push_back(sources_.size() + 1 == max_sources ? RowSource{"other sources"} : source);
    return static_cast<unsigned>(sources_.size() - 1);
}

RowTable::Entry* RowTable::brick_entry(const Key& key) {
    if (slots_.size() <= key.name) {
        slots_.resize(std::size_t{key.name} + 1);
    }
    auto& slots = slots_[key.name];
    if (!slots) {
        if (bricks_.size() >= max_rows) {
            return nullptr;
        }
        slots = std::make_unique<Slots>();
    }
    std::uint32_t& row = (*slots)[slot_of(key.phase, key.lap, key.leaf, key.source)];
    if (row == 0) {
        if (bricks_.size() >= max_rows) {
            return nullptr;
        }
        bricks_.push_back(std::make_unique<Entry>(key, &budget_));
        row = static_cast<std::uint32_t>(bricks_.size());
    }
    return bricks_[row - 1].get();
}

void RowTable::add(const resolve::Sample& sample, unsigned source) {
    const bool brick = sample.kind != resolve::SampleKind::layer;
    if (brick && !brick_layers_ && sample.name < slots_.size() && slots_[sample.name]) [[likely]] {
        const bool lap = sample.kind == resolve::SampleKind::lap;
        if (const std::uint32_t row = (*slots_[sample.name])[slot_of(sample.phase, lap, sample.leaf, source)])
            [[likely]] {
            add_to(*bricks_[row - 1], sample);
            return;
        }
    }
    Key key;
    key.phase = sample.phase;
    key.source = static_cast<std::uint8_t>(source);
    if (!brick) {
        key.layer = sample.layer;
        key.named = false;
        add_to(layer_rows_, sample.layer.value_or(0), key, sample);
        return;
    }
    key.name = sample.name;
    key.lap = sample.kind == resolve::SampleKind::lap;
    key.leaf = sample.leaf;
    Entry* entry = brick_entry(key);
    if (entry == nullptr) {
        ++bricks_refused_;
        return;
    }
    add_to(*entry, sample);
    if (brick_layers_ && sample.layer) {
        key.layer = sample.layer;
        add_to(brick_layer_rows_, *sample.layer, key, sample);
    }
}

void RowTable::add(const resolve::Sample& sample, unsigned source, std::uint32_t graph) {
    add(sample, source);
    Key key;
    key.phase = sample.phase;
    key.source = static_cast<std::uint8_t>(source);
    key.name = sample.name;
    key.lap = sample.kind == resolve::SampleKind::lap;
    key.leaf = sample.leaf;
    key.graph = graph;
    add_to(graph_rows_, graph, key, sample);
}

void RowTable::add_to(Indexed& table, std::uint32_t place, const Key& key, const resolve::Sample& sample) {
    const std::uint64_t packed = packed_key(place, key.name, key.phase, key.lap, key.leaf, key.source);
    auto found = table.index.find(packed);
    if (found == table.index.end()) {
        if (table.rows.size() >= max_rows) {
            ++table.refused;
            return;
        }
        found = table.index.emplace(packed, static_cast<std::uint32_t>(table.rows.size())).first;
        table.rows.push_back(std::make_unique<Entry>(key, &budget_));
    }
    add_to(*table.rows[found->second], sample);
}

std::string RowTable::left_out() const {
    std::string parts;
    for (const auto& [samples, of] :
         {std::pair(bricks_refused_, " samples of bricks"), std::pair(layer_rows_.refused, " samples of layers"),
          std::pair(brick_layer_rows_.refused, " samples of bricks in layers"),
          std::pair(graph_rows_.refused, " samples of bricks in graphs")}) {
        if (samples != 0) {
            parts += (parts.empty() ? "" : ", ") + std::to_string(samples) + of;
        }
    }
    return parts.empty() ? parts : beyond_rows + (" of each kind are left out: " + parts + ".");
}

Row RowTable::finish(const Entry& entry, const PhaseBases& bases) const {
    RowKey key;
    key.phase = entry.key.phase;
    if (entry.key.named) {
        key.name = entry.key.name != 0 ? names_->text(entry.key.name) : "unnamed";
        key.category = names_->category(entry.key.name);
    }
    key.layer = entry.key.layer;
    if (entry.key.graph != GraphTable::none) {
        key.graph = bases.graphs->key_of(entry.key.graph);
    }
    Row row = finish(entry.statistics, std::move(key), entry.key.source, bases);
    row.lap = entry.key.lap;
    row.parent = !entry.key.leaf;
    if (row.basis == RowBasis::replays) {
        const GraphTable::Wanted wanted{
            entry.key.phase, entry.key.source, entry.key.graph, entry.key.name, entry.key.layer, entry.key.lap, {}};
        take_rate(row, wanted, bases);
    }
    return row;
}

Row RowTable::finish(const RowStatistics& statistics, RowKey key, unsigned source, const PhaseBases& bases) const {
    const auto phase = static_cast<std::size_t>(key.phase);
    const PhaseBase& base = sources_[source].basis == RowBasis::timed_steps ? bases.timed[phase] : bases.steps[phase];
    Row row = statistics.finish(std::move(key), base);
    row.source = sources_[source].name;
    row.basis = sources_[source].basis;
    row.device = sources_[source].device;
    row.place = sources_[source].place;
    row.basis_steps = base.steps;
    return row;
}

void RowTable::take_rate(Row& row, const GraphTable::Wanted& wanted, const PhaseBases& bases) const {
    const PhaseBase& base = bases.steps[static_cast<std::size_t>(wanted.phase)];
    const GraphTable::Rate rate = bases.graphs->rate(wanted, base.steps);
    row.calls_per_step = rate.calls_per_step;
    row.sum_per_step_ns = rate.sum_per_step_ns;
    row.raw_sum_per_step_ns = rate.raw_ns;
    if (row.bytes_per_step.value) {
        row.bytes_per_step = stats::measured(*row.bytes_per_call.value * rate.calls_per_step);
    }
    row.sites = rate.sites;
    row.sites_timed = rate.sites_timed;
    if (row.wall_share.value) {
        row.wall_share = stats::measured(rate.sum_per_step_ns * static_cast<double>(base.steps) / base.period_ns);
    }
}

// A name that is a leaf in one place and a parent in another is one row, marked parent: only the categories, which sum
// over leaves, need the two apart.
template <class Function>
void RowTable::each_merged(const std::vector<std::unique_ptr<Entry>>& rows, Function&& fn) {
    using Place = std::tuple<std::optional<std::uint32_t>, std::uint32_t, std::uint16_t, Phase, bool, std::uint8_t>;
    std::map<Place, std::vector<const Entry*>> places;
    for (const auto& entry : rows) {
        const Key& key = entry->key;
        places[{key.layer, key.graph, key.name, key.phase, key.lap, key.source}].push_back(entry.get());
    }
    for (const auto& [place, entries] : places) {
        if (entries.size() == 1) {
            fn(*entries.front());
            continue;
        }
        Entry both(entries.front()->key, nullptr);
        both.key.leaf = false;
        for (const Entry* entry : entries) {
            both.statistics.merge(entry->statistics);
        }
        fn(both);
    }
}

std::vector<Row> RowTable::finish_all(const std::vector<std::unique_ptr<Entry>>& rows, const PhaseBases& bases) const {
    std::vector<Row> result;
    each_merged(rows, [&](const Entry& entry) { result.push_back(finish(entry, bases)); });
    return result;
}

std::vector<RowSpread> RowTable::spreads(const PhaseBases& bases, std::size_t bins) const {
    std::vector<RowSpread> spreads;
    each_merged(bricks_, [&](const Entry& entry) {
        spreads.push_back({finish(entry, bases), entry.statistics.time().bins(bins)});
    });
    std::sort(spreads.begin(), spreads.end(),
              [](const RowSpread& a, const RowSpread& b) { return reads_before(a.row, b.row); });
    return spreads;
}

std::vector<Row> RowTable::bricks(const PhaseBases& bases) const {
    std::vector<Row> rows = finish_all(bricks_, bases);
    std::sort(rows.begin(), rows.end(), reads_before);
    return rows;
}

std::vector<Row> RowTable::graph_bricks(const PhaseBases& bases) const {
    std::vector<Row> rows = finish_all(graph_rows_.rows, bases);
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
        const bool together = a.key.phase == b.key.phase && a.key.graph != b.key.graph;
        return together ? a.key.graph < b.key.graph : reads_before(a, b);
    });
    return rows;
}

std::vector<Row> RowTable::brick_layers(const PhaseBases& bases) const {
    std::vector<Row> rows = finish_all(brick_layer_rows_.rows, bases);
    std::sort(rows.begin(), rows.end(), reads_before_by_layer);
    return rows;
}

std::vector<Row> RowTable::layers(const PhaseBases& bases) const {
    std::vector<Row> rows;
    for (const auto& entry : layer_rows_.rows) {
        rows.push_back(finish(*entry, bases));
    }
    std::sort(rows.begin(), rows.end(), reads_before_by_layer);
    return rows;
}

std::vector<Row> RowTable::categories(const PhaseBases& bases) const {
    using Place = std::tuple<Phase, Category, bool, std::uint8_t>;
    std::map<Place, std::unique_ptr<RowStatistics>> sums;
    for (const auto& entry : bricks_) {
        if (!entry->key.leaf) {
            continue;
        }
        auto& sum = sums[{entry->key.phase, names_->category(entry->key.name), entry->key.lap, entry->key.source}];
        if (!sum) {
            sum = std::make_unique<RowStatistics>(nullptr);
        }
        sum->merge(entry->statistics);
    }
    std::vector<Row> rows;
    for (const auto& [place, sum] : sums) {
        RowKey key;
        key.phase = std::get<0>(place);
        key.category = std::get<1>(place);
        Row row = finish(*sum, std::move(key), std::get<3>(place), bases);
        row.lap = std::get<2>(place);
        if (row.basis == RowBasis::replays) {
            const Category category = std::get<1>(place);
            take_rate(row,
                      {std::get<0>(place), std::get<3>(place), GraphTable::none, std::nullopt, std::nullopt, row.lap,
                       [this, category](const GraphTable::Group& group) {
                           return group.leaf && names_->category(group.name) == category;
                       }},
                      bases);
        }
        rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end(), reads_before);
    return rows;
}

} // namespace plumb::analysis
