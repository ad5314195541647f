// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "recording/files_testing.hpp"
#include "recording/format.hpp"
#include "recording/graph_codec.hpp"
#include "recording/metadata_codec.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

GraphInfo full_row() {
    GraphInfo row;
    row.key = 0xfedcba9876543210;
    row.track = 0x80000005;
    row.captures = 2;
    row.instantiations = 3;
    row.updates = 4;
    row.uploads = 5;
    row.replays = 6000;
    row.instrumented = 70;
    row.unread = 8;
    row.evictions = 1;
    row.eager_steps = {{"no such graph", 9}, {"batch above 64", 1}};
    row.rows_used = 100;
    row.rows_padded = 128;
    row.nodes = {{"kernel", 320}, {"memset", 2}};
    row.unattributed = {{"ncclKernel", 4}};
    row.node_changes = {{"rope_kernel", 24, 0}, {"fused_rope", 0, 0xffffffff}};
    row.node_checks = 1;
    row.baked_in = {"kernel rope, parameter 2, bytes 0..3"};
    row.sites = {{3, 1, 0, 2, true, false}, {0xffff, 0, 0xfffffffe, 0, false, true}};
    row.capture_ns = 1.5e6;
    row.instantiate_ns = 2.5e6;
    row.upload_ns = 3.5;
    row.launch_ns = 0;
    row.bytes = 1e8;
    row.twin = "event";
    row.twin_reason = "n/a (memory nodes)";
    row.twin_build_ns = 4e6;
    row.twin_bytes = 2e8;
    row.every = 64;
    row.site_cost_ns = 900.5;
    row.site_cost_error_ns = 12.25;
    row.tick_ns = 32;
    row.plain_span_ns = 7e6;
    row.closure_raw = 0.04;
    row.closure = -0.003;
    return row;
}

bool same_figure(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

void expect_same(const GraphInfo& a, const GraphInfo& b) {
    EXPECT_EQ(std::tie(a.key, a.track, a.captures, a.instantiations, a.updates, a.uploads, a.replays, a.instrumented,
                       a.unread, a.evictions, a.eager_steps, a.rows_used, a.rows_padded, a.node_checks, a.twin,
                       a.twin_reason, a.every),
              std::tie(b.key, b.track, b.captures, b.instantiations, b.updates, b.uploads, b.replays, b.instrumented,
                       b.unread, b.evictions, b.eager_steps, b.rows_used, b.rows_padded, b.node_checks, b.twin,
                       b.twin_reason, b.every));
    EXPECT_TRUE(same_lists(a, b));
    EXPECT_TRUE(same_figure(a.capture_ns, b.capture_ns));
    EXPECT_TRUE(same_figure(a.instantiate_ns, b.instantiate_ns));
    EXPECT_TRUE(same_figure(a.upload_ns, b.upload_ns));
    EXPECT_TRUE(same_figure(a.launch_ns, b.launch_ns));
    EXPECT_TRUE(same_figure(a.bytes, b.bytes));
    EXPECT_TRUE(same_figure(a.twin_build_ns, b.twin_build_ns));
    EXPECT_TRUE(same_figure(a.twin_bytes, b.twin_bytes));
    EXPECT_TRUE(same_figure(a.site_cost_ns, b.site_cost_ns));
    EXPECT_TRUE(same_figure(a.site_cost_error_ns, b.site_cost_error_ns));
    EXPECT_TRUE(same_figure(a.tick_ns, b.tick_ns));
    EXPECT_TRUE(same_figure(a.plain_span_ns, b.plain_span_ns));
    EXPECT_TRUE(same_figure(a.closure_raw, b.closure_raw));
    EXPECT_TRUE(same_figure(a.closure, b.closure));
}

TEST(GraphCodec, a_row_comes_back_field_for_field) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    GraphInfo bare;
    bare.key = 0;
    ASSERT_TRUE((*writer)->add_graph(full_row()).ok());
    ASSERT_TRUE((*writer)->add_graph(bare).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    ASSERT_EQ(reader->graphs().size(), 2u);
    expect_same(reader->graphs()[0], full_row());
    expect_same(reader->graphs()[1], bare);
    EXPECT_TRUE(std::isnan(reader->graphs()[1].launch_ns)) << "not measured is not 0";
}

TEST(GraphCodec, the_last_row_of_a_key_counts_and_unchanged_lists_take_no_room) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    GraphInfo row = full_row();
    row.sites.resize(1000);
    ASSERT_TRUE((*writer)->add_graph(row).ok());
    const std::uint64_t first = (*writer)->size();
    row.replays = 6001;
    ASSERT_TRUE((*writer)->add_graph(row).ok());
    EXPECT_LT((*writer)->size() - first, 1000u);
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_EQ(reader->graphs().size(), 1u);
    expect_same(reader->graphs()[0], row);
    row.sites[7].nodes = 5;
    row.node_changes.clear();
    ASSERT_TRUE((*writer)->add_graph(row).ok());
    reader = Reader::from_bytes((*writer)->snapshot());
    expect_same(reader->graphs()[0], row);
}

