// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "page/text_table.hpp"
#include "plumb/results.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::string_view absent = "n/a";
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t name_columns = 120;
constexpr double ns_per_us = 1e3;
constexpr double ns_per_ms = 1e6;
constexpr double bytes_per_mib = 1048576;

std::string figure_cell(const Figure& figure, double unit, int decimals) {
    return figure.value ? fixed(*figure.value / unit, decimals) : std::string(absent);
}

std::string signed_percent(const Figure& figure) {
    if (!figure.value) {
        return std::string(absent);
    }
    const double percent = 100 * *figure.value;
    return (percent < 0 ? "-" : "+") + fixed(percent < 0 ? -percent : percent, 2) + " %";
}

std::uint64_t sum_of(const ReplayRow::Counts& counts) {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : counts) {
        sum += count;
    }
    return sum;
}

/// "kernel 320, memset 2"
std::string listed(const ReplayRow::Counts& counts) {
    std::string text;
    for (const auto& [name, count] : counts) {
        text += (text.empty() ? "" : ", ") + printable(name, name_columns) + " " + grouped(count);
    }
    return text;
}

/// "rope_kernel 24 -> 0, other 3 -> 1"
std::string changes_of(const ReplayRow& row, bool lost) {
    std::string text;
    for (const NodeChange& change : row.node_changes) {
        if ((change.after < change.before) == lost) {
            text += (text.empty() ? "" : ", ") + printable(change.kernel, name_columns) + " " + grouped(change.before) +
                    " -> " + grouped(change.after);
        }
    }
    return text;
}

Figure launch_per_replay(const ReplayRow& row) {
    if (!row.launch_ns.value || row.replays == 0) {
        return {std::nullopt, row.replays == 0 ? "it was never replayed" : row.launch_ns.reason};
    }
    return {*row.launch_ns.value / static_cast<double>(row.replays), {}};
}

