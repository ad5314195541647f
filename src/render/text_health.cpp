// SPDX-License-Identifier: Apache-2.0
#include "page/text_table.hpp"
#include "render/numerics_words.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t brick_columns = 40;
constexpr std::size_t shown = 5; // of the worst tensors; JSON has more
constexpr std::string_view indent = "      ";

void line(std::string& out, std::string_view head, const std::string& text, std::string_view color,
          const Style& style) {
    out += color;
    out += head;
    out += style.plain;
    out += printable(text, sentence_columns);
    out += '\n';
}

std::string cell(const Figure& figure) { return figure.value ? short_number(*figure.value) : "n/a"; }

/// The signal-to-noise ratio: what is not finite is the worst there is, what is identical the best.
std::string noise_cell(const Figure& figure) {
    if (figure.value) {
        return fixed(*figure.value, 1);
    }
    return figure.reason == "not finite" ? "NaN" : figure.reason == "identical" ? "exact" : "n/a";
}

std::string percent_cell(const Figure& figure) {
    return figure.value ? short_number(100 * *figure.value) : std::string("n/a");
}

void append_first(std::string& out, const FirstNonfinite& first, const Style& style) {
    line(out, "FIRST ", place_words(first.place) + "  (" + place_details(first.place) + ")", style.warning, style);
    line(out, "", std::string(indent) + nonfinite_words(first.facts), {}, style);
    line(out, "",
         std::string(indent) + (first.inputs == InputState::agree ? "inputs are finite: the operation itself"
                                : first.inputs == InputState::not_recorded
                                    ? "inputs not recorded; add PLUMB_TENSOR_INPUT"
                                    : "inputs are not finite: handed down"),
         {}, style);
    for (const auto& [place, facts] : first.input_tensors) {
        const std::string lost = nonfinite_words(facts);
        line(out, "",
             std::string(indent) + "input " + std::to_string(place.occurrence) + ": largest |x| " +
                 short_number(facts.largest) + (lost.empty() ? "" : ", " + lost),
             style.faint, style);
    }
}

void append_layers(std::string& out, const HealthReport& report, const Style& style) {
    const bool twin = !report.twin.empty();
    TextTable table;
    for (const char* heading : {"layer", "tensors", "NaN/Inf", "rms", "L2", "growth", "max |x|", "% of range"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    if (twin) {
        for (const char* heading : {"rel. error", "cosine", "SNR dB"}) {
            table.add_column(heading, TextTable::Align::right);
        }
    }
    table.add_column("rms of", TextTable::Align::left);
    table.add_column("max in", TextTable::Align::left);
    for (const LayerHealth& row : report.layers) {
        std::vector<std::string> cells{row.layer ? std::to_string(*row.layer) : std::string("-"),
                                       grouped(row.tensors),
                                       grouped(row.nonfinite),
                                       cell(row.rms),
                                       cell(row.l2),
                                       cell(row.growth),
                                       short_number(row.largest),
                                       percent_cell(row.saturation)};
        if (twin) {
            cells.push_back(cell(row.relative_error));
            cells.push_back(row.cosine.value ? fixed(*row.cosine.value, 6) : std::string("n/a"));
            cells.push_back(noise_cell(row.signal_to_noise_db));
        }
        cells.push_back(printable(row.brick, brick_columns));
        cells.push_back(printable(row.largest_brick, brick_columns));
        table.add_row(std::move(cells));
    }
    table.append_to(out, style.heading, style.plain);
    line(out, "", "growth: rms over that of the layer before; % of range: of max |x| in the largest number of its type",
         style.faint, style);
}

void append_worst(std::string& out, const HealthReport& report, const Style& style) {
    for (std::size_t i = 0; i < report.worst.size() && i < shown; ++i) {
        const TensorPair& pair = report.worst[i];
        const std::string lost = nonfinite_words(pair.a.first_nonfinite != no_index ? pair.a : pair.b);
        line(out, "worst  ",
             place_words(pair.place) + " (" + place_details(pair.place) +
                 "): " + (lost.empty() ? "relative error " + distance_words(pair.distance) : lost),
             {}, style);
    }
}

} // namespace

std::string render_text(const HealthReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    if (report.first_nonfinite) {
        append_first(out, *report.first_nonfinite, style);
        const bool all_there = report.nonfinite <= report.tensors; // else the run counted what the recording lost
        line(out, "NOT FINITE  ",
             grouped(report.nonfinite) + (all_there ? " of " + grouped(report.tensors) : "") + " tensors",
             style.warning, style);
    } else if (report.nonfinite != 0) {
        line(out, "NOT FINITE  ",
             grouped(report.nonfinite) + " tensors by the run's own count; where is not known, for their entries are "
                                         "not in the recording",
             style.warning, style);
    } else {
        line(out, "FINITE  ",
             report.tensors == 0 ? report.looked_at
                                 : grouped(report.tensors) + " tensors of " + grouped(report.steps) + " steps",
             {}, style);
    }
    if (report.twin_nonfinite != 0) {
        line(out, "NOT FINITE  ", grouped(report.twin_nonfinite) + " tensors of the twin", style.warning, style);
    }
    if (!report.layers.empty()) {
        out += '\n';
        append_layers(out, report, style);
        out += '\n';
        if (report.residual_growth.value) {
            line(out, "residual growth  ",
                 "rms of the last layer is " + short_number(*report.residual_growth.value) + " times that of the first",
                 {}, style);
        }
    }
    for (const std::string& finding : report.findings) {
        line(out, "finding  ", finding, style.warning, style);
    }
    append_worst(out, report, style);
    for (const std::string& note : report.notes) {
        line(out, "note  ", note, {}, style);
    }
    return out;
}

} // namespace plumb
