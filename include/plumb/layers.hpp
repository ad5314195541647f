// SPDX-License-Identifier: Apache-2.0
// Bricks across layers: one figure per brick and layer, and the layers that are unlike the others.
// Pure functions of a Report, which the caller owns; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// What a cell shows: of one call, in nanoseconds; per step, in nanoseconds; calls: per step, a number; roofline: percent.
enum class LayerMetric : std::uint8_t { p50, p90, p99, mean, max, sum, self, calls, roofline };

constexpr const char* metric_word(LayerMetric metric) noexcept {
    constexpr const char* words[] = {"p50", "p90", "p99", "mean", "max", "sum", "self", "calls", "roofline"};
    return words[static_cast<std::size_t>(metric)];
}
PLUMB_API std::optional<LayerMetric> metric_of_word(std::string_view word);

/// One brick in the layers of a phase. Rows whose name is empty are the layers themselves, from begin to end.
struct LayerRow {
    Phase phase = Phase::none;
    std::string name;
    std::string source;
    bool lap = false, parent = false;
    std::vector<Figure> cells; // by index into LayerReport::layers
    Figure median, mad;        // over the layers that have it; mad: median distance from the median
};

/// A layer in which a brick is unlike the same brick in the other layers: more than 10 % and five robust standard
/// deviations (1.4826 mad) off their median, and more than the source's floor.
struct OddLayer {
    std::size_t row = 0; // index into LayerReport::rows
    std::uint32_t layer = 0;
    double value = 0, median = 0;
    double robust_z = 0;
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

/// REQUIRES: a report made with ReportOptions::brick_layers.
PLUMB_API LayerReport layers_of(const Report& report, const LayerOptions& options = {});
PLUMB_API Result<LayerReport> layers_recording(const std::string& path, const LayerOptions& options = {});
/// A heat map, in colour only where the options say so, and JSON (schema plumb.layers/1, docs/report_schema.md).
PLUMB_API std::string render_text(const LayerReport& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const LayerReport& report);

} // namespace plumb
