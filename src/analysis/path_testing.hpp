// SPDX-License-Identifier: Apache-2.0
// What the tests of the graph of a step ask of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/path_builder.hpp"
#include "planted/tape.hpp"

namespace plumb::analysis::path_test {

inline constexpr std::uint32_t host = 1, worker = 2, queue = 0x80000001, graph_track = 0x80000002;

inline void add_queue(planted::Tape& source, std::uint32_t id = queue, const std::string& name = "stream") {
    recording::TrackInfo info;
    info.id = id;
    info.kind = recording::TrackKind::device_queue;
    info.name = name;
    info.source = "cuda_event";
    source.device_track(info);
}

inline PathReport path_of(const recording::RecordedRun& source, const PathOptions& options = {}) {
    auto report = build_path(source, options);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    return report.ok() ? std::move(*report) : PathReport{};
}

/// Nodes of that name and kind, in order.
inline std::vector<NodeId> nodes(const PathReport& report, const std::string& name, NodeKind kind = NodeKind::kernel) {
    std::vector<NodeId> found;
    for (NodeId id = 0; id < report.graph.size(); ++id) {
        if (report.graph.name_of(id) == name && report.graph[id].kind == kind) {
            found.push_back(id);
        }
    }
    return found;
}

inline bool depends(const ExecGraph& graph, NodeId earlier, NodeId later) {
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        for (std::uint64_t e = graph.offsets()[row]; e < graph.offsets()[row + 1]; ++e) {
            if (graph.node_of_row(row) == earlier && graph.node_of_row(graph.targets()[e]) == later) {
                return true;
            }
        }
    }
    return false;
}

inline bool noted(const PathReport& report, const std::string& part) {
    return std::any_of(report.notes.begin(), report.notes.end(),
                       [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

} // namespace plumb::analysis::path_test
