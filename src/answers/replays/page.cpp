// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "answers/replays/replays.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 120;
constexpr double bytes_per_mib = 1048576;

using Counts = ReplayRow::Counts;

std::string signed_percent(const Figure& figure) {
    if (!figure.value) {
        return std::string(not_available);
    }
    return (*figure.value < 0 ? "" : "+") + figure_text({100 * *figure.value, {}}, 1, 2) + " %";
}

std::string with_unit(const Figure& figure, double unit, const char* word) {
    return figure_text(figure, unit, 3) + (figure.value ? word : "");
}

std::uint64_t sum_of(const Counts& counts) {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : counts) {
        sum += count;
    }
    return sum;
}

/// "kernel 320, memset 2"
std::string listed(const Counts& counts) {
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
    if (!row.launch_ns.value || row.launches_timed == 0) {
        return {std::nullopt, row.replays == 0       ? "it was never replayed"
                              : !row.launch_ns.value ? row.launch_ns.reason
                                                     : "not measured in this run"};
    }
    return {*row.launch_ns.value / static_cast<double>(row.launches_timed), {}};
}

/// How often it was instantiated and updated is known of graphs that a cache of ours keeps.
bool is_counted(const ReplayRow& row) {
    return row.captures == 0 || row.instantiations != 0 || row.instantiate_ns.value.has_value();
}

void add_table(Page& page, const ReplayReport& report) {
    TextTable table({},
                    {"graph", "captures", "instantiated", "updated", "replays", "sampled", "unread", "eager",
                     "padding %", "nodes", "sites", "device us", "plain span us", "launch us", "MiB"},
                    {"twin"});
    for (const ReplayRow& row : report.graphs) {
        const auto told = [&row](std::uint64_t count) {
            return is_counted(row) ? grouped(count) : std::string(not_available);
        };
        table.add_row({std::to_string(row.key), grouped(row.captures), told(row.instantiations), told(row.updates),
                       grouped(row.replays), grouped(row.instrumented), grouped(row.unread),
                       grouped(sum_of(row.eager_steps)), figure_text(row.padding_wasted, 0.01, 1),
                       grouped(sum_of(row.nodes)), grouped(row.sites_timed) + "/" + grouped(row.sites),
                       figure_text(row.device_ns, ns_per_us, 1), figure_text(row.plain_span_ns, ns_per_us, 1),
                       figure_text(launch_per_replay(row), ns_per_us, 2), figure_text(row.bytes, bytes_per_mib, 1),
                       row.twin.empty() ? std::string(not_available) : printable(row.twin, name_columns)});
    }
    page.table(std::move(table));
    page.line("device us: of one replay, the sum of its sites as sampled; MiB: estimated, without the twin",
              Tone::faint);
    if (!std::all_of(report.graphs.begin(), report.graphs.end(), is_counted)) {
        page.line("n/a  instantiated, updated: a graph cache counts them, and no one else", Tone::faint);
    }
}

/// Reasons for what is n/a, by column, with the number of graphs.
void add_reasons(Page& page, const ReplayReport& report) {
    std::map<std::pair<std::string, std::string>, std::uint64_t> reasons;
    for (const ReplayRow& row : report.graphs) {
        const auto count = [&reasons](const char* what, const Figure& figure) {
            if (!figure.value) {
                ++reasons[{what, figure.reason}];
            }
        };
        count("padding %", row.padding_wasted);
        count("device us", row.device_ns);
        count("plain span us", row.plain_span_ns);
        count("launch us", launch_per_replay(row));
        count("MiB", row.bytes);
        if (!row.twin.empty()) {
            count("MiB of the twin", row.twin_bytes);
            count("closure", row.closure);
        }
    }
    for (const auto& [reason, count] : reasons) {
        page.line("n/a  " + reason.first + ": " + printable(reason.second, sentence_columns) +
                      (count > 1 ? " (" + grouped(count) + " graphs)" : ""),
                  Tone::faint);
    }
}

std::string named(const ReplayRow& row) { return "graph " + std::to_string(row.key) + ": "; }

