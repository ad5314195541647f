// SPDX-License-Identifier: Apache-2.0
#include "top/picture.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/brick_words.hpp"
#include "answers/report/brick_table.hpp"
#include "answers/report/phase_words.hpp"
#include "page/page.hpp"
#include "page/text_table.hpp"
#include "page/words.hpp"

namespace plumb::top {
namespace {

using namespace page;

constexpr std::string_view bullet = " \xC2\xB7 ";
constexpr std::size_t narrow = 50, wide = 120; // columns from which on there is more to a line
constexpr double per_cent = 0.01, ns_per_us = 1e3, ns_per_ms = 1e6;
constexpr Phase phase_order[] = {Phase::decode, Phase::prefill, Phase::mixed, Phase::none};

std::size_t least(std::size_t a, std::size_t b) { return std::min(a, b); }

std::string padded(const std::string& text, std::size_t columns, bool right) {
    const std::size_t wide_as = columns_of(text);
    const std::string blank(columns > wide_as ? columns - wide_as : 0, ' ');
    return right ? blank + text : text + blank;
}

/// "2 h 31 m", "2 m 31 s", "31 s"
std::string lasting(double seconds) {
    const auto whole = static_cast<std::uint64_t>(std::max(0.0, seconds));
    if (whole >= 3600) {
        return std::to_string(whole / 3600) + " h " + std::to_string(whole / 60 % 60) + " m";
    }
    return (whole >= 60 ? std::to_string(whole / 60) + " m " : "") + std::to_string(whole % 60) + " s";
}

/// Lines as they come, each cut to the width and, where there is colour, dressed.
class Lines {
  public:
    Lines(std::size_t columns, bool color) : columns_(std::max<std::size_t>(columns, 1)), color_(color) {}

    void add(const std::string& text, Tone tone = Tone::plain) {
        std::string line = printable(text, columns_);
        line.erase(line.find_last_not_of(' ') + 1);
        Page dressed;
        dressed.line(std::move(line), tone);
        lines.push_back(text_of(dressed, color_));
        lines.back().pop_back(); // its newline
    }
    /// Parts that stand in one line where they fit, else in several.
    void add_parts(const std::vector<std::string>& parts, std::string_view between, Tone tone = Tone::plain) {
        std::string line;
        for (const std::string& part : parts) {
            if (!line.empty() && columns_of(line) + columns_of(between) + columns_of(part) > columns_) {
                add(std::exchange(line, ""), tone);
            }
            line += (line.empty() ? "" : std::string(between)) + part;
        }
        add(line, tone);
    }
    [[nodiscard]] std::size_t columns() const { return columns_; }

    std::vector<std::string> lines;

