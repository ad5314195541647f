// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "analysis/brick_words.hpp"
#include "analysis/imported_words.hpp"
#include "answers/report/brick_table.hpp"
#include "answers/report/phase_words.hpp"
#include "answers/report/report.hpp"
#include "recording/import_notes.hpp"
#include "recording/user_notes.hpp"

namespace plumb {

namespace {

using namespace answers;
using namespace page;

constexpr std::string_view bullet = " \xC2\xB7 ";

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

/// "qwen2.5-0.5b bf16 · cpu, 2 threads · 24 layers · prefill 64 tok · decode 120 steps (8 warm-up apart)"
std::string description_line(const Report& report) {
    std::vector<std::string> parts;
    for (const auto& [key, text] : report.description) {
        if (recording::is_user_note(key) || recording::is_import_note(key) || !recording::known_brick(key).empty()) {
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

/// "coverage at least 97.1 % of device busy"; empty where it is not known.
std::string device_coverage_words(const PhaseSummary& phase) {
    const bool known = phase.device && phase.device->coverage_at_least.value;
    return known ? "coverage at least " + percent(phase.device->coverage_at_least, 100) + " of device busy" : "";
}

/// The device's own share first, where the account of the wall is the host's alone.
std::string all_coverage_words(const PhaseSummary& phase) {
    const std::string device = analysis::wall_is_of_the_host(phase) ? device_coverage_words(phase) : "";
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
    const Figure& cost = report.own_cost.wall_share;
    return line + "own cost " + percent(cost, 100) + (cost.value ? " (measured)" : "");
}

/// "n/a  coverage: why" where it is absent.
void add_reason(Page& page, const std::string& what, const Figure& figure) {
    if (!figure.value && !figure.reason.empty()) {
        page.line("n/a  " + what + ": " + printable(figure.reason, sentence_columns), Tone::faint);
    }
}

/// Why figures of the headline are missing.
void add_headline_reasons(Page& page, const Report& report, const std::vector<const PhaseSummary*>& phases) {
    for (const PhaseSummary* phase : phases) {
        add_reason(page, std::string(phase_word(phase->phase)) + " tok/s", phase->tokens_per_second);
        add_reason(page, std::string(phase_word(phase->phase)) + " coverage", phase->wall.coverage);
    }
    add_reason(page, "own cost", report.own_cost.wall_share);
}

std::string phase_title(const PhaseSummary& phase) {
    return std::string(phase_word(phase.phase)) + ": " + steps_words(phase) + ", " + period_words(phase) + ", " +
           all_coverage_words(phase);
}

/// "device  queues busy 3.21 ms/step, idle 1.02 ms/step (12 timed steps) · in graphs busy ≤ 5.11 ms/step, idle n/a"
void add_device_line(Page& page, const PhaseSummary& phase) {
    if (!phase.device) {
        return;
    }
    const DeviceAccount& device = *phase.device;
    const auto words = [](const Figure& figure) {
        return figure.value ? milliseconds(*figure.value) + " ms/step" : std::string(not_available);
    };
    const bool queues = device.busy_per_step_ns.value.has_value();
    const bool graphs = device.replays != 0;
    if (!queues && !graphs) {
        return;
    }
    std::string line = "device  ";
    if (queues) {
        line += "queues busy " + words(device.busy_per_step_ns) + ", idle " + words(device.idle_per_step_ns) + " (in " +
                plural(device.steps, "timed step") + ")";
        if (!analysis::wall_is_of_the_host(phase) && device.coverage_at_least.value) {
            line += ", " + device_coverage_words(phase);
        }
    }
    const Figure& in_graphs = device.in_graph_busy_per_step_ns;
    const bool linked = queues && !in_graphs.value && in_graphs.reason == analysis::in_rows_of_queues;
    if (linked) {
        line += std::string(bullet) + plural(device.replays, "graph replay") + ": " + in_graphs.reason;
    } else if (graphs) {
        line += (queues ? std::string(bullet) : "") + plural(device.replays, "graph replay") + ", busy at most " +
                words(device.in_graph_busy_per_step_ns) + " in them (idle in them " +
                words(device.in_graph_idle_per_step_ns) + ")";
        // What is left of the period is idle at least: nothing else of these steps was timed on the device.
        const double around =
            phase.period.mean_ns - device.in_graph_busy_per_step_ns.value.value_or(phase.period.mean_ns);
        if (around > 0 && !queues) {
            line += ", idle around them at least " + milliseconds(around) + " ms/step";
        }
    }
    page.line(line);
    if (queues) {
        add_reason(page, "idle of the queues", device.idle_per_step_ns);
    }
    if (graphs && !linked) {
        add_reason(page, "busy in graphs", device.in_graph_busy_per_step_ns);
        add_reason(page, "idle in graphs", device.in_graph_idle_per_step_ns);
    }
}

/// ", most in mlp_up 4.10 ms, lm_head 3.00 ms, attention 1.20 ms": what took longest beyond its bytes; empty where nothing is known.
std::string most_excess(const Report& report, const PhaseSummary& phase, const SpeedOfLight& light) {
    if (light.devices > 1) {
        return {}; // sums of what devices did side by side are no parts of it
    }
    constexpr std::size_t most = 3;
    std::vector<const Row*> rows;
    for (const Row& row : report.bricks) {
        const bool here = row.device ? row.source.starts_with(light.place) : light.place == "host";
        if (row.key.phase == phase.phase && !row.parent && here && row.excess_per_step_ns.value.value_or(0) > 0) {
            rows.push_back(&row);
        }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
        return *a->excess_per_step_ns.value > *b->excess_per_step_ns.value;
    });
    rows.resize(std::min(rows.size(), most));
    std::string text;
    for (const Row* row : rows) {
        text += (text.empty() ? ", most in " : ", ") + printable(row->key.name, 30) + " " +
                milliseconds(*row->excess_per_step_ns.value) + " ms";
    }
    return text;
}

/// "gap     cuda: kernels take 3.21 ms/step beyond that, most in mlp_up 1.10 ms; between kernels 0.31 ms; host 0.52 ms"
void add_gap_line(Page& page, const Report& report, const PhaseSummary& phase, const SpeedOfLight& light) {
    const bool apart = light.kernel_excess_ns.value.has_value();
    const Figure& excess = apart ? light.kernel_excess_ns : light.device_excess_ns;
    if (!excess.value) {
        if (!light.fits_cache) { // which the line above has said
            add_reason(page, "gap to it", excess);
        }
        return;
    }
    std::string line = "gap     " + printable(light.place, 20) + ": " +
                       (apart ? "kernels" : "kernels and the gaps between them") + " take " +
                       milliseconds(*excess.value) + " ms/step beyond that" + most_excess(report, phase, light);
    if (light.between_kernels_ns.value) {
        line += "; between kernels " + milliseconds(*light.between_kernels_ns.value) + " ms" +
                (light.kernel_times == "kernel stamps" ? " (kernel stamps)" : "");
    }
    if (light.host_ns.value) {
        line += "; host " + milliseconds(*light.host_ns.value) + " ms";
    }
    page.line(line);
}

/// "light   speed of light 34.1 ms/step (988 MB/step at the read bandwidth measured here): the period is 71.2 % of light"
void add_light_lines(Page& page, const Report& report, const PhaseSummary& phase) {
    constexpr double bytes_per_mb = 1e6;
    for (const SpeedOfLight& light : phase.speed_of_light) {
        if (!light.ns_per_step.value) {
            continue; // the table has said what to run
        }
        const double mb = light.bytes_per_step.value.value_or(0) / bytes_per_mb;
        std::string line = "light   " + printable(light.place, 20) + ": " + fixed(mb, decimals_for(mb, 3, 0, 3)) +
                           " MB/step take at least " + milliseconds(*light.ns_per_step.value) +
                           " ms at the read bandwidth measured here" +
                           (light.devices > 1 ? ", of " + grouped(light.devices) + " devices together" : "");
        if (light.reached_share.value) {
            line += ", " + fixed(100 * *light.reached_share.value, 1) + " % of the mean period";
        }
        if (light.fits_cache) {
            line += " (they fit the last-level cache: memory sets no such limit)";
        }
        if (light.bricks_without_bytes != 0) {
            line += "; " + plural(light.bricks_without_bytes, "brick") + " without bytes";
        }
        page.line(line);
        add_gap_line(page, report, phase, light);
    }
}

void add_tables(Page& page, const Report& report, const std::vector<const PhaseSummary*>& phases) {
    // A recording without steps still shows its bricks.
    const bool has_none = std::any_of(phases.begin(), phases.end(),
                                      [](const PhaseSummary* phase) { return phase->phase == Phase::none; });
    const PhaseRows outside = has_none ? PhaseRows{} : rows_of(report, nullptr);
    const bool titles = phases.size() + (outside.rows.empty() ? 0 : 1) > 1;
    for (const PhaseSummary* phase : phases) {
        page.blank();
        if (titles) {
            page.line(phase_title(*phase));
        }
        add_brick_table(page, rows_of(report, phase));
        add_device_line(page, *phase);
        add_light_lines(page, report, *phase);
    }
    if (!outside.rows.empty()) {
        page.blank();
        page.line("in no counted step");
        add_brick_table(page, outside);
    }
}

/// "counters  2.13 instructions per cycle · 12.3 % of cache references miss (whole process)"
void add_counters(Page& page, const Report& report) {
    if (!report.counters) {
        return;
    }
    const Figure& ipc = report.counters->instructions_per_cycle;
    const Figure& misses = report.counters->cache_miss_share;
    page.blank();
    page.line("counters  " + figure_text(ipc, 1, 2) + " instructions per cycle" + std::string(bullet) +
              percent(misses, 100) + " of cache references miss (whole process)");
    add_reason(page, "counters", ipc.value ? misses : ipc);
}

void add_labels(Page& page, const Report& report) {
    if (report.labels.empty()) {
        return;
    }
    TextTable table({"label (untimed)"}, {"count", "total ms", "mean us", "min us", "max us"});
    for (const LabelTotal& label : report.labels) {
        const double mean = label.count > 0 ? label.total_ns / static_cast<double>(label.count) : 0;
        table.add_row({printable(label.label, 40), grouped(label.count), fixed(label.total_ns / ns_per_ms, 3),
                       label.count > 0 ? fixed(mean / ns_per_us, 3) : std::string(not_available),
                       fixed(label.min_ns / ns_per_us, 3), fixed(label.max_ns / ns_per_us, 3)});
    }
    page.blank();
    page.table(std::move(table));
    page.line(
        "labels are durations that the program states itself: they are in no table above, no coverage and no trace",
        Tone::faint);
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

/// Empty where the place of nearly all off-CPU time is known.
std::string uncertain_sentence(const PhaseSummary& phase) {
    const WallAccount& wall = phase.wall;
    const auto percent = [&wall](double ns) {
        return fixed(100 * ns / wall.period_ns, 1);
    };
    if (constexpr double worth_saying = 1e-3;
        wall.period_ns <= 0 || wall.off_cpu_uncertain_ns < worth_saying * wall.period_ns) {
        return {};
    }
    // Unattributed time is in no brick, and idle holds all else that is in none.
    const double least = std::max(0.0, wall.unattributed_ns - wall.off_cpu_uncertain_ns);
    const double most = wall.unattributed_ns + std::min(wall.idle_ns, wall.off_cpu_uncertain_ns);
    return std::string(phase_word(phase.phase)) + ": when threads were off the CPU is not known for " +
           percent(wall.off_cpu_uncertain_ns) +
           " % of the period (added up, at most the period), as is usual where workers wait for work; times of bricks "
           "and steps and tok/s do not depend on it; overlap, idle, unattributed and coverage are estimates: "
           "unattributed is between " +
           percent(least) + " and " + percent(most) + " % of the period";
}

/// What the reader must know before trusting the tables; nothing where all went well.
void add_remarks(Page& page, const Report& report, const std::vector<const PhaseSummary*>& phases) {
    bool first = true;
    const auto remark = [&](const char* head, std::string_view sentence) {
        if (std::exchange(first, false)) {
            page.blank();
        }
        page.marked(head, sentence);
    };
    constexpr const char* not_written = ": the recording could not be written in time, or not at all";
    for (const LossRow& loss : report.losses) {
        remark("lost  ",
               plural(loss.count, "record") + ": " + loss.reason + (loss.reason == "ring full" ? not_written : ""));
    }
    const bool explained = std::any_of(report.losses.begin(), report.losses.end(), [](const LossRow& loss) {
        return loss.reason.starts_with("unresolved"); // then each reason has a line of its own
    });
    if (report.unresolved > 0 && !explained) {
        remark("lost  ", plural(report.unresolved, "scope") + ": recorded, but never given a time");
    }
    if (const std::string_view sentence = sync_sentence(report.sync_mode); !sentence.empty()) {
        remark("note  ", sentence);
    }
    for (const PhaseSummary* phase : phases) {
        if (const std::string sentence = uncertain_sentence(*phase); !sentence.empty()) {
            remark("note  ", sentence);
        }
    }
    for (const std::string& note : report.notes) {
        remark("note  ", note);
    }
    for (const auto& [key, text] : report.description) {
        if (recording::is_import_note(key)) {
            remark("import  ", text);
        }
    }
    for (const auto& [key, text] : report.description) {
        if (recording::is_user_note(key)) {
            remark("note by the user  ", text);
        }
    }
}

} // namespace

page::Page page_of(const Report& report, const TextOptions& options) {
    Page page;
    const std::vector<const PhaseSummary*> phases = phases_with_steps(report);
    if (const std::string line = description_line(report); !line.empty()) {
        page.line(line);
    }
    page.line(headline(report, phases));
    add_headline_reasons(page, report, phases);
    add_tables(page, report, phases);
    for (const PhaseSummary* phase : phases) {
        add_layer_table(page, report, *phase, options.width);
    }
    add_counters(page, report);
    add_labels(page, report);
    add_remarks(page, report, phases);
    return page;
}

} // namespace plumb
