// SPDX-License-Identifier: Apache-2.0
// What a tile costs in an inner loop, against two clock reads and a store (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "backends/cpu/core_workers.hpp"
#include "plumb/plumb.hpp"
#include "support/board.hpp"
#include "support/loops.hpp"
#include "support/temporary_folder.hpp"
#include "support/ticks.hpp"

namespace {

using namespace bench;
using plumb::Brick;
using plumb::TileLevel;
using plumb::backends::cpu::Workers;

constexpr std::uint64_t tiles_of_burst = 20'000;
constexpr std::uint64_t warm_up_tiles = 2'000;
constexpr std::size_t bursts_of_round = 5;

struct Stage {
    plumb::Profiler* on;
    plumb::Profiler* off;
    plumb::detail::Record* scratch;
};

std::uint64_t loop_empty(const Stage&, std::uint64_t n) { return empty_loop(n); }
std::uint64_t loop_floor(const Stage& stage, std::uint64_t n) { return floor_loop(stage.scratch, n); }

__attribute__((noinline)) std::uint64_t loop_off(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.off;
    return timed(n, [&](std::uint64_t i) {
        PLUMB_TILE(prof, TileLevel::micro, i & 7, 0, Brick::attention, plumb::bytes(64), plumb::flops(i));
        body();
    });
}

__attribute__((noinline)) std::uint64_t loop_bare(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t) {
        PLUMB_TILE(prof, TileLevel::micro, 0, 0);
        body();
    });
}

/// A map of 8 x 8: it stays in the first cache, as in an inner loop.
__attribute__((noinline)) std::uint64_t loop_small(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t i) {
        PLUMB_TILE(prof, TileLevel::micro, i & 7, i >> 3 & 7, Brick::attention, plumb::bytes(64), plumb::flops(128));
        body();
    });
}

/// 4000 tiles by turns: 256 KiB of cells.
__attribute__((noinline)) std::uint64_t loop_large(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t i) {
        PLUMB_TILE(prof, TileLevel::midi, i % 40, i / 40 % 100, Brick::attention, plumb::bytes(64), plumb::flops(128));
        body();
    });
}

struct Kind {
    const char* key;
    const char* label;
    std::uint64_t (*loop)(const Stage&, std::uint64_t);
};
constexpr Kind kinds[] = {{"empty", "empty loop", loop_empty},
                          {"floor", "floor", loop_floor},
                          {"off", "tile, off", loop_off},
                          {"bare", "tile without work", loop_bare},
                          {"small", "tile with work, map of 64", loop_small},
                          {"large", "tile with work, map of 4000", loop_large}};

/// Ticks per tile: the median of some bursts, each the mean over the threads that ran it side by side.
double round_of(Workers& workers, const Kind& kind, const std::vector<Stage>& stages, unsigned threads) {
    std::vector<double> bursts;
    for (std::size_t i = 0; i < bursts_of_round; ++i) {
        std::vector<double> ticks(threads);
        workers.run(threads, [&](unsigned index) {
            (void)kind.loop(stages[index], warm_up_tiles);
            ticks[index] =
                static_cast<double>(kind.loop(stages[index], tiles_of_burst)) / static_cast<double>(tiles_of_burst);
        });
        double sum = 0;
        for (const double value : ticks) {
            sum += value / threads;
        }
        bursts.push_back(sum);
    }
    return median_of(std::move(bursts));
}

void measure(Board& board, Workers& workers, const std::vector<Stage>& stages, unsigned threads, int rounds,
             const TickRate& rate) {
    constexpr std::size_t count = std::size(kinds);
    std::vector<std::vector<double>> ticks(count), ratios(count);
    std::vector<double> off_less_empty;
    for (int round = 0; round < rounds; ++round) {
        double now[count] = {};
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t k = (i + static_cast<std::size_t>(round)) % count;
            now[k] = round_of(workers, kinds[k], stages, threads);
        }
        for (std::size_t k = 0; k < count; ++k) {
            ticks[k].push_back(now[k]);
            ratios[k].push_back(now[k] / now[1]);
        }
        off_less_empty.push_back(now[2] - now[0]);
    }
    const std::string prefix = fmt::format("t{}.", threads);
    const double ns = rate.ns_per_tick();
    const auto put_ns = [&](const std::string& key, std::vector<double> values) {
        std::for_each(values.begin(), values.end(), [ns](double& value) { value *= ns; });
        board.put(prefix + key, spread_of(std::move(values)));
    };
    for (std::size_t k = 0; k < count; ++k) {
        put_ns(std::string(kinds[k].key) + ".ns", ticks[k]);
        board.put(prefix + kinds[k].key + ".ratio", spread_of(ratios[k]));
    }
    put_ns("off.less_empty_ns", off_less_empty);
}

void show(Board& board, unsigned threads) {
    const std::string prefix = fmt::format("t{}.", threads);
    board.table(fmt::format("Tiles, {} thread{}", threads, threads == 1 ? "" : "s"), {"ns", "÷ floor", "quartiles"});
    for (const Kind& kind : kinds) {
        const std::string key = prefix + kind.key;
        const Spread ratio = get(board.figures(), key + ".ratio");
        const bool judged = std::string(kind.key) == "small";
        board.row(kind.label,
                  {text(get(board.figures(), key + ".ns").median, 2), text(ratio.median, 3), range(ratio, 3)},
                  key + ".ratio", judged ? std::optional<Target>({Bound::at_most, 1.3}) : std::nullopt);
    }
    board.row("off, less the empty loop", {text(get(board.figures(), prefix + "off.less_empty_ns").median, 2)},
              prefix + "off.less_empty_ns", Target{Bound::at_most, 0.2});
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What a tile costs, against two clock reads and a store.",
                                          {{"--rounds", "N   interleaved rounds, at least 9 (default 15)"}});
    const int rounds = std::max(9, std::atoi(options.value("--rounds", "15").c_str()));
    Board board(options);
    const TemporaryFolder folder;
    plumb::Profiler on(plumb::Config::parse("on,tiles=on,out=" + folder.file("run.plumb")));
    plumb::Profiler off;
    if (!on.status().ok()) {
        std::fprintf(stderr, "%s\n", on.status().error().message.c_str());
        return 2;
    }
    Workers workers(2);
    const TickRate rate;
    std::vector<std::vector<plumb::detail::Record>> scratch(workers.size(),
                                                            std::vector<plumb::detail::Record>(scratch_records));
    std::vector<Stage> stages;
    for (auto& records : scratch) {
        stages.push_back({&on, &off, records.data()});
    }
    board.say(
        fmt::format("bursts of {} tiles, {} a round, {} rounds, kinds interleaved; recording into a file, the drain "
                    "reads the tables once a second",
                    tiles_of_burst, bursts_of_round, rounds));
    for (unsigned threads = 1; threads <= workers.size(); ++threads) {
        measure(board, workers, stages, threads, rounds, rate);
        show(board, threads);
    }
    return board.finish();
}