  private:
    std::size_t columns_;
    bool color_;
};

std::string span_words(const View& view) {
    if (view.account.seconds) {
        return "last " + fixed(*view.account.seconds, 1) + " s";
    }
    return view.account.removed ? "all that is kept" : view.ended ? "whole run" : "whole run so far";
}

void add_head(Lines& to, const View& view) {
    const std::string name = view.recording.substr(view.recording.rfind('/') + 1);
    std::vector<std::string> parts = {printable(name, 60)};
    if (view.pid != 0) {
        parts.push_back("pid " + std::to_string(view.pid));
    }
    if (view.ended) {
        parts.emplace_back("ended");
    } else if (view.running_seconds) {
        parts.push_back("running " + lasting(*view.running_seconds));
    }
    parts.push_back(span_words(view));
    to.add_parts(parts, bullet, Tone::heading);
    if (view.silent_seconds) {
        to.add("nothing was recorded for " + lasting(*view.silent_seconds) + ": the process is alive", Tone::warning);
    }
}

void add_phases(Lines& to, const View& view) {
    const Report& report = view.account.report;
    bool any = false;
    for (const Phase wanted : phase_order) {
        for (const PhaseSummary& phase : report.phases) {
            if (phase.phase != wanted || (phase.steps == 0 && phase.warmup_steps == 0)) {
                continue;
            }
            any = true;
            const std::string word(words_of(phase.phase)[static_cast<std::size_t>(phase.phase)]);
            std::vector<std::string> parts = {word + " " + answers::tokens_words(phase)};
            if (phase.steps == 0) {
                parts.push_back("n/a: " + phase.tokens_per_second.reason);
            } else {
                const std::string period = answers::period_words(phase); // the median, and apart from it p90
                const std::size_t cut = period.find("  ");
                parts.push_back(period.substr(0, cut));
                if (cut != std::string::npos) {
                    parts.push_back(period.substr(cut + 2));
                }
            }
            if (to.columns() >= narrow) {
                parts.push_back(answers::coverage_words(phase));
                parts.push_back(answers::steps_words(phase));
            }
            to.add_parts(parts, "  ");
        }
    }
    if (!any) {
        to.add(view.account.seconds ? "no complete step in this time" : "no complete step yet");
        if (view.account.seconds && view.account.removed) {
            to.add_parts({"of what max_size= or keep= leaves,", "the last 1.2 s are not looked at"}, " ");
        }
    }
}

/// "tok/s   ▁▂▃▅ 21.1"
void add_trend(Lines& to, const View& view, const std::string& name, const std::string& now,
               std::optional<double> Moment::*of, double full = 0) {
    if (view.history.empty()) {
        return;
    }
    constexpr std::size_t name_columns = 7;
    std::vector<std::optional<double>> values;
    for (const Moment& moment : view.history) {
        values.push_back(moment.*of);
    }
    if (to.columns() < narrow) {
        to.add(name + " " + now);
        to.add(sparkline(values, least(to.columns(), history_length), full));
        return;
    }
    to.add(padded(name, name_columns, false) +
           sparkline(values, least(history_length, to.columns() - name_columns - 10), full) + "  " + now);
}

void add_trends(Lines& to, const View& view) {
    if (view.history.empty()) {
        return;
    }
    const Moment& now = view.history.back();
    const PhaseSummary* phase = main_phase(view.account.report);
    std::string tokens = phase != nullptr ? answers::tokens_words(*phase) : std::string(not_available);
    tokens = tokens.substr(0, tokens.find(' '));
    const auto share = [](const std::optional<double>& value) {
        return value ? fixed(100 * *value, 1) : std::string(not_available);
    };
    add_trend(to, view, "tok/s", tokens, &Moment::tokens_per_second);
    add_trend(to, view, "idle %", share(now.idle_share), &Moment::idle_share, 1);
    add_trend(to, view, "drops", now.drops ? fixed(*now.drops, 0) + "/s" : std::string(not_available), &Moment::drops);
}

/// "idle of cuda:0 12.3 %: exposed launch 3.1, host work 5.0, unknown 4.2"
void add_idle(Lines& to, const View& view, const PhaseSummary* phase) {
    const WallPhase* wall = nullptr;
    for (const WallPhase& one : view.account.wall.phases) {
        wall = phase != nullptr && one.phase == phase->phase ? &one : wall;
    }
    if (wall == nullptr) {
        return;
    }
    for (const WallLane& lane : wall->lanes) {
        const auto part = [&lane](const Figure& figure) {
            return lane.period_ns > 0 ? figure_text(figure, lane.period_ns * per_cent, 1) : std::string(not_available);
        };
        std::string head = "idle of " + (lane.device ? printable(lane.name, 20) : "the host") + " ";
        if (!lane.idle.total.value) {
            to.add(head + "n/a: " + lane.idle.total.reason);
            continue;
        }
        head += part(lane.idle.total) + " %:";
        std::vector<std::string> parts;
        if (lane.device) {
            parts = {"exposed launch " + part(lane.idle.exposed_launch), "host work " + part(lane.idle.host_work)};
        } else if (wall->lanes.size() > 1) {
            parts = {"a device was busy " + part(lane.idle.for_device)};
        }
        parts.push_back("unknown " + part(lane.idle.unknown));
        for (std::size_t i = 0; i < least(lane.idle.scopes.size(), 3); ++i) {
            const WallScope& scope = lane.idle.scopes[i];
            parts.push_back("in " + printable(scope.name, 20) + " " + part({scope.self_ns, {}}));
        }
        std::string line = head;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const std::string more = (i == 0 ? " " : ", ") + parts[i];
            if (columns_of(line) + columns_of(more) > to.columns()) {
                break; // the rest is in `plumb wall`
            }
            line += more;
        }
        to.add(line);
    }
}

void add_drops(Lines& to, const View& view) {
    std::uint64_t all = 0;
    for (const auto& [reason, count] : view.drops) {
        all += count;
    }
    if (all == 0) {
        to.add("nothing was dropped");
        return;
    }
    std::vector<std::string> parts;
    for (const auto& [reason, count] : view.drops) {
        if (count != 0) {
            parts.push_back(answers::plural(count, "record") + " dropped: " + printable(reason, 60));
        }
    }
    to.add_parts(parts, bullet, Tone::warning);
}

/// The table of bricks: which columns there is room for.
struct TableShape {
    std::size_t name, bar = 0, trend = 0;
    bool calls, times, sums;

