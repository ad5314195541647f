// SPDX-License-Identifier: Apache-2.0
// Gates: their words, and what a comparison says to them.
#include "analysis/compare_gate.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "analysis/compare_change.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

constexpr char examples[] = "say for example brick:attention.p50=+5%, decode.step.p50=+2%, category:ffn.mean=+1%, "
                            "layer:3.p50=+3% or fingerprint";

Error bad_gate(const std::string& text, const std::string& what) {
    return Error{ErrorCode::invalid_argument, "gate '" + text + "' " + what + "; " + examples};
}

template <class T, class Word>
bool take_word(std::string_view& rest, char after, std::initializer_list<T> values, Word word, T& out) {
    for (const T value : values) {
        const std::string_view wanted = word(value);
        if (rest.size() > wanted.size() && rest.substr(0, wanted.size()) == wanted && rest[wanted.size()] == after) {
            rest.remove_prefix(wanted.size() + 1);
            out = value;
            return true;
        }
    }
    return false;
}

/// "+5%" -> 0.05.
std::optional<double> limit_of(std::string_view text) {
    if (text.size() < 2 || text.back() != '%' || (text[0] != '+' && text[0] != '-')) {
        return std::nullopt;
    }
    const bool negative = text[0] == '-';
    text = text.substr(1, text.size() - 2);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0 ||
        value > 10000 || (negative && value >= 100) || text.front() == '-') {
        return std::nullopt;
    }
    return (negative ? -value : value) / 100;
}

std::optional<std::uint32_t> layer_of(std::string_view text) {
    std::uint32_t layer = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return layer;
}

bool is_category(std::string_view word) {
    for (int value = 0; value <= static_cast<int>(Category::transfer); ++value) {
        if (word == category_word(static_cast<Category>(value))) {
            return true;
        }
    }
    return false;
}

/// The brick that an alias stands for; other names are themselves.
std::string brick_of_alias(const std::string& name) {
    struct Known {
        const char* brick;
        std::string_view aliases;
    };
#define PLUMB_GATE_BRICK(name, id, category, aliases) {#name, aliases},
    static constexpr Known known[] = {PLUMB_WELL_KNOWN_BRICKS(PLUMB_GATE_BRICK)};
#undef PLUMB_GATE_BRICK
    for (const auto& [brick, aliases] : known) {
        for (std::string_view rest = aliases; !rest.empty();) {
            const std::size_t space = std::min(rest.find(' '), rest.size());
            if (rest.substr(0, space) == name) {
                return brick;
            }
            rest.remove_prefix(std::min(space + 1, rest.size()));
        }
    }
    return name;
}

} // namespace

Result<Gate> parse_gate(const std::string& text) {
    Gate gate;
    gate.text = text;
    if (text == "fingerprint" || text == "fingerprint=exact") {
        gate.fingerprint = true;
        return gate;
    }
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
        return bad_gate(text, "has no limit");
    }
    const std::optional<double> limit = limit_of(std::string_view(text).substr(equals + 1));
    if (!limit) {
        return bad_gate(text, "has no limit of the form +5% or -3%");
    }
    gate.limit = *limit;
    std::string_view rest = std::string_view(text).substr(0, equals);
    const std::size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos) {
        return bad_gate(text, "names no statistic (p50, p90, p99 or mean)");
    }
    const std::string_view statistic = rest.substr(dot + 1);
    bool known = false;
    for (const CompareStatistic value :
         {CompareStatistic::p50, CompareStatistic::p90, CompareStatistic::p99, CompareStatistic::mean}) {
        if (statistic == statistic_word(value)) {
            gate.statistic = value;
            known = true;
        }
    }
    if (!known) {
        return bad_gate(text, "names no statistic (p50, p90, p99 or mean)");
    }
    rest = rest.substr(0, dot);
    take_word(rest, '.', {Phase::prefill, Phase::decode, Phase::mixed}, phase_word, gate.phase);
    if (rest == "step") {
        return gate;
    }
    if (!take_word(rest, ':', {CompareSubject::brick, CompareSubject::category, CompareSubject::layer}, subject_word,
                   gate.subject)) {
        return bad_gate(text, "is about none of step, brick:, category: and layer:");
    }
    gate.name = std::string(rest);
    if (gate.subject == CompareSubject::layer) {
        const std::optional<std::uint32_t> layer = layer_of(rest);
        if (!layer) {
            return bad_gate(text, "names no layer by number");
        }
        gate.layer = *layer;
        gate.name.clear();
    } else if (gate.subject == CompareSubject::category && !is_category(rest)) {
        return bad_gate(text, "names no category (other, norm, attention, ffn, moe, embedding, output, cache, "
                              "collective, transfer)");
    } else if (gate.subject == CompareSubject::brick) {
        gate.name = brick_of_alias(gate.name);
        if (gate.name.empty()) {
            return bad_gate(text, "names no brick");
        }
    }
    return gate;
}

namespace analysis {
namespace {

double statistic_of(const RunRow& row, CompareStatistic statistic) {
    switch (statistic) {
    case CompareStatistic::p50:
        return row.p50;
    case CompareStatistic::p90:
        return row.p90;
    case CompareStatistic::p99:
        return row.p99;
    case CompareStatistic::mean:
        break;
    }
    return row.mean;
}

/// A row that a gate is about: a name that runs on the host and on a device has one on each.
struct GateRow {
    const Gate& gate;
    Phase phase = Phase::none;
    bool device = false;

