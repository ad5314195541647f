// SPDX-License-Identifier: Apache-2.0
#include "answers/tensors.hpp"

#include <cmath>
#include <cstdio>

#include "page/text_table.hpp"

namespace plumb {

using namespace page;

namespace {

constexpr std::size_t name_columns = 120;

} // namespace

std::string place_words(const TensorPlace& place) {
    return "step " + (place.step ? std::to_string(*place.step) : std::string("-")) + " layer " +
           (place.layer ? std::to_string(*place.layer) : std::string("-")) +
           (place.brick.empty() ? std::string() : " brick " + printable(place.brick, name_columns));
}

std::string place_details(const TensorPlace& place, const char* other) {
    std::string text = place.phase == Phase::none ? std::string("outside of steps") : phase_word(place.phase);
    if (place.position) {
        text += ", position " + std::to_string(*place.position);
        text += place.rows > 1 ? " and the " + grouped(place.rows - 1) + " after it" : "";
    }
    text += place.sequence != 0 ? ", sequence " + std::to_string(place.sequence) : "";
    text +=
        place.step_b && place.step_b != place.step ? ", step " + std::to_string(*place.step_b) + " of " + other : "";
    return text + ", " + word_of(place.role) + " " + std::to_string(place.occurrence);
}

std::string short_number(double value) {
    if (std::isnan(value)) {
        return "NaN";
    }
    if (std::isinf(value)) {
        return value < 0 ? "-Inf" : "Inf";
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

bool known(const Distance& distance) noexcept { return std::isfinite(distance.estimate) || !(distance.low == 0); }

std::string distance_words(const Distance& distance) {
    if (!known(distance)) {
        return "not known (squares overflow or vanish)";
    }
    if (!std::isfinite(distance.estimate) || distance.low == distance.high) {
        return short_number(distance.estimate);
    }
    return short_number(distance.estimate) + " (" + short_number(distance.low) + " to " + short_number(distance.high) +
           ")";
}

std::string nonfinite_words(const TensorFacts& facts) {
    const std::uint64_t infs = facts.positive_infs + facts.negative_infs;
    if (facts.nans + infs == 0) {
        return {};
    }
    std::string text = grouped(facts.nans) + " NaN, " + grouped(infs) + " Inf";
    if (facts.first_nonfinite != no_index) {
        text += ", first at index " + grouped(facts.first_nonfinite);
    }
    return text + " of " + grouped(facts.count);
}

} // namespace plumb
