// SPDX-License-Identifier: Apache-2.0
#include "support/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace bench {

double quantile_of(std::vector<double>& values, double q) {
    const auto index = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + index, values.end());
    return values[static_cast<std::size_t>(index)];
}

Spread spread_of(std::vector<double> values) {
    return {quantile_of(values, 0.5), quantile_of(values, 0.25), quantile_of(values, 0.75)};
}

double median_of(std::vector<double> values) { return quantile_of(values, 0.5); }

void put(Figures& figures, const std::string& key, const Spread& spread) {
    figures[key] = spread.median;
    figures[key + ".low"] = spread.low;
    figures[key + ".high"] = spread.high;
}

bool has(const Figures& figures, const std::string& key) { return figures.count(key) != 0; }

Spread get(const Figures& figures, const std::string& key) {
    const auto at = [&](const std::string& name) {
        const auto found = figures.find(name);
        return found == figures.end() ? std::nan("") : found->second;
    };
    return {at(key), at(key + ".low"), at(key + ".high")};
}

bool write_json(const std::string& path, const Figures& figures) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : figures) {
        if (std::isfinite(value)) { // what was not measured is absent
            object[key] = value;
        }
    }
    std::ofstream file(path);
    file << object.dump(1) << '\n';
    if (!file.flush()) {
        std::fprintf(stderr, "%s cannot be written; give --json a path in a folder that exists and is writable\n",
                     path.c_str());
        return false;
    }
    return true;
}

bool read_json(const std::string& path, Figures& figures) {
    std::ifstream file(path);
    const nlohmann::json object = nlohmann::json::parse(file, nullptr, false);
    if (!object.is_object()) {
        std::fprintf(stderr, "%s holds no results; run the benchmark again\n", path.c_str());
        return false;
    }
    for (const auto& [key, value] : object.items()) {
        if (value.is_number()) {
            figures[key] = value.get<double>();
        }
    }
    return true;
}

} // namespace bench
