// SPDX-License-Identifier: Apache-2.0
// A verdict for each phase, then its lanes as columns of a table, what there is to gain, and the slowest steps.
#include <algorithm>
#include <map>

#include "analysis/wall_verdict.hpp"
#include "answers/wall/wall.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 40;
constexpr std::size_t most_scopes = 8;
constexpr std::size_t most_kernels = 8;

std::string us(double ns) { return fixed(ns / 1e3, 1); }

std::string percent(double part, double whole) {
    return whole > 0 ? fixed(100 * part / whole, 1) : std::string(not_available);
}

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
    bool another = false; // as large, so that none of the parts is the most
    for (std::size_t i = 1; i < phase.gains.size(); ++i) {
        if (best == nullptr || phase.gains[i].at_most_ns > best->at_most_ns) {
            best = &phase.gains[i];
            another = false;
        } else {
            another = another || phase.gains[i].at_most_ns == best->at_most_ns;
        }
    }
    if ((best == nullptr || another) && !phase.gains.empty()) {
        best = &phase.gains.front();
    }
    if (best == nullptr || best->share < 0.001 || best->share >= 1) {
        return "";
    }
    if (best->what == analysis::gain_of_unknown_cause) {
        return " Most of its idle time has no known cause: " + fixed(100 * best->share, 1) + " % of the time.";
    }
    return " Most to gain: " + printable(best->what, name_columns) + ", at most " + fixed(100 * best->share, 1) +
           " % of the time.";
}

void add_verdict(Page& page, const WallPhase& phase, const std::string& head) {
    page.line({Span(head + ": " + verdict_of(phase.bound) + ".", Tone::heading),
               " " + printable(phase.reason, sentence_columns) + best_part(phase)});
}

class LaneTable {
  public:
    LaneTable(const WallPhase& phase, Page& page) : phase_(phase), page_(page) {
        table_.add_column("us per step, % of period", TextTable::Align::left);
        for (const WallLane& lane : phase.lanes) {
            table_.add_column(printable(lane.name, name_columns), TextTable::Align::right);
            table_.add_column("%", TextTable::Align::right);
        }
    }

    /// `figure(lane)`: a sum over the steps of the lane; a lane to which the row does not apply has no cell.
    template <class Of>
    void row(const std::string& name, Of&& figure) {
        std::vector<std::string> cells{name};
        for (const WallLane& lane : phase_.lanes) {
            const std::optional<Figure> value = figure(lane);
            if (!value) {
                cells.insert(cells.end(), {"-", ""});
            } else {
                Figure of_step = *value;
                if (of_step.value) {
                    *of_step.value /= static_cast<double>(std::max<std::uint64_t>(lane.steps, 1));
                }
                cells.push_back(page_.figure(printable(lane.name, name_columns), of_step, 1e3, 1));
                cells.push_back(value->value ? percent(*value->value, lane.period_ns) : "");
            }
        }
        table_.add_row(std::move(cells));
    }
    void end() {
        page_.table(std::move(table_));
        page_.reasons();
    }

