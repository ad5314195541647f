// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/tiled_attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "decoder/kernels/cpu/vector_ops.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder::cpu {
namespace {

std::vector<float> waves(std::size_t n, float frequency) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        values[i] = std::sin(frequency * static_cast<float>(i + 1));
    }
    return values;
}

nlohmann::json maps_of(Profiler& prof) {
    const Result<Answer> tiles = prof.ask("tiles");
    EXPECT_TRUE(tiles.ok()) << tiles.error().message;
    return tiles.ok() ? nlohmann::json::parse(tiles->json())["maps"] : nlohmann::json();
}

TEST(TiledAttention, has_the_bits_of_the_usual_kernel_whatever_the_cut) {
    plumb::Profiler prof(plumb::Config::parse("on,out=none,tiles=on"));
    for (const std::size_t size : {8u, 64u, 80u, 128u}) {
        for (const std::size_t positions : {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 200u, 1023u, 1024u, 1500u}) {
            const auto query = waves(size, 0.7F);
            const auto keys = waves(positions * size, 0.3F);
            const auto values = waves(positions * size, 0.11F);
            std::vector<float> scores(positions), expected(size);
            attend(query.data(), keys.data(), values.data(), positions, size, scores.data(), expected.data());
            std::vector<float> place = query; // the result takes the query's place, as in the backend
            const Head head{3, place.data(), keys.data(), values.data(), positions, size};
            attend_in_tiles(prof, head, scores.data(), place.data());
            EXPECT_EQ(std::memcmp(place.data(), expected.data(), size * sizeof(float)), 0) << size << " " << positions;
        }
    }
}

TEST(TiledAttention, T14_its_tiles_say_the_bytes_and_flops_they_move_at_row_and_column) {
    plumb::Profiler prof(plumb::Config::parse("on,out=none,tiles=on"));
    constexpr std::size_t size = 64;
    constexpr std::size_t positions = 1024 + 70;
    auto query = waves(size, 0.7F);
    const auto keys = waves(positions * size, 0.3F);
    std::vector<float> scores(positions);
    attend_in_tiles(prof, {5, query.data(), keys.data(), keys.data(), positions, size}, scores.data(), query.data());
    const nlohmann::json maps = maps_of(prof);
    ASSERT_EQ(maps.size(), 6u); // two bricks, three levels
    for (const nlohmann::json& map : maps) {
        EXPECT_EQ(map["rows"], 6);
        EXPECT_TRUE(map["name"] == "attention_score" || map["name"] == "attention_output") << map;
        EXPECT_EQ(map["cols"], map["level"] == "macro" ? 2 : map["level"] == "midi" ? 18 : 4);
        EXPECT_EQ(map["calls"], map["level"] == "macro" ? 2 : map["level"] == "midi" ? 18 : 69);
        EXPECT_EQ(map["flops"], 2 * positions * size);
        // Keys or values once and the scores, of floats; the query or the sums once a tile, sums read and written.
        const double own = (map["name"] == "attention_score" ? 1.0 : 2.0) * size * 4 * map["calls"].get<double>();
        EXPECT_DOUBLE_EQ(map["bytes"].get<double>(), own + positions * (size + 1) * 4.0);
    }
}

TEST(TiledAttention, leaves_nothing_while_tiles_are_off) {
    plumb::Profiler prof(plumb::Config::parse("on,out=none"));
    auto query = waves(8, 0.7F);
    const auto keys = waves(8, 0.3F);
    float score = 0;
    attend_in_tiles(prof, {0, query.data(), keys.data(), keys.data(), 1, 8}, &score, query.data());
    EXPECT_TRUE(maps_of(prof).empty());
}

} // namespace
} // namespace plumb::decoder::cpu
