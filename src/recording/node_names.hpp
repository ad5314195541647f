// SPDX-License-Identifier: Apache-2.0
// What the nodes of a captured graph are, as far as the names of their kernels and their places tell. Plain data, and the function
// that finds it out (src/import/rules/node_naming.hpp), which libplumb does not hold: it asks for it. No thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/bricks.hpp"

namespace plumb::recording {

enum class CapturedWork : std::uint8_t { kernel = 0, copy = 1, fill = 2 };

/// In the order in which the nodes may run; views belong to the caller.
struct NodeToName {
    std::string_view name;  // of the kernel, as the driver tells it; else what the node is called
    std::uint32_t lane = 0; // nodes of one lane run one after the other
    CapturedWork work = CapturedWork::kernel;
};

struct NodeBrick {
    std::string name;
    Category category = Category::other;
};

struct NodeNames {
    std::vector<NodeBrick> bricks;
    std::vector<std::uint32_t> brick_of;                  // of each node: index in bricks
    std::vector<std::optional<std::uint32_t>> layer_of;   // of each node
    std::uint64_t by_name = 0, by_place = 0, unknown = 0; // how many nodes are known by what
    std::uint32_t layers = 0;                             // 0: none were found
    std::vector<std::string> doubts;                      // why they are uncertain; empty: they are certain
};

/// Any thread; one call at a time is worked on.
using NameNodes = NodeNames (*)(const std::vector<NodeToName>& nodes);

/// What libplumb-naming.so gives to the libplumb.so that opened it. Both are of one build.
struct NamingTable {
    const char* version; // first, whatever the version
    NameNodes name_nodes;
};

} // namespace plumb::recording
