// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "record/bench_session.hpp"
#include "record/part.hpp"

namespace bench {
namespace {

constexpr std::uint64_t warm_up_scopes = 2000; // branch predictors, caches, core clock; recorded but not timed

/// Ticks per scope of one burst: the mean over the threads that ran it side by side.
double burst(Bench& bench, Kind kind, unsigned threads) {
    const auto loop = bench.subject.loops[static_cast<unsigned>(kind)];
    // A device scope is two records, a node four: fewer of them, so that the drain does not begin in the middle of a burst.
    const bool node = kind == Kind::kernel || kind == Kind::transfer;
    const std::uint64_t scopes = burst_scopes / (node ? 8 : kind == Kind::device ? 4 : 1);
    double ticks[2] = {0, 0};
    bench.workers.run(threads, [&](unsigned index) {
        loop(bench.scratch[index], warm_up_scopes);
        ticks[index] = static_cast<double>(loop(bench.scratch[index], scopes)) / static_cast<double>(scopes);
    });
    if (records(kind)) {
        (void)bench.subject.flush();
    }
    return threads == 1 ? ticks[0] : 0.5 * (ticks[0] + ticks[1]);
}

double round_of(Bench& bench, Kind kind, unsigned threads) {
    std::vector<double> bursts;
    for (unsigned i = 0; i < bursts_per_round; ++i) {
        bursts.push_back(burst(bench, kind, threads));
    }
    return median_of(std::move(bursts));
}

/// Rounds of all kinds, interleaved, each round beginning with another kind. Values and ratios to the same round's floor.
void measure_kinds(Bench& bench, unsigned threads, const std::vector<Kind>& which) {
    std::vector<std::vector<double>> ticks(kinds), ratios(kinds);
    std::vector<double> off_less_empty, out_less_empty;
    for (unsigned round = 0; round < bench.rounds; ++round) {
        double now[kinds] = {};
        for (std::size_t i = 0; i < which.size(); ++i) {
            const Kind kind = which[(i + round) % which.size()];
            now[static_cast<unsigned>(kind)] = round_of(bench, kind, threads);
        }
        for (const Kind kind : which) {
            const auto k = static_cast<unsigned>(kind);
            ticks[k].push_back(now[k]);
            ratios[k].push_back(now[k] / now[static_cast<unsigned>(Kind::floor)]);
        }
        const double empty = now[static_cast<unsigned>(Kind::empty)];
        off_less_empty.push_back(now[static_cast<unsigned>(Kind::off)] - empty);
        out_less_empty.push_back(now[static_cast<unsigned>(Kind::compiled_out)] - empty);
    }
    const double ns = bench.rate.ns_per_tick();
    const std::string prefix = "t" + std::to_string(threads) + ".";
    const auto put_ns = [&](const std::string& key, std::vector<double> values) {
        std::for_each(values.begin(), values.end(), [&](double& value) { value *= ns; });
        put(bench.figures, prefix + key, spread_of(std::move(values)));
    };
    for (const Kind kind : which) {
        const auto k = static_cast<unsigned>(kind);
        put_ns(std::string(kind_names[k]) + ".ns", ticks[k]);
        put(bench.figures, prefix + kind_names[k] + ".ratio", spread_of(ratios[k]));
    }
    if (std::find(which.begin(), which.end(), Kind::off) != which.end()) {
        put_ns("off.less_empty_ns", off_less_empty);
        put_ns("compiled_out.less_empty_ns", out_less_empty);
    }
}

double drops(Bench& bench, unsigned threads) {
    double sum[2] = {0, 0};
    bench.workers.run(threads, [&](unsigned index) { sum[index] = static_cast<double>(bench.subject.dropped()); });
    return sum[0] + sum[1];
}

} // namespace

bool measure_bursts(Bench& bench) {
    const BenchSession session(bench);
    if (!session.ok()) {
        return false;
    }
    measure_kinds(bench, 1, {Kind::floor, Kind::kernel, Kind::transfer});
    for (unsigned threads = 1; threads <= bench.workers.size(); ++threads) {
        measure_kinds(
            bench, threads,
            {Kind::empty, Kind::floor, Kind::on, Kind::work, Kind::named, Kind::lap, Kind::off, Kind::compiled_out});
        bench.figures["t" + std::to_string(threads) + ".burst_drops"] = drops(bench, threads);
    }
    if (bench.workers.size() == 2) {
        const auto at = [&](const char* key) {
            return bench.figures[key];
        };
        bench.figures["two_threads.slowdown_over_floor"] =
            (at("t2.on.ns") / at("t1.on.ns")) / (at("t2.floor.ns") / at("t1.floor.ns"));
    }
    return true;
}

bool measure_device_scope(Bench& bench) {
    const BenchSession session(bench); // of its own: while a device queue exists, the drain reads every record
    if (!session.ok()) {
        return false;
    }
    measure_kinds(bench, 1, {Kind::floor, Kind::device});
    bench.figures["t1.device_drops"] = drops(bench, 1);
    return true;
}

} // namespace bench
