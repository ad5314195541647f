// SPDX-License-Identifier: Apache-2.0
// Numbers of a benchmark: medians with their spread, and the flat key → number map that becomes its JSON.
// Plain values; no thread rule.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace bench {

/// Median and quartiles of the rounds.
struct Spread {
    double median = 0;
    double low = 0;
    double high = 0;
};

/// REQUIRES: values is not empty.
[[nodiscard]] Spread spread_of(std::vector<double> values);
[[nodiscard]] double median_of(std::vector<double> values);
/// The value below which a share q of the values lies. REQUIRES: values is not empty, 0 <= q <= 1.
[[nodiscard]] double quantile_of(std::vector<double>& values, double q);

/// Flat results: "static.t1.on.ratio" → 1.02.
using Figures = std::map<std::string, double>;

/// Stores a spread as key, key.low and key.high.
void put(Figures& figures, const std::string& key, const Spread& spread);
[[nodiscard]] bool has(const Figures& figures, const std::string& key);
[[nodiscard]] Spread get(const Figures& figures, const std::string& key);

/// False, with a sentence on stderr, when the file cannot be written or read.
[[nodiscard]] bool write_json(const std::string& path, const Figures& figures);
[[nodiscard]] bool read_json(const std::string& path, Figures& figures);

} // namespace bench
