// SPDX-License-Identifier: Apache-2.0
// Tiles as text and JSON.
#include "answers/rendered_testing.hpp"
#include "answers/tiles/tiles.hpp"

namespace plumb::answers {
namespace {

TileFigures figures(std::uint64_t calls, double mean_ns) {
    TileFigures out;
    out.calls = calls;
    out.total_ns = measured(mean_ns * static_cast<double>(calls));
    out.mean_ns = measured(mean_ns);
    out.min_ns = measured(mean_ns / 2);
    out.max_ns = measured(mean_ns * 3);
    out.typical_ns = measured(mean_ns);
    out.bytes = measured(4096);
    out.flops = measured(8192);
    out.bytes_per_s = measured(2.5e9);
    out.flops_per_s = measured(5e9);
    out.intensity = measured(2);
    out.of_peak = missing("no peaks were measured where this ran");
    return out;
}

TileReport sample_tiles(std::uint32_t rows = 3, std::uint32_t cols = 12) {
    TileReport report;
    TileMapReport map;
    map.name = "attention";
    map.level = TileLevel::midi;
    map.rows = rows;
    map.cols = cols;
    map.all = figures(rows * cols * 10, 1000);
    map.median = measured(1000);
    for (std::uint32_t row = 0; row < rows; ++row) {
        for (std::uint32_t col = 0; col < cols; ++col) {
            const bool slow = row == 1 && col == 4;
            if (row == 2 && col == 5) {
                continue; // never called
            }
            map.places.push_back({row, col, figures(10, slow ? 1500 : 1000), measured(slow ? 1500 : 1000)});
            if (slow) {
                report.slow.push_back({map.name, map.level, row, col, measured(1500), 1.5, 33.7});
            }
        }
    }
    report.maps.push_back(std::move(map));
    report.own_cost_ns = measured(21.5);
    report.overflow = {{TileLevel::micro, figures(7, 20)}};
    report.notes.emplace_back("a note");
    return report;
}

TEST(TilesText, a_table_a_map_and_the_slow_tile) {
    const std::string text = render_text(sample_tiles());
    EXPECT_TRUE(contains(text, "attention")) << text;
    EXPECT_TRUE(contains(text, "3 x 12")) << text;
    EXPECT_TRUE(contains(text, "\n      row  0         10\n        0  ============\n        1  ====o=======\n"
                               "        2  ===== ======\n"))
        << text;
    EXPECT_TRUE(contains(text, "SLOW  attention midi row 1 column 4: 1.500 us a call, 1.50x the median of its map"))
        << text;
    EXPECT_TRUE(contains(text, "(not kept apart)")) << text;
    EXPECT_TRUE(contains(text, "n/a  % of peak: no peaks were measured where this ran")) << text;
    EXPECT_TRUE(contains(text, "own cost: 21.5 ns a tile")) << text;
    EXPECT_TRUE(contains(text, "note  a note\n")) << text;
    TileReport clean = sample_tiles();
    clean.slow.clear();
    EXPECT_TRUE(contains(render_text(clean), "no slow tile\n"));
}

TEST(TilesText, colour_only_where_it_was_asked_for) {
    EXPECT_FALSE(contains(render_text(sample_tiles()), "\x1b"));
    const std::string text = render_text(sample_tiles(), {true, 100});
    EXPECT_TRUE(contains(text, "\x1b[48;5;172m \x1b[0m")) << text;
    EXPECT_FALSE(contains(text, "====")) << text;
}

TEST(TilesText, a_wide_map_goes_on_below_and_a_huge_one_says_what_it_leaves_out) {
    const std::string wide = render_text(sample_tiles(2, 300), {false, 80});
    EXPECT_TRUE(contains(wide, "      row  272       282")) << wide;
    EXPECT_FALSE(contains(wide, "not shown"));
    const std::string huge = render_text(sample_tiles(100, 600));
    EXPECT_TRUE(contains(huge, "(not shown: 36 rows, 88 columns; --json has them)")) << huge;
}

TEST(TilesText, T8_a_name_cannot_reach_the_terminal_raw) {
    TileReport report = sample_tiles();
    report.maps[0].name = report.slow[0].name = "\x1b[31m\nSLOW";
    EXPECT_FALSE(contains(render_text(report), "\x1b"));
    report.maps[0].name = report.slow[0].name = "";
    EXPECT_TRUE(contains(render_text(report), "SLOW  (no brick) midi"));
}

TEST(TilesJson, output_is_valid_under_the_schema_and_documented) {
    TileReport lost = sample_tiles();
    lost.maps[0].all.mean_ns = lost.maps[0].median = lost.maps[0].places[0].cost = missing("no clock");
    lost.own_cost_ns = missing("not measured");
    expect_valid<TileReport>(PLUMB_TEST_SOURCE_DIR, {{}, sample_tiles(), lost});
}

TEST(TilesJson, says_what_the_text_says) {
    const json said = parsed(render_json(sample_tiles()));
    EXPECT_EQ(said["maps"][0]["name"], "attention");
    EXPECT_EQ(said["maps"][0]["level"], "midi");
    EXPECT_EQ(said["maps"][0]["tiles"].size(), 35u);
    EXPECT_EQ(said["maps"][0]["tiles"][16]["row"], 1);
    EXPECT_EQ(said["maps"][0]["tiles"][16]["col"], 4);
    EXPECT_EQ(said["maps"][0]["tiles"][16]["cost"], 1500);
    EXPECT_EQ(said["slow"][0]["row"], 1);
    EXPECT_EQ(said["slow"][0]["col"], 4);
    EXPECT_EQ(said["overflow"][0]["level"], "micro");
    EXPECT_EQ(said["overflow"][0]["calls"], 7);
    EXPECT_EQ(said["maps"][0]["of_peak"]["absent"], "no peaks were measured where this ran");
}

} // namespace
} // namespace plumb::answers
