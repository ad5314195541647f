// SPDX-License-Identifier: Apache-2.0
// A table, then a heat map for each brick and level, and a line for each slow tile.
#include <algorithm>
#include <map>
#include <set>

#include "answers/tiles/tiles.hpp"
#include "page/heat.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 26;
constexpr std::size_t row_columns = 9; // "row 12345678" is cut to its number
constexpr std::size_t most_rows = 64;
constexpr std::size_t most_cols = 512;
constexpr double step = 0.25; // of the median, for each shade

std::string name_cell(const std::string& name) { return name.empty() ? "(no brick)" : printable(name, name_columns); }

/// Figures of very different sizes, four digits of each.
std::string cell(const Figure& figure, double unit) {
    return figure_text(figure, unit, decimals_for(figure.value.value_or(0) / unit, 4, 0, 3));
}

std::vector<std::string> cells_of(const std::string& name, TileLevel level, const std::string& tiles,
                                  const TileFigures& of) {
    return {name,
            word_of(level),
            tiles,
            grouped(of.calls),
            cell(of.total_ns, ns_per_ms),
            cell(of.mean_ns, ns_per_us),
            cell(of.min_ns, ns_per_us),
            cell(of.max_ns, ns_per_us),
            cell(of.flops_per_s, 1e9),
            cell(of.bytes_per_s, 1e9),
            cell(of.intensity, 1),
            cell(of.of_peak, 0.01)};
}

void add_table(Page& page, const TileReport& report) {
    TextTable table({"brick", "level"}, {"rows x cols", "calls", "total ms", "mean us", "min us", "max us", "GFLOP/s",
                                         "GB/s", "flop/byte", "% of peak"});
    for (const TileMapReport& map : report.maps) {
        table.add_row(cells_of(name_cell(map.name), map.level,
                               std::to_string(map.rows) + " x " + std::to_string(map.cols), map.all));
        page.reason("mean us", map.all.mean_ns);
        page.reason("min us", map.all.min_ns);
        page.reason("GFLOP/s", map.all.flops_per_s);
        page.reason("GB/s", map.all.bytes_per_s);
        page.reason("flop/byte", map.all.intensity);
        page.reason("% of peak", map.all.of_peak);
    }
    for (const TileOverflow& overflow : report.overflow) {
        table.add_row(cells_of("(not kept apart)", overflow.level, "-", overflow.figures));
    }
    if (table.rows() != 0) {
        page.table(std::move(table));
    }
    page.reasons();
}

/// The numbers of the first and of every tenth column shown, above them.
std::string ruler(const std::vector<std::uint32_t>& cols, std::size_t first, std::size_t last) {
    std::string line(last - first, ' ');
    for (std::size_t at = 0; at < line.size(); at += 10) {
        const std::string number = std::to_string(cols[first + at]);
        if (at + number.size() <= line.size() && number.size() < 10) {
            line.replace(at, number.size(), number);
        }
    }
    return line;
}

std::string median_of(const TileMapReport& map) {
    const double unit = map.basis == TileBasis::ns_per_call ? ns_per_us : 1e-3;
    return cell(map.median, unit) + (map.basis == TileBasis::ns_per_flop   ? " ns per kflop"
                                     : map.basis == TileBasis::ns_per_byte ? " ns per kB"
                                                                           : " us per call");
}

void add_map(Page& page, const TileMapReport& map, std::size_t width) {
    std::map<std::uint32_t, std::map<std::uint32_t, Figure>> rows; // costs
    std::set<std::uint32_t> seen;
    for (const TilePlace& place : map.places) {
        rows[place.row][place.col] = place.cost;
        seen.insert(place.col);
    }
    std::vector<std::uint32_t> cols(seen.begin(), seen.end());
    const std::size_t hidden_rows = rows.size() - std::min(rows.size(), most_rows);
    const std::size_t hidden_cols = cols.size() - std::min(cols.size(), most_cols);
    rows.erase(std::next(rows.begin(), static_cast<std::ptrdiff_t>(rows.size() - hidden_rows)), rows.end());
    cols.resize(cols.size() - hidden_cols);
    const std::size_t room = std::max<std::size_t>(width > row_columns + 3 ? width - row_columns - 3 : 0, 20);
    page.blank();
    page.line(name_cell(map.name) + ", " + word_of(map.level) + ": typical " + median_of(map), Tone::heading);
    for (std::size_t first = 0; first < cols.size(); first += room) {
        const std::size_t last = std::min(first + room, cols.size());
        page.line(padded_left("row", row_columns) + "  " + ruler(cols, first, last));
        for (const auto& [row, costs] : rows) {
            Line line{padded_left(std::to_string(row), row_columns) + "  "};
            for (std::size_t i = first; i < last; ++i) {
                const auto found = costs.find(cols[i]);
                line.push_back(shade(found == costs.end() ? Figure{} : found->second, map.median, step));
            }
            page.line(std::move(line));
        }
    }
    if (hidden_rows != 0 || hidden_cols != 0) {
        page.line("(not shown: " + std::to_string(hidden_rows) + " rows, " + std::to_string(hidden_cols) +
                  " columns; --json has them)");
    }
}

void add_legend(Page& page, const TileReport& report, bool color) {
    page.blank();
    page.line("tiles against the median of their map: " + legend_of_shades(color, "25 %") + "; blank: none",
              Tone::faint);
    if (report.own_cost_ns.value) {
        page.line("own cost: " + figure_text(report.own_cost_ns, 1, 1) +
                      " ns a tile, as measured when the run began; a tile holds that of the tiles inside it",
                  Tone::faint);
    }
}

void add_slow(Page& page, const TileReport& report) {
    for (const SlowTile& slow : report.slow) {
        page.marked("SLOW  ", name_cell(slow.name) + " " + word_of(slow.level) + " row " + std::to_string(slow.row) +
                                  " column " + std::to_string(slow.col) + ": " + cell(slow.typical_ns, ns_per_us) +
                                  " us a call, " + fixed(slow.ratio, 2) + "x the median of its map (robust z " +
                                  fixed(slow.robust_z, 1) + ")");
    }
    if (report.slow.empty() && !report.maps.empty()) {
        page.line("no slow tile");
    }
}

} // namespace

page::Page page_of(const TileReport& report, const TextOptions& options) {
    Page page;
    add_table(page, report);
    for (const TileMapReport& map : report.maps) {
        add_map(page, map, options.width);
    }
    if (!report.maps.empty()) {
        add_legend(page, report, options.color);
    }
    add_slow(page, report);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