  private:
    const WallPhase& phase_;
    Page& page_;
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

void add_uncertain(Page& page, const WallLane& host) {
    if (constexpr double worth_saying = 1e-3; host.off_cpu_uncertain_ns <= worth_saying * host.period_ns) {
        return;
    }
    page.line(
        "uncertain  when threads were off the CPU is not known for " +
            us(host.off_cpu_uncertain_ns / static_cast<double>(std::max<std::uint64_t>(host.steps, 1))) +
            " us per step: what idle time is made of is an estimate, and gains of scopes are as large as they may be",
        Tone::faint);
}

void add_gains(Page& page, const WallPhase& phase) {
    if (phase.gains.empty()) {
        return;
    }
    TextTable table({"the most there is to gain"}, {"us per step", "%", "tok/s then"});
    for (std::size_t i = 0; i < std::min(phase.gains.size(), most_scopes + 4); ++i) {
        const WallGain& gain = phase.gains[i];
        table.add_row({(i == 0 ? "" : "  ") + printable(gain.what, name_columns + 20), us(gain.at_most_ns),
                       fixed(100 * gain.share, 1), figure_text(gain.tokens_per_second, 1, 1)});
    }
    page.blank();
    page.table(std::move(table));
}

void add_coverage(Page& page, const WallPhase& phase) {
    for (const WallLane& lane : phase.lanes) {
        if (lane.coverage.value) {
            page.line("coverage  " + printable(lane.name, name_columns) + ": bricks hold " +
                      fixed(100 * *lane.coverage.value, 1) + " % of its busy time");
        }
    }
}

void add_costs(Page& page, const WallReport& report, const WallPhase& phase) {
    std::string line = "own cost  ";
    if (phase.own_cost_ns.value && phase.steps != 0) {
        line += us(*phase.own_cost_ns.value) + " us per step (" +
                percent(*phase.own_cost_ns.value * static_cast<double>(phase.steps), phase.period_ns) +
                " %) for recording host scopes, inside busy";
    } else {
        line += "n/a (" + printable(phase.own_cost_ns.reason, sentence_columns) + ")";
    }
    if (report.own_cost.wall_share.value) {
        line += "; of the whole run, the thread that writes included, " +
                figure_text(report.own_cost.wall_share, 0.01, 2) + " %";
    }
    page.line(std::move(line));
    if (phase.in_graph_busy_ns.value) {
        page.line("captured graphs  busy for at most " + us(*phase.in_graph_busy_ns.value) +
                  " us per step (replays times the span of a plain one)");
    }
}

void add_unattributed(Page& page, const WallPhase& phase) {
    if (phase.unattributed.empty()) {
        return;
    }
    std::string line = "in no brick  ";
    for (std::size_t i = 0; i < std::min(phase.unattributed.size(), most_kernels); ++i) {
        line += (i == 0 ? "" : ", ") + printable(phase.unattributed[i].first, name_columns) +
                (phase.unattributed[i].second == 1 ? "" : " x" + grouped(phase.unattributed[i].second));
    }
    if (phase.unattributed.size() > most_kernels) {
        line += ", and " + grouped(phase.unattributed.size() - most_kernels) + " more";
    }
    page.line(line + " (nodes of captured graphs)");
}

std::string head_of(const WallPhase& phase) {
    std::string head =
        std::string(phase_word(phase.phase)) + "  " + (phase.steps == 1 ? "1 step" : grouped(phase.steps) + " steps");
    if (phase.steps != 0) {
        head += " of " + us(phase.period_ns / static_cast<double>(phase.steps)) + " us";
    }
    if (phase.tokens_per_second.value) {
        head += ", " + fixed(*phase.tokens_per_second.value, 1) + " tok/s";
    }
    return head;
}

void add_phase(Page& page, const WallReport& report, const WallPhase& phase) {
    page.blank();
    page.line(head_of(phase), Tone::faint);
    page.reason("tok/s", phase.tokens_per_second);
    LaneTable table(phase, page);
    add_busy(table, phase);
    add_idle(table, phase);
    table.end();
    if (phase.lanes.size() == 1 && phase.lanes[0].idle.unknown.value.value_or(0) > 0) {
        page.line("unknown  no thread was on the CPU; whether it waited for a lock, a file, another thread or for its "
                  "turn is not recorded at each moment",
                  Tone::faint);
    }
    add_uncertain(page, phase.lanes.front());
    add_off_cpu(page, phase);
    add_gains(page, phase);
    add_coverage(page, phase);
    add_costs(page, report, phase);
    add_unattributed(page, phase);
}

void add_slowest(Page& page, const WallReport& report) {
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
        return figure_text(figure, 1e3, 1);
    };
    for (const WallStep& slow : report.slowest) {
        const std::vector<WallLane>& lanes = slow.account.lanes;
        const bool device = lanes.size() > 1;
        const WallLane& lane = lanes[device ? 1 : 0];
        table.add_row({std::to_string(slow.step), word_of(slow.account.phase), us(slow.account.period_ns),
                       cell(lanes[0].busy_ns), device ? cell(lane.busy_ns) : "-",
                       device ? cell(lane.idle.exposed_launch) : "-", device ? cell(lane.idle.host_work) : "-",
                       cell(lane.idle.unknown), word_of(slow.account.bound),
                       lane.idle.scopes.empty() ? "" : printable(lane.idle.scopes.front().name, name_columns)});
    }
    page.blank();
    page.table(std::move(table));
}

} // namespace

page::Page page_of(const WallReport& report, const TextOptions&) {
    Page page;
    for (const WallPhase& phase : report.phases) {
        add_verdict(page, phase,
                    (report.step ? "step " + std::to_string(*report.step) + ", " : "") + phase_word(phase.phase));
    }
    for (const WallPhase& phase : report.phases) {
        add_phase(page, report, phase);
    }
    add_slowest(page, report);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
