// SPDX-License-Identifier: Apache-2.0
// Recording while the drain never rests: both threads record as fast as the drain lets them, waiting where their ring is
// three quarters full, so that nothing is dropped; and without waiting, so that the drops show the drain's limit.
#include <atomic>
#include <string>

#include "record/bench_session.hpp"
#include "record/part.hpp"

namespace bench {
namespace {

constexpr std::uint64_t chunk = 500;
constexpr double seconds = 0.4; // of one kind in one round

struct Seen {
    std::vector<double> chunks; // ticks per scope
    std::uint64_t scopes = 0;
    double ticks = 0; // recording, waits apart
};

void wait_for_room(const Subject& subject) {
    const std::uint64_t capacity = subject.capacity();
    if (subject.waiting() < capacity * 3 / 4) {
        return;
    }
    while (subject.waiting() > capacity / 4) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

Seen keep_going(Bench& bench, Kind kind, unsigned index, std::uint64_t until) {
    Seen seen;
    seen.chunks.reserve(1 << 16);
    const auto loop = bench.subject.loops[static_cast<unsigned>(kind)];
    while (plumb::detail::read_ticks() < until) {
        const auto ticks = static_cast<double>(loop(bench.scratch[index], chunk));
        seen.chunks.push_back(ticks / static_cast<double>(chunk));
        seen.ticks += ticks;
        seen.scopes += chunk;
        if (records(kind)) {
            wait_for_room(bench.subject);
        }
    }
    return seen;
}

struct Both {
    double median = 0; // of the chunks
    double mean = 0;   // chunks in which the thread lost its core included
    double per_second = 0;
};

Both run_for(Bench& bench, Kind kind, unsigned threads, double ns_per_tick) {
    Seen seen[2];
    const auto ticks = static_cast<std::uint64_t>(seconds * 1e9 / ns_per_tick);
    bench.workers.run(threads, [&](unsigned index) {
        seen[index] = keep_going(bench, kind, index, plumb::detail::read_ticks() + ticks);
    });
    if (records(kind)) {
        (void)bench.subject.flush();
    }
    Both both;
    for (unsigned i = 0; i < threads; ++i) {
        both.median += median_of(seen[i].chunks) * ns_per_tick / threads;
        both.mean += seen[i].ticks / static_cast<double>(seen[i].scopes) * ns_per_tick / threads;
        both.per_second += static_cast<double>(seen[i].scopes) / seconds;
    }
    return both;
}

} // namespace

bool measure_busy_drain(Bench& bench) {
    const BenchSession session(bench);
    if (!session.ok()) {
        return false;
    }
    const double ns = bench.rate.ns_per_tick();
    for (unsigned threads = 1; threads <= bench.workers.size(); ++threads) {
        std::vector<double> floors, ratios, means, rates;
        for (unsigned round = 0; round < bench.rounds / 2 + 1; ++round) {
            const Both floor = run_for(bench, Kind::floor, threads, ns);
            const Both on = run_for(bench, Kind::on, threads, ns);
            floors.push_back(floor.median);
            ratios.push_back(on.median / floor.median);
            means.push_back(on.mean / floor.mean);
            rates.push_back(on.per_second);
        }
        const std::string prefix = "busy_drain.t" + std::to_string(threads) + ".";
        put(bench.figures, prefix + "floor.ns", spread_of(floors));
        put(bench.figures, prefix + "on.ratio", spread_of(ratios));
        put(bench.figures, prefix + "on.mean_ratio", spread_of(means));
        put(bench.figures, prefix + "scopes_per_s", spread_of(rates));
        double dropped[2] = {0, 0};
        bench.workers.run(threads, [&](unsigned i) { dropped[i] = static_cast<double>(bench.subject.dropped()); });
        bench.figures[prefix + "drops"] = dropped[0] + dropped[1];
    }
    return true;
}

bool measure_sustained(Bench& bench) {
    for (unsigned threads = 1; threads <= bench.workers.size(); ++threads) {
        const BenchSession session(bench);
        if (!session.ok()) {
            return false;
        }
        const auto ticks = static_cast<std::uint64_t>(sustained_seconds * 1e9 / bench.rate.ns_per_tick());
        double tried[2] = {0, 0}, dropped[2] = {0, 0};
        bench.workers.run(threads, [&](unsigned index) {
            const std::uint64_t until = plumb::detail::read_ticks() + ticks;
            while (plumb::detail::read_ticks() < until) {
                bench.subject.loops[static_cast<unsigned>(Kind::on)](bench.scratch[index], chunk);
                tried[index] += static_cast<double>(chunk);
            }
            dropped[index] = static_cast<double>(bench.subject.dropped());
        });
        (void)bench.subject.flush();
        const double all = tried[0] + tried[1];
        const double kept = all - dropped[0] - dropped[1];
        const std::string prefix = "sustained.t" + std::to_string(threads) + ".";
        bench.figures[prefix + "tried_per_s"] = all / sustained_seconds;
        bench.figures[prefix + "kept_per_s"] = kept / sustained_seconds;
        bench.figures[prefix + "dropped"] = all - kept;
        bench.figures[prefix + "disk_bytes_per_scope"] = session.file_bytes() / kept;
    }
    return true;
}

bool measure_bytes(Bench& bench) {
    constexpr unsigned steps = 400;
    constexpr unsigned layers = 24;
    const BenchSession session(bench);
    if (!session.ok()) {
        return false;
    }
    (void)bench.subject.flush();
    const double before = session.file_bytes();
    double scopes = 0, records_per_scope = 0;
    bench.workers.run(1, [&](unsigned index) {
        const auto loop = bench.subject.loops[static_cast<unsigned>(Kind::on)];
        std::vector<double> tries;
        for (int i = 0; i < 9; ++i) { // one that was interrupted also holds a sample of CPU time
            const std::uint64_t first = bench.subject.written();
            loop(bench.scratch[index], 1000);
            tries.push_back(static_cast<double>(bench.subject.written() - first) / 1000);
        }
        records_per_scope = median_of(std::move(tries));
        scopes = static_cast<double>(bench.subject.decode_like(steps, layers)) + 9000;
    });
    (void)bench.subject.flush();
    bench.figures["memory_bytes_per_scope"] = records_per_scope * sizeof(plumb::detail::Record);
    bench.figures["decode_like.scopes"] = scopes;
    bench.figures["decode_like.disk_bytes_per_scope"] = (session.file_bytes() - before) / scopes;
    return true;
}

} // namespace bench
