// SPDX-License-Identifier: Apache-2.0
#include "answers/layers/layers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "analysis/loss_note.hpp"
#include "analysis/no_step.hpp"
#include "analysis/row_origin.hpp"
#include "analysis/row_table.hpp"
#include "answers/reading.hpp"
#include "stats/figure.hpp"
#include "stats/median.hpp"

namespace plumb {
namespace {

using stats::absent;
using stats::measured;

constexpr std::size_t most_cells = std::size_t{1} << 20; // a cell is 48 bytes and a text
constexpr const char* not_there = "it does not occur in this layer";
constexpr std::size_t most_named = 5;     // bricks in one sentence
constexpr double least_difference = 0.10; // of the median
constexpr double histogram_error = 0.008; // of percentiles: layers may differ by it though they are alike
constexpr double most_odd = 0.2;          // of the layers, or two of them; more are a second kind of layer
constexpr double explains = 0.5;          // of what a layer is off, by its bricks

Figure cell_of(const Row& row, LayerMetric metric) {
    switch (metric) {
    case LayerMetric::p50:
        return row.time.p50_ns;
    case LayerMetric::p90:
        return row.time.p90_ns;
    case LayerMetric::p99:
        return row.time.p99_ns;
    case LayerMetric::mean:
        return measured(row.time.mean_ns);
    case LayerMetric::max:
        return measured(row.time.max_ns);
    case LayerMetric::calls:
        return measured(row.calls_per_step);
    case LayerMetric::roofline:
        return row.roof.share;
    case LayerMetric::sum:
    case LayerMetric::self:
        break;
    }
    if (row.basis_steps == 0) {
        return absent("no counted step of this phase");
    }
    if (row.basis == RowBasis::replays && row.sites_timed < row.sites) {
        return absent("not all of its sites in captured graphs were timed");
    }
    if (metric == LayerMetric::sum) {
        return measured(row.sum_per_step_ns);
    }
    if (row.basis == RowBasis::replays) {
        return row.parent ? absent("of sites in captured graphs only the whole time is known")
                          : measured(row.sum_per_step_ns);
    }
    return measured(row.time.self_ns / static_cast<double>(row.basis_steps));
}

bool is_percentile(LayerMetric metric) {
    return metric == LayerMetric::p50 || metric == LayerMetric::p90 || metric == LayerMetric::p99;
}

class Layers {
  public:
    Layers(const Report& report, const LayerOptions& options) : source_(report), options_(options) {
        out_.metric = options.metric;
        collect_layers(report.layers);
        collect_layers(report.brick_layers);
    }
    [[nodiscard]] LayerReport build();

  private:
    [[nodiscard]] bool wanted(const Row& row) const {
        return row.key.layer && row.key.phase != Phase::none && (!options_.phase || *options_.phase == row.key.phase);
    }
    void collect_layers(const std::vector<Row>& rows);
    void add_rows(const std::vector<Row>& rows);
    void tell_apart();
    void judge(LayerRow& row);
    void note_not_compared();
    void drop_explained_layers();

