// SPDX-License-Identifier: Apache-2.0
// A heat map, brick by layer, and a line for each odd layer.
#include <algorithm>
#include <cmath>

#include "answers/layers/layers.hpp"
#include "page/heat.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 26; // at least
constexpr std::size_t value_columns = 11;
constexpr double step = 0.125; // of the median, for each shade

bool is_time(LayerMetric metric) { return metric != LayerMetric::calls && metric != LayerMetric::roofline; }

std::string value_cell(const Figure& figure, LayerMetric metric) {
    const double unit = is_time(metric) ? 1e3 : metric == LayerMetric::roofline ? 0.01 : 1;
    return figure_text(figure, unit, 2);
}

std::string name_cell(const LayerSubject& row) {
    const std::string name = row.name.empty() ? "(whole layer)" : printable(row.name, name_columns - 2);
    return name +
           (row.parent && !row.name.empty() ? " +"
            : row.lap                       ? " ~"
                                            : "") +
           (row.apart.empty() ? "" : " (" + row.apart + ")");
}

/// Names that must be told apart by more words need more room.
std::size_t columns_of_names(const LayerReport& report) {
    std::size_t columns = name_columns;
    for (const LayerRow& row : report.rows) {
        columns = std::max(columns, columns_of(name_cell(row)));
    }
    return columns;
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

void add_map(Page& page, const LayerReport& report, Phase phase, std::size_t width) {
    const std::size_t names = columns_of_names(report);
    const std::size_t before = names + value_columns + 2;
    const std::size_t room = std::max<std::size_t>(width > before + 1 ? width - before - 1 : 0, 20);
    const char* unit = is_time(report.metric)                   ? "median us"
                       : report.metric == LayerMetric::roofline ? "median %"
                                                                : "median";
    for (std::size_t first = 0; first < report.layers.size(); first += room) {
        const std::size_t last = std::min(first + room, report.layers.size());
        page.line(padded(std::string(phase_word(phase)) + ", layer", names) + padded_left(unit, value_columns) + "  " +
                      ruler(report, first, last),
                  Tone::heading);
        for (const LayerRow& row : report.rows) {
            if (row.phase != phase) {
                continue;
            }
            Line line{padded(name_cell(row), names) +
                      padded_left(value_cell(row.median, report.metric), value_columns) + "  "};
            for (std::size_t i = first; i < last; ++i) {
                line.push_back(shade(row.cells[i].value, row.median, step));
            }
            page.line(std::move(line));
        }
    }
    page.blank();
}

void add_odd(Page& page, const LayerReport& report) {
    const char* unit = is_time(report.metric) ? " us" : report.metric == LayerMetric::roofline ? " %" : "";
    for (const OddLayer& odd : report.odd) {
        std::string sentence = std::string(phase_word(odd.phase)) + " layer " + std::to_string(odd.layer) + " " +
                               name_cell(odd) + ": " + value_cell({odd.value, {}}, report.metric) + unit +
                               ", the other layers " + value_cell({odd.median, {}}, report.metric) + unit;
        if (odd.median > 0) {
            sentence +=
                " (" + fixed(odd.value / odd.median, 2) + "x, robust z " + figure_text({odd.robust_z, {}}, 1, 1) + ")";
        }
        page.marked("ODD  ", sentence);
    }
    const bool any = std::any_of(report.rows.begin(), report.rows.end(), &is_compared);
    if (report.odd.empty() && any) {
        page.line("no odd layer");
    }
}

} // namespace

page::Page page_of(const LayerReport& report, const TextOptions& options) {
    Page page;
    std::vector<Phase> phases;
    for (const LayerRow& row : report.rows) {
        if (std::find(phases.begin(), phases.end(), row.phase) == phases.end()) {
            phases.push_back(row.phase);
        }
        page.reason(name_cell(row), row.median);
    }
    for (const Phase phase : phases) {
        add_map(page, report, phase, options.width);
    }
    if (!report.rows.empty()) {
        page.line(std::string(word_of(report.metric)) +
                      " against the median of its row: " + legend_of_shades(options.color, "12.5 %") + "; blank: n/a",
                  Tone::faint);
        page.reasons();
    }
    add_odd(page, report);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
