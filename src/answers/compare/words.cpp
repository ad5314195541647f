// SPDX-License-Identifier: Apache-2.0
#include "answers/compare/words.hpp"

#include <cmath>
#include <cstdio>

#include "answers/compare/compare.hpp"

namespace plumb {
namespace {

std::string formatted(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// Of an interval that runs with little in common made, only that it is wide means something.
constexpr double widest_share = 100;

std::string share_text(double share) {
    return share < widest_share ? formatted("%+.2f", share * 100) : formatted("over %+.0f", widest_share * 100);
}

} // namespace

std::string percent_text(const Figure& share) { return share.value ? share_text(*share.value) + " %" : "n/a"; }

std::string interval_text(const Change& change) {
    if (!change.low.value || !change.high.value) {
        return "n/a";
    }
    return share_text(*change.low.value) + " .. " + share_text(*change.high.value) + " %";
}

std::string subject_text(const CompareRow& row) {
    std::string text = row.subject == CompareSubject::step    ? "step"
                       : row.subject == CompareSubject::layer ? "layer " + std::to_string(row.layer)
                                                              : row.name;
    return row.device ? text + " (device)" : text;
}

const Change& judged_change(const CompareRow& row) { return row.by_own_change ? row.own_change : row.change; }

std::string headline(const Comparison& comparison, const CompareRow& step) {
    std::string text = std::string(phase_word(step.phase)) + " step " + statistic_word(step.statistic) + ": " +
                       page::word_of(step.verdict);
    if (step.change.estimate.value) {
        text += "  " + percent_text(step.change.estimate) + "  (" + interval_text(step.change) + ")";
    }
    if (step.verdict == Verdict::undecided) {
        text += "  " + step.reason;
    }
    for (const CompareRow& row : comparison.rows) {
        if (row.phase != step.phase || row.subject != CompareSubject::brick) {
            continue;
        }
        if (row.verdict == Verdict::slow || row.verdict == Verdict::fast) {
            text += std::string("; ") + page::word_of(row.verdict) + " " + subject_text(row) + " " +
                    percent_text(judged_change(row).estimate);
        }
    }
    return text;
}

std::string microseconds(double ns) {
    const double us = ns / 1e3;
    const double size = std::fabs(us);
    return formatted(size >= 1000 ? "%.0f" : size >= 100 ? "%.1f" : size >= 10 ? "%.2f" : "%.3f", us);
}

std::string signed_microseconds(double ns) { return (ns < 0 ? "" : "+") + microseconds(ns); }

std::string kind_text(const CompareRow& row) {
    return std::string(subject_word(row.subject)) + (row.per_replay ? " (sampled)" : "");
}

std::string means_text(const Comparison& comparison) {
    return std::string("base and new: medians over the ") + (comparison.one_step ? "ranks" : "runs") +
           "; change: ratio of their geometric means";
}

std::string attribution_text(const Attribution& attribution) {
    return std::string("change of a step by brick, us (arithmetic means over the middle half of the steps; ") +
           (attribution.adds_up ? "adds up):" : "does not add up, see the note):");
}

std::string runs_text(const Comparison& comparison) {
    if (comparison.one_step) {
        const std::string ranks = std::to_string(comparison.base.size());
        const std::string others = std::to_string(comparison.changed.size());
        return "1 step, " + ranks + (ranks == others ? "" : " and " + others) +
               " ranks: says that these two steps differ, not the builds";
    }
    return std::to_string(comparison.base.size()) + (comparison.base.size() == 1 ? " run" : " runs") + " against " +
           std::to_string(comparison.changed.size());
}

} // namespace plumb
