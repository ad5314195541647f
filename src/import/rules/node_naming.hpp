// SPDX-License-Identifier: Apache-2.0
// The nodes of one captured graph to bricks and layers, by the rules and witnesses that traces are read by; only that no time is known,
// and that no kernel can be missing. Pure functions of what the caller owns.
#pragma once

#include "import/rules/kernel_rules.hpp"
#include "recording/node_names.hpp"

namespace plumb::imported {

/// One thread at a time with the same rules. Names may be mangled, as drivers tell them.
[[nodiscard]] recording::NodeNames name_nodes(const std::vector<recording::NodeToName>& nodes, KernelRules& rules);

/// By the rules of this machine (KernelRules::load), read with the first call and kept. Any thread; it waits for others. Without
/// rules that can be read no node has a name, and a doubt says so.
[[nodiscard]] recording::NodeNames name_nodes(const std::vector<recording::NodeToName>& nodes);

} // namespace plumb::imported
