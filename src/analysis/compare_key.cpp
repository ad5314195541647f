// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_key.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <string_view>

namespace plumb::analysis {
namespace {

constexpr char absent[] = "(absent)";

/// What a run says about itself that must be equal, where the engine put it into the description.
bool shapes_the_run(std::string_view key) {
    for (const char* known : {"model", "device", "layers", "threads", "gpu", "driver", "dtype", "batch", "flags"}) {
        if (key == known) {
            return true;
        }
    }
    return key.substr(0, 4) == "key.";
}

bool is_condition(std::string_view key) {
    return key.substr(0, 6) == "clock." || key.substr(0, 9) == "throttle." || key.substr(0, 5) == "load.";
}

void put(KeyFields& fields, const std::string& key, const std::string& value) {
    for (auto& [known, old] : fields) {
        if (known == key) {
            old = value;
            return;
        }
    }
    fields.emplace_back(key, value);
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

/// How far numbers taken from the steps may lie apart: schedulers do not fill every step alike.
double tolerance_of(std::string_view key) {
    constexpr std::string_view kv = ".kv_length";
    constexpr std::string_view per_step = "_per_step";
    const auto ends_with = [key](std::string_view end) {
        return key.size() > end.size() && key.substr(key.size() - end.size()) == end;
    };
    return ends_with(kv) ? 0.10 : ends_with(per_step) ? 0.02 : 0;
}

/// Whether all values that the runs have for a field mean the same.
bool agree(const std::string& key, const std::vector<std::string>& values) {
    if (values.size() < 2) {
        return true;
    }
    const double tolerance = tolerance_of(key);
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const std::string& value : values) {
        char* end = nullptr;
        const double parsed = std::strtod(value.c_str(), &end);
        if (end == value.c_str() || *end != '\0') {
            return false;
        }
        least = std::min(least, parsed);
        most = std::max(most, parsed);
    }
    return tolerance > 0 && most <= least * (1 + tolerance);
}

std::string value_in(const KeyFields& fields, const std::string& key) {
    for (const auto& [known, value] : fields) {
        if (known == key) {
            return value;
        }
    }
    return absent;
}

/// All values of a side, each once.
std::vector<std::string> values_of(const std::vector<KeyFields>& side, const std::string& key) {
    std::vector<std::string> values;
    for (const KeyFields& fields : side) {
        const std::string value = value_in(fields, key);
        if (std::find(values.begin(), values.end(), value) == values.end()) {
            values.push_back(value);
        }
    }
    return values;
}

std::string joined(const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& value : values) {
        all += (all.empty() ? "" : " | ") + value;
    }
    return all;
}

} // namespace

KeyFields head_key(KeyFields settings, const KeyFields& description) {
    for (const auto& [key, value] : description) {
        if (shapes_the_run(key)) {
            put(settings, key, value);
        }
    }
    return settings;
}

KeyFields key_of(const RunFigures& run) {
    KeyFields fields = head_key(run.key, run.description);
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        const RunPhase& steps = run.phases[static_cast<std::size_t>(phase)];
        if (steps.steps == 0) {
            continue;
        }
        const std::string prefix = std::string(phase_word(phase)) + ".";
        put(fields, prefix + "tokens_per_step", number(steps.tokens_per_step));
        put(fields, prefix + "sequences_per_step", number(steps.sequences_per_step));
        if (steps.kv_length > 0) {
            put(fields, prefix + "kv_length", number(steps.kv_length));
        }
    }
    return fields;
}

void compare_keys(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed,
                  const std::vector<std::string>& ignored, Comparison& out) {
    std::vector<KeyFields> sides[2];
    for (std::size_t side = 0; side < 2; ++side) {
        for (const RunFigures& run : side == 0 ? base : changed) {
            sides[side].push_back(key_of(run));
        }
    }
    std::vector<std::string> names; // in the order met
    std::set<std::string> met;
    for (const auto& side : sides) {
        for (const KeyFields& fields : side) {
            for (const auto& [key, value] : fields) {
                if (met.insert(key).second) {
                    names.push_back(key);
                }
            }
        }
    }
    for (const std::string& name : names) {
        const std::vector<std::string> before = values_of(sides[0], name);
        const std::vector<std::string> after = values_of(sides[1], name);
        std::vector<std::string> all = before;
        all.insert(all.end(), after.begin(), after.end());
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        if (agree(name, all)) {
            out.key.emplace_back(name, joined(before));
            continue;
        }
        const bool may = std::find(ignored.begin(), ignored.end(), name) != ignored.end();
        out.differences.push_back({name, joined(before), joined(after), may});
        out.comparable = out.comparable && may;
    }
}

std::string unknown_field(const std::vector<std::string>& ignored, const Comparison& compared) {
    for (const std::string& field : ignored) {
        const auto is_differing = [&field](const KeyDifference& difference) {
            return difference.field == field;
        };
        if (!shapes_the_run(field) && value_in(compared.key, field) == absent &&
            std::none_of(compared.differences.begin(), compared.differences.end(), is_differing)) {
            return field;
        }
    }
    return {};
}

KeyFields conditions_of(const RunFigures& run) {
    KeyFields conditions;
    for (const auto* fields : {&run.identity, &run.description}) {
        for (const auto& [key, value] : *fields) {
            if (is_condition(key)) {
                put(conditions, key, value);
            }
        }
    }
    return conditions;
}

} // namespace plumb::analysis
