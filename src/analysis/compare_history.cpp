// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/compare.hpp"
#include "analysis/compare_key.hpp"

namespace plumb::analysis {
namespace {

bool compares_with(const NamedRun& run, const NamedRun& newest, const CompareOptions& options, std::string& why) {
    Comparison comparison;
    compare_keys({run.figures}, {newest.figures}, options.ignored_fields, comparison);
    if (comparison.comparable) {
        return true;
    }
    for (const KeyDifference& difference : comparison.differences) {
        if (!difference.ignored) {
            why += (why.empty() ? "" : ", ") + difference.field + " " + difference.base;
        }
    }
    return false;
}

void add_row(const CompareId& id, const std::vector<NamedRun>& runs, History& out) {
    std::vector<const RunRow*> found;
    bool median = true;
    for (const NamedRun& run : runs) {
        const auto at = std::lower_bound(run.figures.rows.begin(), run.figures.rows.end(), id,
                                         [](const RunRow& row, const CompareId& wanted) { return row.id < wanted; });
        const bool has = at != run.figures.rows.end() && at->id == id;
        found.push_back(has ? &*at : nullptr);
        median = median && !(has && std::isnan(at->p50));
    }
    HistoryRow row;
    row.subject = id.subject;
    row.phase = id.phase;
    row.name = id.name;
    row.device = id.device;
    row.statistic = median ? CompareStatistic::p50 : CompareStatistic::mean;
    for (const RunRow* run : found) {
        row.runs_ns.push_back(run == nullptr ? std::nullopt : std::optional(median ? run->p50 : run->mean));
    }
    out.rows.push_back(std::move(row));
}

double last_of(const HistoryRow& row) {
    for (auto run = row.runs_ns.rbegin(); run != row.runs_ns.rend(); ++run) {
        if (*run) {
            return **run;
        }
    }
    return 0;
}

} // namespace

History history_of_runs(std::vector<NamedRun> runs, const CompareOptions& options) {
    History out;
    if (runs.empty()) {
        return out;
    }
    std::stable_sort(runs.begin(), runs.end(), [](const NamedRun& a, const NamedRun& b) {
        return a.figures.start_realtime_ns < b.figures.start_realtime_ns;
    });
    const NamedRun newest = runs.back();
    std::vector<NamedRun> kept;
    for (NamedRun& run : runs) {
        std::string why;
        if (compares_with(run, newest, options, why)) {
            kept.push_back(std::move(run));
        } else {
            out.notes.push_back(run.name + " is left out: it does not compare with the newest run (" + why + ").");
        }
    }
    const std::vector<std::string> notes = notes_of(kept);
    out.notes.insert(out.notes.end(), notes.begin(), notes.end());
    std::map<CompareId, bool> ids;
    for (const NamedRun& run : kept) {
        out.runs.push_back({run.name, run.figures.start_realtime_ns, conditions_of(run.figures)});
        for (const RunRow& row : run.figures.rows) {
            if (row.id.subject == CompareSubject::step || row.id.subject == CompareSubject::brick) {
                ids.emplace(row.id, true);
            }
        }
    }
    for (const auto& [id, known] : ids) {
        add_row(id, kept, out);
    }
    std::stable_sort(out.rows.begin(), out.rows.end(), [](const HistoryRow& a, const HistoryRow& b) {
        if (a.phase != b.phase) {
            return a.phase < b.phase;
        }
        if (a.subject != b.subject) {
            return a.subject < b.subject;
        }
        return last_of(a) > last_of(b);
    });
    return out;
}

} // namespace plumb::analysis
