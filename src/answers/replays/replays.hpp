// SPDX-License-Identifier: Apache-2.0
// What became of the captured graphs of a run: replays, eager steps, padding, the node check, costs.
// Pure functions of what the caller owns; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/replay_builder.hpp"
#include "page/options.hpp"
#include "page/page.hpp"

namespace plumb {

inline Words words_of(NodeCheck) {
    static constexpr const char* words[] = {"not_compared", "agree", "differ"};
    return words;
}

/// What may be asked for: nothing.
struct ReplayOptions {};

[[nodiscard]] Result<ReplayReport> read_replays(const std::vector<std::string>& files,
                                                const ReplayOptions& options = {});

template <class V>
void describe(V&, ReplayOptions&) {}

template <class V>
void describe(V& v, const NodeChange& c) {
    v.type("node change", "How often one kernel (or node type) occurs in two captures of one key.");
    v("kernel", c.kernel, "");
    v("before", c.before, "in the capture before");
    v("after", c.after, "in the last capture");
}

template <class V>
void describe(V& v, const ReplayRow& r) {
    v.type("captured graph", "The life of one captured graph. Times are of the host and in all, unless they say "
                             "otherwise; bytes are estimates.");
    v("graph", r.key, "its key, 64 bits without a sign");
    v("captures", r.captures, "how often it was captured");
    v("instantiations", r.instantiations, "how often it was instantiated");
    v("updates", r.updates, "how often it was updated in place");
    v("uploads", r.uploads, "how often it was uploaded");
    v("evictions", r.evictions, "how often it was evicted");
    v("replays", r.replays, "plain and instrumented");
    v("instrumented", r.instrumented, "replays of the twin");
    v("unread", r.unread, "samples given up because the one before was unread");
    v.pairs("eager_steps", "reason", "count", r.eager_steps, "steps that ran without the graph, by reason");
    v("rows_used", r.rows_used, "rows that carried work");
    v("rows_padded", r.rows_padded, "rows that were replayed");
    v("padding_wasted", r.padding_wasted, "0 to 1");
    v.pairs("nodes", "type", "count", r.nodes, "of the last capture");
    v.pairs("unattributed", "kernel", "count", r.unattributed, "nodes in no brick");
    v("node_checks", r.node_checks, "captures compared with the one before");
    v("node_changes", r.node_changes, "last capture against the one before: what was lost or gained");
    v("baked_in", r.baked_in, "values that `verify_capture` found baked in (the command then exits with 1)");
    v("sites", r.sites, "leaves and laps of one replay");
    v("sites_told_by", r.sites_told_by,
      "what names them where the engine opened no scope during capture; empty: its scopes");
    v("sites_timed", r.sites_timed, "those that have samples");
    v("device_ns", r.device_ns,
      "of one replay, by stamps on the device: sum over the sites of the mean of their samples");
    v("raw_device_ns", r.raw_device_ns, "the same with the cost of the stamps left in");
    v("plain_span_ns", r.plain_span_ns, "median span of plain replays that follow each other");
    v("capture_ns", r.capture_ns, "");
    v("instantiate_ns", r.instantiate_ns, "");
    v("upload_ns", r.upload_ns, "");
    v("launch_ns", r.launch_ns, "of `launches_timed` replays");
    v("launches_timed", r.launches_timed,
      "replays that `launch_ns` is of; fewer than `replays` where a run was cut short");
    v("estimated_bytes", r.bytes, "without the twin");
    v("twin", r.twin, "`event` or `stamp`; empty: none");
    v("twin_reason", r.twin_reason, "why there is none");
    v("twin_build_ns", r.twin_build_ns, "building the twin");
    v("twin_estimated_bytes", r.twin_bytes, "");
    v("tick_ns", r.tick_ns, "what the clock of its stamps counts in, as last learnt");
    v("site_cost_ns", r.site_cost_ns, "one stamp in a replay");
    v("site_cost_error_ns", r.site_cost_error_ns,
      "of that: three standard errors; half of it at least, until replays confirm it");
    v("closure_raw", r.closure_raw,
      "(sum of part medians − plain span) / plain span, with the cost of the stamps left in");
    v("closure", r.closure, "the same, calibrated");
    v("sampled_every", r.every, "one replay out of so many is sampled; 0: none");
}

template <class V>
void describe(V& v, const ReplayReport& r) {
    v.type("replays", "What became of the captured graphs of a run (`plumb replays`).");
    v("node_check", r.node_check, "`differ`: the command exits with 1; `not_compared`: no key was captured twice");
    v("graphs", r.graphs, "by key");
    v.group("never_replayed", "graphs that were captured for nothing", [&](auto& never) {
        never("graphs", r.never_replayed, "their keys");
        never("host_ns", r.never_replayed_ns, "to capture, instantiate and upload them");
        never("estimated_bytes", r.never_replayed_bytes, "");
    });
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const ReplayReport&) { return "plumb.replays/1"; }
inline Outcome outcome_of(const ReplayReport& report) noexcept {
    return report.node_check == NodeCheck::differ || report.baked_in ? Outcome::fail : Outcome::pass;
}
[[nodiscard]] page::Page page_of(const ReplayReport& report, const TextOptions& options);

} // namespace plumb
