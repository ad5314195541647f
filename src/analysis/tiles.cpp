// SPDX-License-Identifier: Apache-2.0
#include "analysis/tiles.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "resolve/tick_conversion.hpp"
#include "stats/figure.hpp"
#include "stats/median.hpp"

namespace plumb {
namespace analysis {
namespace {

using recording::TileTotals;
using stats::absent;
using stats::measured;

constexpr std::size_t least_tiles = 5; // fewer have no middle to be unlike
constexpr std::uint64_t least_calls = 2;
constexpr double least_difference = 0.25; // of the median
constexpr double timing_error = 0.01;     // of a mean of many calls: tiles may differ by it though they are alike
constexpr double least_excess = 4;        // own costs a call: what lies below may be the stamps' and the inner tiles'
constexpr double most_slow = 0.2;         // of the tiles, or two of them; more are a second kind of tile

Figure given(double work, const char* what) {
    return std::isnan(work) ? absent(std::string("not every call said how many ") + what) : measured(work);
}

Figure quotient(const Figure& above, const Figure& below, const char* none) {
    if (!above.value) {
        return above;
    }
    if (!below.value) {
        return below;
    }
    return *below.value > 0 ? measured(*above.value / *below.value) : absent(none);
}

/// Why a peak cannot be used, or itself.
Figure usable(const Figure& peak) {
    return !peak.value || *peak.value > 0 ? peak : absent("the peak that was measured is none");
}

Figure share_of_peak(const TileFigures& of, TileLevel level, const TilePeaks& peaks) {
    const Figure flops_peak = usable(peaks.flops_per_s);
    const Figure bytes_peak = usable(peaks.bytes_per_s[static_cast<std::size_t>(level) - 1]);
    const bool computes = of.flops_per_s.value && *of.flops_per_s.value > 0;
    if (!computes) { // a copy: bytes are all it does
        return quotient(of.bytes_per_s, bytes_peak, "nothing was moved");
    }
    if (!of.intensity.value) {
        return of.intensity; // without it the roofline is not known
    }
    if (!flops_peak.value || !bytes_peak.value) {
        return flops_peak.value ? bytes_peak : flops_peak;
    }
    const double roof = std::min(*flops_peak.value, *of.intensity.value * *bytes_peak.value);
    return measured(*of.flops_per_s.value / roof);
}

class TileReportBuilder {
  public:
    TileReportBuilder(const TileInput& input, const TileOptions& options) : input_(input), options_(options) {}
    [[nodiscard]] TileReport build();

  private:
    [[nodiscard]] Figure ns(std::uint64_t ticks) const {
        return input_.ns_per_tick.value ? measured(static_cast<double>(ticks) * *input_.ns_per_tick.value)
                                        : input_.ns_per_tick;
    }
    [[nodiscard]] TileFigures figures_of(const TileTotals& tile, TileLevel level) const;
    [[nodiscard]] std::string name_of(std::uint16_t id) const;
    void add_map(TileLevel level, std::uint16_t name, const std::vector<TileTotals>& tiles);
    [[nodiscard]] double excess_ns(const TilePlace& place, double median) const;
    static TileBasis basis_of(const std::vector<TilePlace>& places);
    void judge(const TileMapReport& map);
    void add_notes();

