// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "page/text_table.hpp"
#include "plumb/tiles.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::size_t name_columns = 26;
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t row_columns = 9; // "row 12345678" is cut to its number
constexpr std::size_t most_rows = 64;
constexpr std::size_t most_cols = 512;
constexpr double ns_per_us = 1e3;
constexpr double ns_per_ms = 1e6;

// How far a tile is above or below the median of its map: each step is 25 %, the middle one is "alike".
constexpr std::array<char, 9> marks = {'_', ',', '.', '-', '=', '+', 'o', '#', '@'};
constexpr std::array<const char*, 9> backgrounds = {"\x1b[48;5;21m",  "\x1b[48;5;27m",  "\x1b[48;5;33m",
                                                    "\x1b[48;5;67m",  "\x1b[48;5;240m", "\x1b[48;5;136m",
                                                    "\x1b[48;5;172m", "\x1b[48;5;202m", "\x1b[48;5;196m"};
constexpr double step = 0.25;

std::string name_cell(const std::string& name) { return name.empty() ? "(no brick)" : printable(name, name_columns); }

/// Figures of very different sizes, four digits of each.
std::string cell(const Figure& figure, double unit) {
    return figure.value ? fixed(*figure.value / unit, decimals_for(*figure.value / unit, 4, 0, 3)) : "n/a";
}