    const Report& source_;
    const LayerOptions& options_;
    LayerReport out_;
    std::map<std::uint32_t, std::size_t> index_;
};

void Layers::collect_layers(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        if (wanted(row)) {
            index_.emplace(*row.key.layer, 0);
        }
    }
}

void Layers::add_rows(const std::vector<Row>& rows) {
    using Place = std::tuple<Phase, std::string, bool, analysis::RowOrigin>;
    std::map<Place, std::size_t> places;
    bool crowded = false;
    for (const Row& row : rows) {
        if (!wanted(row)) {
            continue;
        }
        const Place of{row.key.phase, row.key.name, row.lap, analysis::origin_of(row)};
        if (places.find(of) == places.end() && out_.rows.size() * index_.size() >= most_cells) {
            crowded = true;
            continue;
        }
        const auto [place, is_new] = places.try_emplace(of, out_.rows.size());
        if (is_new) {
            LayerRow& added = out_.rows.emplace_back();
            added.phase = row.key.phase;
            added.name = row.key.name;
            added.source = row.source;
            added.lap = row.lap;
            added.device = row.device;
            added.basis = row.basis;
            for (const std::uint32_t layer : out_.layers) {
                added.cells.push_back({layer, absent(not_there), 0});
            }
        }
        LayerRow& target = out_.rows[place->second];
        target.parent = target.parent || row.parent;
        LayerCell& cell = target.cells[index_.at(*row.key.layer)];
        cell.value = cell_of(row, options_.metric);
        cell.calls = row.calls_per_step;
    }
    if (crowded) {
        out_.notes.emplace_back(
            "There are more bricks and layers than fit a table of 1,048,576 cells; the last bricks are left out.");
    }
}

void Layers::tell_apart() {
    const auto kind = [](const LayerRow& row) {
        return std::tuple(row.phase, row.name, row.lap);
    };
    const auto origin = [](const LayerRow& row) {
        return analysis::RowOrigin{row.source, row.device, row.basis};
    };
    std::map<std::tuple<Phase, std::string, bool>, std::set<analysis::RowOrigin>> origins;
    for (const LayerRow& row : out_.rows) {
        origins[kind(row)].insert(origin(row));
    }
    for (LayerRow& row : out_.rows) {
        row.apart = analysis::words_apart(origin(row), origins.at(kind(row)));
    }
}

/// As a note names it.
std::string noted_name(const LayerRow& row) {
    return (row.name.empty() ? "the layer as a whole" : row.name) + (row.apart.empty() ? "" : " (" + row.apart + ")");
}

void Layers::judge(LayerRow& row) {
    std::vector<double> values;
    for (const LayerCell& cell : row.cells) {
        if (cell.value.value) {
            values.push_back(*cell.value.value);
        }
    }
    if (values.empty()) {
        row.median = row.mad = row.cells.front().value;
        for (const LayerCell& cell : row.cells) { // a reason of its own says more than that it is not there
            if (cell.value.reason != not_there) {
                row.median = row.mad = cell.value;
            }
        }
        return;
    }
    const double median = stats::median(values);
    const double mad = stats::median_deviation(values, median);
    row.median = measured(median);
    row.mad = measured(mad);
    if (values.size() < least_layers) {
        return;
    }
    const bool time = options_.metric != LayerMetric::calls && options_.metric != LayerMetric::roofline;
    const double floor = time ? source_.own_cost.floor_ns.value.value_or(0) : 0;
    const double deviation = std::max(stats::mad_to_deviation * mad, (time ? histogram_error : 1e-9) * median);
    std::vector<OddLayer> odd;
    for (const LayerCell& cell : row.cells) {
        const double value = cell.value.value.value_or(median);
        const double difference = std::abs(value - median);
        if (difference > least_difference * median && difference > floor &&
            difference > stats::least_robust_z * deviation) {
            odd.push_back({row, cell.layer, value, median,
                           (value - median) / std::max(deviation, std::abs(median) * 1e-9 + 1e-9), cell.calls});
        }
    }
    if (static_cast<double>(odd.size()) > std::max(2.0, most_odd * static_cast<double>(values.size()))) {
        out_.notes.push_back(noted_name(row) + " differs in " + std::to_string(odd.size()) + " of " +
                             std::to_string(values.size()) + " " + phase_word(row.phase) +
                             " layers: these are a second kind of layer, not odd ones.");
        return;
    }
    out_.odd.insert(out_.odd.end(), odd.begin(), odd.end());
}

/// Of bricks in enough layers, those with too few figures.
void Layers::note_not_compared() {
    std::string names;
    std::string why;
    std::size_t found = 0;
    for (const LayerRow& row : out_.rows) {
        const auto there = std::count_if(row.cells.begin(), row.cells.end(), [](const LayerCell& cell) {
            return cell.value.value || cell.value.reason != not_there;
        });
        if (is_compared(row) || static_cast<std::size_t>(there) < least_layers) {
            continue;
        }
        if (found++ < most_named) {
            names += (names.empty() ? "" : ", ") + noted_name(row);
        }
        for (const LayerCell& cell : row.cells) {
            why = why.empty() && cell.value.reason != not_there ? cell.value.reason : why;
        }
    }
    if (found == 0) {
        return;
    }
    const bool all = std::none_of(out_.rows.begin(), out_.rows.end(), &is_compared);
    out_.notes.push_back(
        std::string(all ? "Whether a layer is odd cannot be said" : "Whether a layer is odd in these cannot be said") +
        ": fewer than 5 layers have " + page::word_of(options_.metric) + " (" + why + ") of " + names +
        (found > most_named ? " and " + std::to_string(found - most_named) + " more" : "") +
        (is_percentile(options_.metric) ? "; --metric sum needs one call." : "."));
}

/// A layer is odd when a brick in it is: it is named for itself only where its bricks do not explain it. They do where those
/// that are odd in the same direction make up half of the difference; numbers of calls and shares of the roofline do not
/// add up, there one such brick is enough. The own time of a parent is no other brick's.
void Layers::drop_explained_layers() {
    const bool own = options_.metric == LayerMetric::self, per_step = own || options_.metric == LayerMetric::sum;
    const bool adds_up = options_.metric != LayerMetric::calls && options_.metric != LayerMetric::roofline;
    const auto off = [per_step](const OddLayer& odd) {
        return std::abs(odd.value - odd.median) * (per_step ? 1 : odd.calls);
    };
    const auto explaining = [own](const OddLayer& odd) {
        return !odd.name.empty() && (own || !odd.parent);
    };
    const auto place = [](const OddLayer& odd) {
        return std::tuple(odd.phase, odd.layer, odd.value > odd.median);
    };
    std::map<std::tuple<Phase, std::uint32_t, bool>, double> explained;
    for (const OddLayer& odd : out_.odd) {
        if (explaining(odd)) {
            explained[place(odd)] += off(odd);
        }
    }
    std::erase_if(out_.odd, [&](const OddLayer& odd) {
        const auto by = explained.find(place(odd));
        return !explaining(odd) && by != explained.end() && (!adds_up || by->second >= explains * off(odd));
    });
}

} // namespace