    const TileInput& input_;
    const TileOptions& options_;
    TileReport out_;
};

TileFigures TileReportBuilder::figures_of(const TileTotals& tile, TileLevel level) const {
    TileFigures out;
    const auto calls = static_cast<double>(tile.count);
    const auto per_call = [calls](Figure sum) {
        sum.value = sum.value ? std::optional(*sum.value / calls) : sum.value;
        return sum;
    };
    out.calls = tile.count;
    out.total_ns = ns(tile.total);
    out.mean_ns = per_call(out.total_ns);
    out.min_ns = tile.min >= tile_min_unknown ? absent("every call took longer than a tile's shortest can be kept")
                                              : ns(tile.min);
    out.max_ns = ns(tile.max);
    out.typical_ns = per_call(ns(tile.calm));
    out.bytes = given(tile.bytes, "bytes");
    out.flops = given(tile.flops, "flops");
    Figure seconds = out.total_ns;
    if (seconds.value) {
        seconds.value = *seconds.value * 1e-9;
    }
    constexpr const char* no_time = "its calls took no time that the clock can tell";
    out.bytes_per_s = quotient(out.bytes, seconds, no_time);
    out.flops_per_s = quotient(out.flops, seconds, no_time);
    out.intensity = quotient(out.flops, out.bytes, "no bytes were moved");
    out.of_peak = share_of_peak(out, level, input_.peaks);
    return out;
}

std::string TileReportBuilder::name_of(std::uint16_t id) const {
    if (id == 0) {
        return "";
    }
    const auto found =
        std::find_if(input_.names.begin(), input_.names.end(), [id](const auto& name) { return name.id == id; });
    return found != input_.names.end() ? found->name : "name " + std::to_string(id);
}

/// Work where every tile has some, since tiles at an edge may be smaller than the others.
TileBasis TileReportBuilder::basis_of(const std::vector<TilePlace>& places) {
    const auto all_have = [&places](Figure TileFigures::*work) {
        return std::all_of(places.begin(), places.end(), [work](const TilePlace& place) {
            const Figure& figure = place.figures.*work;
            return figure.value && *figure.value > 0;
        });
    };
    if (all_have(&TileFigures::flops)) {
        return TileBasis::ns_per_flop;
    }
    return all_have(&TileFigures::bytes) ? TileBasis::ns_per_byte : TileBasis::ns_per_call;
}

void TileReportBuilder::add_map(TileLevel level, std::uint16_t name, const std::vector<TileTotals>& tiles) {
    TileMapReport map;
    map.name = name_of(name);
    map.level = level;
    recording::TileMap sum; // of one key
    for (TileTotals tile : tiles) {
        TilePlace place;
        place.row = tile_row_of(tile.key);
        place.col = tile_col_of(tile.key);
        place.figures = figures_of(tile, level);
        map.rows = std::max(map.rows, place.row + 1);
        map.cols = std::max(map.cols, place.col + 1);
        map.places.push_back(std::move(place));
        tile.key = tiles.front().key;
        sum.add(tile);
    }
    map.all = figures_of(*sum.find(tiles.front().key), level);
    map.basis = basis_of(map.places);
    std::vector<double> costs;
    for (TilePlace& place : map.places) {
        const TileFigures& figures = place.figures;
        const double work = map.basis == TileBasis::ns_per_flop   ? *figures.flops.value
                            : map.basis == TileBasis::ns_per_byte ? *figures.bytes.value
                                                                  : static_cast<double>(figures.calls);
        place.cost = figures.typical_ns;
        if (place.cost.value) {
            place.cost.value = *place.cost.value * static_cast<double>(figures.calls) / work;
            costs.push_back(*place.cost.value);
        }
    }
    map.median = costs.empty() ? input_.ns_per_tick : measured(stats::median(costs));
    out_.maps.push_back(std::move(map));
}

/// By how much a call is longer than it would be at its map's median.
double TileReportBuilder::excess_ns(const TilePlace& place, double median) const {
    const double typical = *place.figures.typical_ns.value;
    return *place.cost.value > 0 ? typical - typical / *place.cost.value * median : 0;
}

/// Of a call, but the longest. REQUIRES: two calls.
double others_ns(const TileFigures& of) {
    return (*of.total_ns.value - *of.max_ns.value) / static_cast<double>(of.calls - 1);
}

void TileReportBuilder::judge(const TileMapReport& map) {
    if (!map.median.value || !(*map.median.value > 0) || map.places.size() < least_tiles) {
        return;
    }
    const double median = *map.median.value;
    std::vector<double> costs;
    for (const TilePlace& place : map.places) {
        costs.push_back(*place.cost.value);
    }
    const double deviation =
        std::max(stats::mad_to_deviation * stats::median_deviation(costs, median), timing_error * median);
    std::vector<SlowTile> slow;
    for (const TilePlace& place : map.places) {
        const double cost = *place.cost.value;
        const double z = (cost - median) / deviation;
        const double slow_from = (1 + least_difference) * median;
        if (place.figures.calls >= least_calls && z > stats::least_robust_z && cost > slow_from &&
            cost * others_ns(place.figures) > slow_from * *place.figures.typical_ns.value &&
            excess_ns(place, median) > least_excess * input_.own_cost_ns.value.value_or(0)) {
            slow.push_back({map.name, map.level, place.row, place.col, place.figures.typical_ns, cost / median, z});
        }
    }
    if (slow.size() > 2 && static_cast<double>(slow.size()) > most_slow * static_cast<double>(map.places.size())) {
        out_.notes.push_back(
            std::to_string(slow.size()) + " of " + std::to_string(map.places.size()) + " " + tile_word(map.level) +
            " tiles of " + (map.name.empty() ? "(no brick)" : map.name) +
            " are slower than the others; so many are a second kind of tile, and none is called slow.");
        return;
    }
    out_.slow.insert(out_.slow.end(), slow.begin(), slow.end());
}

void TileReportBuilder::add_notes() {
    if (!input_.kept) {
        out_.notes.emplace_back("This run kept no tiles; say tiles=on in PLUMB, or plumb decode --tiles.");
    } else if (input_.ended_early) {
        out_.notes.emplace_back(
            "The run ended early or could not write: its tiles since the last time they were written, "
            "about a second before, are lost.");
    } else if (input_.tiles.empty()) {
        out_.notes.emplace_back("No tile was recorded since the start or the last reset.");
    } else if (out_.maps.empty() && out_.overflow.empty()) {
        out_.notes.push_back(std::string("No ") + tile_word(*options_.level) +
                             " tile was recorded; there are tiles of other levels.");
    }
    for (const TileOverflow& overflow : out_.overflow) {
        out_.notes.push_back(std::to_string(overflow.figures.calls) + " calls of " + tile_word(overflow.level) +
                             " tiles are not in the maps: a thread had more tiles than tiles= lets it keep apart, "
                             "all threads together more than the " +
                             std::to_string(recording::most_tiles) + " of a recording, or a row or column was beyond " +
                             std::to_string(tile_place_mask) + ".");
    }
    out_.notes.insert(out_.notes.end(), input_.notes.begin(), input_.notes.end());
}

TileReport TileReportBuilder::build() {
    out_.own_cost_ns = input_.own_cost_ns;
    std::map<std::pair<TileLevel, std::uint16_t>, std::vector<TileTotals>> groups;
    for (const TileTotals& tile : input_.tiles) {
        const TileLevel level = tile_level_of(tile.key);
        if (options_.level && level != *options_.level) {
            continue;
        }
        if (tile_name_of(tile.key) == no_name_id) {
            out_.overflow.push_back({level, figures_of(tile, level)});
        } else {
            groups[{level, tile_name_of(tile.key)}].push_back(tile);
        }
    }
    std::sort(out_.overflow.begin(), out_.overflow.end(),
              [](const TileOverflow& a, const TileOverflow& b) { return a.level < b.level; });
    for (auto& [key, tiles] : groups) {
        std::sort(tiles.begin(), tiles.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
        add_map(key.first, key.second, tiles);
    }
    std::stable_sort(out_.maps.begin(), out_.maps.end(), [](const TileMapReport& a, const TileMapReport& b) {
        return a.level != b.level ? a.level < b.level
                                  : a.all.total_ns.value.value_or(0) > b.all.total_ns.value.value_or(0);
    });
    for (const TileMapReport& map : out_.maps) {
        judge(map);
    }
    std::stable_sort(out_.slow.begin(), out_.slow.end(),
                     [](const SlowTile& a, const SlowTile& b) { return a.ratio > b.ratio; });
    add_notes();
    return std::move(out_);
}

} // namespace

/// A tile runs on one core. What caches and registers can carry is not measured.
static TilePeaks peaks_of_one_core(const std::vector<Peaks>& all) {
    TilePeaks one;
    if (const Peaks* host = peaks_of(all, false, {}, {}).peaks) {
        const auto scaled = [](Figure figure, double unit) {
            figure.value = figure.value ? std::optional(*figure.value * unit) : figure.value;
            return figure;
        };
        one.flops_per_s = scaled(host->one_thread_f32_teraflops, 1e12);
        one.bytes_per_s.fill(absent("the bandwidth of this level is not measured"));
        one.bytes_per_s[static_cast<std::size_t>(TileLevel::macro) - 1] =
            scaled(host->one_thread_gigabytes_per_second, 1e9);
    }
    return one;
}

TileInput tiles_of(const recording::RunFacts& facts) {
    TileInput input;
    input.tiles = facts.tiles;
    input.names = facts.names;
    const Result<resolve::TickConversion> line = resolve::fit_ticks(facts.clock_pairs, 0);
    const std::string unfit =
        line.ok() ? line->jumped() : line.error().message; // sums of ticks do not tell on which side
    input.ns_per_tick = unfit.empty() ? measured(line->ns_per_tick()) : absent(unfit);
    input.peaks = peaks_of_one_core(facts.metadata.peaks);
    input.own_cost_ns = absent("it was not measured when this run began");
    for (const auto& [name, ns] : facts.metadata.costs) {
        if (name == "tile") {
            input.own_cost_ns = measured(ns);
        }
    }
    input.kept = facts.metadata.config.find(",tiles=") != std::string::npos || !input.tiles.empty();
    input.notes = facts.notes;
    return input;
}

TileReport build_tiles(const TileInput& input, const TileOptions& options) {
    return TileReportBuilder(input, options).build();
}

} // namespace analysis

} // namespace plumb
