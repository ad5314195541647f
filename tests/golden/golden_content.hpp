// SPDX-License-Identifier: Apache-2.0
// What the golden recordings hold, computed anew by generator and test. Never change it for a version that was shipped:
// the files are proof that old recordings stay readable. Plain functions; no thread rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::golden {

recording::Metadata metadata();
std::vector<recording::TrackInfo> tracks();
std::vector<recording::NameInfo> names();
std::vector<recording::ClockPair> clock_pairs();
recording::Counters counters();
/// Every kind of record, ordinary and extreme values; differs by track.
std::vector<Record> records(std::uint32_t track);
inline constexpr std::uint64_t first_sequence = 1000;

/// Writes the recording to `path`, which must not exist. `max_bytes` as in WriterOptions.
Status write(const std::string& path, bool compress, std::uint64_t max_bytes);

/// Of the recording with captured graphs: a queue timed in every 8th step, one graph's track, rows that were repeated.
std::vector<recording::TrackInfo> graph_tracks();
/// As a reader must see them: the last of each key.
std::vector<recording::GraphInfo> graphs();
std::vector<Record> graph_records(std::uint32_t track);
Status write_graphs(const std::string& path);

/// Of the recording with nodes of captured graphs: rows as a reader must see them, one table each, and one without.
std::vector<recording::GraphInfo> graphs_with_nodes();
Status write_graph_nodes(const std::string& path);

/// Of the recording with nodes: every kind of node, part and dependency, timed and told; registered kernels, two of which
/// collide.
std::vector<recording::KernelInfo> kernels();
std::vector<Record> node_records(std::uint32_t track);
Status write_nodes(const std::string& path);

/// Of the recordings with device scopes that two threads launched on one queue: as written since scopes tell their launches
/// (`tells`), and before.
std::vector<recording::TrackInfo> launch_tracks();
std::vector<Record> launch_records(std::uint32_t track, bool tells);
Status write_launches(const std::string& path, bool tells);

/// Of the recording with requests of a server, of one thread: marks with every part, none, and a trace that could not be read; their steps,
/// and a collective of a group.
std::vector<Record> request_records();
Status write_requests(const std::string& path);

/// Of the recordings with checks of tensors: every element type, role, level and field, ordinary and extreme values.
std::vector<recording::TensorCheck> checks();
Status write_checks(const std::string& path, bool compress);

/// Of the recording with tiles: what a reader must see of two generations, ordinary and extreme values, by key.
std::vector<recording::TileTotals> tiles();
Status write_tiles(const std::string& path);

} // namespace plumb::golden
