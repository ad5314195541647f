// SPDX-License-Identifier: Apache-2.0
#include "import/rules/brick_name.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace plumb::imported {
namespace {

constexpr std::size_t longest_brick = 120;

bool holds(std::string_view text, std::string_view word) {
    return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           }) != text.end();
}

/// Of a brick that is not well known.
Category category_of(std::string_view brick) {
    static constexpr std::pair<std::string_view, Category> known[] = {
        {"batch_norm", Category::norm}, {"shared_expert", Category::moe},    {"collective", Category::collective},
        {"copy", Category::transfer},   {"send_recv", Category::collective}, {"fill", Category::transfer},
    };
    for (const auto& [name, category] : known) {
        if (name == brick) {
            return category;
        }
    }
    return Category::other;
}

} // namespace

std::string short_name(std::string_view kernel) {
    constexpr std::string_view skipped[] = {"void ", "(anonymous namespace)::", "__global__ "};
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view prefix : skipped) {
            if (kernel.starts_with(prefix)) {
                kernel.remove_prefix(prefix.size());
                again = true;
            }
        }
    }
    const std::size_t end = kernel.find_first_of("<(");
    kernel = kernel.substr(0, end == 0 ? kernel.npos : end);
    return std::string(kernel.empty() ? "unnamed" : kernel.substr(0, longest_brick));
}

const char* copy_brick(std::string_view name) {
    const auto any_of = [name](std::initializer_list<std::string_view> words) {
        return std::any_of(words.begin(), words.end(), [name](std::string_view word) { return holds(name, word); });
    };
    return any_of({"htod", "h2d", "hosttodevice", "host -> device"})   ? "copy_h2d"
           : any_of({"dtoh", "d2h", "devicetohost", "device -> host"}) ? "copy_d2h"
                                                                       : "copy_d2d";
}

BrickName brick_named(std::string name) {
    struct WellKnown {
        const char* name;
        Category category;
        std::uint16_t id;
    };
    static constexpr WellKnown known[] = {
#define PLUMB_IMPORT_BRICK(word, id, category, aliases) {#word, Category::category, id},
        PLUMB_WELL_KNOWN_BRICKS(PLUMB_IMPORT_BRICK)
#undef PLUMB_IMPORT_BRICK
    };
    for (const WellKnown& brick : known) {
        if (name == brick.name) {
            return {std::move(name), brick.category, brick.id};
        }
    }
    const Category category = category_of(name);
    return {std::move(name), category, 0};
}

} // namespace plumb::imported
