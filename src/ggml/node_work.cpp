// SPDX-License-Identifier: Apache-2.0
#include "ggml/node_work.hpp"

#include <algorithm>
#include <limits>

namespace plumb::ggml {
namespace {

NodeWork plain_work(const NodeFacts& node) {
    NodeWork work;
    work.bytes = node.self.bytes;
    work.flops = node.self.elements;
    for (const TensorSizes& source : node.sources) {
        work.bytes += source.bytes;
    }
    return work;
}

/// Only the experts that were chosen are read.
NodeWork work_of_experts(const NodeFacts& node) {
    const TensorSizes& weights = node.sources[0];
    const TensorSizes& chosen = node.sources[2];
    NodeWork work = plain_work(node);
    work.flops = 2 * weights.row() * node.self.elements;
    const double rows = node.self.row(); // of one expert
    if (chosen.elements > 0 && weights.rows > 0 && rows > 0) {
        const double experts = weights.rows / rows;
        const double read = std::min(experts, chosen.elements);
        work.bytes -= weights.bytes * (1 - read / experts);
    }
    return work;
}

/// The views of the cache are longer than what is in it, so their size counts by position.
NodeWork work_of_flash_attention(const NodeFacts& node) {
    const TensorSizes& queries = node.sources[0];
    const TensorSizes& mask = node.sources[3];
    if (mask.rows <= 0) {
        NodeWork work = plain_work(node);
        work.flops = std::numeric_limits<double>::quiet_NaN(); // nothing else tells the number of positions
        return work;
    }
    NodeWork work;
    work.bytes = queries.bytes + node.self.bytes;
    work.bytes_per_kv = (node.sources[1].bytes + node.sources[2].bytes + mask.bytes) / mask.row();
    work.flops_per_kv = 4 * queries.elements;
    work.positions = mask.row();
    return work;
}

/// Scores (kq), their softmax, and the weighted sum (kqv): in each one dimension is the length of the cache's view.
NodeWork work_of_attention(const NodeFacts& node) {
    const TensorSizes& first = node.sources[0];
    const TensorSizes& second = node.sources[1];
    NodeWork work;
    const bool scores = node.operation == "MUL_MAT" && !node.self.name.starts_with("kqv");
    if (node.operation == "MUL_MAT" && !scores) {
        work.positions = first.row();
        work.bytes = node.self.bytes;
        work.bytes_per_kv = (first.bytes + second.bytes) / work.positions;
        work.flops_per_kv = 2 * node.self.elements;
    } else {
        work.positions = node.self.row();
        work.bytes = scores ? second.bytes : 0;
        work.bytes_per_kv = (first.bytes + node.self.bytes) / work.positions;
        work.flops_per_kv = scores ? 2 * second.elements : node.self.elements / work.positions;
    }
    return work;
}

bool is_attention_over_cache(const NodeFacts& node) {
    const std::string_view name = node.self.name;
    return (node.operation == "MUL_MAT" && (name.starts_with("kq-") || name.starts_with("kqv-"))) ||
           (node.operation == "SOFT_MAX" && name.starts_with("kq"));
}

} // namespace

NodeWork& NodeWork::operator+=(const NodeWork& other) {
    bytes += other.bytes;
    flops += other.flops;
    bytes_per_kv += other.bytes_per_kv;
    flops_per_kv += other.flops_per_kv;
    positions = std::max(positions, other.positions);
    return *this;
}

NodeWork NodeWork::at(double kv_length, double kv_length_of_step) const {
    NodeWork made = *this;
    const double read = std::min(kv_length, positions);
    made.flops += flops_per_kv * read;
    if (read != kv_length_of_step) {
        made.bytes += bytes_per_kv * read;
        made.bytes_per_kv = 0;
    }
    return made;
}

NodeWork work_of(const NodeFacts& node) {
    const std::string_view operation = node.operation;
    if (operation == "FLASH_ATTN_EXT") {
        return work_of_flash_attention(node);
    }
    if (is_attention_over_cache(node)) {
        return work_of_attention(node);
    }
    if (operation == "MUL_MAT_ID") {
        return work_of_experts(node);
    }
    NodeWork work = plain_work(node);
    if (operation == "MUL_MAT") {
        work.flops = 2 * node.sources[0].row() * node.self.elements;
    } else if (operation == "GET_ROWS") { // of the table only the rows that were asked for
        const TensorSizes& table = node.sources[0];
        const double row = table.rows > 0 ? table.bytes / table.rows : 0;
        work.bytes = row * node.self.rows + node.sources[1].bytes + node.self.bytes;
        work.flops = 0;
    } else if (operation == "SET_ROWS") { // the node is all that it writes into
        const TensorSizes& fresh = node.sources[0];
        work.bytes = fresh.bytes + node.sources[1].bytes + fresh.elements / node.self.elements * node.self.bytes;
        work.flops = 0;
    } else if (operation == "CPY") { // the node is what it writes, which is also its second operand
        work.bytes = node.sources[0].bytes + (node.sources[1].elements > 0 ? node.sources[1] : node.self).bytes;
        work.flops = 0;
    }
    return work;
}

std::string_view weight_of(const NodeFacts& node) {
    const auto* found = std::find_if(node.sources.begin(), node.sources.end(), [](const TensorSizes& source) {
        return source.name.ends_with(".weight") || source.name.ends_with(".bias");
    });
    return found != node.sources.end() ? found->name : std::string_view();
}

} // namespace plumb::ggml
