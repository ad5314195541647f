// SPDX-License-Identifier: Apache-2.0
// Tiles from the macro to the answer, live and from the file.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "answers/tiles/tiles.hpp"
#include "plumb/plumb.hpp"
#include "support/sanitizers.hpp"

namespace plumb {
namespace {

class File {
  public:
    explicit File(const std::string& name)
        : path(testing::TempDir() + "tiles-" + name + "-" + std::to_string(getpid()) + ".plumb") {}
    ~File() { std::remove(path.c_str()); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    const std::string path;
};

Result<Config> config_of(const std::string& out, const char* tiles = "on") {
    return Config::parse("on,out=" + out + ",tiles=" + tiles);
}

/// What the running program says of its tiles.
nlohmann::json live_tiles(Profiler& prof) {
    const Result<Answer> said = prof.ask("tiles");
    EXPECT_TRUE(said.ok()) << said.error().message;
    return said.ok() ? nlohmann::json::parse(said->json()) : nlohmann::json();
}

/// Work that a compiler cannot leave out; about so many steps of it.
void work(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
}

void grid(Profiler& prof, std::uint64_t slow_steps) {
    for (int turn = 0; turn < 20; ++turn) {
        for (int row = 0; row < 4; ++row) {
            for (int col = 0; col < 4; ++col) {
                PLUMB_TILE(prof, TileLevel::midi, row, col, Brick::lm_head, bytes(1024), flops(4096));
                work(row == 2 && col == 1 ? slow_steps : 20'000);
            }
        }
    }
}

TEST(SessionTiles, live_and_from_the_file_the_same_is_said) {
    const File file("live");
    nlohmann::json live;
    {
        Profiler prof(config_of(file.path));
        ASSERT_TRUE(prof.status().ok());
        std::thread other([&prof] { grid(prof, 20'000); });
        grid(prof, 20'000);
        other.join();
        live = live_tiles(prof);
        ASSERT_TRUE(prof.close().ok());
    }
    const auto read = read_tiles({file.path}, {});
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(live["maps"].size(), 1u);
    ASSERT_EQ(read->maps.size(), 1u);
    EXPECT_EQ(live["maps"][0]["calls"], 2u * 20 * 16);
    EXPECT_EQ(read->maps[0].all.calls, 2u * 20 * 16);
    EXPECT_EQ(read->maps[0].name, "lm_head");
    EXPECT_DOUBLE_EQ(*read->maps[0].all.intensity.value, 4);
    EXPECT_NEAR(*read->maps[0].all.total_ns.value / live["maps"][0]["total_ns"].get<double>(), 1, 0.01)
        << "the clock fit";
    EXPECT_TRUE(read->own_cost_ns.value);
    EXPECT_TRUE(read->notes.empty()) << read->notes[0];
}

TEST(SessionTiles, one_slow_tile_of_a_real_run_is_the_first_named) {
    Profiler prof(config_of("none"));
    grid(prof, 200'000);
    const nlohmann::json slow = live_tiles(prof)["slow"];
    ASSERT_FALSE(slow.empty());
    EXPECT_EQ(slow[0]["row"], 2);
    EXPECT_EQ(slow[0]["col"], 1);
}

TEST(SessionTiles, T8_a_reset_clears_every_tile_live_and_in_the_file) {
    const File file("reset");
    Profiler prof(config_of(file.path, "16"));
    std::thread([&prof] { grid(prof, 10); }).join();
    for (int i = 0; i < 50; ++i) { // the overflow cell too
        PLUMB_TILE(prof, TileLevel::macro, i, 0);
    }
    EXPECT_EQ(live_tiles(prof)["maps"].size(), 2u);
    EXPECT_FALSE(live_tiles(prof)["overflow"].empty());
    prof.reset();
    EXPECT_TRUE(live_tiles(prof)["maps"].empty());
    EXPECT_TRUE(live_tiles(prof)["overflow"].empty());
    EXPECT_TRUE(read_tiles({file.path}, {})->maps.empty());
    { PLUMB_TILE(prof, TileLevel::macro, 7, 0, bytes(5)); }
    const nlohmann::json anew = live_tiles(prof)["maps"];
    ASSERT_EQ(anew.size(), 1u);
    EXPECT_EQ(anew[0]["calls"], 1);
    EXPECT_EQ(anew[0]["bytes"], 5);
    ASSERT_TRUE(prof.close().ok());
    EXPECT_EQ(read_tiles({file.path}, {})->maps.at(0).all.calls, 1u);
}

TEST(SessionTiles, without_the_key_nothing_is_kept_and_the_answer_says_which_key) {
    Profiler prof(Config::parse("on,out=none"));
    grid(prof, 10);
    const nlohmann::json said = live_tiles(prof);
    EXPECT_TRUE(said["maps"].empty());
    EXPECT_NE(said["notes"].at(0).get<std::string>().find("tiles=on"), std::string::npos);
}

TEST(SessionTiles, a_killed_process_leaves_what_was_written) {
    const File file("killed");
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Profiler prof(config_of(file.path));
        grid(prof, 10);
        (void)prof.flush();
        (void)!write(ready[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    const auto report = read_tiles({file.path}, {});
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->maps.size(), 1u);
    EXPECT_EQ(report->maps[0].all.calls, 320u);
    const auto says_lost = [](const TileReport& tiles) {
        return !tiles.notes.empty() && tiles.notes[0].find("are lost") != std::string::npos;
    };
    EXPECT_TRUE(says_lost(*report));
    ASSERT_TRUE(recover_recording(file.path).ok());
    EXPECT_EQ(read_tiles({file.path}, {})->maps.at(0).all.calls, 320u);
    EXPECT_TRUE(says_lost(*read_tiles({file.path}, {}))) << "recovery brings records back, not tiles";
}

TEST(SessionTiles, a_forked_child_with_a_file_of_its_own_begins_at_nothing) {
    if (sanitized) {
        GTEST_SKIP() << "a forked child that makes a thread may wait for the sanitizer's own locks";
    }
    const std::string pattern = testing::TempDir() + "tiles-fork-%p.plumb";
    Profiler prof(Config::parse("on,out=" + pattern + ",fork=own,tiles=on"));
    const std::string own = prof.path();
    grid(prof, 10);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        {
            PLUMB_TILE(prof, TileLevel::macro, 0, 0);
        }
        const nlohmann::json maps = live_tiles(prof)["maps"];
        const bool good = maps.size() == 1 && maps[0]["calls"] == 1;
        const std::string path = prof.path();
        (void)prof.close();
        std::remove(path.c_str());
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(live_tiles(prof)["maps"].at(0)["calls"], 320);
    (void)prof.close();
    std::remove(own.c_str());
}

} // namespace
} // namespace plumb
