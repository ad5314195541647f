// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "page/text_table.hpp"
#include "render/brick_table.hpp"

namespace plumb::render {

using namespace page;

namespace {

constexpr double ns_per_us = 1e3;
constexpr std::size_t name_columns = 20;
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
        const std::string name = printable(row.key.name, name_columns) + (row.lap ? " ~" : "");
        found.layers.insert(*row.key.layer);
        found.totals[name] += row.time.total_ns;
        found.cells.emplace(std::pair(name, *row.key.layer), &row);
        found.largest_us = std::max(found.largest_us, row.time.mean_ns / ns_per_us);
    }
    return found;
}

void append_block(std::string& out, const LayerCells& found, const std::vector<std::string>& names,
                  const Style& style) {
    TextTable table;
    table.add_column("layer", TextTable::Align::right);
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
    table.append_to(out, style.heading, style.plain);
}

} // namespace

void append_layer_table(std::string& out, const Report& report, const PhaseSummary& phase, std::size_t width,
                        const Style& style) {
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
    out += "\nmean us per call, by layer and brick (" + std::string(phase_word(phase.phase)) + ")\n";
    std::vector<std::string> block;
    std::size_t used = 0;
    for (const std::string& name : names) {
        const std::size_t columns = cell_gap + std::max<std::size_t>(columns_of(name), 8);
        if (!block.empty() && used + columns > width) {
            append_block(out, found, block, style);
            out += '\n';
            block.clear();
        }
        used = block.empty() ? 5 + columns : used + columns;
        block.push_back(name);
    }
    append_block(out, found, block, style);
}

} // namespace plumb::render
