// SPDX-License-Identifier: Apache-2.0
#include "recording/graph_content_codec.hpp"

#include <gtest/gtest.h>

#include "recording/files_testing.hpp"
#include "recording/writer_testing.hpp"

namespace plumb::recording {
namespace {

using namespace testing;

GraphContent small_content() {
    GraphContent content;
    content.kinds = {{CapturedKind::kernel, "gemm<128>", true, {8, 4, 2}, {128, 2, 1}, 4096},
                     {CapturedKind::memcpy, "memcpy"},
                     {4, "child graph"}};
    content.nodes = {{0, 1, 0}, {1, 0, 0}, {2, 2, 0}, {0, 2, 3}};
    content.edges = {{0, 1}, {0, 2}, {1, 2}};
    return content;
}

GraphInfo row_of(std::uint64_t key, GraphContent content) {
    GraphInfo row;
    row.key = key;
    row.captures = 1;
    row.content = std::make_shared<const GraphContent>(std::move(content));
    return row;
}

std::shared_ptr<const GraphContent> read_back(const Writer& writer, std::size_t graph = 0) {
    auto reader = Reader::from_bytes(writer.snapshot());
    EXPECT_TRUE(reader.ok());
    EXPECT_TRUE(reader->notes().empty()) << joined_notes(*reader);
    return reader->graphs().size() > graph ? reader->graphs()[graph].content : nullptr;
}

TEST(GraphContent, nodes_of_a_graph_come_back_field_for_field) {
    const auto writer = writer_of();
    const GraphInfo row = row_of(64, small_content());
    ASSERT_TRUE(writer->add_graph(row).ok());
    ASSERT_TRUE(writer->add_graph(row_of(65, {})).ok());
    EXPECT_TRUE(same_content(read_back(*writer), row.content));
    ASSERT_NE(read_back(*writer, 1), nullptr) << "a graph without nodes is not one whose nodes are unknown";
    GraphInfo unknown;
    unknown.key = 64;
    ASSERT_TRUE(writer->add_graph(unknown).ok());
    EXPECT_EQ(read_back(*writer), nullptr) << "captured again, and nobody looked into it";
}

TEST(GraphContent, F15_nodes_are_written_once_for_each_capture_and_not_with_each_row) {
    const auto writer = writer_of();
    GraphContent large = small_content();
    large.nodes.resize(10'000, {0, 1, 0});
    GraphInfo row = row_of(64, large);
    ASSERT_TRUE(writer->add_graph(row).ok());
    const std::uint64_t first = writer->size();
    EXPECT_GT(first, 10'000u * 12);
    for (row.replays = 1; row.replays < 10; ++row.replays) {
        ASSERT_TRUE(writer->add_graph(row).ok());
    }
    row.content = std::make_shared<const GraphContent>(large); // the same, from another capture
    ASSERT_TRUE(writer->add_graph(row).ok());
    EXPECT_LT(writer->size() - first, 3000u);
    EXPECT_TRUE(same_content(read_back(*writer), row.content));
    large.edges.emplace_back(5, 6);
    row.content = std::make_shared<const GraphContent>(large);
    ASSERT_TRUE(writer->add_graph(row).ok());
    EXPECT_TRUE(same_content(read_back(*writer), row.content));
}

TEST(GraphContent, a_graph_beyond_all_bounds_is_cut_and_says_how_much) {
    GraphContent large;
    for (std::uint32_t i = 0; i < 2 * most_captured_kinds; ++i) {
        large.kinds.push_back({i % 2, std::string(5000, 'k') + std::to_string(i), true, {}, {}, 0});
    }
    for (std::uint32_t i = 0; i < 2 * most_captured_nodes; ++i) {
        large.nodes.push_back({i % static_cast<std::uint32_t>(large.kinds.size()), 0, 0});
    }
    for (std::uint32_t i = 1; i < 5 * most_captured_nodes; ++i) {
        large.edges.emplace_back(i % 64, 64 + i / 5);
    }
    const auto writer = writer_of();
    ASSERT_TRUE(writer->add_graph(row_of(1, large)).ok());
    const auto have = read_back(*writer);
    ASSERT_NE(have, nullptr);
    EXPECT_EQ(have->nodes.size(), most_captured_nodes);
    EXPECT_EQ(have->nodes_left_out, most_captured_nodes);
    EXPECT_EQ(have->edges.size(), most_captured_edges);
    EXPECT_GT(have->edges_left_out, 0u);
    EXPECT_LE(have->kinds.size(), most_captured_kinds);
    for (std::uint32_t i = 0; i < 2 * most_captured_kinds; ++i) {
        EXPECT_EQ(have->kinds[have->nodes[i].kind].type, i % 2) << "what it is stays, though its name does not";
    }
    EXPECT_EQ(have->kinds[have->nodes[2 * most_captured_kinds - 1].kind].name, "others");
}

TEST(GraphContent, hostile_tables_are_refused) {
    const auto refused = [](const GraphContent& content) {
        Bytes bytes;
        encode(ContentEntry{1, 1, std::make_shared<const GraphContent>(content)}, bytes);
        ContentEntry entry;
        return !decode(bytes.data(), bytes.size(), entry);
    };
    EXPECT_FALSE(refused(small_content()));
    const auto with = [](auto change) {
        GraphContent content = small_content();
        change(content);
        return content;
    };
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.nodes[1].kind = 3; }))) << "a kind that is not there";
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.edges[0] = {0, 4}; }))) << "a node that is not there";
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.edges[0] = {2, 1}; }))) << "an edge backwards";
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.edges[0] = {1, 1}; }))) << "an edge to itself";
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.nodes[2].parent_plus_one = 3; }))) << "a node inside itself";
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.nodes.resize(most_captured_nodes + 1); })));
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.edges.resize(most_captured_edges + 1, {0, 1}); })));
    EXPECT_TRUE(refused(with([](GraphContent& c) { c.kinds.resize(most_captured_kinds + 1); })));
    Bytes bytes;
    encode(ContentEntry{1, 1, std::make_shared<const GraphContent>(small_content())}, bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        ContentEntry entry;
        EXPECT_FALSE(decode(bytes.data(), size, entry) && entry.content->edges.size() == 3) << size;
    }
}

