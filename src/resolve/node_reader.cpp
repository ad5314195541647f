// SPDX-License-Identifier: Apache-2.0
#include "resolve/node_reader.hpp"

namespace plumb::resolve {
namespace {

constexpr unsigned all_parts = 7; // three of each kind of node

Extent extent_of(const Record& record) {
    return {static_cast<std::uint32_t>(record.first), static_cast<std::uint32_t>(record.first >> 32),
            static_cast<std::uint32_t>(payload_of(record))};
}

/// Which parts a node wants before it.
RecordKind part_kind(RecordKind node) {
    return node == RecordKind::kernel     ? RecordKind::kernel_code
           : node == RecordKind::transfer ? RecordKind::transfer_part
                                          : RecordKind::task_part;
}

} // namespace

bool NodeReader::part(const Record& record, std::uint64_t sequence) {
    const RecordKind kind = kind_of(record);
    const RecordKind group = kind == RecordKind::kernel_extent ? RecordKind::kernel_code : kind;
    if (group != of_ || sequence != next_) {
        have_ = 0;
    }
    of_ = group;
    next_ = sequence + 1;
    const std::uint16_t id = id_of(record);
    unsigned bit = id;
    if (kind == RecordKind::kernel_code) {
        bit = 2;
        parts_.name = id;
        parts_.code_hash = record.first;
        parts_.shared_bytes = static_cast<std::uint32_t>(payload_of(record));
    } else if (kind == RecordKind::kernel_extent) {
        if (id > 1) {
            return false;
        }
        (id == 0 ? parts_.grid : parts_.block) = extent_of(record);
    } else if (kind == RecordKind::dependency) {
        earlier_ = {static_cast<std::uint32_t>(payload_of(record)), record.first};
        bit = 0;
    } else if (id > 2) {
        return false;
    } else if (kind == RecordKind::transfer_part) {
        (id == 0 ? parts_.source : id == 1 ? parts_.target : parts_.transferred) = record.first;
    } else {
        (id == 0 ? parts_.polls : id == 1 ? parts_.yields : parts_.polled_ns) = record.first;
    }
    have_ |= 1u << bit;
    return true;
}

bool NodeReader::complete(const Record& record, std::uint64_t sequence, RecordedNode& node) {
    const RecordKind kind = kind_of(record);
    const std::uint64_t before = payload_of(record) == payload_mask ? 1 : 0; // its long duration
    const bool whole = of_ == part_kind(kind) && have_ == all_parts && next_ + before == sequence;
    have_ = 0;
    if (kind == RecordKind::transfer) {
        if (id_of(record) > static_cast<std::uint16_t>(TransferDirection::device_to_device)) {
            return false;
        }
        node.direction = static_cast<TransferDirection>(id_of(record));
    }
    if (!whole || (kind == RecordKind::kernel && parts_.name != id_of(record))) {
        return false;
    }
    node.has_parts = true;
    node.code_hash = parts_.code_hash;
    node.grid = parts_.grid;
    node.block = parts_.block;
    node.shared_bytes = parts_.shared_bytes;
    node.source = parts_.source;
    node.target = parts_.target;
    node.transferred = parts_.transferred;
    node.polls = parts_.polls;
    node.yields = parts_.yields;
    node.polled_ns = parts_.polled_ns;
    return true;
}

std::optional<NodeDependency> NodeReader::dependency(const Record& record, std::uint64_t sequence) {
    const bool whole = of_ == RecordKind::dependency && have_ == 1 && next_ == sequence;
    have_ = 0;
    if (!whole) {
        return std::nullopt;
    }
    return NodeDependency{earlier_, {static_cast<std::uint32_t>(payload_of(record)), record.first}, no_step};
}

} // namespace plumb::resolve
