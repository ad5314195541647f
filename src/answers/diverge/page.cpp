// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "answers/diverge/diverge.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t shown = 8; // of lists that JSON has whole
constexpr std::string_view indent = "      ";

std::string counted(std::uint64_t count, const char* what) {
    return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string tolerance_words(const DivergeReport& report) {
    if (report.exact) {
        return "all bits (--expect exact)";
    }
    const std::string value = short_number(report.tolerance);
    if (report.tolerance_of) {
        return value + " (that of " + dtype_word(*report.tolerance_of) + ", the coarsest element type of both runs)";
    }
    return report.tolerance_given ? value + " (as given)" : "none: no tensor is of a floating type";
}

std::string sides(const std::string& a, const std::string& b) {
    return "A has " + (a.empty() ? "none" : a) + "; B has " + (b.empty() ? "none" : b);
}

std::string difference_words(const FirstDivergence& first, const DivergeReport& report) {
    const TensorPair& tensor = first.tensor;
    switch (tensor.difference) {
    case Difference::nonfinite:
        return "NaN or Inf differ: " + sides(nonfinite_words(tensor.a), nonfinite_words(tensor.b));
    case Difference::empty:
        return "empty: A has " + counted(tensor.a.count, "element") + ", B " + grouped(tensor.b.count);
    case Difference::shape:
        return "shapes differ: A has " + counted(tensor.a.count, "element") + ", B " + grouped(tensor.b.count);
    case Difference::bits:
        return "not bit for bit the same: relative distance " + distance_words(tensor.distance);
    case Difference::token:
        return "the logits agree within the tolerance, but the token with the largest is " +
               std::to_string(first.token_a.value_or(0)) + " in A and " + std::to_string(first.token_b.value_or(0)) +
               " in B; what follows was computed from that token";
    case Difference::none:
    case Difference::value:
        break;
    }
    return "relative distance " + distance_words(tensor.distance) + ", tolerance " + short_number(report.tolerance);
}

void add_inputs(Page& page, const FirstDivergence& first) {
    std::string text(indent);
    if (first.inputs == InputState::agree) {
        text += "inputs agree: the operation itself";
    } else if (first.inputs == InputState::not_recorded) {
        text += "inputs not recorded: the operation itself or what it was given; add PLUMB_TENSOR_INPUT";
    } else {
        text += "inputs disagree: handed down";
        if (first.preceded_by) {
            text += "; the output checked last before it agrees (" + place_words(*first.preceded_by) +
                    "): look between the two";
        }
    }
    page.marked("", text);
    for (std::size_t i = 0; i < first.input_tensors.size() && i < shown; ++i) {
        const TensorPair& input = first.input_tensors[i];
        const std::string lost = nonfinite_words(input.a);
        page.marked("", std::string(indent) + "input " + std::to_string(input.place.occurrence) +
                            ": relative distance " + distance_words(input.distance) +
                            (lost.empty() ? "" : ", " + lost));
    }
}

/// One bar per layer, as long as the distance has decades above the least one shown.
void add_layers(Page& page, const DivergeReport& report, std::size_t width) {
    if (report.layers.empty()) {
        return;
    }
    double least = INFINITY;
    double most = 0;
    for (const LayerDistance& layer : report.layers) {
        const double distance = layer.tensor.distance.estimate;
        if (distance > 0 && std::isfinite(distance)) {
            least = std::min(least, distance);
            most = std::max(most, distance);
        }
    }
    const double floor = std::floor(std::log10(std::isfinite(least) ? least : 1)) - 1;
    const double decades = std::max(1.0, (most > 0 ? std::log10(most) : 0) - floor);
    const std::size_t columns = std::clamp<std::size_t>(width > 50 ? width - 50 : 10, 10, 40);
    TextTable table({}, {"layer"}, {"brick"});
    table.add_column("distance", TextTable::Align::right);
    table.add_column("decades", TextTable::Align::left);
    for (const LayerDistance& layer : report.layers) {
        const double distance = layer.tensor.distance.estimate;
        std::size_t length = 0;
        if (!std::isfinite(distance) && known(layer.tensor.distance)) {
            length = columns;
        } else if (distance > 0 && std::isfinite(distance)) {
            length = static_cast<std::size_t>(std::clamp((std::log10(distance) - floor) / decades, 0.0, 1.0) *
                                              static_cast<double>(columns));
        }
        std::string bar;
        for (std::size_t i = 0; i < length; ++i) {
            bar += "\xE2\x96\x88";
        }
        if (layer.tensor.difference == Difference::nonfinite) {
            bar += " NaN or Inf";
        } else if (layer.tensor.difference != Difference::none) {
            bar += " *";
        }
        table.add_row({std::to_string(layer.layer), printable(layer.tensor.place.brick, 40),
                       !known(layer.tensor.distance) ? std::string("n/a") : short_number(distance), bar});
    }
    page.blank();
    page.table(std::move(table));
    page.marked("", "distance: relative L2 of the layer's last output in that step; *: beyond the tolerance");
}

void add_missing_side(Page& page, const MissingCount& count, const char* present, const char* absent) {
    if (count.steps != 0) {
        page.marked("MISSING ", counted(count.steps, "step") + " of " + present + " (" +
                                    counted(count.step_tensors, "tensor") + ") that " + absent + " does not have");
    }
    if (count.tensors != 0) {
        page.marked("MISSING ", counted(count.tensors, "tensor") + " of " + present + " that " + absent +
                                    " lacks in a step that both have");
    }
}

void add_missing(Page& page, const DivergeReport& report) {
    add_missing_side(page, report.only_in_a, "A", "B");
    add_missing_side(page, report.only_in_b, "B", "A");
    std::size_t rows = 0;
    for (const MissingTensor& missing : report.missing) {
        if (!missing.place.brick.empty() && rows++ < shown) {
            page.marked("", std::string(indent) + "only in " + (missing.only_in_a ? "A: " : "B: ") +
                                place_words(missing.place) + " (" + place_details(missing.place) + ")");
        }
    }
}

void add_flips(Page& page, const DivergeReport& report) {
    if (report.flip_count == 0) {
        return;
    }
    page.marked("FLIPS  ", counted(report.flip_count, "token") + " where the largest logit is another");
    for (std::size_t i = 0; i < report.flips.size() && i < shown; ++i) {
        const TokenFlip& flip = report.flips[i];
        page.marked("", std::string(indent) + place_words(flip.place) + ": token " + std::to_string(flip.token_a) +
                            " (margin " + short_number(flip.margin_a) + ") in A, " + std::to_string(flip.token_b) +
                            " (margin " + short_number(flip.margin_b) + ") in B");
    }
}

} // namespace

