// SPDX-License-Identifier: Apache-2.0
// Bricks across layers: one figure per brick and layer, and the layers that are unlike the others.
// Pure functions of a Report, which the caller owns; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// What a cell shows: of one call, in nanoseconds; per step, in nanoseconds; calls: per step, a number; roofline: share.
enum class LayerMetric : std::uint8_t { p50, p90, p99, mean, max, sum, self, calls, roofline };

inline Words words_of(LayerMetric) {
    static constexpr const char* words[] = {"p50", "p90", "p99", "mean", "max", "sum", "self", "calls", "roofline"};
    return words;
}

struct LayerCell {
    std::uint32_t layer = 0;
    Figure value;
    double calls = 0; // per step
};

/// What a row is of. Without a name it is the layers themselves, from begin to end.
struct LayerSubject {
    Phase phase = Phase::none;
    std::string name;
    std::string source;
    bool lap = false, parent = false;
    bool device = false;
    RowBasis basis = RowBasis::steps;
    std::string apart{}; // what tells it from another row of its phase and name; empty: there is none
};

/// One brick in the layers of a phase.
struct LayerRow : LayerSubject {
    std::vector<LayerCell> cells; // every layer that occurs, in order
    Figure median, mad;           // over the layers that have it; mad: median distance from the median
};

/// A layer in which a brick is unlike the same brick in the other layers: more than 10 % and five robust standard
/// deviations (1.4826 mad) off their median, and more than the source's floor.
struct OddLayer : LayerSubject {
    std::uint32_t layer = 0;
    double value = 0, median = 0;
    double robust_z = 0;
    double calls = 0; // per step, in that layer
};

struct LayerReport {
    LayerMetric metric = LayerMetric::p50;
    std::vector<std::uint32_t> layers; // all that occur, in order
    std::vector<LayerRow> rows;
    std::vector<OddLayer> odd; // the largest difference first
    std::vector<std::string> notes;
};

struct LayerOptions {
    LayerMetric metric = LayerMetric::p50;
    std::optional<Phase> phase;
};

inline constexpr std::size_t least_layers = 5; // fewer have no middle to be unlike

/// Whether its layers are enough to call one of them odd.
[[nodiscard]] bool is_compared(const LayerRow& row);

/// REQUIRES: a report made with ReportOptions::brick_layers.
[[nodiscard]] LayerReport layers_of(const Report& report, const LayerOptions& options = {});
[[nodiscard]] Result<LayerReport> read_layers(const std::vector<std::string>& files, const LayerOptions& options);

template <class V>
void describe(V& v, LayerOptions& o) {
    v("metric", o.metric, "What to compare: of a call; sum, self and calls per step; roofline: the share of it");
    v("phase", o.phase, "Only the steps of one phase", {.choices = page::step_phases});
}

template <class V>
void describe_subject(V& v, const LayerSubject& s) {
    v("phase", s.phase, "");
    v("name", s.name, "the brick; empty: the layers themselves, from begin to end");
    v("source", s.source, "what timed it");
    v("lap", s.lap, "made of laps");
    v("parent", s.parent, "holds other bricks");
    v("device", s.device, "timed on a queue of a device");
    v("apart", s.apart, "what tells it from another row of its phase and name: its source, host or device, or replays",
      !s.apart.empty());
}

template <class V>
void describe(V& v, const LayerCell& c) {
    v.type("layer cell", "One brick in one layer.");
    v("layer", c.layer, "its index");
    v("value", c.value, "in the unit of the metric: ns, a number of calls, or a share");
}

template <class V>
void describe(V& v, const LayerRow& r) {
    v.type("layer row", "One brick in the layers of a phase.");
    describe_subject(v, r);
    v("median", r.median, "over the layers that have it");
    v("mad", r.mad, "median distance from the median");
    v("cells", r.cells, "every layer that occurs, in order");
}

template <class V>
void describe(V& v, const OddLayer& o) {
    v.type("odd layer", "A layer in which a brick is unlike the same brick in the other layers.");
    describe_subject(v, o);
    v("layer", o.layer, "its index");
    v("value", o.value, "in that layer");
    v("median", o.median, "of all layers");
    v("robust_z", o.robust_z, "distance from the median in robust standard deviations");
}

template <class V>
void describe(V& v, const LayerReport& r) {
    v.type("layers", "Bricks across layers, and the layers that are unlike the others (`plumb layers`).");
    v("metric", r.metric, "what cells are");
    v("rows", r.rows, "");
    v("odd", r.odd, "the largest difference first");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const LayerReport&) { return "plumb.layers/2"; }
[[nodiscard]] page::Page page_of(const LayerReport& report, const TextOptions& options);

} // namespace plumb
