// SPDX-License-Identifier: Apache-2.0
// A unit compiled with PLUMB_DISABLE beside one without, linked in both orders (one executable each).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "two_units.hpp"

namespace {

std::uint64_t count_of(const plumb::Report& report, const std::string& name) {
    std::uint64_t count = 0;
    for (const plumb::Row& row : report.bricks) {
        count += row.key.name == name ? row.time.count : 0;
    }
    return count;
}

TEST(TwoUnits, only_the_enabled_one_records_by_macros_and_both_record_by_functions) {
    plumb::Profiler prof(plumb::Config::parse("on,out=none,warmup=0,tiles=on"));
    ASSERT_TRUE(prof.enabled());
    EXPECT_EQ(disabled_unit(prof), 0);
    EXPECT_EQ(enabled_unit(prof), 8);
    EXPECT_EQ(disabled_unit(prof), 0);
    const plumb::Result<plumb::Report> report = prof.snapshot();
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->phases.size(), 1u);
    EXPECT_EQ(count_of(*report, "rms_norm"), 1u);
    EXPECT_EQ(count_of(*report, "rope_embedding"), 1u);
    EXPECT_EQ(count_of(*report, "attention"), 6u);
    EXPECT_EQ(count_of(*report, "operation"), 1u);
    const plumb::Result<plumb::Answer> tiles = prof.ask("tiles");
    ASSERT_TRUE(tiles.ok());
    const nlohmann::json maps = nlohmann::json::parse(tiles->json())["maps"];
    ASSERT_EQ(maps.size(), 1u);
    EXPECT_EQ(maps[0]["calls"], 1);
}

} // namespace
