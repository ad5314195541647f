// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "page/text_table.hpp"
#include "plumb/execgraph.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::size_t name_columns = 60;
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t most_rows = 25;
constexpr std::size_t most_listed = 10;

std::string us(double ns) { return fixed(ns / 1e3, 1); }

std::string percent(double part, double whole) { return whole > 0 ? fixed(100 * part / whole, 1) : "n/a"; }

void append_head(std::string& out, const PathReport& report, const Style& style) {
    const auto length = static_cast<double>(report.analysis.length_ns);
    out += style.heading;
    out += "step " + std::to_string(report.step) + ", " + phase_word(report.phase);
    out += style.plain;
    out += report.candidates == 0 ? "\n" : " (of median length among " + grouped(report.candidates) + " steps)\n";
    out += "critical path  " + us(length) + " us, " + percent(length, report.span_ns) + " % of the " +
           us(report.span_ns) + " us from the step's begin to its last end; the rest is waiting between nodes\n";
    out += "graph  " + grouped(report.graph.size()) + " nodes, " + grouped(report.graph.edges()) + " edges, " +
           grouped(report.tracks.size()) + (report.tracks.size() == 1 ? " track\n" : " tracks\n");
    const auto per_token = [](const Figure& figure) {
        return ", per token " + (figure.value ? fixed(*figure.value, 1) : "n/a (" + figure.reason + ")");
    };
    out += "launches  " + grouped(report.launches) + per_token(report.launches_per_token) + "\n";
    if (report.graph_launches != 0) {
        out += "  by the host  " + grouped(report.host_launches) + per_token(report.host_launches_per_token) +
               ", captured graphs among them " + grouped(report.graph_launches) + "; kernels inside of those " +
               grouped(report.graph_kernels) + "\n";
    }
}

void append_rows(std::string& out, const PathReport& report, const Style& style) {
    TextTable table;
    table.add_column("what to shorten", TextTable::Align::left);
    table.add_column("kind", TextTable::Align::left);
    table.add_column("on", TextTable::Align::left);
    for (const char* heading : {"nodes", "on path", "us", "path us", "path %", "gain us", "slack us"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    for (std::size_t i = 0; i < std::min(report.rows.size(), most_rows); ++i) {
        const PathRow& row = report.rows[i];
        table.add_row({printable(row.name, name_columns), node_kind_word(row.kind), row.device ? "device" : "host",
                       grouped(row.count), grouped(row.on_path), us(row.total_ns), us(row.path_ns),
                       percent(row.path_ns, static_cast<double>(report.analysis.length_ns)),
                       row.gain_ns.value ? us(*row.gain_ns.value) : "n/a", us(row.slack_ns)});
    }
    table.append_to(out, style.heading, style.plain);
    if (report.rows.size() > most_rows) {
        out += "… " + grouped(report.rows.size() - most_rows) + " more names: --json has them all\n";
    }
    out += style.faint;
    out += "gain: the path is so much shorter if these took no time; slack: the least of them may take so much longer "
           "before the end moves\n";
    out += style.plain;
}

void append_transfers(std::string& out, const PathReport& report, const Style& style) {
    for (std::size_t i = 0; i < std::min(report.ping_pong.size(), most_listed); ++i) {
        const PingPong& found = report.ping_pong[i];
        out += style.warning;
        out += "PING-PONG  ";
        out += style.plain;
        out += printable(report.graph.name_of(found.there), name_columns) + " came back as " +
               printable(report.graph.name_of(found.back), name_columns) + " after " +
               us(static_cast<double>(found.between_ns)) + " us";
        if (const TransferShape* shape = report.graph.transfer_of(found.back); shape != nullptr && shape->bytes != 0) {
            out += ", " + grouped(shape->bytes) + " bytes";
        }
        out += " (nodes " + std::to_string(found.there) + " and " + std::to_string(found.back) + ")\n";
    }
    if (report.ping_pong.size() > most_listed) {
        out += "… " + grouped(report.ping_pong.size() - most_listed) + " more: --json has them all\n";
    }
}

void append_kernels(std::string& out, const PathReport& report, const Style& style) {
    if (report.slowest.empty()) {
        return;
    }
    TextTable table;
    table.add_column("slowest kernels", TextTable::Align::left);
    table.add_column("us", TextTable::Align::right);
    table.add_column("slack us", TextTable::Align::right);
    table.add_column("% of roofline", TextTable::Align::right);
    table.add_column("layer", TextTable::Align::right);
    table.add_column("file", TextTable::Align::left);
    for (const SlowKernel& kernel : report.slowest) {
        const GraphNode& node = report.graph[kernel.node];
        table.add_row(
            {printable(report.graph.name_of(kernel.node), name_columns), us(static_cast<double>(node.duration_ns)),
             us(static_cast<double>(report.analysis.slack_ns[kernel.node])),
             kernel.roofline_share.value ? fixed(100 * *kernel.roofline_share.value, 1) : "n/a",
             node.layer == no_layer_index ? "" : std::to_string(node.layer), printable(kernel.file, name_columns)});
    }
    table.append_to(out, style.heading, style.plain);
}

void append_recorded(std::string& out, const PathReport& report, const Style& style) {
    if (report.recorded.empty()) {
        return;
    }
    TextTable table;
    table.add_column("recorded kernels", TextTable::Align::left);
    table.add_column("launches", TextTable::Align::right);
    table.add_column("file", TextTable::Align::left);
    for (std::size_t i = 0; i < std::min(report.recorded.size(), most_listed); ++i) {
        const RecordedKernel& kernel = report.recorded[i];
        table.add_row(
            {printable(kernel.name, name_columns), grouped(kernel.launches), printable(kernel.file, name_columns)});
    }
    table.append_to(out, style.heading, style.plain);
    if (report.recorded.size() > most_listed) {
        out += "… " + grouped(report.recorded.size() - most_listed) + " more: --json has them all\n";
    }
}

/// One row for each brick; --json has them by layer.
void append_bricks(std::string& out, const PathReport& report, const Style& style) {
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
    TextTable table;
    table.add_column("launched for", TextTable::Align::left);
    table.add_column("device scopes", TextTable::Align::right);
    table.add_column("kernels", TextTable::Align::right);
    table.add_column("in graphs", TextTable::Align::right);
    for (const KernelRow& row : bricks) {
        table.add_row({printable(row.name, name_columns), grouped(row.device_scopes),
                       row.kernels.value ? fixed(*row.kernels.value, 0) : "n/a", grouped(row.in_graphs)});
    }
    table.append_to(out, style.heading, style.plain);
}

} // namespace

std::string render_text(const PathReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    append_head(out, report, style);
    out += '\n';
    append_rows(out, report, style);
    append_transfers(out, report, style);
    append_kernels(out, report, style);
    append_recorded(out, report, style);
    append_bricks(out, report, style);
    for (const std::string& note : report.notes) {
        out += "note  " + printable(note, sentence_columns) + "\n";
    }
    return out;
}

} // namespace plumb
