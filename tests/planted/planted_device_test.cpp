// SPDX-License-Identifier: Apache-2.0
// Runs on devices and of tiles with one flaw each, from files: wall, path and tiles name it, and nothing in the clean twin.
#include <gtest/gtest.h>

#include <map>

#include "analysis/planted_wall_testing.hpp"
#include "answers/path/path.hpp"
#include "answers/tiles/tiles.hpp"
#include "answers/wall/wall.hpp"
#include "planted/planted_run.hpp"

namespace plumb::planted {
namespace {

using analysis::WallEngine;

struct DeviceFlaw {
    bool late_launch = false; // the second command is launched when the first has ended
    bool starved = false;     // and not before the host has done work of its own
    bool two_queues = false;  // a command of a second queue runs beside the others
    bool ping_pong = false;   // a buffer goes to the device and comes back
};

void device_step(WallEngine& engine, std::int64_t t, const DeviceFlaw& flaw) {
    if (flaw.ping_pong) {
        engine.source.transfer(WallEngine::host, 10, 20, 4096, TransferDirection::host_to_device, t + 1 * us,
                               t + 2 * us);
        engine.source.transfer(WallEngine::host, 20, 10, 4096, TransferDirection::device_to_host, t + 3 * us,
                               t + 4 * us);
    }
    if (!flaw.late_launch && !flaw.starved) {
        engine.command(Brick::qkv_projection, t, t + 5 * us, t + 10 * us, t + 500 * us);
        engine.command(Brick::attention, t + 5 * us, t + 10 * us, t + 500 * us, t + 1'010 * us);
        if (flaw.two_queues) {
            engine.command(Brick::up_projection, t + 10 * us, t + 12 * us, t + 100 * us, t + 300 * us,
                           WallEngine::second_queue);
        }
        engine.off_cpu(t + 12 * us, t + 1'000 * us);
        return;
    }
    engine.command(Brick::qkv_projection, t, t + 20 * us, t + 25 * us, t + 425 * us);
    engine.off_cpu(t + 20 * us, t + 425 * us);
    std::int64_t launch = t + 425 * us;
    if (flaw.starved) {
        engine.scope(WallEngine::tokenize, launch, launch + 100 * us);
        launch += 100 * us;
    }
    engine.command(Brick::attention, launch, launch + 30 * us, launch + 35 * us, t + 1'000 * us);
    engine.off_cpu(launch + 30 * us, t + 1'000 * us);
}

template <class Look>
void expect_only_on_device(const std::map<std::string, std::string>& expected, Look&& look) {
    std::map<std::string, DeviceFlaw> flaws;
    flaws["clean"] = {};
    flaws["late launch"].late_launch = true;
    flaws["starved"].starved = true;
    flaws["two queues"].two_queues = true;
    flaws["ping-pong"].ping_pong = true;
    for (const auto& [name, flaw] : flaws) {
        WallEngine engine;
        engine.add_queue();
        engine.add_queue(WallEngine::second_queue);
        engine.steps(21, [&, with = flaw](std::int64_t t) { device_step(engine, t, with); });
        engine.source.deliver_all();
        for (const std::uint32_t track : {WallEngine::host, WallEngine::queue, WallEngine::second_queue}) {
            engine.source.counters_.records += engine.source.written(track);
        }
        const TemporaryFile file("device");
        EXPECT_TRUE(engine.source.save(file.path()).ok());
        const auto found = expected.find(name);
        EXPECT_EQ(look(file.path()), found == expected.end() ? "" : found->second) << name;
    }
}

TEST(PlantedDevice, wall_names_launch_gaps_the_work_that_starves_the_device_and_overlap_and_nothing_else) {
    expect_only_on_device({{"late launch", "launch "}, {"starved", "launch tokenize "}, {"two queues", "overlap "}},
                          [](const std::string& path) {
                              const auto report = read_wall({path}, {});
                              EXPECT_TRUE(report.ok());
                              EXPECT_EQ(report->phases.size(), 1u);
                              std::string named;
                              for (const WallLane& lane : report->phases[0].lanes) {
                                  analysis::expect_adds_up(lane);
                                  if (!lane.device) {
                                      continue;
                                  }
                                  named += lane.idle.exposed_launch.value.value_or(-1) == 0 ? "" : "launch ";
                                  for (const WallScope& scope : lane.idle.scopes) {
                                      named += scope.name + " ";
                                  }
                                  named += lane.idle.unknown.value.value_or(-1) == 0 ? "" : "unknown ";
                                  named += lane.overlap_ns == 0 ? "" : "overlap ";
                              }
                              return named;
                          });
}

TEST(PlantedDevice, T11_path_names_the_buffer_that_comes_back_and_nothing_else) {
    expect_only_on_device({{"ping-pong", "copy_h2d copy_d2h "}}, [](const std::string& path) {
        const auto report = path_recording(path);
        EXPECT_TRUE(report.ok());
        std::string named;
        for (const PingPong& found : report->ping_pong) {
            named += report->graph.name_of(found.there) + " " + report->graph.name_of(found.back) + " ";
        }
        for (const std::string& note : report->notes) {
            named += note.find(" has no ") == std::string::npos ? "" : note;
        }
        return named;
    });
}

std::string slow_tiles(int slow) {
    Tape source;
    source.track(1);
    source.names_ = {{Name(Brick::attention).id, Category::attention, "attention"}};
    std::vector<recording::TileTotals> tiles;
    for (std::uint32_t i = 0; i < 64; ++i) {
        recording::TileTotals tile;
        tile.key = tile_key(TileLevel::midi, Name(Brick::attention).id, i / 8, i % 8);
        const std::uint64_t ticks = static_cast<int>(i) == slow ? 160'000 : 100'000 + 500 * (i % 7);
        tile.count = 100;
        tile.total = tile.calm = ticks * 100;
        tile.min = tile.max = ticks;
        tile.bytes = tile.flops = 1e6;
        tiles.push_back(tile);
    }
    const TemporaryFile file("tiles");
    source.tiles_ = {{1, tiles}};
    EXPECT_TRUE(source.save(file.path()).ok());
    const auto report = read_tiles({file.path()}, {});
    EXPECT_TRUE(report.ok());
    std::string named;
    for (const SlowTile& found : report->slow) {
        named += found.name + " " + std::to_string(found.row) + "," + std::to_string(found.col) + " ";
    }
    EXPECT_EQ(report->maps.size(), 1u);
    return named;
}

TEST(PlantedDevice, T14_tiles_names_the_slow_tile_with_row_and_column_and_nothing_in_the_clean_twin) {
    EXPECT_EQ(slow_tiles(42), "attention 5,2 ");
    EXPECT_EQ(slow_tiles(-1), "");
}

} // namespace
} // namespace plumb::planted
