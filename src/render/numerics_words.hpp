// SPDX-License-Identifier: Apache-2.0
// The words that the reports of diverge and health share. Pure functions; no thread rule.
#pragma once

#include <string>

#include "plumb/numerics.hpp"

namespace plumb::base {
class JsonWriter;
}

namespace plumb::render {

/// "step 3 layer 5 brick attention": what every answer begins with. Layer "-": outside of layers.
[[nodiscard]] std::string place_words(const TensorPlace& place);
/// "decode, position 66, output 0": what else tells this tensor from others.
[[nodiscard]] std::string place_details(const TensorPlace& place);
/// Three significant digits; "NaN" and "Inf" as they are.
[[nodiscard]] std::string short_number(double value);
/// "0.12 (0.1 to 0.14)"
[[nodiscard]] std::string distance_words(const Distance& distance);
/// "3 NaN, 1 Inf, first at index 17 of 4,096"; empty: finite.
[[nodiscard]] std::string nonfinite_words(const TensorFacts& facts);
[[nodiscard]] const char* role_word(TensorRole role) noexcept;
[[nodiscard]] const char* input_word(InputState state) noexcept;

/// As members of the object that is open. JSON has no NaN and no Inf: they are {"absent": …}.
void put_number(base::JsonWriter& json, const char* name, double value);
void put_place(base::JsonWriter& json, const TensorPlace& place);
void put_facts(base::JsonWriter& json, const char* name, const TensorFacts& facts);
/// "place", "a", "b", "difference", "distance"
void put_pair(base::JsonWriter& json, const TensorPair& pair);
void put_notes(base::JsonWriter& json, const std::vector<std::string>& notes);

} // namespace plumb::render
