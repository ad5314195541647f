// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/row_origin.hpp"
#include "answers/report/brick_table.hpp"

namespace plumb::answers {

using namespace page;

namespace {

constexpr std::size_t layer_columns = 20;
constexpr std::size_t cell_gap = 3;

/// What a column is of: a brick, scopes or laps, as one source timed it.
using Column = std::tuple<std::string, bool, analysis::RowOrigin>;

struct LayerCells {
    std::set<std::uint32_t> layers;
    std::map<Column, double> totals;
    std::map<std::pair<Column, std::uint32_t>, const Row*> cells;
    std::map<std::pair<std::string, bool>, std::set<analysis::RowOrigin>> origins; // by name, scopes or laps
    double largest_us = 0;
};

LayerCells cells_of(const Report& report, Phase phase) {
    LayerCells found;
    for (const Row& row : report.brick_layers) {
        if (row.key.phase != phase || !row.key.layer || row.time.count == 0) {
            continue;
        }
        const Column column{row.key.name, row.lap, analysis::origin_of(row)};
        found.layers.insert(*row.key.layer);
        found.totals[column] += row.time.total_ns;
        found.cells.emplace(std::pair(column, *row.key.layer), &row);
        found.origins[{row.key.name, row.lap}].insert(analysis::origin_of(row));
        found.largest_us = std::max(found.largest_us, row.time.mean_ns / ns_per_us);
    }
    return found;
}

std::string heading_of(const LayerCells& found, const Column& column) {
    const auto& [name, lap, origin] = column;
    const std::string apart = analysis::words_apart(origin, found.origins.at({name, lap}));
    return printable(name, layer_columns) + (lap ? " ~" : "") + (apart.empty() ? "" : " (" + apart + ")");
}

void add_block(Page& page, const LayerCells& found, const std::vector<Column>& columns) {
    TextTable table({}, {"layer"});
    for (const Column& column : columns) {
        table.add_column(heading_of(found, column), TextTable::Align::right);
    }
    const int decimals = decimals_for(found.largest_us, 4, 1, 3);
    for (const std::uint32_t layer : found.layers) {
        std::vector<std::string> cells{std::to_string(layer)};
        for (const Column& column : columns) {
            const auto cell = found.cells.find({column, layer});
            cells.push_back(cell == found.cells.end() ? "-" : fixed(cell->second->time.mean_ns / ns_per_us, decimals));
        }
        table.add_row(std::move(cells));
    }
    page.table(std::move(table));
}

} // namespace

void add_layer_table(Page& page, const Report& report, const PhaseSummary& phase, std::size_t width) {
    const LayerCells found = cells_of(report, phase.phase);
    if (found.cells.empty()) {
        return;
    }
    std::vector<Column> all;
    for (const auto& [column, total] : found.totals) {
        all.push_back(column);
    }
    std::stable_sort(all.begin(), all.end(),
                     [&found](const Column& a, const Column& b) { return found.totals.at(a) > found.totals.at(b); });
    page.blank();
    page.line("mean us per call, by layer and brick (" + std::string(phase_word(phase.phase)) + ")");
    std::vector<Column> block;
    std::size_t used = 0;
    for (const Column& column : all) {
        const std::size_t columns = cell_gap + std::max<std::size_t>(columns_of(heading_of(found, column)), 8);
        if (!block.empty() && used + columns > width) {
            add_block(page, found, block);
            page.blank();
            block.clear();
        }
        used = block.empty() ? 5 + columns : used + columns;
        block.push_back(column);
    }
    add_block(page, found, block);
}

} // namespace plumb::answers