TEST(GraphContent, a_table_that_is_lost_is_told_and_an_older_one_does_not_take_its_place) {
    const auto writer = writer_of();
    ASSERT_TRUE(writer->add_graph(row_of(64, small_content())).ok());
    const std::size_t before = writer->size();
    GraphContent other = small_content();
    other.kinds[0].name = "gemm<64>";
    ASSERT_TRUE(writer->add_graph(row_of(64, other)).ok());
    Bytes bytes = *writer->snapshot();
    bytes[before + 80] ^= std::byte{1}; // in the second table
    auto reader = Reader::from_bytes(std::make_shared<const Bytes>(bytes));
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader->graphs()[0].content, nullptr);
    EXPECT_NE(joined_notes(*reader).find("1 captured graphs have lost the table of their nodes"), std::string::npos)
        << joined_notes(*reader);
}

TEST(GraphContent, a_bounded_recording_keeps_the_nodes_of_the_last_capture_and_stays_bounded) {
    WriterOptions options;
    options.max_bytes = std::uint64_t{256} << 10;
    const auto writer = writer_of(options);
    GraphContent content = small_content();
    content.nodes.resize(500, {0, 1, 0});
    GraphInfo row;
    for (std::uint32_t i = 0; i < 2000; ++i) {
        content.nodes[3].site_plus_one = i;
        row = row_of(64, content);
        ASSERT_TRUE(writer->add_graph(row).ok());
        ASSERT_LE(writer->size(), options.max_bytes);
    }
    EXPECT_TRUE(same_content(read_back(*writer), row.content));
    content.nodes.resize(5000, {0, 1, 0});
    ASSERT_TRUE(writer->add_graph(row_of(65, content)).ok());
    ASSERT_LE(writer->size(), options.max_bytes);
    EXPECT_EQ(read_back(*writer, 1), nullptr) << "an eighth of the room is not enough for it";
}

} // namespace
} // namespace plumb::recording
