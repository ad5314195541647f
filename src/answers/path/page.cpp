// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "answers/path/path.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 60;
constexpr std::size_t most_rows = 25;
constexpr std::size_t most_listed = 10;

std::string us(double ns) { return fixed(ns / 1e3, 1); }

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) : "n/a"; }

void add_head(Page& page, const PathReport& report) {
    const auto length = static_cast<double>(report.analysis.length_ns);
    Line head{Span("step " + std::to_string(report.step) + ", " + word_of(report.phase), Tone::heading)};
    if (report.candidates != 0) {
        head.emplace_back(" (of median length among " + grouped(report.candidates) + " steps)");
    }
    page.line(std::move(head));
    page.line("critical path  " + us(length) + " us, " + percent(length, report.span_ns) + " % of the " +
              us(report.span_ns) + " us from the step's begin to its last end; the rest is waiting between nodes");
    page.line("graph  " + grouped(report.graph.size()) + " nodes, " + grouped(report.graph.edges()) + " edges, " +
              grouped(report.tracks.size()) + (report.tracks.size() == 1 ? " track" : " tracks"));
    const auto per_token = [](const Figure& figure) {
        return ", per token " + (figure.value ? fixed(*figure.value, 1) : "n/a (" + figure.reason + ")");
    };
    page.line("launches  " + grouped(report.launches) + per_token(report.launches_per_token));
    if (report.graph_launches != 0) {
        page.line("  by the host  " + grouped(report.host_launches) + per_token(report.host_launches_per_token) +
                  ", captured graphs among them " + grouped(report.graph_launches) + "; kernels inside of those " +
                  grouped(report.graph_kernels));
    }
}

void add_more(Page& page, std::size_t rows, std::size_t shown, const char* what) {
    if (rows > shown) {
        page.line("… " + grouped(rows - shown) + " more" + what + ": --json has them all");
    }
}

void add_rows(Page& page, const PathReport& report) {
    TextTable table({"what to shorten", "kind", "on"},
                    {"nodes", "on path", "us", "path us", "path %", "gain us", "slack us"});
    for (std::size_t i = 0; i < std::min(report.rows.size(), most_rows); ++i) {
        const PathRow& row = report.rows[i];
        table.add_row({printable(row.name, name_columns), word_of(row.kind), row.device ? "device" : "host",
                       grouped(row.count), grouped(row.on_path), us(row.total_ns), us(row.path_ns),
                       percent(row.path_ns, static_cast<double>(report.analysis.length_ns)),
                       page.figure(printable(row.name, name_columns), row.gain_ns, 1e3, 1), us(row.slack_ns)});
    }
    page.table(std::move(table));
    add_more(page, report.rows.size(), most_rows, " names");
    page.line(
        "gain: the path is so much shorter if these took no time; slack: the least of them may take so much longer "
        "before the end moves",
        Tone::faint);
}

void add_transfers(Page& page, const PathReport& report) {
    for (std::size_t i = 0; i < std::min(report.ping_pong.size(), most_listed); ++i) {
        const PingPong& found = report.ping_pong[i];
        std::string text = printable(report.graph.name_of(found.there), name_columns) + " came back as " +
                           printable(report.graph.name_of(found.back), name_columns) + " after " +
                           us(static_cast<double>(found.between_ns)) + " us";
        if (const TransferShape* shape = report.graph.transfer_of(found.back); shape != nullptr && shape->bytes != 0) {
            text += ", " + grouped(shape->bytes) + " bytes";
        }
        page.line({Span("PING-PONG  ", Tone::warning),
                   text + " (nodes " + std::to_string(found.there) + " and " + std::to_string(found.back) + ")"});
    }
    add_more(page, report.ping_pong.size(), most_listed, "");
}

void add_kernels(Page& page, const PathReport& report) {
    if (report.slowest.empty()) {
        return;
    }
    TextTable table({"slowest kernels"}, {"us", "slack us", "% of roofline", "layer"}, {"file"});
    for (const SlowKernel& kernel : report.slowest) {
        const GraphNode& node = report.graph[kernel.node];
        table.add_row(
            {printable(report.graph.name_of(kernel.node), name_columns), us(static_cast<double>(node.duration_ns)),
             us(static_cast<double>(report.analysis.slack_ns[kernel.node])),
             page.figure(printable(report.graph.name_of(kernel.node), name_columns), kernel.roofline_share, 0.01, 1),
             node.layer ? std::to_string(*node.layer) : "", printable(kernel.file, name_columns)});
    }
    page.table(std::move(table));
}

void add_recorded(Page& page, const PathReport& report) {
    if (report.recorded.empty()) {
        return;
    }
    TextTable table({"recorded kernels"}, {"launches"}, {"file"});
    for (std::size_t i = 0; i < std::min(report.recorded.size(), most_listed); ++i) {
        const RecordedKernel& kernel = report.recorded[i];
        table.add_row(
            {printable(kernel.name, name_columns), grouped(kernel.launches), printable(kernel.file, name_columns)});
    }
    page.table(std::move(table));
    add_more(page, report.recorded.size(), most_listed, "");
}

/// One row for each brick; --json has them by layer.
void add_bricks(Page& page, const PathReport& report) {
    if (report.kernels.empty()) {
        return;
    }
    std::vector<KernelRow> bricks;
    for (const KernelRow& row : report.kernels) {
        const auto found =
            std::find_if(bricks.begin(), bricks.end(), [&](const KernelRow& brick) { return brick.name == row.name; });
        if (found == bricks.end()) {
            bricks.push_back(row);
            continue;
        }
        found->device_scopes += row.device_scopes;
        found->in_graphs += row.in_graphs;
        if (found->kernels.value && row.kernels.value) {
            *found->kernels.value += *row.kernels.value;
        } else if (found->kernels.value) {
            found->kernels = row.kernels;
        }
    }
    TextTable table({"launched for"}, {"device scopes", "kernels", "in graphs"});
    for (const KernelRow& row : bricks) {
        table.add_row({printable(row.name, name_columns), grouped(row.device_scopes),
                       page.figure(printable(row.name, name_columns), row.kernels, 1, 0), grouped(row.in_graphs)});
    }
    page.table(std::move(table));
}

} // namespace

page::Page page_of(const PathReport& report, const TextOptions&) {
    Page page;
    add_head(page, report);
    page.blank();
    add_rows(page, report);
    add_transfers(page, report);
    add_kernels(page, report);
    add_recorded(page, report);
    add_bricks(page, report);
    page.reasons();
    page.notes(report.notes);
    return page;
}

} // namespace plumb