    TableShape(std::size_t columns, bool history)
        : name(0), calls(columns >= narrow), times(calls), sums(columns >= wide) {
        const std::size_t numbers = 8 + (calls ? 11 : 0) + (times ? 22 : 0) + (sums ? 13 : 0);
        const std::size_t left = columns > numbers ? columns - numbers : 1;
        name = std::max<std::size_t>(least(left, 26), 1);
        std::size_t rest = left - least(left, name);
        if (history && sums && rest > 40) {
            trend = least(rest - 22, history_length);
            rest -= trend + 2;
        }
        bar = rest > 5 ? least(rest - 1, 30) : 0;
    }
};

std::string bar_of(double share, std::size_t columns) {
    static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const double cells = std::clamp(share, 0.0, 1.0) * static_cast<double>(columns);
    std::string bar;
    for (std::size_t i = 0; i < static_cast<std::size_t>(cells); ++i) {
        bar += "█";
    }
    return bar + eighths[static_cast<std::size_t>((cells - std::floor(cells)) * 8)];
}

class BrickLines {
  public:
    BrickLines(Lines& to, const View& view, const answers::PhaseRows& rows)
        : to_(to), view_(view), rows_(rows), shape_(to.columns(), !view.history.empty()) {
        double most_p50 = 0, most_p90 = 0, most_sum = rows.phase != nullptr ? per_step(rows.phase->wall.period_ns) : 0;
        for (const Row* row : rows.rows) {
            most_p50 = std::max(most_p50, row->time.p50_ns.value.value_or(0) / ns_per_us);
            most_p90 = std::max(most_p90, row->time.p90_ns.value.value_or(0) / ns_per_us);
            most_sum = std::max(most_sum, sum_of(*row) / ns_per_ms);
        }
        p50_ = decimals_for(most_p50, 4, 1, 3);
        p90_ = decimals_for(most_p90, 4, 1, 3);
        sum_ = decimals_for(most_sum, 4, 2, 6);
    }

    void heading() {
        line("brick", rows_.phase != nullptr ? "% wall" : "sum ms", "", rows_.phase != nullptr ? "calls/step" : "calls",
             "p50 us", "p90 us", "sum/step ms", "", Tone::heading);
    }
    void brick(const Row& row) {
        const std::string name = answers::marked_name(row);
        const bool steps = rows_.phase != nullptr;
        line(name, steps ? figure_text(row.wall_share, per_cent, 1) : fixed(sum_of(row) / ns_per_ms, sum_),
             row.wall_share.value ? bar_of(*row.wall_share.value, shape_.bar) : "",
             steps ? answers::calls_cell(row.calls_per_step) : grouped(row.time.count),
             figure_text(row.time.p50_ns, ns_per_us, p50_), figure_text(row.time.p90_ns, ns_per_us, p90_),
             fixed(sum_of(row) / ns_per_ms, sum_), trend_of(name), Tone::plain);
    }
    void remainder(const std::string& name, double ns) {
        const double period = rows_.phase->wall.period_ns;
        line(name, period > 0 ? fixed(100 * ns / period, 1) : std::string(not_available),
             period > 0 ? bar_of(ns / period, shape_.bar) : "", "-", "-", "-", fixed(per_step(ns), sum_), "",
             Tone::faint);
    }

  private:
    [[nodiscard]] double per_step(double ns) const {
        return rows_.phase->steps == 0 ? 0 : ns / static_cast<double>(rows_.phase->steps) / ns_per_ms;
    }
    [[nodiscard]] double sum_of(const Row& row) const {
        return rows_.phase != nullptr ? row.sum_per_step_ns : row.time.total_ns;
    }
    [[nodiscard]] std::string trend_of(const std::string& name) const {
        std::vector<std::optional<double>> values;
        for (const Moment& moment : view_.history) {
            const auto found = moment.wall_shares.find(name);
            values.push_back(found == moment.wall_shares.end() ? std::nullopt : std::optional(found->second));
        }
        return shape_.trend != 0 ? sparkline(values, shape_.trend) : "";
    }
    void line(const std::string& name, const std::string& share, const std::string& bar, const std::string& calls,
              const std::string& p50, const std::string& p90, const std::string& sum, const std::string& trend,
              Tone tone) {
        std::string text = padded(printable(name, shape_.name), shape_.name, false) + padded(share, 8, true);
        if (shape_.calls) {
            text += padded(calls, 11, true) + padded(p50, 11, true) + padded(p90, 11, true);
        }
        if (shape_.sums) {
            text += padded(sum, 13, true);
        }
        if (shape_.bar != 0) {
            text += " " + padded(bar, shape_.bar, false);
        }
        to_.add(text + (shape_.trend != 0 ? "  " + trend : ""), tone);
    }

