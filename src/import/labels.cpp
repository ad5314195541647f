// SPDX-License-Identifier: Apache-2.0
#include "import/labels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

namespace plumb::imported {
namespace {

constexpr std::size_t most_bricks = 8192; // of the names that a recording may have
constexpr std::size_t longest_brick = 120;

/// "void at::native::f<…>(…)" is at::native::f; "(anonymous namespace)::g(…)" is g.
std::string short_name(std::string_view name) {
    constexpr std::string_view skipped[] = {"void ", "(anonymous namespace)::", "__global__ "};
    for (bool again = true; again;) {
        again = false;
        for (const std::string_view prefix : skipped) {
            if (name.starts_with(prefix)) {
                name.remove_prefix(prefix.size());
                again = true;
            }
        }
    }
    const std::size_t end = name.find_first_of("<(");
    name = name.substr(0, end == 0 ? name.npos : end);
    return std::string(name.empty() ? "unnamed" : name.substr(0, longest_brick));
}

bool holds(std::string_view text, std::string_view word) {
    return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           }) != text.end();
}

/// "Memcpy HtoD (Pageable -> Device)", "CopyDeviceToDevice".
const char* copy_brick(std::string_view name) {
    if (holds(name, "htod") || holds(name, "hosttodevice") || holds(name, "host -> device")) {
        return "copy_h2d";
    }
    return holds(name, "dtoh") || holds(name, "devicetohost") || holds(name, "device -> host") ? "copy_d2h"
                                                                                               : "copy_d2d";
}

} // namespace

BrickName brick_named(std::string name, Category otherwise) {
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
    return {std::move(name), otherwise, 0};
}

Labels label_by_name(const Trace& trace) {
    Labels labels;
    std::map<std::string, std::uint32_t> bricks;
    std::map<std::pair<std::uint32_t, DeviceOpKind>, std::uint32_t> known;
    const auto add = [&](std::string name, Category category) {
        if (bricks.size() == most_bricks && !bricks.contains(name)) {
            name = "other_kernels";
        }
        const auto [found, is_new] = bricks.try_emplace(name, static_cast<std::uint32_t>(labels.bricks.size()));
        if (is_new) {
            labels.bricks.push_back(brick_named(std::move(name), category));
        }
        return found->second;
    };
    labels.layer_of.assign(trace.ops.size(), 0);
    for (const DeviceOp& op : trace.ops) {
        const auto [found, is_new] = known.try_emplace({op.name, op.kind}, 0);
        if (is_new) {
            const std::string& name = trace.names[op.name];
            if (op.kind == DeviceOpKind::memcpy) {
                found->second = add(copy_brick(name), Category::transfer);
            } else if (op.kind == DeviceOpKind::memset) {
                found->second = add("fill", Category::transfer);
            } else if (op.kind == DeviceOpKind::graph) {
                found->second = add("graph", Category::other);
            } else {
                found->second = add(short_name(name), Category::other);
            }
        }
        labels.brick_of.push_back(found->second);
    }
    return labels;
}

} // namespace plumb::imported
