// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "page/text_table.hpp"
#include "plumb/wall.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::size_t name_columns = 40;
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t most_scopes = 8;
constexpr std::size_t most_kernels = 8;

std::string us(double ns) { return fixed(ns / 1e3, 1); }

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) : "n/a"; }

const char* verdict_of(WallBound bound) {
    switch (bound) {
    case WallBound::host:
        return "HOST-BOUND";
    case WallBound::device:
        return "DEVICE-BOUND";
    case WallBound::undecided:
        return "UNDECIDED";
    case WallBound::no_device:
        break;
    }
    return "HOST ONLY";
}

/// "at most 1.23x faster (81.3 tok/s) with no host work in sampling"
std::string best_part(const WallPhase& phase) {
    const WallGain* best = nullptr;
    for (std::size_t i = 1; i < phase.gains.size(); ++i) {
        if (best == nullptr || phase.gains[i].at_most_ns > best->at_most_ns) {
            best = &phase.gains[i];
        }
    }
    if (best == nullptr && !phase.gains.empty()) {
        best = &phase.gains.front();
    }
    if (best == nullptr || best->share < 0.001 || best->share >= 1) {
        return "";
    }
    return " Most to gain: " + printable(best->what, name_columns) + ", at most " + fixed(100 * best->share, 1) +
           " % of the time.";
}

void append_verdict(std::string& out, const WallPhase& phase, const Style& style, const std::string& head) {
    out += style.heading;
    out += head + ": " + verdict_of(phase.bound) + ".";
    out += style.plain;
    out += " " + printable(phase.reason, sentence_columns) + best_part(phase) + "\n";
}

class LaneTable {
  public:
    LaneTable(const WallPhase& phase, std::map<std::string, std::string>& reasons) : phase_(phase), reasons_(reasons) {
        table_.add_column("us per step, % of period", TextTable::Align::left);
        for (const WallLane& lane : phase.lanes) {
            table_.add_column(printable(lane.name, name_columns), TextTable::Align::right);
            table_.add_column("%", TextTable::Align::right);
        }
    }

    /// `figure(lane)`: a sum over the steps of the lane; a lane for which it is none of its business has no cell.
    template <class Of>
    void row(const std::string& name, Of&& figure) {
        std::vector<std::string> cells{name};
        for (const WallLane& lane : phase_.lanes) {
            const std::optional<Figure> value = figure(lane);
            if (!value) {
                cells.insert(cells.end(), {"-", ""});
            } else if (!value->value) {
                cells.insert(cells.end(), {"n/a", ""});
                reasons_.try_emplace(value->reason, printable(lane.name, name_columns));
            } else {
                cells.push_back(us(*value->value / static_cast<double>(std::max<std::uint64_t>(lane.steps, 1))));
                cells.push_back(percent(*value->value, lane.period_ns));
            }
        }
        table_.add_row(std::move(cells));
    }
    void append_to(std::string& out, const Style& style) const { table_.append_to(out, style.heading, style.plain); }

  private:
    const WallPhase& phase_;
    std::map<std::string, std::string>& reasons_;
    TextTable table_;
};

std::optional<Figure> of_device(const WallLane& lane, const Figure& figure) {
    return lane.device ? std::optional(figure) : std::nullopt;
}

std::optional<Figure> of_host(const WallLane& lane, const Figure& figure) {
    return lane.device ? std::nullopt : std::optional(figure);
}

bool any_above_zero(const WallPhase& phase, Figure WallLane::*figure) {
    return std::any_of(phase.lanes.begin(), phase.lanes.end(),
                       [figure](const WallLane& lane) { return (lane.*figure).value.value_or(0) > 0; });
}

void add_busy(LaneTable& table, const WallPhase& phase) {
    const auto shown = [](const WallLane& lane, double value) -> std::optional<Figure> {
        return lane.busy_ns.value ? Figure{value, {}} : lane.busy_ns;
    };
    table.row("busy", [](const WallLane& lane) { return std::optional(lane.busy_ns); });
    table.row("  tracks added up", [](const WallLane& lane) { return std::optional(lane.busy_sum_ns); });
    table.row("  in bricks", [&](const WallLane& lane) { return shown(lane, lane.bricks_ns); });
    table.row("    bricks added up", [&](const WallLane& lane) { return shown(lane, lane.bricks_sum_ns); });
    table.row("    overlap", [&](const WallLane& lane) { return shown(lane, lane.overlap_ns); });
    table.row("  unattributed", [](const WallLane& lane) { return std::optional(lane.unattributed_ns); });
    if (std::any_of(phase.lanes.begin(), phase.lanes.end(), [](const WallLane& lane) { return lane.laps_ns > 0; })) {
        table.row("    under laps", [&](const WallLane& lane) { return shown(lane, lane.laps_ns); });
    }
    if (any_above_zero(phase, &WallLane::launch_wait_ns)) {
        table.row("  or waiting for its launch",
                  [](const WallLane& lane) { return of_device(lane, lane.launch_wait_ns); });
    }
    if (phase.lanes.size() > 1) {
        table.row("  the host waited meanwhile",
                  [](const WallLane& lane) { return of_device(lane, lane.host_waits_ns); });
    }
}