void append_table(std::string& out, const ReplayReport& report, const Style& style) {
    TextTable table;
    for (const char* heading : {"graph", "captures", "instantiated", "updated", "replays", "sampled", "unread", "eager",
                                "padding %", "nodes", "sites", "device us", "plain span us", "launch us", "MiB"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    table.add_column("twin", TextTable::Align::left);
    for (const ReplayRow& row : report.graphs) {
        table.add_row({std::to_string(row.key), grouped(row.captures), grouped(row.instantiations),
                       grouped(row.updates), grouped(row.replays), grouped(row.instrumented), grouped(row.unread),
                       grouped(sum_of(row.eager_steps)), figure_cell(row.padding_wasted, 0.01, 1),
                       grouped(sum_of(row.nodes)), grouped(row.sites_timed) + "/" + grouped(row.sites),
                       figure_cell(row.device_ns, ns_per_us, 1), figure_cell(row.plain_span_ns, ns_per_us, 1),
                       figure_cell(launch_per_replay(row), ns_per_us, 2), figure_cell(row.bytes, bytes_per_mib, 1),
                       row.twin.empty() ? std::string(absent) : printable(row.twin, name_columns)});
    }
    table.append_to(out, style.heading, style.plain);
    out += style.faint;
    out += "device us: of one replay, the sum of its sites as sampled; MiB: estimated, without the twin\n";
    out += style.plain;
}

void append_line(std::string& out, std::string_view head, std::string_view sentence, std::string_view color,
                 const Style& style) {
    out += color;
    out += head;
    out += style.plain;
    out += printable(sentence, sentence_columns);
    out += '\n';
}

std::string named(const ReplayRow& row) { return "graph " + std::to_string(row.key) + ": "; }

/// The line that a script looks for: NODES agree, NODES differ or NODES not compared.
void append_node_check(std::string& out, const ReplayReport& report, const Style& style) {
    std::uint64_t checks = 0;
    for (const ReplayRow& row : report.graphs) {
        checks += row.node_checks;
        if (row.node_changes.empty()) {
            continue;
        }
        std::string text = named(row);
        const std::string lost = changes_of(row, true);
        const std::string gained = changes_of(row, false);
        text += lost.empty() ? "" : "lost " + lost;
        text += gained.empty() ? "" : std::string(lost.empty() ? "" : "; ") + "gained " + gained;
        append_line(out, "NODES differ  ", text + " (last capture against the one before)", style.warning, style);
    }
    if (report.node_check == NodeCheck::agree) {
        append_line(out, "NODES agree  ", grouped(checks) + " captures compared with the one before of their key", {},
                    style);
    } else if (report.node_check == NodeCheck::not_compared && !report.graphs.empty()) {
        append_line(out, "NODES not compared  ", "no graph was captured twice", {}, style);
    }
    for (const ReplayRow& row : report.graphs) {
        for (const std::string& found : row.baked_in) {
            append_line(out, "BAKED  ", named(row) + found, style.warning, style);
        }
    }
}

void append_details(std::string& out, const ReplayRow& row, const Style& style) {
    if (!row.nodes.empty()) {
        append_line(out, "nodes  ", named(row) + listed(row.nodes), {}, style);
    }
    if (!row.unattributed.empty()) {
        append_line(out, "nodes  ", named(row) + "in no brick: " + listed(row.unattributed), {}, style);
    }
    for (const auto& [reason, count] : row.eager_steps) {
        append_line(out, "eager  ", named(row) + grouped(count) + (count == 1 ? " step: " : " steps: ") + reason, {},
                    style);
    }
    if (row.padding_wasted.value && *row.padding_wasted.value > 0) {
        append_line(out, "padding  ",
                    named(row) + grouped(row.rows_padded - row.rows_used) + " of " + grouped(row.rows_padded) +
                        " rows were padding",
                    {}, style);
    }
    const auto time = [](const char* what, const Figure& figure) {
        return std::string(what) + " " +
               (figure.value ? fixed(*figure.value / ns_per_ms, 3) + " ms" : std::string(absent));
    };
    append_line(out, "cost  ",
                named(row) + time("capture", row.capture_ns) + ", " + time("instantiate", row.instantiate_ns) + ", " +
                    time("upload", row.upload_ns) + ", " + time("launches", row.launch_ns),
                {}, style);
    if (row.twin.empty()) {
        append_line(out, "twin  ", named(row) + "none" + (row.twin_reason.empty() ? "" : ": " + row.twin_reason), {},
                    style);
        return;
    }
    std::string twin =
        named(row) + row.twin + (row.every == 0 ? "" : ", every " + grouped(row.every) + " replays") + ", " +
        time("built in", row.twin_build_ns) + ", " + figure_cell(row.twin_bytes, bytes_per_mib, 1) +
        " MiB (estimated), a stamp costs " +
        (row.site_cost_ns.value ? fixed(*row.site_cost_ns.value / ns_per_us, 3) + " us" : std::string(absent));
    append_line(out, "twin  ", twin + (row.twin_reason.empty() ? "" : "; " + row.twin_reason), {}, style);
    append_line(out, "closure  ",
                named(row) + signed_percent(row.closure) + " calibrated, " + signed_percent(row.closure_raw) +
                    " raw, " + grouped(row.sites_timed) + " of " + grouped(row.sites) + " sites timed",
                {}, style);
}

void append_never_replayed(std::string& out, const ReplayReport& report, const Style& style) {
    if (report.never_replayed.empty()) {
        return;
    }
    std::string keys;
    constexpr std::size_t most = 32;
    for (std::size_t i = 0; i < report.never_replayed.size() && i < most; ++i) {
        keys += (i == 0 ? "" : ", ") + std::to_string(report.never_replayed[i]);
    }
    keys += report.never_replayed.size() > most ? ", \xE2\x80\xA6" : "";
    append_line(out, "never replayed  ",
                grouped(report.never_replayed.size()) + (report.never_replayed.size() == 1 ? " graph (" : " graphs (") +
                    keys + "): " + figure_cell(report.never_replayed_ns, ns_per_ms, 3) +
                    " ms to capture, instantiate and upload, " +
                    figure_cell(report.never_replayed_bytes, bytes_per_mib, 1) + " MiB (estimated)",
                style.warning, style);
}

/// Reasons for what is n/a, each once, with the number of graphs.
void append_reasons(std::string& out, const ReplayReport& report, const Style& style) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> reasons;
    for (const ReplayRow& row : report.graphs) {
        const auto note = [&reasons](const char* what, const Figure& figure) {
            if (!figure.value) {
                ++reasons[{what, figure.reason}];
            }
        };
        note("padding %", row.padding_wasted);
        note("device us", row.device_ns);
        note("plain span us", row.plain_span_ns);
        note("launch us", launch_per_replay(row));
        note("MiB", row.bytes);
        if (!row.twin.empty()) {
            note("closure", row.closure);
        }
    }
    out += style.faint;
    for (const auto& [reason, count] : reasons) {
        out += "n/a  " + reason.first + ": " + printable(reason.second, sentence_columns) +
               (count > 1 ? " (" + grouped(count) + " graphs)" : "") + '\n';
    }
    out += style.plain;
}

} // namespace

std::string render_text(const ReplayReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    if (!report.graphs.empty()) {
        append_table(out, report, style);
        append_reasons(out, report, style);
        out += '\n';
    }
    append_node_check(out, report, style);
    append_never_replayed(out, report, style);
    for (const ReplayRow& row : report.graphs) {
        append_details(out, row, style);
    }
    for (const std::string& note : report.notes) {
        append_line(out, "note  ", note, style.warning, style);
    }
    return out;
}

} // namespace plumb