    [[nodiscard]] bool is(const CompareId& id) const {
        return id.subject == gate.subject && id.phase == phase && id.device == device && id.name == gate.name &&
               id.layer == gate.layer;
    }
};

/// One number for each run that has the row; NaN where its steps are too few.
std::vector<double> numbers_of(const GateRow& wanted, const std::vector<RunFigures>& runs) {
    std::vector<double> numbers;
    for (const RunFigures& run : runs) {
        for (const RunRow& row : run.rows) {
            if (wanted.is(row.id)) {
                numbers.push_back(statistic_of(row, wanted.gate.statistic));
            }
        }
    }
    return numbers;
}

std::string percent(double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.2f%%", share * 100);
    return text;
}

GateResult undecided(const Gate& gate, const std::string& why) {
    GateResult result;
    result.gate = gate;
    result.sentence = why;
    return result;
}

Phase phase_of(const Gate& gate, const std::vector<RunFigures>& runs) {
    return gate.phase != Phase::none ? gate.phase : main_phase(runs);
}

} // namespace

Phase main_phase(const std::vector<RunFigures>& runs) {
    for (const Phase phase : {Phase::decode, Phase::mixed, Phase::prefill}) {
        for (const RunFigures& run : runs) {
            if (run.phases[static_cast<std::size_t>(phase)].steps != 0) {
                return phase;
            }
        }
    }
    return Phase::none;
}

bool lost_records(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed) {
    const auto lossy = [](const RunFigures& run) {
        return run.lost != 0;
    };
    return std::any_of(base.begin(), base.end(), lossy) || std::any_of(changed.begin(), changed.end(), lossy);
}

namespace {

int severity(GateOutcome outcome) {
    return outcome == GateOutcome::failed ? 2 : outcome == GateOutcome::undecided ? 1 : 0;
}

/// Why some runs have no percentile: those with steps enough for one had to choose among them.
std::string why_no_number(const GateRow& row, const std::vector<RunFigures>& base,
                          const std::vector<RunFigures>& changed) {
    const auto chose = [&row](const RunFigures& run) {
        return run.phases[static_cast<std::size_t>(row.phase)].steps > compare_max_steps;
    };
    const std::string statistic = statistic_word(row.gate.statistic);
    return std::any_of(base.begin(), base.end(), chose) || std::any_of(changed.begin(), changed.end(), chose)
               ? "which steps were chosen would decide " + statistic + ": they are of several kinds; gate on .mean"
               : "some runs have too few steps for " + statistic + "; gate on .mean, or record longer runs";
}

/// Absent: no run of either side has the row.
std::optional<GateResult> judge_row(const GateRow& row, const std::vector<RunFigures>& base,
                                    const std::vector<RunFigures>& changed, double confidence) {
    const Gate& gate = row.gate;
    const std::vector<double> before = numbers_of(row, base);
    const std::vector<double> after = numbers_of(row, changed);
    if (before.empty() && after.empty()) {
        return std::nullopt;
    }
    if (before.empty() || after.empty()) {
        return undecided(gate, std::string("no such row in the ") + phase_word(row.phase) + " steps of both sides");
    }
    if (before.size() != base.size() || after.size() != changed.size()) {
        return undecided(gate, std::string("some runs have no such row in their ") + phase_word(row.phase) + " steps");
    }
    const LogChange change = ratio_change(before, after, confidence);
    if (!change.known) {
        const bool no_number = std::any_of(before.begin(), before.end(), [](double x) { return std::isnan(x); }) ||
                               std::any_of(after.begin(), after.end(), [](double x) { return std::isnan(x); });
        return undecided(gate, no_number ? why_no_number(row, base, changed) : change.reason);
    }
    GateResult result;
    result.gate = gate;
    result.change = as_share(change);
    const double low = *result.change.low.value;
    const double high = *result.change.high.value;
    result.outcome = !(change.noise > 0)  ? GateOutcome::undecided
                     : high <= gate.limit ? GateOutcome::passed
                     : low > gate.limit   ? GateOutcome::failed
                                          : GateOutcome::undecided;
    result.sentence = "changed by " + percent(*result.change.estimate.value) + " (" + percent(low) + " to " +
                      percent(high) + "), the limit is " + percent(gate.limit);
    if (result.outcome == GateOutcome::undecided) {
        result.sentence += change.noise > 0 ? "; more runs would narrow it" : "; its runs do not differ at all";
    }
    if (result.outcome == GateOutcome::passed && gate.subject != CompareSubject::step && lost_records(base, changed)) {
        result.outcome = GateOutcome::undecided;
        result.sentence +=
            "; but records were lost, so it may look faster than it is: record again with a larger ring=";
    }
    return result;
}

} // namespace

GateResult judge_gate(const Gate& gate, const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed,
                      double confidence) {
    const Phase phase = phase_of(gate, base);
    std::optional<GateResult> worst;
    std::string sentences;
    for (const bool device : {false, true}) {
        const std::optional<GateResult> judged = judge_row({gate, phase, device}, base, changed, confidence);
        if (!judged) {
            continue;
        }
        sentences += std::string(sentences.empty() ? "" : "; ") + (device ? "on the device: " : "on the host: ") +
                     judged->sentence;
        if (!worst || severity(judged->outcome) > severity(worst->outcome)) {
            worst = judged;
        }
    }
    if (!worst) {
        return undecided(gate, std::string("no such row in the ") + phase_word(phase) + " steps of both sides");
    }
    if (sentences.find("; on the device: ") != std::string::npos) {
        worst->sentence = sentences;
    }
    return *std::move(worst);
}

} // namespace analysis
} // namespace plumb
