// SPDX-License-Identifier: Apache-2.0
#include "render/numerics_words.hpp"

#include <cmath>
#include <cstdio>

#include "base/json_writer.hpp"
#include "page/text_table.hpp"
#include "render/json_figure.hpp"

namespace plumb::render {

using namespace page;
namespace {

constexpr std::size_t name_columns = 120;

template <class T>
void put_optional(base::JsonWriter& json, const char* name, const std::optional<T>& value) {
    if (value) {
        json.field(name, *value);
    }
}

} // namespace

std::string place_words(const TensorPlace& place) {
    return "step " + (place.step ? std::to_string(*place.step) : std::string("-")) + " layer " +
           (place.layer ? std::to_string(*place.layer) : std::string("-")) +
           (place.brick.empty() ? std::string() : " brick " + printable(place.brick, name_columns));
}

std::string place_details(const TensorPlace& place) {
    std::string text = place.phase == Phase::none ? std::string("outside of steps") : phase_word(place.phase);
    if (place.position) {
        text += ", position " + std::to_string(*place.position);
        text += place.rows > 1 ? " and the " + grouped(place.rows - 1) + " after it" : "";
    }
    text += place.sequence != 0 ? ", sequence " + std::to_string(place.sequence) : "";
    text += place.step_b && place.step_b != place.step ? ", step " + std::to_string(*place.step_b) + " of B" : "";
    return text + ", " + role_word(place.role) + " " + std::to_string(place.occurrence);
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

std::string distance_words(const Distance& distance) {
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

const char* role_word(TensorRole role) noexcept { return role == TensorRole::input ? "input" : "output"; }

const char* input_word(InputState state) noexcept {
    return state == InputState::agree ? "agree" : state == InputState::disagree ? "disagree" : "not_recorded";
}

void put_number(base::JsonWriter& json, const char* name, double value) {
    if (std::isfinite(value)) {
        json.field(name, value);
        return;
    }
    put_figure(json, name, {std::nullopt, std::isnan(value) ? "NaN" : value < 0 ? "-Inf" : "Inf"});
}

void put_place(base::JsonWriter& json, const TensorPlace& place) {
    json.key("place");
    json.begin_object();
    put_optional(json, "step", place.step);
    put_optional(json, "step_b", place.step_b);
    json.field("phase", phase_word(place.phase));
    json.field("sequence", place.sequence);
    put_optional(json, "position", place.position);
    json.field("rows", place.rows);
    put_optional(json, "layer", place.layer);
    json.field("brick", place.brick);
    json.field("role", role_word(place.role));
    json.field("occurrence", place.occurrence);
    json.end();
}

void put_facts(base::JsonWriter& json, const char* name, const TensorFacts& facts) {
    json.key(name);
    json.begin_object();
    json.field("dtype", dtype_word(facts.dtype));
    json.field("count", facts.count);
    json.field("nans", facts.nans);
    json.field("positive_infs", facts.positive_infs);
    json.field("negative_infs", facts.negative_infs);
    if (facts.first_nonfinite != no_index) {
        json.field("first_nonfinite", facts.first_nonfinite);
    }
    put_number(json, "largest", facts.largest);
    json.end();
}

void put_pair(base::JsonWriter& json, const TensorPair& pair) {
    put_place(json, pair.place);
    put_facts(json, "a", pair.a);
    put_facts(json, "b", pair.b);
    json.field("difference", difference_word(pair.difference));
    json.key("distance");
    json.begin_object();
    put_number(json, "estimate", pair.distance.estimate);
    put_number(json, "low", pair.distance.low);
    put_number(json, "high", pair.distance.high);
    json.end();
}

void put_notes(base::JsonWriter& json, const std::vector<std::string>& notes) {
    json.key("notes");
    json.begin_array();
    for (const std::string& note : notes) {
        json.value(note);
    }
    json.end();
}

} // namespace plumb::render
