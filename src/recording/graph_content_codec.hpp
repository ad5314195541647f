// SPDX-License-Identifier: Apache-2.0
// What captured graphs consist of, node by node, to and from bytes (docs/reference/plumb_format.md), and the bounds it is kept within.
// One entry for each capture; the rows of graph_codec.hpp refer to it by number. Pure functions; no thread rule. Decoding
// takes hostile input: false where something points nowhere, or an edge does not lead forward: so a graph has no cycle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// An entry stays below 2 MiB.
inline constexpr std::size_t most_captured_kinds = 512;
inline constexpr std::size_t most_captured_nodes = 32768;
inline constexpr std::size_t most_captured_edges = 131072;
inline constexpr std::size_t most_captured_name = 1024;

struct ContentEntry {
    std::uint64_t key = 0;
    std::uint64_t number = 0; // by which a row refers to it; 0: none
    std::shared_ptr<const GraphContent> content;
};

/// The first nodes and edges within the bounds; how many are left out is told. Of more kinds than there is room for, the
/// last ones stand without name and shape, by type only.
[[nodiscard]] GraphContent bounded(GraphContent content);
[[nodiscard]] bool is_bounded(const GraphContent& content);
[[nodiscard]] bool same_content(const std::shared_ptr<const GraphContent>& a,
                                const std::shared_ptr<const GraphContent>& b);
/// About as many bytes as encode() makes.
[[nodiscard]] std::uint64_t encoded_size(const GraphContent& content);

/// REQUIRES: there is a content, and it is bounded.
void encode(const ContentEntry& from, Bytes& to);
[[nodiscard]] bool decode(const std::byte* data, std::size_t size, ContentEntry& to);

} // namespace plumb::recording
