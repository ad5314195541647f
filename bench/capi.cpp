// SPDX-License-Identifier: Apache-2.0
// What push and pop of plumb.h cost, against PLUMB_BRICK and against two clock reads and a store (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <vector>

#include "plumb/plumb.h"
#include "plumb/plumb.hpp"
#include "support/board.hpp"
#include "support/loops.hpp"
#include "support/temporary_folder.hpp"
#include "support/ticks.hpp"

namespace {

using namespace bench;
using plumb::Brick;

constexpr std::uint64_t scopes_of_burst = 20'000;
constexpr std::size_t bursts_of_round = 5;

struct Stage {
    plumb::Profiler* on;
    plumb_profiler* c_on;
    plumb_profiler* c_off;
    plumb::detail::Record* scratch;
};

std::uint64_t loop_empty(const Stage&, std::uint64_t n) { return empty_loop(n); }
std::uint64_t loop_floor(const Stage& stage, std::uint64_t n) { return floor_loop(stage.scratch, n); }

__attribute__((noinline)) std::uint64_t loop_scope(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, plumb::host, Brick::rms_norm);
        body();
    });
}

__attribute__((noinline)) std::uint64_t loop_scope_work(const Stage& stage, std::uint64_t n) {
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, plumb::host, Brick::qkv_projection, plumb::bytes(4096), plumb::flops(8192));
        body();
    });
}

__attribute__((noinline)) std::uint64_t loop_c(const Stage& stage, std::uint64_t n) {
    return timed(n, [profiler = stage.c_on](std::uint64_t) {
        (void)plumb_push_scope(profiler, nullptr, plumb_brick_rms_norm, nullptr);
        body();
        (void)plumb_pop_scope(profiler);
    });
}

__attribute__((noinline)) std::uint64_t loop_c_work(const Stage& stage, std::uint64_t n) {
    const plumb_work work{sizeof work, 0, 4096, 8192, 0, 0};
    return timed(n, [&, profiler = stage.c_on](std::uint64_t) {
        (void)plumb_push_scope(profiler, nullptr, plumb_brick_qkv_projection, &work);
        body();
        (void)plumb_pop_scope(profiler);
    });
}

__attribute__((noinline)) std::uint64_t loop_c_off(const Stage& stage, std::uint64_t n) {
    return timed(n, [profiler = stage.c_off](std::uint64_t) {
        (void)plumb_push_scope(profiler, nullptr, plumb_brick_rms_norm, nullptr);
        body();
        (void)plumb_pop_scope(profiler);
    });
}

struct Kind {
    const char* key;
    const char* label;
    std::uint64_t (*loop)(const Stage&, std::uint64_t);
    std::size_t against; // the kind that its ratio is to
};
constexpr Kind kinds[] = {{"empty", "empty loop", loop_empty, 1},
                          {"floor", "floor: 2 rdtsc + 16-byte store", loop_floor, 1},
                          {"scope", "PLUMB_BRICK", loop_scope, 1},
                          {"scope_work", "PLUMB_BRICK with work", loop_scope_work, 1},
                          {"c", "plumb_push_scope + plumb_pop_scope", loop_c, 2},
                          {"c_work", "the same with work", loop_c_work, 3},
                          {"c_off", "the same, off", loop_c_off, 0}};
constexpr std::size_t count = std::size(kinds);

/// Ticks per scope: the median of some bursts. Each ring is empty before a burst, so that nothing is dropped.
double round_of(const Kind& kind, const Stage& stage) {
    std::vector<double> bursts;
    for (std::size_t i = 0; i < bursts_of_round; ++i) {
        (void)stage.on->flush();
        (void)plumb_flush(stage.c_on, 5);
        (void)kind.loop(stage, scopes_of_burst / 10);
        bursts.push_back(static_cast<double>(kind.loop(stage, scopes_of_burst)) / static_cast<double>(scopes_of_burst));
    }
    return median_of(std::move(bursts));
}

void measure(Board& board, const Stage& stage, int rounds) {
    std::vector<std::vector<double>> ticks(count), ratios(count);
    for (int round = 0; round < rounds; ++round) {
        double now[count] = {};
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t k = (i + static_cast<std::size_t>(round)) % count;
            now[k] = round_of(kinds[k], stage);
        }
        for (std::size_t k = 0; k < count; ++k) {
            ticks[k].push_back(now[k]);
            ratios[k].push_back(now[k] / now[kinds[k].against]);
        }
    }
    const double ns = TickRate().ns_per_tick();
    for (std::size_t k = 0; k < count; ++k) {
        std::for_each(ticks[k].begin(), ticks[k].end(), [ns](double& value) { value *= ns; });
        board.put(std::string(kinds[k].key) + ".ns", spread_of(ticks[k]));
        board.put(std::string(kinds[k].key) + ".ratio", spread_of(ratios[k]));
    }
}

void show(Board& board) {
    board.table("One thread, against libplumb.so", {"ns", "ratio", "quartiles", "ratio to"});
    for (const Kind& kind : kinds) {
        const std::string key = kind.key;
        const Spread ratio = get(board.figures(), key + ".ratio");
        const bool judged = key == "c" || key == "c_work";
        board.row(kind.label,
                  {text(get(board.figures(), key + ".ns").median, 2), text(ratio.median, 3), range(ratio, 3),
                   kinds[kind.against].key},
                  key + ".ratio", judged ? std::optional<Target>({Bound::at_most, 2}) : std::nullopt);
    }
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What push and pop of plumb.h cost, against PLUMB_BRICK.",
                                          {{"--rounds", "N   interleaved rounds, at least 9 (default 15)"}});
    const int rounds = std::max(9, std::atoi(options.value("--rounds", "15").c_str()));
    Board board(options);
    const TemporaryFolder folder;
    plumb::Profiler on(plumb::Config::parse("on,out=" + folder.file("cpp.plumb")));
    plumb_profiler* c_on = nullptr;
    plumb_profiler* c_off = nullptr;
    if (!on.status().ok() || plumb_open(("on,out=" + folder.file("c.plumb")).c_str(), &c_on) != plumb_ok ||
        plumb_open("off", &c_off) != plumb_ok) {
        std::fprintf(stderr, "%s\n", on.status().ok() ? plumb_last_error() : on.status().error().message.c_str());
        return 2;
    }
    std::vector<plumb::detail::Record> scratch(scratch_records);
    board.say(fmt::format("bursts of {} scopes, {} a round, {} rounds, kinds interleaved; both record into a file",
                          scopes_of_burst, bursts_of_round, rounds));
    measure(board, {&on, c_on, c_off, scratch.data()}, rounds);
    show(board);
    (void)plumb_close(c_on);
    (void)plumb_close(c_off);
    return board.finish();
}
