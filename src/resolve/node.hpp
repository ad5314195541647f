// SPDX-License-Identifier: Apache-2.0
// Kernels, transfers and tasks that a run recorded one by one, and the dependencies between them, on the common clock.
// Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "plumb/bricks.hpp"
#include "plumb/node.hpp"
#include "resolve/sample.hpp"

namespace plumb::resolve {

enum class RecordedKind : std::uint8_t { kernel, transfer, task };

/// Which record a node is: its track and its number there.
struct NodeKey {
    std::uint32_t track = 0;
    std::uint64_t sequence = 0;
    friend constexpr auto operator<=>(const NodeKey&, const NodeKey&) = default;
};

/// NaN where no work was given.
struct RecordedNode {
    RecordedKind kind = RecordedKind::kernel;
    bool timed = false; // begin_ns and duration_ns are its own; else begin_ns is when it was told
    bool warmup = false;
    bool left_out = false;
    Phase phase = Phase::none;
    std::uint16_t name = 0; // of kernels and tasks
    std::optional<std::uint32_t> layer;
    std::uint64_t step = no_step;
    NodeKey key;
    std::int64_t begin_ns = 0;
    std::int64_t duration_ns = 0;
    std::size_t position = 0; // it stands before the sample of that index in its batch

    bool has_parts = false; // what follows is known
    std::uint64_t code_hash = 0;
    Extent grid, block;
    std::uint32_t shared_bytes = 0;
    double bytes = std::numeric_limits<double>::quiet_NaN();
    double flops = std::numeric_limits<double>::quiet_NaN();
    double elements = std::numeric_limits<double>::quiet_NaN();

    TransferDirection direction = TransferDirection::host_to_device;
    std::uint64_t source = 0;
    std::uint64_t target = 0;
    std::uint64_t transferred = 0; // bytes

    std::uint64_t polls = 0;
    std::uint64_t yields = 0;
    std::uint64_t polled_ns = 0;
};

struct NodeDependency {
    NodeKey earlier, later;
    std::uint64_t step = no_step; // that its thread worked for
};

} // namespace plumb::resolve