void add_scopes(LaneTable& table, const WallPhase& phase, bool device) {
    std::map<std::string, double> names;
    for (const WallLane& lane : phase.lanes) {
        for (const WallScope& scope : lane.idle.scopes) {
            if (lane.device == device) {
                names[scope.name] = std::max(names[scope.name], scope.self_ns);
            }
        }
    }
    std::vector<std::pair<std::string, double>> ordered(names.begin(), names.end());
    std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (std::size_t i = 0; i < std::min(ordered.size(), most_scopes); ++i) {
        table.row("    in " + printable(ordered[i].first, name_columns),
                  [&, name = ordered[i].first](const WallLane& lane) -> std::optional<Figure> {
                      if (lane.device != device || !lane.idle.total.value) {
                          return std::nullopt;
                      }
                      double self = 0;
                      for (const WallScope& scope : lane.idle.scopes) {
                          self += scope.name == name ? scope.self_ns : 0;
                      }
                      return Figure{self, {}};
                  });
    }
    if (ordered.size() > most_scopes) {
        table.row("    … " + grouped(ordered.size() - most_scopes) + " more: --json has them all",
                  [](const WallLane&) { return std::optional<Figure>(); });
    }
}

void add_idle(LaneTable& table, const WallPhase& phase) {
    table.row("idle", [](const WallLane& lane) { return std::optional(lane.idle.total); });
    const bool devices = phase.lanes.size() > 1;
    if (devices) {
        table.row("  exposed launch", [](const WallLane& lane) { return of_device(lane, lane.idle.exposed_launch); });
        table.row("  host work", [](const WallLane& lane) { return of_device(lane, lane.idle.host_work); });
        add_scopes(table, phase, true);
        table.row("  a device was busy", [](const WallLane& lane) { return of_host(lane, lane.idle.for_device); });
    }
    table.row("  unknown", [](const WallLane& lane) { return std::optional(lane.idle.unknown); });
    if (devices) {
        table.row("    launched, not begun", [](const WallLane& lane) { return of_device(lane, lane.idle.queued); });
        table.row("    host in no named scope",
                  [](const WallLane& lane) { return of_device(lane, lane.idle.unnamed); });
        table.row("    host off the CPU", [](const WallLane& lane) { return of_device(lane, lane.idle.off_cpu); });
    }
    add_scopes(table, phase, false);
    table.row("period", [](const WallLane& lane) {
        return lane.steps == 0 ? std::nullopt : std::optional(Figure{lane.period_ns, {}});
    });
}

