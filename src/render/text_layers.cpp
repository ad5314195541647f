// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "plumb/layers.hpp"
#include "render/style.hpp"
#include "render/text_table.hpp"

namespace plumb {

namespace {

using namespace render;

constexpr std::size_t name_columns = 26;
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t value_columns = 11;

// How far above or below the median of its row a cell is: each step of the map is 12.5 %, the middle one is "alike".
constexpr std::array<char, 9> marks = {'_', ',', '.', '-', '=', '+', 'o', '#', '@'};
constexpr std::array<const char*, 9> backgrounds = {"\x1b[48;5;21m",  "\x1b[48;5;27m",  "\x1b[48;5;33m",
                                                    "\x1b[48;5;67m",  "\x1b[48;5;240m", "\x1b[48;5;136m",
                                                    "\x1b[48;5;172m", "\x1b[48;5;202m", "\x1b[48;5;196m"};
constexpr double step = 0.125;

std::size_t heat_of(double value, double median) {
    if (!(median > 0)) {
        return value > median ? marks.size() - 1 : marks.size() / 2;
    }
    const double steps = std::clamp(std::round((value / median - 1) / step), -4.0, 4.0);
    return static_cast<std::size_t>(steps + 4);
}

std::string padded(std::string text, std::size_t columns, bool right) {
    const std::size_t used = columns_of(text);
    const std::string blanks(used < columns ? columns - used : 0, ' ');
    return right ? blanks + text : text + blanks;
}

bool is_time(LayerMetric metric) { return metric != LayerMetric::calls && metric != LayerMetric::roofline; }

std::string value_cell(const Figure& figure, LayerMetric metric) {
    if (!figure.value) {
        return "n/a";
    }
    return is_time(metric) ? fixed(*figure.value / 1e3, 2) : fixed(*figure.value, 2);
}

std::string name_cell(const LayerRow& row) {
    const std::string name = row.name.empty() ? "(whole layer)" : printable(row.name, name_columns - 2);
    return name + (row.parent && !row.name.empty() ? " +" : row.lap ? " ~" : "");
}

void append_cells(std::string& out, const LayerRow& row, std::size_t first, std::size_t last, bool color) {
    for (std::size_t i = first; i < last; ++i) {
        const Figure& cell = row.cells[i];
        const std::size_t heat = cell.value && row.median.value ? heat_of(*cell.value, *row.median.value) : 0;
        if (!cell.value) {
            out += ' ';
        } else if (color) {
            out += backgrounds[heat];
            out += ' ';
            out += colored.plain;
        } else {
            out += marks[heat];
        }
    }
}

/// The numbers of the first and of every tenth layer, above the columns of the map.
std::string ruler(const LayerReport& report, std::size_t first, std::size_t last) {
    std::string line(last - first, ' ');
    for (std::size_t i = first; i < last; ++i) {
        if (i != first && report.layers[i] % 10 != 0) {
            continue;
        }
        const std::string number = std::to_string(report.layers[i]);
        const std::size_t at = i - first;
        const bool room = at + number.size() <= line.size() && (at == 0 || line[at - 1] == ' ');
        if (room && line.compare(at, number.size(), std::string(number.size(), ' ')) == 0) {
            line.replace(at, number.size(), number);
        }
    }
    return line;
}

void append_map(std::string& out, const LayerReport& report, Phase phase, const TextOptions& options,
                const Style& style) {
    const std::size_t before = name_columns + value_columns + 2;
    const std::size_t room = std::max<std::size_t>(options.width > before + 1 ? options.width - before - 1 : 0, 20);
    for (std::size_t first = 0; first < report.layers.size(); first += room) {
        const std::size_t last = std::min(first + room, report.layers.size());
        out += style.heading;
        out += padded(std::string(phase_word(phase)) + ", layer", name_columns, false) +
               padded(is_time(report.metric)                   ? "median us"
                      : report.metric == LayerMetric::roofline ? "median %"
                                                               : "median",
                      value_columns, true) +
               "  " + ruler(report, first, last);
        out += style.plain;
        out += '\n';
        for (const LayerRow& row : report.rows) {
            if (row.phase != phase) {
                continue;
            }
            out += padded(name_cell(row), name_columns, false) +
                   padded(value_cell(row.median, report.metric), value_columns, true) + "  ";
            append_cells(out, row, first, last, options.color);
            out += '\n';
        }
    }
}

void append_legend(std::string& out, const LayerReport& report, bool color, const Style& style) {
    out += style.faint;
    out += std::string(metric_word(report.metric)) + " against the median of its row: ";
    if (color) {
        out += "blue below, grey alike, red above, each shade 12.5 %; blank: n/a\n";
    } else {
        out += "'=' alike, '-' '.' ',' '_' below, '+' 'o' '#' '@' above, 12.5 % each; blank: n/a\n";
    }
    out += style.plain;
}

void append_reasons(std::string& out, const LayerReport& report, const Style& style) {
    std::map<std::string, std::string> reasons;
    for (const LayerRow& row : report.rows) {
        if (!row.median.value) {
            reasons.try_emplace(row.median.reason, name_cell(row));
        }
    }
    out += style.faint;
    for (const auto& [reason, name] : reasons) {
        out += "n/a  " + name + ": " + printable(reason, sentence_columns) + '\n';
    }
    out += style.plain;
}

void append_odd(std::string& out, const LayerReport& report, const Style& style) {
    const char* unit = is_time(report.metric) ? " us" : report.metric == LayerMetric::roofline ? " %" : "";
    for (const OddLayer& odd : report.odd) {
        const LayerRow& row = report.rows[odd.row];
        out += style.warning;
        out += "ODD  ";
        out += style.plain;
        out += std::string(phase_word(row.phase)) + " layer " + std::to_string(odd.layer) + " " + name_cell(row) +
               ": " + value_cell({odd.value, {}}, report.metric) + unit + ", the other layers " +
               value_cell({odd.median, {}}, report.metric) + unit;
        if (odd.median > 0) {
            out += " (" + fixed(odd.value / odd.median, 2) + "x, robust z " + (odd.robust_z < 0 ? "-" : "") +
                   fixed(std::abs(odd.robust_z), 1) + ")";
        }
        out += '\n';
    }
    if (report.odd.empty() && !report.rows.empty()) {
        out += "no odd layer\n";
    }
}

} // namespace

std::string render_text(const LayerReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    std::vector<Phase> phases;
    for (const LayerRow& row : report.rows) {
        if (std::find(phases.begin(), phases.end(), row.phase) == phases.end()) {
            phases.push_back(row.phase);
        }
    }
    for (const Phase phase : phases) {
        append_map(out, report, phase, options, style);
        out += '\n';
    }
    if (!report.rows.empty()) {
        append_legend(out, report, options.color, style);
        append_reasons(out, report, style);
    }
    append_odd(out, report, style);
    for (const std::string& note : report.notes) {
        out += "note  " + printable(note, sentence_columns) + '\n';
    }
    return out;
}

} // namespace plumb
