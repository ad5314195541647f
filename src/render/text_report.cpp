// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/user_notes.hpp"
#include "page/text_table.hpp"
#include "plumb/results.hpp"
#include "render/brick_table.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::string_view bullet = " \xC2\xB7 ";
constexpr std::string_view absent = "n/a";
constexpr std::size_t sentence_columns = 1000;
constexpr double ns_per_us = 1e3;
constexpr double ns_per_ms = 1e6;

constexpr Phase phase_order[] = {Phase::decode, Phase::prefill, Phase::mixed, Phase::none};

/// Phases with steps, the one that matters most first.
std::vector<const PhaseSummary*> phases_with_steps(const Report& report) {
    std::vector<const PhaseSummary*> found;
    for (const Phase wanted : phase_order) {
        for (const PhaseSummary& phase : report.phases) {
            if (phase.phase == wanted && phase.steps > 0) {
                found.push_back(&phase);
            }
        }
    }
    return found;
}

std::string plural(std::uint64_t count, std::string_view word) {
    return grouped(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

std::string percent(const Figure& figure, double scale) {
    return figure.value ? fixed(*figure.value * scale, 1) + " %" : std::string(absent);
}

std::string milliseconds(double ns) { return fixed(ns / ns_per_ms, decimals_for(ns / ns_per_ms, 3, 1, 5)); }

std::string steps_words(const PhaseSummary& phase) {
    std::string words = plural(phase.steps, "step");
    if (phase.warmup_steps > 0) {
        words += " (" + grouped(phase.warmup_steps) + " warm-up apart)";
    }
    return words;
}

/// "qwen2.5-0.5b bf16 · cpu, 2 threads · 24 layers · prefill 64 tok · decode 120 steps (8 warm-up apart)"
std::string description_line(const Report& report) {
    std::vector<std::string> parts;
    for (const auto& [key, text] : report.description) {
        if (analysis::is_user_note(key)) {
            continue;
        }
        // "layers" → "24" says nothing without its key; "model" → "qwen2.5-0.5b bf16" does.
        const bool number = !text.empty() && text.find_first_not_of("0123456789.,") == std::string::npos;
        parts.push_back(printable(number ? text + " " + key : text, sentence_columns));
    }
    for (const Phase wanted : {Phase::prefill, Phase::decode, Phase::mixed, Phase::none}) {
        for (const PhaseSummary& phase : report.phases) {
            if (phase.phase != wanted || (phase.steps == 0 && phase.warmup_steps == 0)) {
                continue;
            }
            const std::string word = wanted == Phase::none ? "no phase" : std::string(phase_word(wanted));
            parts.push_back(word + " " +
                            (wanted == Phase::prefill && phase.prefill_tokens > 0
                                 ? grouped(phase.prefill_tokens) + " tok"
                                 : steps_words(phase)));
        }
    }
    std::string line;
    for (const std::string& part : parts) {
        line += (line.empty() ? "" : std::string(bullet)) + part;
    }
    return line;
}

/// "p50 48.1 ms/tok  p90 50.3"; the mean where there are too few steps for a median.
std::string period_words(const PhaseSummary& phase) {
    // One token a step is the latency of a token; more are a batch, whose step is what can be said.
    const std::string unit = phase.tokens == phase.steps ? " ms/tok" : " ms/step";
    const Distribution& period = phase.period;
    if (!period.p50_ns.value) {
        return period.count == 0
                   ? "p50 n/a"
                   : "mean " + milliseconds(period.mean_ns) + unit + " (n = " + grouped(period.count) + ")";
    }
    return "p50 " + milliseconds(*period.p50_ns.value) + unit + "  p90 " +
           (period.p90_ns.value ? milliseconds(*period.p90_ns.value) : std::string(absent));
}

std::string tokens_words(const PhaseSummary& phase) {
    const Figure& rate = phase.tokens_per_second;
    return (rate.value ? fixed(*rate.value, decimals_for(*rate.value, 3, 0, 3)) : std::string(absent)) + " tok/s";
}

std::string coverage_words(const PhaseSummary& phase) {
    if (!phase.wall.coverage.value) {
        return "coverage " + std::string(absent);
    }
    return "coverage " + percent(phase.wall.coverage, 100) +
           (wall_is_of_the_host(phase) ? " of host busy" : " of busy");
}

/// "coverage at least 97.1 % of device busy"; empty where it is not known.
std::string device_coverage_words(const PhaseSummary& phase) {
    const bool known = phase.device && phase.device->coverage_at_least.value;
    return known ? "coverage at least " + percent(phase.device->coverage_at_least, 100) + " of device busy" : "";
}

/// The device's own share first, where the account of the wall is the host's alone.
std::string all_coverage_words(const PhaseSummary& phase) {
    const std::string device = wall_is_of_the_host(phase) ? device_coverage_words(phase) : "";
    return (device.empty() ? "" : device + ", ") + coverage_words(phase);
}

/// "decode  p50 48.1 ms/tok  p90 50.3  20.8 tok/s     prefill 205 tok/s     coverage 99.4 % of busy   own cost …"
std::string headline(const Report& report, const std::vector<const PhaseSummary*>& phases) {
    std::string line;
    for (const PhaseSummary* phase : phases) {
        line += std::string(phase_word(phase->phase));
        line += phase->phase == Phase::prefill ? " " + tokens_words(*phase)
                                               : "  " + period_words(*phase) + "  " + tokens_words(*phase);
        line += "     ";
    }
    if (!phases.empty()) {
        line += all_coverage_words(*phases.front());
        if (phases.size() > 1) {
            line += " (" + std::string(phase_word(phases.front()->phase)) + ")";
        }
        line += "   ";
    }
    const Figure& cost = report.own_cost.percent_of_wall;
    return line + "own cost " + percent(cost, 1) + (cost.value ? " (measured)" : "");
}

/// Why figures of the headline are missing.
void append_headline_reasons(std::string& out, const Report& report, const std::vector<const PhaseSummary*>& phases,
                             const Style& style) {
    const auto append = [&](const std::string& what, const Figure& figure) {
        if (!figure.value && !figure.reason.empty()) {
            out += "n/a  " + what + ": " + printable(figure.reason, sentence_columns) + '\n';
        }
    };
    out += style.faint;
    for (const PhaseSummary* phase : phases) {
        append(std::string(phase_word(phase->phase)) + " tok/s", phase->tokens_per_second);
        append(std::string(phase_word(phase->phase)) + " coverage", phase->wall.coverage);
    }
    append("own cost", report.own_cost.percent_of_wall);
    out += style.plain;
}

std::string phase_title(const PhaseSummary& phase) {
    return std::string(phase_word(phase.phase)) + ": " + steps_words(phase) + ", " + period_words(phase) + ", " +
           all_coverage_words(phase) + "\n";
}

/// "device  queues busy 3.21 ms/step, idle 1.02 ms/step (12 timed steps) · in graphs busy ≤ 5.11 ms/step, idle n/a"
void append_device_line(std::string& out, const PhaseSummary& phase, const Style& style) {
    if (!phase.device) {
        return;
    }
    const DeviceAccount& device = *phase.device;
    const auto words = [](const Figure& figure) {
        return figure.value ? milliseconds(*figure.value) + " ms/step" : std::string(absent);
    };
    std::string line;
    if (device.busy_per_step_ns.value) {
        line += "queues busy " + words(device.busy_per_step_ns) + ", idle " + words(device.idle_per_step_ns) + " (in " +
                plural(device.steps, "timed step") + ")";
        if (!wall_is_of_the_host(phase) && device.coverage_at_least.value) {
            line += ", " + device_coverage_words(phase);
        }
    }
    if (device.replays != 0) {
        line += (line.empty() ? "" : std::string(bullet)) + plural(device.replays, "graph replay") + ", busy at most " +
                words(device.in_graph_busy_per_step_ns) + " in them (idle in them " +
                words(device.in_graph_idle_per_step_ns) + ")";
        // What is left of the period is idle at least: nothing else of these steps was timed on the device.
        const double around =
            phase.period.mean_ns - device.in_graph_busy_per_step_ns.value.value_or(phase.period.mean_ns);
        if (around > 0 && !device.busy_per_step_ns.value) {
            line += ", idle around them at least " + milliseconds(around) + " ms/step";
        }
    }
    if (line.empty()) {
        return;
    }
    out += "device  " + line + '\n';
    out += style.faint;
    for (const Figure* figure :
         {&device.idle_per_step_ns, &device.in_graph_busy_per_step_ns, &device.in_graph_idle_per_step_ns}) {
        const bool shown =
            figure == &device.idle_per_step_ns ? device.busy_per_step_ns.value.has_value() : device.replays != 0;
        if (shown && !figure->value) {
            out += std::string("n/a  ") +
                   (figure == &device.idle_per_step_ns            ? "idle of the queues: "
                    : figure == &device.in_graph_busy_per_step_ns ? "busy in graphs: "
                                                                  : "idle in graphs: ") +
                   printable(figure->reason, sentence_columns) + '\n';
        }
    }
    out += style.plain;
}

/// "light   speed of light 34.1 ms/step (988 MB/step at the read bandwidth measured here): the period is 71.2 % of light"
void append_light_lines(std::string& out, const PhaseSummary& phase) {
    constexpr double bytes_per_mb = 1e6;
    for (const SpeedOfLight& light : phase.speed_of_light) {
        if (!light.ns_per_step.value) {
            continue; // the table has said what to run
        }
        const double mb = light.bytes_per_step.value.value_or(0) / bytes_per_mb;
        out += "light   " + printable(light.place, 20) + ": " + fixed(mb, decimals_for(mb, 3, 0, 3)) +
               " MB/step take at least " + milliseconds(*light.ns_per_step.value) +
               " ms at the read bandwidth measured here";
        if (light.reached_percent.value) {
            out += ", " + fixed(*light.reached_percent.value, 1) + " % of the mean period";
        }
        if (light.fits_cache) {
            out += " (they fit the last-level cache: memory sets no such limit)";
        }
        if (light.bricks_without_bytes != 0) {
            out += "; " + plural(light.bricks_without_bytes, "brick") + " without bytes";
        }
        out += '\n';
    }
}

void append_tables(std::string& out, const Report& report, const std::vector<const PhaseSummary*>& phases,
                   const Style& style) {
    // A recording without steps still shows its bricks.
    const bool has_none = std::any_of(phases.begin(), phases.end(),
                                      [](const PhaseSummary* phase) { return phase->phase == Phase::none; });
    const PhaseRows outside = has_none ? PhaseRows{} : rows_of(report, nullptr);
    const bool titles = phases.size() + (outside.rows.empty() ? 0 : 1) > 1;
    for (const PhaseSummary* phase : phases) {
        out += '\n';
        if (titles) {
            out += phase_title(*phase);
        }
        append_brick_table(out, rows_of(report, phase), style);
        append_device_line(out, *phase, style);
        append_light_lines(out, *phase);
    }
    if (!outside.rows.empty()) {
        out += "\noutside any step\n";
        append_brick_table(out, outside, style);
    }
}

/// "counters  2.13 instructions per cycle · 12.3 % of cache references miss (whole process)"
void append_counters(std::string& out, const Report& report, const Style& style) {
    if (!report.counters) {
        return;
    }
    const Figure& ipc = report.counters->instructions_per_cycle;
    const Figure& misses = report.counters->cache_miss_percent;
    out += "\ncounters  " + (ipc.value ? fixed(*ipc.value, 2) : std::string(absent)) + " instructions per cycle" +
           std::string(bullet) + percent(misses, 1) + " of cache references miss (whole process)\n";
    out += style.faint;
    for (const Figure* figure : {&ipc, &misses}) {
        if (!figure->value) {
            out += "n/a  counters: " + printable(figure->reason, sentence_columns) + '\n';
            break;
        }
    }
    out += style.plain;
}

void append_labels(std::string& out, const Report& report, const Style& style) {
    if (report.labels.empty()) {
        return;
    }
    TextTable table;
    table.add_column("label (untimed)", TextTable::Align::left);
    for (const char* heading : {"count", "total ms", "mean us", "min us", "max us"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    for (const LabelTotal& label : report.labels) {
        const double mean = label.count > 0 ? label.total_ns / static_cast<double>(label.count) : 0;
        table.add_row({printable(label.label, 40), grouped(label.count), fixed(label.total_ns / ns_per_ms, 3),
                       label.count > 0 ? fixed(mean / ns_per_us, 3) : std::string(absent),
                       fixed(label.min_ns / ns_per_us, 3), fixed(label.max_ns / ns_per_us, 3)});
    }
    out += '\n';
    table.append_to(out, style.heading, style.plain);
    out += style.faint;
    out +=
        "labels are durations that the program states itself: they are in no table above, no coverage and no trace\n";
    out += style.plain;
}

std::string_view sync_sentence(const std::string& mode) {
    if (mode == "immediate") {
        return "sync=immediate: every scope waits until its work is done, so work that would run side by side was "
               "serialised, and the waits are part of the period";
    }
    if (mode == "per_layer") {
        return "sync=per_layer: stamps at the borders of layers are serialised, so that nothing crosses them; inside a "
               "layer nothing waits";
    }
    if (mode == "none") {
        return "sync=none: only the host side was timed; work on a device queue has no time of its own";
    }
    return {};
}

void append_line(std::string& out, std::string_view head, std::string_view sentence, const Style& style) {
    out += style.warning;
    out += head;
    out += style.plain;
    out += printable(sentence, sentence_columns);
    out += '\n';
}

double uncertain_share(const PhaseSummary& phase) {
    return phase.wall.period_ns > 0 ? phase.wall.off_cpu_uncertain_ns / phase.wall.period_ns : 0;
}

/// What the reader must know before trusting the tables; nothing where all went well.
void append_remarks(std::string& out, const Report& report, const std::vector<const PhaseSummary*>& phases,
                    const Style& style) {
    std::string remarks;
    for (const LossRow& loss : report.losses) {
        append_line(remarks, "lost  ", plural(loss.count, "record") + ": " + loss.reason, style);
    }
    const bool explained = std::any_of(report.losses.begin(), report.losses.end(), [](const LossRow& loss) {
        return loss.reason.starts_with("unresolved"); // then each reason has a line of its own
    });
    if (report.unresolved > 0 && !explained) {
        append_line(remarks, "lost  ", plural(report.unresolved, "scope") + ": recorded, but never given a time",
                    style);
    }
    if (const std::string_view sentence = sync_sentence(report.sync_mode); !sentence.empty()) {
        append_line(remarks, "note  ", sentence, style);
    }
    for (const PhaseSummary* phase : phases) {
        if (constexpr double worth_saying = 1e-3; uncertain_share(*phase) >= worth_saying) {
            append_line(remarks, "note  ",
                        std::string(phase_word(phase->phase)) + ": " + fixed(100 * uncertain_share(*phase), 1) +
                            " % of the period was off the CPU at moments that could not be placed inside or between "
                            "bricks; unattributed may be wrong by as much",
                        style);
        }
    }
    for (const std::string& note : report.notes) {
        append_line(remarks, "note  ", note, style);
    }
    for (const auto& [key, text] : report.description) {
        if (analysis::is_user_note(key)) {
            append_line(remarks, "note by the user  ", text, style);
        }
    }
    if (!remarks.empty()) {
        out += '\n' + remarks;
    }
}

} // namespace

std::string render_text(const Report& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    const std::vector<const PhaseSummary*> phases = phases_with_steps(report);
    std::string out;
    if (const std::string line = description_line(report); !line.empty()) {
        out += line + '\n';
    }
    out += headline(report, phases) + '\n';
    append_headline_reasons(out, report, phases, style);
    append_tables(out, report, phases, style);
    for (const PhaseSummary* phase : phases) {
        append_layer_table(out, report, *phase, options.width, style);
    }
    append_counters(out, report, style);
    append_labels(out, report, style);
    append_remarks(out, report, phases, style);
    return out;
}

} // namespace plumb