page::Page page_of(const DivergeReport& report, const TextOptions& options) {
    Page page;
    const std::string counts = counted(report.compared, "tensor") + " compared, " + grouped(report.identical) +
                               " bit for bit the same, " + grouped(report.divergent) + " beyond the tolerance";
    if (report.first) {
        page.marked("FIRST ",
                    place_words(report.first->tensor.place) + "  (" + place_details(report.first->tensor.place) + ")");
        page.marked("", std::string(indent) + difference_words(*report.first, report));
        if (report.first->tensor.difference != Difference::token) {
            add_inputs(page, *report.first);
        }
        add_layers(page, report, options.width);
        page.blank();
        page.marked("counts  ", counts, Tone::plain);
    } else if (report.same()) {
        page.marked("SAME  ", counts, Tone::plain);
    } else if (report.compared == 0) {
        page.marked("MISSING ", "everything: no tensor of one run has its counterpart in the other");
    } else {
        page.marked("counts  ", counts, Tone::plain);
    }
    if (report.tensors_a != 0 && report.tensors_b != 0) { // else the note says what one of them lacks
        add_missing(page, report);
    }
    add_flips(page, report);
    if (report.worst) {
        page.marked("worst  ",
                    place_words(report.worst->place) + " (" + place_details(report.worst->place) +
                        "): relative distance " + distance_words(report.worst->distance),
                    Tone::plain);
    }
    page.marked("tolerance  ", tolerance_words(report), Tone::plain);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