std::vector<std::string> cells_of(const std::string& name, TileLevel level, const std::string& tiles,
                                  const TileFigures& of) {
    return {name,
            tile_word(level),
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

void append_table(std::string& out, const TileReport& report, const Style& style) {
    TextTable table;
    table.add_column("brick", TextTable::Align::left);
    table.add_column("level", TextTable::Align::left);
    for (const char* heading : {"rows x cols", "calls", "total ms", "mean us", "min us", "max us", "GFLOP/s", "GB/s",
                                "flop/byte", "% of peak"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    for (const TileMapReport& map : report.maps) {
        table.add_row(cells_of(name_cell(map.name), map.level,
                               std::to_string(map.rows) + " x " + std::to_string(map.cols), map.all));
    }
    for (std::size_t i = 0; i < tile_levels; ++i) {
        if (report.overflow[i]) {
            table.add_row(cells_of("(not kept apart)", static_cast<TileLevel>(i + 1), "-", *report.overflow[i]));
        }
    }
    if (table.rows() != 0) {
        table.append_to(out, style.heading, style.plain);
    }
}

/// Each reason once, with the first column that it explains.
void append_reasons(std::string& out, const TileReport& report, const Style& style) {
    std::map<std::string, std::string> reasons;
    for (const TileMapReport& map : report.maps) {
        const std::pair<const char*, const Figure*> shown[] = {
            {"mean us", &map.all.mean_ns},  {"min us", &map.all.min_ns},       {"GFLOP/s", &map.all.flops_per_s},
            {"GB/s", &map.all.bytes_per_s}, {"flop/byte", &map.all.intensity}, {"% of peak", &map.all.of_peak}};
        for (const auto& [column, figure] : shown) {
            if (!figure->value) {
                reasons.try_emplace(figure->reason, column);
            }
        }
    }
    out += style.faint;
    for (const auto& [reason, column] : reasons) {
        out += "n/a  " + column + ": " + printable(reason, sentence_columns) + '\n';
    }
    out += style.plain;
}

std::size_t heat_of(double cost, double median) {
    if (!(median > 0)) {
        return marks.size() / 2;
    }
    return static_cast<std::size_t>(std::clamp(std::round((cost / median - 1) / step), -4.0, 4.0) + 4);
}

void append_place(std::string& out, const TilePlace* place, const TileMapReport& map, bool color) {
    if (place == nullptr || !place->cost.value || !map.median.value) {
        out += ' ';
        return;
    }
    const std::size_t heat = heat_of(*place->cost.value, *map.median.value);
    if (color) {
        out += backgrounds[heat];
        out += ' ';
        out += colored.plain;
    } else {
        out += marks[heat];
    }
}

std::string right(std::string text, std::size_t columns) {
    return std::string(text.size() < columns ? columns - text.size() : 0, ' ') + text;
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

std::string unit_of(TileBasis basis) {
    switch (basis) {
    case TileBasis::ns_per_flop:
        return " ns per kflop";
    case TileBasis::ns_per_byte:
        return " ns per kB";
    case TileBasis::ns_per_call:
        break;
    }
    return " us per call";
}

std::string median_of(const TileMapReport& map) {
    const double unit = map.basis == TileBasis::ns_per_call ? ns_per_us : 1e-3;
    return cell(map.median, unit) + unit_of(map.basis);
}

void append_map(std::string& out, const TileMapReport& map, const TextOptions& options, const Style& style) {
    std::map<std::uint32_t, std::map<std::uint32_t, const TilePlace*>> rows;
    std::set<std::uint32_t> seen;
    for (const TilePlace& place : map.places) {
        rows[place.row][place.col] = &place;
        seen.insert(place.col);
    }
    std::vector<std::uint32_t> cols(seen.begin(), seen.end());
    const std::size_t hidden_cols = cols.size() - std::min(cols.size(), most_cols);
    cols.resize(cols.size() - hidden_cols);
    const std::size_t room =
        std::max<std::size_t>(options.width > row_columns + 3 ? options.width - row_columns - 3 : 0, 20);
    out += '\n';
    out += style.heading;
    out += name_cell(map.name) + ", " + tile_word(map.level) + ": typical " + median_of(map) + '\n';
    out += style.plain;
    for (std::size_t first = 0; first < cols.size(); first += room) {
        const std::size_t last = std::min(first + room, cols.size());
        out += right("row", row_columns) + "  " + ruler(cols, first, last) + '\n';
        std::size_t shown = 0;
        for (const auto& [row, places] : rows) {
            if (++shown > most_rows) {
                break;
            }
            out += right(std::to_string(row), row_columns) + "  ";
            for (std::size_t i = first; i < last; ++i) {
                const auto found = places.find(cols[i]);
                append_place(out, found == places.end() ? nullptr : found->second, map, options.color);
            }
            out += '\n';
        }
    }
    if (rows.size() > most_rows || hidden_cols != 0) {
        out += "(not shown: " + std::to_string(rows.size() - std::min(rows.size(), most_rows)) + " rows, " +
               std::to_string(hidden_cols) + " columns; --json has them)\n";
    }
}

void append_legend(std::string& out, const TileReport& report, bool color, const Style& style) {
    out += '\n';
    out += style.faint;
    out += "tiles against the median of their map: ";
    out += color ? "blue below, grey alike, red above, each shade 25 %; blank: none\n"
                 : "'=' alike, '-' '.' ',' '_' below, '+' 'o' '#' '@' above, 25 % each; blank: none\n";
    if (report.own_cost_ns.value) {
        out += "own cost: " + fixed(*report.own_cost_ns.value, 1) +
               " ns a tile, as measured when the run began; a tile holds that of the tiles inside it\n";
    }
    out += style.plain;
}

void append_slow(std::string& out, const TileReport& report, const Style& style) {
    for (const SlowTile& slow : report.slow) {
        const TileMapReport& map = report.maps[slow.map];
        const TilePlace& place = map.places[slow.place];
        out += style.warning;
        out += "SLOW  ";
        out += style.plain;
        out += name_cell(map.name) + " " + tile_word(map.level) + " row " + std::to_string(place.row) + " column " +
               std::to_string(place.col) + ": " + cell(place.figures.typical_ns, ns_per_us) + " us a call, " +
               fixed(slow.ratio, 2) + "x the median of its map (robust z " + fixed(slow.robust_z, 1) + ")\n";
    }
    if (report.slow.empty() && !report.maps.empty()) {
        out += "no slow tile\n";
    }
}

} // namespace

std::string render_text(const TileReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    append_table(out, report, style);
    if (!report.maps.empty()) {
        append_reasons(out, report, style);
        for (const TileMapReport& map : report.maps) {
            append_map(out, map, options, style);
        }
        append_legend(out, report, options.color, style);
    }
    append_slow(out, report, style);
    for (const std::string& note : report.notes) {
        out += "note  " + printable(note, sentence_columns) + '\n';
    }
    return out;
}

} // namespace plumb
