// SPDX-License-Identifier: Apache-2.0
// What a captured graph consists of, made ready for the replays of one step: which of its nodes lie in which scope, and its
// edges in order. One for each graph, however often it was replayed. Owned by one report; one thread.
// REQUIRES: the row outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::analysis {

[[nodiscard]] inline std::optional<std::uint32_t> layer_of(const recording::GraphSite& site) noexcept {
    return site.layer_plus_one != 0 ? std::optional<std::uint32_t>(site.layer_plus_one - 1u) : std::nullopt;
}

class CapturedNodes {
  public:
    static constexpr std::uint32_t none = 0xffffffff;

    /// REQUIRES: the row has a content.
    explicit CapturedNodes(const recording::GraphInfo& info);

    [[nodiscard]] const recording::GraphInfo& info() const noexcept { return *info_; }
    [[nodiscard]] const recording::GraphContent& content() const noexcept { return *info_->content; }
    [[nodiscard]] std::size_t size() const noexcept { return content().nodes.size(); }
    [[nodiscard]] const recording::CapturedKind& kind(std::size_t node) const {
        return content().kinds[content().nodes[node].kind];
    }
    /// Index of the innermost scope; none: in no scope.
    [[nodiscard]] std::uint32_t site(std::size_t node) const;
    /// How many nodes of a scope's own work: kernels, copies and the like, not those that only order others.
    [[nodiscard]] std::uint32_t working(std::uint32_t site) const { return working_[site]; }
    [[nodiscard]] bool works(std::size_t node) const;
    [[nodiscard]] bool is_kernel(std::size_t node) const { return kind(node).type == recording::CapturedKind::kernel; }
    /// In the order of where they begin, which is one in which whatever leads to a node comes before what it leads to.
    [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges() const noexcept { return edges_; }
    /// Nothing was cut off: its edges are all there are.
    [[nodiscard]] bool whole() const { return content().nodes_left_out == 0 && content().edges_left_out == 0; }
    [[nodiscard]] bool waits(std::size_t node) const { return waits_[node]; }
    [[nodiscard]] bool leads_on(std::size_t node) const { return leads_on_[node]; }

  private:
    const recording::GraphInfo* info_;
    std::vector<std::uint32_t> working_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
    std::vector<bool> waits_, leads_on_; // some edge leads to it, or away from it
};

} // namespace plumb::analysis
