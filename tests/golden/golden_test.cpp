// SPDX-License-Identifier: Apache-2.0
// Recordings of every format version stay readable, by this library and by a reader written from the document alone.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "golden_content.hpp"
#include "recording/file_access.hpp"
#include "recording/index.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/resolve.hpp"

namespace plumb {
namespace {

using recording::Reader;
using recording::RecordBatch;

std::string file(const std::string& name) { return std::string(PLUMB_GOLDEN_FOLDER) + "/" + name; }

bool same(const Record& a, const Record& b) { return a.first == b.first && a.second == b.second; }

std::string tile_text(const recording::TileTotals& tile) {
    std::string text = "tile";
    for (const std::uint64_t word :
         {std::uint64_t{static_cast<std::uint8_t>(tile_level_of(tile.key))}, std::uint64_t{tile_name_of(tile.key)},
          std::uint64_t{tile_row_of(tile.key)}, std::uint64_t{tile_col_of(tile.key)}, tile.count, tile.total, tile.calm,
          tile.min, tile.max, std::bit_cast<std::uint64_t>(tile.bytes), std::bit_cast<std::uint64_t>(tile.flops)}) {
        text += " " + std::to_string(word);
    }
    return text + "\n";
}

using Stream = std::vector<std::pair<std::uint64_t, Record>>; // with sequence

std::map<std::uint32_t, Stream> streams_of(Reader& reader) {
    std::map<std::uint32_t, Stream> streams;
    EXPECT_TRUE(reader
                    .for_each_batch([&](const RecordBatch& batch) {
                        for (std::size_t i = 0; i < batch.count; ++i) {
                            streams[batch.track].emplace_back(batch.first_sequence + i, batch.records[i]);
                        }
                        return true;
                    })
                    .ok());
    return streams;
}

/// A row as read_plumb.py prints it.
std::string graph_text(const recording::GraphInfo& row) {
    const std::string key = " " + std::to_string(row.key) + " ";
    std::string text = "graph" + key + std::to_string(row.track);
    for (const std::uint64_t total :
         {row.captures, row.instantiations, row.updates, row.uploads, row.replays, row.instrumented, row.unread,
          row.evictions, row.rows_used, row.rows_padded, row.node_checks, row.every}) {
        text += " " + std::to_string(total);
    }
    text += "\ntimes " + std::to_string(row.key);
    for (const double figure :
         {row.capture_ns, row.instantiate_ns, row.upload_ns, row.launch_ns, row.bytes, row.twin_build_ns,
          row.twin_bytes, row.site_cost_ns, row.plain_span_ns, row.closure_raw, row.closure}) {
        char word[40];
        std::snprintf(word, sizeof word, " %.6g", figure);
        text += figure == figure ? word : " n/a";
    }
    text += "\n";
    for (const std::string& word : {row.twin, row.twin_reason}) {
        text += word.empty() ? "" : "twin" + key + word + "\n";
    }
    const std::pair<int, const std::vector<recording::NamedCount>*> lists[] = {
        {11, &row.eager_steps}, {30, &row.nodes}, {31, &row.unattributed}};
    for (const auto& [field, list] : lists) {
        for (const auto& [name, count] : *list) {
            text += "count" + key + std::to_string(field) + " " + name + " " + std::to_string(count) + "\n";
        }
    }
    for (const auto& change : row.node_changes) {
        text += "change" + key + change.kernel + " " + std::to_string(change.before) + " " +
                std::to_string(change.after) + "\n";
    }
    for (const std::string& found : row.baked_in) {
        text += "baked" + key + found + "\n";
    }
    for (const auto& site : row.sites) {
        text += "site" + key + std::to_string(site.name) + " " + std::to_string(site.layer_plus_one) + " " +
                std::to_string(site.occurrence) + " " + std::to_string(site.nodes) + " " +
                std::to_string((site.leaf ? 1 : 0) + (site.lap ? 2 : 0)) + "\n";
    }
    if (row.content == nullptr) {
        return text;
    }
    text += "content" + key + std::to_string(row.content->nodes_left_out) + " " +
            std::to_string(row.content->edges_left_out) + "\n";
    for (const auto& kind : row.content->kinds) {
        text += "kind" + key + std::to_string(kind.type) + " " + (kind.shaped ? "1" : "0");
        for (const auto& extent : {kind.grid, kind.block}) {
            for (int i = 0; i < 3; ++i) {
                text += " " + std::to_string(extent[i]);
            }
        }
        text += " " + std::to_string(kind.shared_bytes) + " " + kind.name + "\n";
    }
    for (const auto& node : row.content->nodes) {
        text += "node" + key + std::to_string(node.kind) + " " + std::to_string(node.site_plus_one) + " " +
                std::to_string(node.parent_plus_one) + "\n";
    }
    for (const auto& [from, to] : row.content->edges) {
        text += "edge" + key + std::to_string(from) + " " + std::to_string(to) + "\n";
    }
    return text;
}

/// A registered kernel as read_plumb.py prints it.
std::string kernel_text(const recording::KernelInfo& kernel) {
    char numbers[100];
    std::snprintf(
        numbers, sizeof numbers, "kernel %016llx %llu %llu %016llx\n",
        static_cast<unsigned long long>(kernel.code_hash), static_cast<unsigned long long>(kernel.source_bytes),
        static_cast<unsigned long long>(kernel.code_bytes), static_cast<unsigned long long>(kernel.code_checksum));
    std::string text = numbers;
    const std::pair<const char*, const std::string*> words[] = {
        {"called ", &kernel.name}, {"from ", &kernel.file}, {"source ", &kernel.source}};
    for (const auto& [word, value] : words) {
        text += value->empty() ? "" : word + *value + "\n";
    }
    return text;
}

/// A check as read_plumb.py prints it.
std::string check_text(const recording::TensorCheck& check) {
    const auto number = [](auto value) {
        return " " + std::to_string(value);
    };
    const auto bits = [](double value) {
        char word[20];
        std::snprintf(word, sizeof word, " %016llx",
                      static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
        return std::string(word);
    };
    const Fingerprint& print = check.fingerprint;
    std::string text = "check";
    for (const std::uint64_t fact :
         {check.order, check.step_plus_one, std::uint64_t{check.layer_plus_one}, std::uint64_t{check.name},
          std::uint64_t(check.phase), std::uint64_t(check.role), std::uint64_t(check.level), std::uint64_t(check.dtype),
          std::uint64_t{check.occurrence}, std::uint64_t{check.sequence}, std::uint64_t{check.track}}) {
        text += number(fact);
    }
    text += number(check.position) + number(check.first_index);
    text += check.in_graph ? " graph" + number(check.graph_key) + number(check.replay) : "";
    text += "\nshape";
    for (const std::uint64_t size : check.shape) {
        text += number(size);
    }
    text += "\nvalues";
    for (const std::uint64_t fact : {print.count, print.hash, print.largest, print.nans, print.positive_infs,
                                     print.negative_infs, print.first_nonfinite}) {
        text += number(fact);
    }
    text += bits(print.min) + bits(print.max) + bits(print.sum) + bits(print.sum_of_squares);
    text += "\nlogits" + (check.argmax == no_index ? std::string(" none") : number(check.argmax) + bits(check.margin));
    text += "\nsketch";
    for (const double bucket : print.sketch) {
        text += bits(bucket);
    }
    return text + "\n";
}

std::vector<std::string> check_texts(Reader& reader) {
    std::vector<std::string> texts;
    EXPECT_TRUE(reader
                    .for_each_check([&texts](recording::TensorCheck&& check) {
                        texts.push_back(check_text(check));
                        return true;
                    })
                    .ok());
    return texts;
}

void expect_facts(const Reader& reader) {
    const recording::Metadata expected = golden::metadata();
    const recording::Metadata& have = reader.metadata();
    EXPECT_EQ(have.recording_id[0], expected.recording_id[0]);
    EXPECT_EQ(have.recording_id[1], expected.recording_id[1]);
    EXPECT_EQ(std::tie(have.start_realtime_ns, have.host, have.pid, have.process_start, have.boot_id, have.rank,
                       have.ring_path, have.ring_reason, have.config, have.sync_mode, have.warmup_steps, have.identity,
                       have.comparability, have.costs),
              std::tie(expected.start_realtime_ns, expected.host, expected.pid, expected.process_start,
                       expected.boot_id, expected.rank, expected.ring_path, expected.ring_reason, expected.config,
                       expected.sync_mode, expected.warmup_steps, expected.identity, expected.comparability,
                       expected.costs));
    ASSERT_EQ(have.clocks.size(), expected.clocks.size());
    EXPECT_EQ(have.clocks[1].name, "cuda:0");
    ASSERT_EQ(reader.tracks().size(), golden::tracks().size());
    for (std::size_t i = 0; i < reader.tracks().size(); ++i) {
        const auto a = reader.tracks()[i];
        const auto b = golden::tracks()[i];
        EXPECT_EQ(std::tie(a.id, a.kind, a.clock, a.os_thread, a.name, a.source),
                  std::tie(b.id, b.kind, b.clock, b.os_thread, b.name, b.source));
    }
    ASSERT_EQ(reader.names().size(), golden::names().size());
    for (std::size_t i = 0; i < reader.names().size(); ++i) {
        const auto a = reader.names()[i];
        const auto b = golden::names()[i];
        EXPECT_EQ(std::tie(a.id, a.category, a.name), std::tie(b.id, b.category, b.name));
    }
    ASSERT_EQ(reader.clock_pairs().size(), golden::clock_pairs().size());
    for (std::size_t i = 0; i < reader.clock_pairs().size(); ++i) {
        const auto a = reader.clock_pairs()[i];
        const auto b = golden::clock_pairs()[i];
        EXPECT_EQ(std::tie(a.clock, a.ticks, a.monotonic_ns, a.realtime_ns, a.uncertainty_ticks),
                  std::tie(b.clock, b.ticks, b.monotonic_ns, b.realtime_ns, b.uncertainty_ticks));
    }
    EXPECT_EQ(reader.counters().drops, golden::counters().drops);
    EXPECT_EQ(reader.counters().ended_drops[0], 1u);
    EXPECT_EQ(reader.counters().drain_cpu_ns, golden::counters().drain_cpu_ns);
    EXPECT_EQ(reader.counters().unresolved, golden::counters().unresolved);
    ASSERT_EQ(reader.descriptions().size(), 1u);
    EXPECT_EQ(reader.descriptions()[0].second, "28.5 GB/s");
    EXPECT_TRUE(reader.closed());
}

void expect_facts_of_nodes(const Reader& reader) {
    const auto expected = golden::kernels();
    ASSERT_EQ(reader.kernels().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(kernel_text(reader.kernels()[i]), kernel_text(expected[i]));
    }
    ASSERT_EQ(reader.notes().size(), 1u);
    EXPECT_EQ(reader.notes()[0].find("code hash af63dc4c8601ec8c stands for gemm"), 0u) << reader.notes()[0];
}

void expect_whole(const std::string& name) {
    auto reader = Reader::open(file(name));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    expect_facts(*reader);
    EXPECT_TRUE(reader->notes().empty());
    const auto streams = streams_of(*reader);
    ASSERT_EQ(streams.size(), 2u);
    for (const auto& [track, stream] : streams) {
        const auto expected = golden::records(track);
        ASSERT_EQ(stream.size(), expected.size());
        for (std::size_t i = 0; i < stream.size(); ++i) {
            ASSERT_EQ(stream[i].first, golden::first_sequence + i);
            ASSERT_TRUE(same(stream[i].second, expected[i])) << "track " << track << ", record " << i;
        }
    }
}

TEST(Golden, version_1_is_read_exactly) { expect_whole("v1.plumb"); }

TEST(Golden, version_1_with_zstd_is_read_exactly) { expect_whole("v1_zstd.plumb"); }

TEST(Golden, version_1_shortened_by_a_limit_is_read_exactly) {
    auto reader = Reader::open(file("v1_bounded.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    expect_facts(*reader);
    ASSERT_EQ(reader->notes().size(), 1u);
    EXPECT_NE(reader->notes()[0].find("older records were removed"), std::string::npos);
    EXPECT_EQ(reader->counters().records, 2 * golden::records(1).size());
    EXPECT_GT(reader->counters().records_removed, 0u);
    for (const auto& [track, stream] : streams_of(*reader)) {
        const auto expected = golden::records(track);
        EXPECT_EQ(stream.back().first, golden::first_sequence + expected.size() - 1);
        EXPECT_EQ(kind_of(stream.front().second), RecordKind::work) << "work of the removed part is carried on";
        std::size_t carried = 0;
        for (const auto& [sequence, record] : stream) {
            carried += same(record, expected.at(sequence - golden::first_sequence)) ? 0 : 1;
        }
        EXPECT_LE(carried, 25u) << "more than the work of twelve bricks, two quantities each, and one extreme";
    }
}

TEST(Golden, version_1_with_captured_graphs_is_read_exactly) {
    auto reader = Reader::open(file("v1_graphs.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_TRUE(reader->notes().empty());
    const auto tracks = golden::graph_tracks();
    ASSERT_EQ(reader->tracks().size(), tracks.size());
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        const auto& have = reader->tracks()[i];
        EXPECT_EQ(std::tie(have.id, have.kind, have.name, have.source, have.sampled_every, have.graph_key),
                  std::tie(tracks[i].id, tracks[i].kind, tracks[i].name, tracks[i].source, tracks[i].sampled_every,
                           tracks[i].graph_key));
    }
    ASSERT_EQ(reader->graphs().size(), golden::graphs().size());
    for (std::size_t i = 0; i < reader->graphs().size(); ++i) {
        EXPECT_EQ(graph_text(reader->graphs()[i]), graph_text(golden::graphs()[i]));
    }
    for (const auto& [track, stream] : streams_of(*reader)) {
        const auto expected = golden::graph_records(track);
        ASSERT_EQ(stream.size(), expected.size());
        for (std::size_t i = 0; i < stream.size(); ++i) {
            EXPECT_TRUE(same(stream[i].second, expected[i])) << "track " << track << ", record " << i;
        }
    }
}

/// Of each device scope: thread and begin of its launch in ns, "?" before what is inferred.
std::vector<std::string> links_of(const std::string& name) {
    const auto run = recording::open_run(file(name));
    EXPECT_TRUE(run.ok());
    std::vector<std::string> links;
    EXPECT_TRUE(resolve::resolve_samples(*run, {}, [&](const resolve::ResolvedBatch& batch) {
                    for (const resolve::Sample& sample : batch.samples) {
                        if (sample.kind != resolve::SampleKind::scope) {
                            continue;
                        }
                        if (sample.launch == resolve::no_launch) {
                            links.emplace_back("-");
                            continue;
                        }
                        const resolve::Launch& launch = batch.launches[sample.launch];
                        links.push_back((launch.inferred ? "?" : "") + std::to_string(launch.track) + "@" +
                                        std::to_string(launch.begin_ns));
                    }
                }).ok());
    return links;
}

TEST(Golden, device_scopes_have_the_launches_that_a_recording_names) {
    std::vector<std::string> expected;
    for (int step = 0; step < 4; ++step) {
        const std::string hundred_us = step == 0 ? "" : std::to_string(step) + "00";
        for (const char* launch : {"1@", "3@", "1@"}) {
            expected.push_back(launch + hundred_us + std::to_string(100 * (1 + expected.size() % 3)));
        }
    }
    EXPECT_EQ(links_of("v1_causes.plumb"), expected);
}

TEST(Golden, of_recordings_that_do_not_name_launches_they_are_inferred_from_the_order_and_marked) {
    const std::vector<std::string> links = links_of("v1_launches.plumb");
    ASSERT_EQ(links.size(), 12u);
    EXPECT_EQ(std::vector(links.begin(), links.begin() + 3), (std::vector<std::string>{"?1@100", "?1@300", "?3@200"}))
        << "what two threads launched meanwhile is in no order";
    for (const std::string& link : links) {
        EXPECT_EQ(link[0], '?');
    }
}

TEST(Golden, version_1_with_launches_is_read_exactly) {
    for (const bool tells : {false, true}) {
        auto reader = Reader::open(file(tells ? "v1_causes.plumb" : "v1_launches.plumb"));
        ASSERT_TRUE(reader.ok()) << reader.error().message;
        EXPECT_TRUE(reader->notes().empty());
        for (const auto& [track, stream] : streams_of(*reader)) {
            const auto expected = golden::launch_records(track, tells);
            ASSERT_EQ(stream.size(), expected.size());
            for (std::size_t i = 0; i < stream.size(); ++i) {
                EXPECT_TRUE(same(stream[i].second, expected[i])) << "track " << track << ", record " << i;
            }
        }
    }
}

TEST(Golden, version_1_with_requests_is_read_exactly) {
    auto reader = Reader::open(file("v1_requests.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_TRUE(reader->notes().empty());
    const auto streams = streams_of(*reader);
    ASSERT_EQ(streams.size(), 1u);
    const auto& stream = streams.begin()->second;
    const auto expected = golden::request_records();
    ASSERT_EQ(stream.size(), expected.size());
    for (std::size_t i = 0; i < stream.size(); ++i) {
        EXPECT_TRUE(same(stream[i].second, expected[i])) << "record " << i;
    }
}

TEST(Golden, version_1_with_nodes_of_captured_graphs_is_read_exactly) {
    auto reader = Reader::open(file("v1_graph_nodes.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_TRUE(reader->notes().empty());
    const auto expected = golden::graphs_with_nodes();
    ASSERT_EQ(reader->graphs().size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(graph_text(reader->graphs()[i]), graph_text(expected[i]));
    }
}

TEST(Golden, version_1_with_checks_of_tensors_is_read_exactly) {
    for (const char* name : {"v1_checks.plumb", "v1_checks_zstd.plumb"}) {
        auto reader = Reader::open(file(name));
        ASSERT_TRUE(reader.ok()) << reader.error().message;
        EXPECT_TRUE(reader->notes().empty());
        EXPECT_EQ(reader->checks_count(), golden::checks().size());
        EXPECT_EQ(reader->counters().checks, golden::checks().size());
        const auto texts = check_texts(*reader);
        ASSERT_EQ(texts.size(), golden::checks().size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            EXPECT_EQ(texts[i], check_text(golden::checks()[i])) << name << ", check " << i;
        }
    }
}

TEST(Golden, version_1_with_tiles_is_read_exactly) {
    auto reader = Reader::open(file("v1_tiles.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_TRUE(reader->notes().empty());
    const auto have = reader->tiles();
    const auto expected = golden::tiles();
    ASSERT_EQ(have.size(), expected.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
        EXPECT_EQ(tile_text(have[i]), tile_text(expected[i])) << i;
    }
}

TEST(Golden, version_1_with_nodes_and_kernels_is_read_exactly) {
    auto reader = Reader::open(file("v1_nodes.plumb"));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    expect_facts_of_nodes(*reader);
    for (const auto& [track, stream] : streams_of(*reader)) {
        const auto expected = golden::node_records(track);
        ASSERT_EQ(stream.size(), expected.size());
        for (std::size_t i = 0; i < stream.size(); ++i) {
            ASSERT_TRUE(same(stream[i].second, expected[i])) << "track " << track << ", record " << i;
        }
    }
}

/// With all chunks written at one moment: how often a writer asks for the time is no matter of the format. Without bounds it is as
/// writers before them made it.
std::string at_one_moment(const std::string& whole, bool with_bounds) {
    const auto* bytes = reinterpret_cast<const std::byte*>(whole.data());
    recording::Bytes left(bytes, bytes + recording::preamble_size);
    for (std::size_t at = recording::preamble_size; at < whole.size();) {
        recording::ChunkHeader header;
        EXPECT_TRUE(recording::read_chunk_header(bytes + at, header));
        const std::byte* payload = bytes + at + recording::chunk_header_size;
        at += recording::chunk_header_size + header.payload_size;
        const std::size_t size = header.payload_size - (with_bounds ? 0 : header.bounds_size);
        header.bounds_size = with_bounds ? header.bounds_size : 0;
        header.written_ns = 0;
        recording::append_chunk(left, header, recording::Bytes(payload, payload + size));
    }
    return {reinterpret_cast<const char*>(left.data()), left.size()};
}

TEST(Golden, version_1_with_bounds_of_chunks_is_read_exactly) { expect_whole("v1_bounds.plumb"); }

TEST(Golden, what_the_writer_makes_today_is_version_1_byte_for_byte) {
    // No compressor is involved, so a change of layout without a new version number shows here.
    const std::string path = testing::TempDir() + "plumb-golden-" + std::to_string(std::rand()) + ".plumb";
    ASSERT_TRUE(golden::write(path, false, 0).ok());
    const std::string graphs_path = path + "-graphs";
    ASSERT_TRUE(golden::write_graphs(graphs_path).ok());
    const std::string graph_nodes_path = path + "-graph-nodes";
    ASSERT_TRUE(golden::write_graph_nodes(graph_nodes_path).ok());
    const std::string nodes_path = path + "-nodes";
    ASSERT_TRUE(golden::write_nodes(nodes_path).ok());
    const std::string checks_path = path + "-checks";
    ASSERT_TRUE(golden::write_checks(checks_path, false).ok());
    const std::string tiles_path = path + "-tiles";
    ASSERT_TRUE(golden::write_tiles(tiles_path).ok());
    const auto read = [](const std::string& name) {
        std::string text;
        std::FILE* from = std::fopen(name.c_str(), "rb");
        EXPECT_NE(from, nullptr);
        for (int c = std::fgetc(from); c != EOF; c = std::fgetc(from)) {
            text += static_cast<char>(c);
        }
        std::fclose(from);
        return text;
    };
    EXPECT_EQ(at_one_moment(read(path), true), at_one_moment(read(file("v1_bounds.plumb")), true));
    EXPECT_EQ(at_one_moment(read(path), false), at_one_moment(read(file("v1.plumb")), false));
    EXPECT_EQ(at_one_moment(read(graphs_path), false), at_one_moment(read(file("v1_graphs.plumb")), false));
    EXPECT_EQ(at_one_moment(read(graph_nodes_path), false), at_one_moment(read(file("v1_graph_nodes.plumb")), false));
    EXPECT_EQ(at_one_moment(read(nodes_path), false), at_one_moment(read(file("v1_nodes.plumb")), false));
    EXPECT_EQ(at_one_moment(read(checks_path), false), at_one_moment(read(file("v1_checks.plumb")), false));
    EXPECT_EQ(at_one_moment(read(tiles_path), false), at_one_moment(read(file("v1_tiles.plumb")), false));
    std::remove(path.c_str());
    std::remove(graphs_path.c_str());
    std::remove(graph_nodes_path.c_str());
    std::remove(nodes_path.c_str());
    std::remove(checks_path.c_str());
    std::remove(tiles_path.c_str());
}

/// What read_plumb.py prints for a file; empty when it fails.
std::string by_independent_reader(const std::string& name) {
    const std::string command = "python3 '" + file("read_plumb.py") + "' '" + file(name) + "' 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
        text += static_cast<char>(c);
    }
    EXPECT_EQ(pclose(pipe), 0) << text;
    return text;
}

/// Of each chunk of records, as read_plumb.py prints it.
std::string bounds_texts(const std::string& name) {
    std::uint64_t size = 0;
    auto opened = recording::open_to_read(file(name), size);
    EXPECT_TRUE(opened.ok());
    recording::ByteSource source(std::move(*opened), size);
    const auto index = recording::read_index(source, name);
    EXPECT_TRUE(index.ok());
    std::string text;
    for (const recording::RecordPlace& place : index->places) {
        if (place.bounds_size == 0) {
            continue;
        }
        const recording::ChunkBounds& bounds = place.bounds;
        text += "bounds " + std::to_string(place.track);
        for (const std::uint64_t number :
             {bounds.first_step_plus_one, bounds.last_step_plus_one, bounds.first_ticks, bounds.last_ticks,
              std::uint64_t{bounds.decode_steps}, std::uint64_t{bounds.entry}}) {
            text += " " + std::to_string(number);
        }
        const std::byte* at = source.view(place.offset + place.payload_size - place.bounds_size, place.bounds_size);
        for (const Record& record : recording::read_carried(at, place.bounds_size)) {
            text += " " + std::to_string(record.first) + " " + std::to_string(record.second);
        }
        text += "\n";
    }
    return text;
}

/// Of each scope of a device that names its launch, as read_plumb.py prints it.
std::string launch_texts(Reader& reader) {
    std::string text;
    auto streams = streams_of(reader);
    for (const auto& track : reader.tracks()) {
        if (track.kind != recording::TrackKind::device_queue) {
            continue;
        }
        std::pair<std::uint64_t, std::uint64_t> cause; // track, sequence
        bool given = false;
        for (const auto& [sequence, record] : streams[track.id]) {
            if (kind_of(record) == RecordKind::cause) {
                cause = {payload_of(record), record.first};
                given = true;
            } else if (kind_of(record) == RecordKind::scope) {
                text += given ? "scope " + std::to_string(track.id) + " " + std::to_string(sequence) + " by " +
                                    std::to_string(cause.first) + " " + std::to_string(cause.second) + "\n"
                              : "";
                given = false;
            }
        }
    }
    return text;
}

std::string by_our_reader(const std::string& name) {
    auto reader = Reader::open(file(name));
    EXPECT_TRUE(reader.ok());
    std::string text = "host " + reader->metadata().host + "\n";
    for (const auto& track : reader->tracks()) {
        text += "track " + std::to_string(track.id) + " " + track.name + " " + track.source + "\n";
        if (track.sampled_every != 1 || track.kind == recording::TrackKind::captured_graph) {
            text += "device " + std::to_string(static_cast<int>(track.kind)) + " " +
                    std::to_string(track.sampled_every) + " " + std::to_string(track.graph_key) + "\n";
        }
    }
    for (const auto& known : reader->names()) {
        text += "name " + std::to_string(known.id) + " " + known.name + "\n";
    }
    for (const auto& pair : reader->clock_pairs()) {
        text += "clock " + std::to_string(pair.clock) + " " + std::to_string(pair.ticks) + " " +
                std::to_string(pair.monotonic_ns) + "\n";
    }
    for (const auto& row : reader->graphs()) {
        text += graph_text(row);
    }
    for (const auto& kernel : reader->kernels()) {
        text += kernel_text(kernel);
    }
    for (const std::string& check : check_texts(*reader)) {
        text += check;
    }
    for (const recording::TileTotals& tile : reader->tiles()) {
        text += tile_text(tile);
    }
    for (const auto& [track, stream] : streams_of(*reader)) {
        for (const auto& [sequence, record] : stream) {
            char line[100];
            std::snprintf(line, sizeof line, "record %u %llu %016llx %016llx\n", track,
                          static_cast<unsigned long long>(sequence), static_cast<unsigned long long>(record.first),
                          static_cast<unsigned long long>(record.second));
            text += line;
        }
    }
    return text + bounds_texts(name) + launch_texts(*reader);
}

TEST(Golden, a_reader_written_from_the_document_alone_reads_the_same) {
    for (const char* name : {"v1.plumb", "v1_bounds.plumb", "v1_bounded.plumb", "v1_graphs.plumb",
                             "v1_graph_nodes.plumb", "v1_nodes.plumb", "v1_launches.plumb", "v1_causes.plumb",
                             "v1_checks.plumb", "v1_tiles.plumb", "v1_requests.plumb"}) {
        EXPECT_EQ(by_independent_reader(name), by_our_reader(name)) << name;
    }
}

TEST(Golden, a_reader_written_from_the_document_alone_reads_zstd_planes_too) {
    if (std::system("command -v zstd >/dev/null 2>&1") != 0) {
        GTEST_SKIP() << "the command zstd is not installed";
    }
    for (const char* name : {"v1_zstd.plumb", "v1_checks_zstd.plumb"}) {
        EXPECT_EQ(by_independent_reader(name), by_our_reader(name)) << name;
    }
}

} // namespace
} // namespace plumb