void append_gains(std::string& out, const WallPhase& phase, const Style& style) {
    if (phase.gains.empty()) {
        return;
    }
    TextTable table;
    table.add_column("the most there is to gain", TextTable::Align::left);
    for (const char* heading : {"us per step", "%", "tok/s then"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    for (std::size_t i = 0; i < std::min(phase.gains.size(), most_scopes + 4); ++i) {
        const WallGain& gain = phase.gains[i];
        table.add_row({(i == 0 ? "" : "  ") + printable(gain.what, name_columns + 20), us(gain.at_most_ns),
                       fixed(100 * gain.share, 1),
                       gain.tokens_per_second.value ? fixed(*gain.tokens_per_second.value, 1) : "n/a"});
    }
    out += '\n';
    table.append_to(out, style.heading, style.plain);
}

void append_costs(std::string& out, const WallReport& report, const WallPhase& phase) {
    out += "own cost  ";
    if (phase.own_cost_ns.value && phase.steps != 0) {
        out += us(*phase.own_cost_ns.value) + " us per step (" +
               percent(*phase.own_cost_ns.value * static_cast<double>(phase.steps), phase.period_ns) +
               " %) for recording host scopes, inside busy";
    } else {
        out += "n/a (" + printable(phase.own_cost_ns.reason, sentence_columns) + ")";
    }
    if (report.own_cost.percent_of_wall.value) {
        out += "; of the whole run, the thread that writes included, " +
               fixed(*report.own_cost.percent_of_wall.value, 2) + " %";
    }
    out += '\n';
    if (phase.in_graph_busy_ns.value) {
        out += "captured graphs  busy for at most " + us(*phase.in_graph_busy_ns.value) +
               " us per step (replays times the span of a plain one)\n";
    }
    if (phase.unattributed.empty()) {
        return;
    }
    out += "in no brick  ";
    for (std::size_t i = 0; i < std::min(phase.unattributed.size(), most_kernels); ++i) {
        out += (i == 0 ? "" : ", ") + printable(phase.unattributed[i].first, name_columns) +
               (phase.unattributed[i].second == 1 ? "" : " x" + grouped(phase.unattributed[i].second));
    }
    if (phase.unattributed.size() > most_kernels) {
        out += ", and " + grouped(phase.unattributed.size() - most_kernels) + " more";
    }
    out += " (nodes of captured graphs)\n";
}

void append_coverage(std::string& out, const WallPhase& phase) {
    for (const WallLane& lane : phase.lanes) {
        if (lane.coverage.value) {
            out += "coverage  " + printable(lane.name, name_columns) + ": bricks hold " +
                   fixed(100 * *lane.coverage.value, 1) + " % of its busy time\n";
        }
    }
}

void append_phase(std::string& out, const WallReport& report, const WallPhase& phase, const Style& style) {
    const double steps = static_cast<double>(std::max<std::uint64_t>(phase.steps, 1));
    out += '\n';
    out += style.faint;
    out += std::string(phase_word(phase.phase)) + "  ";
    out += phase.steps == 1 ? "1 step" : grouped(phase.steps) + " steps";
    if (phase.steps != 0) {
        out += " of " + us(phase.period_ns / steps) + " us";
    }
    if (phase.tokens != 0 && phase.period_ns > 0) {
        out += ", " + fixed(static_cast<double>(phase.tokens) * 1e9 / phase.period_ns, 1) + " tok/s";
    }
    out += style.plain;
    out += '\n';
    std::map<std::string, std::string> reasons;
    LaneTable table(phase, reasons);
    add_busy(table, phase);
    add_idle(table, phase);
    table.append_to(out, style);
    out += style.faint;
    for (const auto& [reason, name] : reasons) {
        out += "n/a  " + name + ": " + printable(reason, sentence_columns) + '\n';
    }
    if (phase.lanes.size() == 1 && phase.lanes[0].idle.unknown.value.value_or(0) > 0) {
        out +=
            "unknown  no thread was on the CPU; whether it waited for a lock, a file, another thread or for its turn is "
            "not recorded\n";
    }
    out += style.plain;
    append_gains(out, phase, style);
    append_coverage(out, phase);
    append_costs(out, report, phase);
}

void append_slowest(std::string& out, const WallReport& report, const Style& style) {
    if (report.slowest.empty()) {
        return;
    }
    TextTable table;
    table.add_column("slowest steps", TextTable::Align::right);
    table.add_column("phase", TextTable::Align::left);
    for (const char* heading : {"us", "host busy", "device busy", "launch", "host work", "unknown"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    table.add_column("bound", TextTable::Align::left);
    table.add_column("most idle in", TextTable::Align::left);
    const auto cell = [](const Figure& figure) {
        return figure.value ? us(*figure.value) : "n/a";
    };
    for (const WallStep& slow : report.slowest) {
        const std::vector<WallLane>& lanes = slow.account.lanes;
        const bool device = lanes.size() > 1;
        const WallLane& lane = lanes[device ? 1 : 0];
        table.add_row({std::to_string(slow.step), phase_word(slow.account.phase), us(slow.account.period_ns),
                       cell(lanes[0].busy_ns), device ? cell(lane.busy_ns) : "-",
                       device ? cell(lane.idle.exposed_launch) : "-", device ? cell(lane.idle.host_work) : "-",
                       cell(lane.idle.unknown), wall_bound_word(slow.account.bound),
                       lane.idle.scopes.empty() ? "" : printable(lane.idle.scopes.front().name, name_columns)});
    }
    out += '\n';
    table.append_to(out, style.heading, style.plain);
}

} // namespace

std::string render_text(const WallReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    for (const WallPhase& phase : report.phases) {
        append_verdict(out, phase, style,
                       (report.step ? "step " + std::to_string(*report.step) + ", " : "") + phase_word(phase.phase));
    }
    for (const WallPhase& phase : report.phases) {
        append_phase(out, report, phase, style);
    }
    append_slowest(out, report, style);
    for (const std::string& note : report.notes) {
        out += "note  " + printable(note, sentence_columns) + '\n';
    }
    return out;
}

} // namespace plumb
