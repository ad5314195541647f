// SPDX-License-Identifier: Apache-2.0
// Single scopes instead of means: a raw stamp before each, in a buffer; the distance between neighbours less that of two
// bare stamps. And what a scope adds to a body of half a microsecond.
#include <algorithm>
#include <numeric>
#include <string>

#include "record/bench_session.hpp"
#include "record/part.hpp"

namespace bench {
namespace {

constexpr unsigned stamp_bursts = 100;

/// Distances between neighbouring stamps of all bursts, in ticks.
using Distances = std::vector<double>;

void one_burst(Bench& bench, Kind kind, std::vector<std::uint64_t>& stamps, Distances& distances) {
    const auto loop = bench.subject.stamps[static_cast<unsigned>(kind)];
    bench.workers.run(1, [&](unsigned index) {
        loop(bench.scratch[index], stamps.data(), 2000); // warm
        loop(bench.scratch[index], stamps.data(), stamps.size());
    });
    for (std::size_t i = 1; i < stamps.size(); ++i) {
        distances.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
    }
    if (records(kind)) {
        (void)bench.subject.flush();
    }
}

/// Mean without the last thousandth, which holds the interrupts.
double trimmed_mean(Distances& distances) {
    const double cut = quantile_of(distances, 0.999);
    double sum = 0;
    double count = 0;
    for (const double d : distances) {
        sum += d <= cut ? d : 0;
        count += d <= cut ? 1 : 0;
    }
    return sum / count;
}

/// The counter may move in steps: the largest number that divides every distance.
double counter_step(const Distances& distances) {
    std::uint64_t step = 0;
    for (const double d : distances) {
        step = std::gcd(step, static_cast<std::uint64_t>(d));
    }
    return static_cast<double>(step);
}

void put_percentiles(Bench& bench, const std::string& name, Distances& distances, double bare, double ns) {
    const auto less = [&](double ticks) {
        return (ticks - bare) * ns;
    };
    bench.figures["single." + name + ".mean_ns"] = less(trimmed_mean(distances));
    bench.figures["single." + name + ".p50_ns"] = less(quantile_of(distances, 0.5));
    bench.figures["single." + name + ".p99_ns"] = less(quantile_of(distances, 0.99));
    bench.figures["single." + name + ".p999_ns"] = less(quantile_of(distances, 0.999));
    bench.figures["single." + name + ".max_ns"] = less(*std::max_element(distances.begin(), distances.end()));
}

/// Units of work that take about half a microsecond here.
unsigned half_microsecond_body(Bench& bench, double ns) {
    unsigned size = 64;
    const auto fastest = [&] { // of several: an interrupted one must not end the search
        double best = 1e9;
        for (int i = 0; i < 9; ++i) {
            best = std::min(best, static_cast<double>(bench.subject.body_between_reads(200, size)) * ns / 200);
        }
        return best;
    };
    bench.workers.run(1, [&](unsigned) {
        bench.subject.body_between_reads(2000, size);
        while (fastest() < 500) {
            size += 16;
        }
    });
    return size;
}

} // namespace

bool measure_single_scopes(Bench& bench) {
    const BenchSession session(bench);
    if (!session.ok()) {
        return false;
    }
    std::vector<std::uint64_t> stamps(burst_scopes);
    const Kind which[] = {Kind::empty, Kind::floor, Kind::on, Kind::lap};
    Distances distances[kinds];
    for (Distances& d : distances) {
        d.reserve(stamp_bursts * burst_scopes);
    }
    for (unsigned i = 0; i < stamp_bursts; ++i) {
        for (const Kind kind : which) {
            one_burst(bench, kind, stamps, distances[static_cast<unsigned>(kind)]);
        }
    }
    const double bare = trimmed_mean(distances[static_cast<unsigned>(Kind::empty)]);
    const double ns = bench.rate.ns_per_tick();
    bench.figures["single.stamp_ns"] = bare * ns;
    bench.figures["single.counter_step_ns"] = counter_step(distances[static_cast<unsigned>(Kind::empty)]) * ns;
    bench.figures["single.scopes"] = static_cast<double>(distances[static_cast<unsigned>(Kind::on)].size());
    for (const Kind kind : {Kind::floor, Kind::on, Kind::lap}) {
        put_percentiles(bench, kind_names[static_cast<unsigned>(kind)], distances[static_cast<unsigned>(kind)], bare,
                        ns);
    }
    return true;
}

bool measure_body(Bench& bench) {
    const BenchSession session(bench);
    if (!session.ok()) {
        return false;
    }
    constexpr std::uint64_t times = 1000;
    constexpr unsigned pairs = 301;
    const double ns = bench.rate.ns_per_tick();
    const unsigned size = half_microsecond_body(bench, ns);
    std::vector<double> bodies, differences;
    for (unsigned pair = 0; pair < pairs; ++pair) {
        double with = 0, without = 0;
        bench.workers.run(1, [&](unsigned) {
            const auto run = [&](auto loop) {
                return static_cast<double>(loop(times, size)) * ns / times;
            };
            bench.subject.body_in_scope(50, size);
            if (pair % 2 == 0) {
                without = run(bench.subject.body_between_reads);
                with = run(bench.subject.body_in_scope);
            } else {
                with = run(bench.subject.body_in_scope);
                without = run(bench.subject.body_between_reads);
            }
        });
        if (pair % 16 == 15) {
            (void)bench.subject.flush();
        }
        bodies.push_back(without);
        differences.push_back(with - without);
    }
    put(bench.figures, "body.ns", spread_of(bodies));
    put(bench.figures, "body.delta_ns", spread_of(differences));
    return true;
}

} // namespace bench