TEST(GraphCodec, a_row_beyond_all_bounds_is_cut_and_says_how_much) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    GraphInfo row = full_row();
    row.sites.resize(100'000);
    row.unattributed.assign(10'000, {std::string(5000, 'k'), 2});
    row.node_changes.assign(10'000, {std::string(5000, 'k'), 1, 0});
    row.baked_in.assign(10'000, std::string(5000, 'b'));
    row.nodes.assign(10'000, {std::string(5000, 'n'), 1});
    row.eager_steps.assign(10'000, {std::string(5000, 'n'), 1});
    ASSERT_TRUE((*writer)->add_graph(row).ok());
    ASSERT_TRUE((*writer)->add_graph(row).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    ASSERT_EQ(reader->graphs().size(), 1u);
    const GraphInfo& have = reader->graphs()[0];
    EXPECT_EQ(have.sites.size(), most_graph_sites);
    ASSERT_EQ(have.unattributed.size(), most_graph_entries);
    EXPECT_EQ(have.unattributed.back().first, "others");
    EXPECT_EQ(have.unattributed.back().second, 2u * (10'000 - most_graph_entries + 1));
    EXPECT_EQ(have.node_changes.back().before, 10'000 - most_graph_entries + 1);
    EXPECT_EQ(have.baked_in.back(), "and " + std::to_string(10'000 - most_graph_entries + 1) + " more");
    EXPECT_EQ(have.nodes.size(), most_graph_kinds);
}

TEST(GraphCodec, a_name_is_not_cut_inside_a_character) {
    GraphInfo row;
    row.twin_reason = std::string(most_graph_text - 1, 'x') + "\xc3\xa9";
    EXPECT_EQ(bounded(row).twin_reason, std::string(most_graph_text - 1, 'x'));
}

TEST(GraphCodec, hostile_rows_are_refused_or_bounded) {
    const auto decoded = [](const Bytes& bytes, StoredGraph& entry) {
        return decode(bytes.data(), bytes.size(), entry);
    };
    StoredGraph entry;
    EXPECT_FALSE(decoded({}, entry)) << "no key";
    Bytes bytes;
    FieldWriter fields(bytes);
    fields.text(1, "abc"); // a key of three bytes
    EXPECT_FALSE(decoded(bytes, entry));
    fields.number(1, 5);
    for (int i = 0; i < 5000; ++i) {
        fields.named_number(11, "r", 1);
        fields.named_number(30, "n", 1);
        fields.named_number(31, "u", 1);
        fields.named_number(32, "c", 1);
        fields.text(33, "b");
        fields.text(34, std::string(1600, '\xff'));
    }
    fields.text(15, "short");                              // a figure of five bytes stays unknown
    fields.named_number(31, std::string(100'000, 'x'), 1); // a name beyond the bound
    fields.text(20, std::string(100'000, 'x'));
    fields.text(999, "of a later version");
    StoredGraph wide;
    ASSERT_TRUE(decoded(bytes, wide));
    EXPECT_EQ(wide.row.key, 5u);
    EXPECT_EQ(wide.row.sites.size(), most_graph_sites);
    EXPECT_EQ(wide.row.unattributed.size(), most_graph_entries);
    EXPECT_EQ(wide.row.node_changes.size(), most_graph_entries);
    EXPECT_EQ(wide.row.baked_in.size(), most_graph_entries);
    EXPECT_EQ(wide.row.nodes.size(), most_graph_kinds);
    EXPECT_EQ(wide.row.eager_steps.size(), most_graph_kinds);
    EXPECT_EQ(wide.row.twin.size(), most_graph_text);
    EXPECT_TRUE(std::isnan(wide.row.capture_ns));
    bytes.pop_back();
    EXPECT_FALSE(decoded(bytes, wide)) << "fields that do not end where the entry does";
}

TEST(GraphCodec, a_row_whose_lists_are_lost_says_so) {
    Bytes bytes;
    Preamble preamble;
    append_preamble(bytes, preamble);
    Bytes payload;
    encode(full_metadata(), payload);
    ChunkHeader header;
    header.count = 1;
    append_chunk(bytes, header, payload);
    payload.clear();
    append_entry(StoredGraph{full_row(), true}, payload);
    header.type = ChunkType::graphs;
    append_chunk(bytes, header, payload);
    auto reader = Reader::from_bytes(std::make_shared<const Bytes>(bytes));
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->graphs().size(), 1u);
    EXPECT_EQ(reader->graphs()[0].replays, 6000u);
    EXPECT_TRUE(reader->graphs()[0].sites.empty());
    EXPECT_NE(joined_notes(*reader).find("1 graph rows refer to an entry that is lost"), std::string::npos);
}

TEST(GraphCodec, a_bounded_recording_keeps_every_row_and_not_its_history) {
    WriterOptions options;
    options.max_bytes = 60'000;
    auto writer = Writer::create(options, full_metadata());
    ASSERT_TRUE(writer.ok());
    const auto records = decode_stream(100);
    GraphInfo row = full_row();
    GraphInfo other = full_row();
    other.key = 1;
    other.replays = 17;
    ASSERT_TRUE((*writer)->add_graph(other).ok());
    for (std::size_t i = 0; i < records.size(); i += 100) {
        const std::size_t count = std::min<std::size_t>(100, records.size() - i);
        ASSERT_TRUE((*writer)->append({1, i, records.data() + i, count}).ok());
        for (int n = 0; n < 20; ++n) {
            ++row.replays;
            row.baked_in = {"value " + std::to_string(row.replays)}; // lists that change each time
            ASSERT_TRUE((*writer)->add_graph(row).ok());
            ASSERT_LE((*writer)->size(), options.max_bytes);
        }
    }
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->graphs().size(), 2u);
    expect_same(reader->graphs()[0], other);
    expect_same(reader->graphs()[1], row);
}

TEST(GraphCodec, tracks_know_their_rate_and_graph_and_older_ones_have_neither) {
    auto writer = Writer::create({}, full_metadata());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->add_track({1, TrackKind::host_thread, 0, 1, "main", "cpu_tsc"}).ok());
    ASSERT_TRUE((*writer)->add_track({2, TrackKind::device_queue, 7, 0, "stream", "cuda_event", 8}).ok());
    ASSERT_TRUE((*writer)->add_track({3, TrackKind::captured_graph, 7, 0, "graph", "cuda_graph_event", 1, 64}).ok());
    auto reader = Reader::from_bytes((*writer)->snapshot());
    ASSERT_TRUE(reader.ok());
    ASSERT_EQ(reader->tracks().size(), 3u);
    EXPECT_EQ(reader->tracks()[0].sampled_every, 1u);
    EXPECT_EQ(reader->tracks()[1].sampled_every, 8u);
    EXPECT_EQ(reader->tracks()[1].kind, TrackKind::device_queue);
    EXPECT_EQ(reader->tracks()[2].kind, TrackKind::captured_graph);
    EXPECT_EQ(reader->tracks()[2].graph_key, 64u);
}

} // namespace
} // namespace plumb::recording