bool is_compared(const LayerRow& row) {
    return static_cast<std::size_t>(std::count_if(row.cells.begin(), row.cells.end(), [](const LayerCell& cell) {
               return cell.value.value.has_value();
           })) >= least_layers;
}

namespace {

bool all_warm_up(const Report& report) {
    return !report.phases.empty() &&
           std::all_of(report.phases.begin(), report.phases.end(),
                       [](const PhaseSummary& phase) { return phase.steps == 0 && phase.warmup_steps != 0; });
}

LayerReport Layers::build() {
    for (auto& [layer, index] : index_) {
        index = out_.layers.size();
        out_.layers.push_back(layer);
    }
    add_rows(source_.layers);
    add_rows(source_.brick_layers);
    // By phase as a report has them, the layers themselves first, then the bricks as they are most expensive.
    const auto order = [](const LayerRow& row) {
        return std::tuple(row.phase != Phase::prefill, row.phase, !row.name.empty());
    };
    std::stable_sort(out_.rows.begin(), out_.rows.end(),
                     [&](const LayerRow& a, const LayerRow& b) { return order(a) < order(b); });
    tell_apart();
    for (LayerRow& row : out_.rows) {
        judge(row);
    }
    drop_explained_layers();
    note_not_compared();
    std::stable_sort(out_.odd.begin(), out_.odd.end(), [](const OddLayer& a, const OddLayer& b) {
        return std::abs(a.value - a.median) > std::abs(b.value - b.median);
    });
    if (options_.phase && source_.phases.empty()) {
        out_.notes.push_back("Nothing is counted here: " + analysis::no_step_of(*options_.phase) + ".");
    } else if (out_.rows.empty() && all_warm_up(source_)) {
        out_.notes.emplace_back("All steps of this recording are warm-up; record a longer run.");
    } else if (out_.rows.empty()) {
        out_.notes.emplace_back("No layer of a complete step was recorded; put PLUMB_LAYER around each layer.");
    } else if (out_.layers.size() < least_layers) {
        out_.notes.emplace_back("There are fewer than 5 layers, too few to call one odd.");
    }
    std::copy_if(source_.notes.begin(), source_.notes.end(), std::back_inserter(out_.notes),
                 [](const std::string& note) { return note.starts_with(analysis::beyond_rows); });
    analysis::add_loss_note(analysis::lost_of(source_.losses), out_.notes);
    return std::move(out_);
}

} // namespace

namespace {

Result<answers::Pending<LayerReport>> begin(answers::Reading& reading, const LayerOptions& options) {
    ReportOptions wanted;
    wanted.phase = options.phase;
    wanted.brick_layers = true;
    analysis::ReportReader& reader = reading.report();
    return answers::Pending<LayerReport>(
        [&reader, number = reader.ask(wanted), options] { return layers_of(reader.take(number), options); });
}

} // namespace

Result<LayerReport> read_layers(const std::vector<std::string>& files, const LayerOptions& options) {
    return answers::read_one<LayerReport>(files.front(),
                                          [&](answers::Reading& reading) { return begin(reading, options); });
}

LayerReport layers_of(const Report& report, const LayerOptions& options) { return Layers(report, options).build(); }

const answers::Entry& layers_answer() {
    static const answers::Entry entry = answers::joining_entry<LayerOptions, LayerReport, begin>(
        "layers", "Show every brick in every layer, and the layers that are odd");
    return entry;
}

} // namespace plumb
