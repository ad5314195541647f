// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "answers/report/brick_table.hpp"

namespace plumb::answers {

using namespace page;

namespace {

constexpr std::size_t layer_columns = 20;
constexpr std::size_t cell_gap = 3;

struct LayerCells {
    std::set<std::uint32_t> layers;
    std::map<std::string, double> totals; // by brick
    std::map<std::pair<std::string, std::uint32_t>, const Row*> cells;
    double largest_us = 0;
};

LayerCells cells_of(const Report& report, Phase phase) {
    LayerCells found;
    for (const Row& row : report.brick_layers) {
        if (row.key.phase != phase || !row.key.layer || row.time.count == 0) {
            continue;
        }
        const std::string name = printable(row.key.name, layer_columns) + (row.lap ? " ~" : "");
        found.layers.insert(*row.key.layer);
        found.totals[name] += row.time.total_ns;
        found.cells.emplace(std::pair(name, *row.key.layer), &row);
        found.largest_us = std::max(found.largest_us, row.time.mean_ns / ns_per_us);
    }
    return found;
}

void add_block(Page& page, const LayerCells& found, const std::vector<std::string>& names) {
    TextTable table({}, {"layer"});
    for (const std::string& name : names) {
        table.add_column(name, TextTable::Align::right);
    }
    const int decimals = decimals_for(found.largest_us, 4, 1, 3);
    for (const std::uint32_t layer : found.layers) {
        std::vector<std::string> cells{std::to_string(layer)};
        for (const std::string& name : names) {
            const auto cell = found.cells.find({name, layer});
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
    std::vector<std::string> names;
    for (const auto& [name, total] : found.totals) {
        names.push_back(name);
    }
    std::stable_sort(names.begin(), names.end(), [&found](const std::string& a, const std::string& b) {
        return found.totals.at(a) > found.totals.at(b);
    });
    page.blank();
    page.line("mean us per call, by layer and brick (" + std::string(phase_word(phase.phase)) + ")");
    std::vector<std::string> block;
    std::size_t used = 0;
    for (const std::string& name : names) {
        const std::size_t columns = cell_gap + std::max<std::size_t>(columns_of(name), 8);
        if (!block.empty() && used + columns > width) {
            add_block(page, found, block);
            page.blank();
            block.clear();
        }
        used = block.empty() ? 5 + columns : used + columns;
        block.push_back(name);
    }
    add_block(page, found, block);
}

} // namespace plumb::answers
