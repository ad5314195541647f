// SPDX-License-Identifier: Apache-2.0
#include "analysis/captured_nodes.hpp"

#include <algorithm>

namespace plumb::analysis {

CapturedNodes::CapturedNodes(const recording::GraphInfo& info)
    : info_(&info), working_(info.sites.size(), 0), edges_(info.content->edges), waits_(info.content->nodes.size()),
      leads_on_(info.content->nodes.size()) {
    std::sort(edges_.begin(), edges_.end());
    for (const auto& [from, to] : edges_) {
        leads_on_[from] = true;
        waits_[to] = true;
    }
    for (std::size_t i = 0; i < size(); ++i) {
        if (site(i) != none && works(i)) {
            ++working_[site(i)];
        }
    }
}

std::uint32_t CapturedNodes::site(std::size_t node) const {
    const std::uint32_t plus_one = content().nodes[node].site_plus_one;
    return plus_one == 0 || plus_one > info_->sites.size() ? none : plus_one - 1;
}

bool CapturedNodes::works(std::size_t node) const {
    constexpr std::uint32_t child_graph = 4, empty = 5, event_wait = 6, event_record = 7;
    const std::uint32_t type = kind(node).type;
    return type != child_graph && type != empty && type != event_wait && type != event_record;
}

} // namespace plumb::analysis
