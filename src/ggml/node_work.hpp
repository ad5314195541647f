// SPDX-License-Identifier: Apache-2.0
// What a node of a ggml graph moves and computes, by the sizes of the tensors around it. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace plumb::ggml {

/// A tensor by what ggml's functions say of it; one that is not there has no rows and no bytes. `bytes` are those of its elements,
/// also where it is a view with something between them.
struct TensorSizes {
    std::string_view name;
    double bytes = 0, elements = 0, rows = 0;

    /// Elements of one row.
    [[nodiscard]] double row() const { return rows > 0 ? elements / rows : 0; }
};

/// A node: `operation` as ggml_op_desc gives it.
struct NodeFacts {
    static constexpr std::size_t most_sources = 4;

    std::string_view operation;
    TensorSizes self;
    std::array<TensorSizes, most_sources> sources;
};

/// Bytes and flops of one node: a part that is always so, and a part for each position of the kv cache. NaN: not known.
struct NodeWork {
    double bytes = 0, flops = 0, bytes_per_kv = 0, flops_per_kv = 0;
    double positions = 0; // of the cache that the node sees at most; 0: nothing depends on them

    /// With so many positions in the cache. What they add is in the flops; it is in the bytes unless the step's own length gives it by
    /// bytes_per_kv.
    [[nodiscard]] NodeWork at(double kv_length, double kv_length_of_step) const;
    /// Of two nodes that are computed at once.
    NodeWork& operator+=(const NodeWork& other);
};

[[nodiscard]] NodeWork work_of(const NodeFacts& node);

/// The name of the first operand that is a weight or bias of the model; empty: none is.
[[nodiscard]] std::string_view weight_of(const NodeFacts& node);

} // namespace plumb::ggml