/// The line that a script looks for: NODES agree, NODES differ or NODES not compared.
void add_node_check(Page& page, const ReplayReport& report) {
    std::uint64_t checks = 0;
    for (const ReplayRow& row : report.graphs) {
        checks += row.node_checks;
        if (row.node_changes.empty()) {
            continue;
        }
        const std::string lost = changes_of(row, true);
        const std::string gained = changes_of(row, false);
        page.marked("NODES differ  ",
                    named(row) + (lost.empty() ? "" : "lost " + lost) + (lost.empty() || gained.empty() ? "" : "; ") +
                        (gained.empty() ? "" : "gained " + gained) + " (last capture against the one before)");
    }
    if (report.node_check == NodeCheck::agree) {
        page.marked("NODES agree  ", grouped(checks) + " captures compared with the one before of their key",
                    Tone::plain);
    } else if (report.node_check == NodeCheck::not_compared && !report.graphs.empty()) {
        page.marked("NODES not compared  ", "no graph was captured twice", Tone::plain);
    }
    for (const ReplayRow& row : report.graphs) {
        for (const std::string& found : row.baked_in) {
            page.marked("BAKED  ", named(row) + found);
        }
    }
}

void add_never_replayed(Page& page, const ReplayReport& report) {
    if (report.never_replayed.empty()) {
        return;
    }
    std::string keys;
    constexpr std::size_t most = 32;
    for (std::size_t i = 0; i < report.never_replayed.size() && i < most; ++i) {
        keys += (i == 0 ? "" : ", ") + std::to_string(report.never_replayed[i]);
    }
    keys += report.never_replayed.size() > most ? ", \xE2\x80\xA6" : "";
    page.marked("never replayed  ",
                grouped(report.never_replayed.size()) + (report.never_replayed.size() == 1 ? " graph (" : " graphs (") +
                    keys + "): " + figure_text(report.never_replayed_ns, ns_per_ms, 3) +
                    " ms to capture, instantiate and upload, " +
                    figure_text(report.never_replayed_bytes, bytes_per_mib, 1) + " MiB (estimated)");
}

void add_twin(Page& page, const ReplayRow& row) {
    const std::string& reason = row.twin_reason;
    if (row.twin.empty()) {
        page.marked("twin  ", named(row) + "none" + (reason.empty() ? "" : ": " + reason), Tone::plain);
        return;
    }
    page.marked("twin  ",
                named(row) + row.twin + (row.every == 0 ? "" : ", every " + grouped(row.every) + " replays") +
                    ", built in " + with_unit(row.twin_build_ns, ns_per_ms, " ms") + ", " +
                    figure_text(row.twin_bytes, bytes_per_mib, 1) + " MiB (estimated), a stamp costs " +
                    with_unit(row.site_cost_ns, ns_per_us, " us") +
                    (row.tick_ns.value ? ", its clock ticks every " + figure_text(row.tick_ns, 1, 0) + " ns" : "") +
                    (reason.empty() ? "" : "; " + reason),
                Tone::plain);
    page.marked("closure  ",
                named(row) + signed_percent(row.closure) + " calibrated, " + signed_percent(row.closure_raw) +
                    " raw, " + grouped(row.sites_timed) + " of " + grouped(row.sites) + " sites timed",
                Tone::plain);
}

void add_details(Page& page, const ReplayRow& row) {
    const auto say = [&](const char* head, const std::string& sentence) {
        page.marked(head, named(row) + sentence, Tone::plain);
    };
    if (!row.nodes.empty()) {
        say("nodes  ", listed(row.nodes));
    }
    if (!row.unattributed.empty()) {
        say("nodes  ", "in no brick: " + listed(row.unattributed));
    }
    if (!row.sites_told_by.empty()) {
        say("bricks  ", "no scope was open during capture; by " + row.sites_told_by);
    }
    for (const auto& [reason, count] : row.eager_steps) {
        say("eager  ", grouped(count) + (count == 1 ? " step: " : " steps: ") + reason);
    }
    if (row.padding_wasted.value && *row.padding_wasted.value > 0) {
        say("padding  ",
            grouped(row.rows_padded - row.rows_used) + " of " + grouped(row.rows_padded) + " rows were padding");
    }
    const auto ms = [](const Figure& figure) {
        return with_unit(figure, ns_per_ms, " ms");
    };
    say("cost  ", "capture " + ms(row.capture_ns) + ", instantiate " + ms(row.instantiate_ns) + ", upload " +
                      ms(row.upload_ns) + ", launches " + ms(row.launch_ns) +
                      (row.launch_ns.value && row.launches_timed < row.replays
                           ? " (of " + grouped(row.launches_timed) + " replays)"
                           : ""));
    add_twin(page, row);
}

} // namespace

Page page_of(const ReplayReport& report, const TextOptions&) {
    Page page;
    if (!report.graphs.empty()) {
        add_table(page, report);
        add_reasons(page, report);
        page.blank();
    }
    add_node_check(page, report);
    add_never_replayed(page, report);
    for (const ReplayRow& row : report.graphs) {
        add_details(page, row);
    }
    for (const std::string& note : report.notes) {
        page.marked("note  ", note);
    }
    return page;
}

} // namespace plumb