    Lines& to_;
    const View& view_;
    const answers::PhaseRows& rows_;
    TableShape shape_;
    int p50_ = 1, p90_ = 1, sum_ = 2;
};

/// At most `room` lines (0: all), the largest bricks first; what the wall holds beside them is always there.
void add_table(Lines& to, const View& view, const PhaseSummary* phase, std::size_t room) {
    const answers::PhaseRows rows = answers::rows_of(view.account.report, phase);
    if (rows.rows.empty()) {
        return;
    }
    BrickLines table(to, view, rows);
    std::size_t fixed_lines = 1;
    if (phase != nullptr) {
        fixed_lines += 2U + (phase->wall.bricks_outside_ns > 0 ? 1U : 0U) + (phase->wall.overlap_ns > 0 ? 1U : 0U) +
                       (phase->wall.lap_union_ns > 0 ? 1U : 0U);
    }
    std::size_t shown = rows.rows.size();
    if (room != 0 && shown + fixed_lines > room) {
        shown = room > fixed_lines + 1 ? room - fixed_lines - 1 : room > fixed_lines ? 1 : 0;
    }
    table.heading();
    for (std::size_t i = 0; i < shown; ++i) {
        table.brick(*rows.rows[i]);
    }
    if (shown < rows.rows.size()) {
        to.add("… " + grouped(rows.rows.size() - shown) + " more", Tone::faint);
    }
    if (phase != nullptr) {
        const bool host = analysis::wall_is_of_the_host(*phase);
        if (phase->wall.bricks_outside_ns > 0) {
            table.remainder(analysis::bricks_outside, phase->wall.bricks_outside_ns);
        }
        if (phase->wall.overlap_ns > 0) {
            table.remainder("overlap", phase->wall.overlap_ns);
        }
        table.remainder(host ? "host: unattributed" : "unattributed", phase->wall.unattributed_ns);
        if (phase->wall.lap_union_ns > 0) {
            table.remainder("  of it in laps", phase->wall.lap_union_ns);
        }
        table.remainder(host ? "host: idle" : "idle", phase->wall.idle_ns);
    }
}

} // namespace

const PhaseSummary* main_phase(const Report& report) {
    const PhaseSummary* longest = nullptr;
    for (const PhaseSummary& phase : report.phases) {
        if (phase.steps != 0 && (longest == nullptr || phase.wall.period_ns > longest->wall.period_ns)) {
            longest = &phase;
        }
    }
    return longest;
}

Moment moment_of(const Account& account, std::uint64_t drops) {
    Moment moment;
    moment.drops = static_cast<double>(drops);
    const PhaseSummary* phase = main_phase(account.report);
    if (phase == nullptr) {
        return moment;
    }
    moment.tokens_per_second = phase->tokens_per_second.value;
    if (phase->wall.period_ns > 0) {
        moment.idle_share = phase->wall.idle_ns / phase->wall.period_ns;
    }
    for (const Row* row : answers::rows_of(account.report, phase).rows) {
        if (row->wall_share.value && moment.wall_shares.size() < 64) {
            moment.wall_shares.emplace(answers::marked_name(*row), *row->wall_share.value);
        }
    }
    return moment;
}

std::string sparkline(const std::vector<std::optional<double>>& values, std::size_t columns, double full) {
    static constexpr const char* levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const std::size_t count = least(values.size(), columns);
    const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
    double largest = full;
    for (auto at = first; at != values.end(); ++at) {
        largest = std::max(largest, at->value_or(0));
    }
    std::string line(columns - count, ' ');
    for (auto at = first; at != values.end(); ++at) {
        if (!*at) {
            line += ' ';
            continue;
        }
        const double share = largest > 0 ? std::clamp(**at / largest, 0.0, 1.0) : 0;
        line += levels[static_cast<std::size_t>(std::lround(share * 7))];
    }
    return line;
}

std::vector<std::string> picture_of(const View& view, Size size, bool color, bool keys) {
    const PhaseSummary* phase = main_phase(view.account.report);
    const std::size_t foot = keys ? 1 : 0;
    Lines to(size.columns, color);
    add_head(to, view);
    add_phases(to, view);
    // Few rows: the table goes before the lines of the last minute, and those before the causes of idle.
    const auto room_for = [&](std::size_t more, std::size_t table) {
        return size.rows == 0 || to.lines.size() + more + table + foot <= size.rows;
    };
    if (room_for(to.columns() < narrow ? 6 : 3, 6)) {
        add_trends(to, view);
    }
    if (room_for(3, 6)) {
        if (to.columns() >= narrow) {
            add_idle(to, view, phase);
        }
        add_drops(to, view);
    }
    if (room_for(1, 6)) {
        to.add("");
    }
    const std::size_t used = to.lines.size() + foot;
    if (size.rows == 0 || used + 2 <= size.rows) {
        add_table(to, view, phase, size.rows == 0 ? 0 : size.rows - used);
    }
    if (size.rows != 0 && to.lines.size() + foot > size.rows) {
        to.lines.resize(std::max<std::size_t>(size.rows, foot) - foot);
    }
    if (keys) {
        to.add("q quits", Tone::faint);
    }
    return std::move(to.lines);
}

} // namespace plumb::top
