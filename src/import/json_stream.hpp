// SPDX-License-Identifier: Apache-2.0
// Cuts a JSON text of any length into the elements of chosen arrays, without reading them: it knows strings and brackets, nothing
// else, and a library reads each element alone. So memory is a block, an error costs one element, and a cut file gives what it
// holds. Owned by one reader; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/input.hpp"

namespace plumb::imported {

/// What to do with a value. text: give it as a whole, if it is below the limit. inside: look at its members. elements: cut an
/// array, whose elements are objects.
enum class Take : std::uint8_t { skip, text, inside, elements };

/// Keys from the top; an array above adds no key.
using JsonPath = std::vector<std::string>;

/// Elements of one array, in order, and the block that they lie in.
struct JsonElements {
    std::shared_ptr<const std::string> block;
    std::vector<std::string_view> texts;
};

struct JsonVisitor {
    /// `opens`: the first character of the value.
    std::function<Take(const JsonPath& path, char opens)> choose;
    std::function<void(const JsonPath& path, std::string_view text)> value;
    /// False ends the walk.
    std::function<bool(const JsonPath& path, JsonElements&& some)> elements;
};

struct JsonDamage {
    std::uint64_t elements = 0; // that end nowhere, hold a raw line break in a string, or are too long
    bool cut = false;           // the text ends before it is complete
};

/// Elements and values longer than this, and what is nested deeper, are damage.
inline constexpr std::size_t longest_element = std::size_t{1} << 20;
inline constexpr std::size_t deepest_element = 512;

/// The end of the object or array that opens at text[at], just behind its closing bracket. npos: it does not end here; `broken`
/// is set where it cannot end well either, with more text, and is then the place to look for another one from.
std::size_t end_of_element(std::string_view text, std::size_t at, std::size_t& broken);

/// The first key of an object, with its quotes; `"ph"` where it has none.
std::string_view first_key(std::string_view object);
/// Where from `at` on the next object opens that has this first key; npos: nowhere.
std::size_t next_like(std::string_view text, std::size_t at, std::string_view key);

Result<JsonDamage> walk_json(Input& input, const JsonVisitor& visitor);

} // namespace plumb::imported
