// SPDX-License-Identifier: Apache-2.0
#include "answers/health/health.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t brick_columns = 40;
constexpr std::size_t shown = 5; // of the worst tensors; JSON has more
constexpr std::string_view indent = "      ";

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

void add_first(Page& page, const FirstNonfinite& first) {
    page.marked("FIRST ", place_words(first.place) + "  (" + place_details(first.place) + ")");
    page.marked("", std::string(indent) + nonfinite_words(first.facts));
    page.marked("", std::string(indent) + (first.inputs == InputState::agree ? "inputs are finite: the operation itself"
                                           : first.inputs == InputState::not_recorded
                                               ? "inputs not recorded; add PLUMB_TENSOR_INPUT"
                                               : "inputs are not finite: handed down"));
    for (const auto& [place, facts] : first.input_tensors) {
        const std::string lost = nonfinite_words(facts);
        page.marked("", std::string(indent) + "input " + std::to_string(place.occurrence) + ": largest |x| " +
                            short_number(facts.largest) + (lost.empty() ? "" : ", " + lost));
    }
}

void add_layers(Page& page, const HealthReport& report) {
    const bool twin = !report.twin.empty();
    TextTable table({}, {"layer", "tensors", "NaN/Inf", "rms", "L2", "growth", "max |x|", "% of range"});
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
    page.table(std::move(table));
    page.marked("",
                "growth: rms over that of the layer before; % of range: of max |x| in the largest number of its type");
}

void add_worst(Page& page, const HealthReport& report) {
    for (std::size_t i = 0; i < report.worst.size() && i < shown; ++i) {
        const TensorPair& pair = report.worst[i];
        const bool of_twin = pair.a.first_nonfinite == no_index;
        const std::string lost = nonfinite_words(of_twin ? pair.b : pair.a);
        page.marked("worst  ",
                    place_words(pair.place) + " (" + place_details(pair.place, "the twin") + "): " +
                        (lost.empty() ? "relative error " + distance_words(pair.distance)
                         : of_twin    ? "in the twin " + lost
                                      : lost),
                    Tone::plain);
    }
}

} // namespace

page::Page page_of(const HealthReport& report, const TextOptions&) {
    Page page;
    if (report.first_nonfinite) {
        add_first(page, *report.first_nonfinite);
        const bool all_there = report.nonfinite <= report.tensors; // else the run counted what the recording lost
        page.marked("NOT FINITE  ",
                    grouped(report.nonfinite) + (all_there ? " of " + grouped(report.tensors) : "") + " tensors");
    } else if (report.nonfinite != 0) {
        page.marked("NOT FINITE  ", grouped(report.nonfinite) +
                                        " tensors by the run's own count; where is not known, for their entries are "
                                        "not in the recording");
    } else {
        page.marked("FINITE  ",
                    report.tensors == 0 ? report.looked_at
                                        : grouped(report.tensors) + " tensors of " + grouped(report.steps) + " steps",
                    Tone::plain);
    }
    if (report.twin_nonfinite != 0) {
        page.marked("NOT FINITE  ", grouped(report.twin_nonfinite) + " tensors of the twin");
    }
    if (!report.layers.empty()) {
        page.blank();
        add_layers(page, report);
        page.blank();
        if (report.residual_growth.value) {
            page.marked("residual growth  ",
                        "rms of the last layer checked is " + short_number(*report.residual_growth.value) +
                            " times that of the first",
                        Tone::plain);
        }
    }
    for (const std::string& finding : report.findings) {
        page.marked("finding  ", finding);
    }
    add_worst(page, report);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
