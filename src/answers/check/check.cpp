// SPDX-License-Identifier: Apache-2.0
#include "answers/check/check.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "analysis/brick_words.hpp"
#include "analysis/no_step.hpp"
#include "analysis/replay_builder.hpp"
#include "analysis/report_builder.hpp"
#include "answers/answer.hpp"
#include "answers/check/checks_file.hpp"
#include "read/read.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

using stats::absent;
using stats::measured;

constexpr std::size_t least_runs = 3;
constexpr std::uint64_t largest_count = std::uint64_t{1} << 32;

std::string number(double value) {
    char text[64];
    const auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4);
    return {text, written.ptr};
}

std::string times(std::uint64_t count) { return std::to_string(count) + (count == 1 ? " call" : " calls"); }

void unknown(CheckRow& row, const std::string& reason) {
    row.verdict = Outcome::unknown;
    row.found = absent(reason);
    row.finding = reason;
}

/// Everything lost but scopes without a time, which are a check of their own.
std::uint64_t dropped(const Report& report) {
    std::uint64_t all = 0;
    for (const LossRow& loss : report.losses) {
        all += loss.count;
    }
    return all - std::min(all, report.unresolved);
}

/// What was found holds for what is there alone.
void judge_without_the_missing(CheckRow& row, const Checked& run) {
    if (run.records_missing) {
        unknown(row, row.finding + "; but records are missing, so this cannot be judged");
    }
}

std::string losses_in_words(const Report& report, bool unresolved) {
    std::string words;
    for (const LossRow& loss : report.losses) {
        if ((loss.reason.rfind("unresolved", 0) == 0) == unresolved) {
            words += (words.empty() ? "" : "; ") + loss.reason + ": " + std::to_string(loss.count);
        }
    }
    return words;
}

std::string check_words(const ExpectedCalls& expected) {
    return expected.brick + "=" + std::to_string(expected.count) + (expected.per_token ? "/token" : "/step");
}

CheckRow check_calls(const Checked& run, const ExpectedCalls& expected, const CallCount& count, Phase phase) {
    CheckRow row{check_words(expected), run.path, Outcome::unknown, {}, {}};
    if (!count.unknown.empty()) {
        unknown(row, count.unknown);
        return row;
    }
    const auto judged = static_cast<double>(count.judged);
    row.found = measured(static_cast<double>(count.total) / judged);
    const std::string steps = std::to_string(count.judged) + " " + phase_word(phase) + " steps";
    const std::string others = count.judged == count.steps ? ""
                                                           : " (in " + std::to_string(count.steps - count.judged) +
                                                                 " others its calls are not known)";
    if (count.differing == 0) {
        row.verdict = Outcome::pass;
        row.finding = "in each of " + steps + others;
        judge_without_the_missing(row, run);
        return row;
    }
    row.finding = std::to_string(count.differing) + " of " + steps + " differ: step " +
                  std::to_string(count.first_step) + " has " + times(count.first_found) + ", not " +
                  std::to_string(count.first_expected) + "; the steps have " + std::to_string(count.least) + " to " +
                  std::to_string(count.most) + others;
    const std::uint64_t lost = dropped(run.report) + run.report.unresolved;
    // Calls may be missing because their records are; too many calls no loss explains.
    row.verdict = Outcome::fail;
    if (lost != 0 && !count.too_many) {
        unknown(row, row.finding + "; but " + std::to_string(lost) + " records were lost, so this cannot be judged");
    } else if (!count.too_many) {
        judge_without_the_missing(row, run);
    }
    return row;
}

CheckRow check_coverage(const Checked& run, const Invariants& invariants) {
    CheckRow row{"coverage >= " + number(*invariants.coverage), run.path, Outcome::unknown, {}, {}};
    for (const PhaseSummary& phase : run.report.phases) {
        if (phase.phase != invariants.phase) {
            continue;
        }
        const bool of_device = analysis::wall_is_of_the_host(phase);
        row.found = of_device ? phase.device->coverage_at_least : phase.wall.coverage;
        if (!row.found.value) {
            unknown(row, row.found.reason);
            return row;
        }
        if (of_device) {
            row.finding = "leaf bricks cover at least " + number(100 * *row.found.value) +
                          " % of the time that device queues are busy, in " + std::to_string(phase.device->steps) +
                          " timed " + phase_word(phase.phase) + " steps";
            row.verdict = *row.found.value >= *invariants.coverage ? Outcome::pass : Outcome::unknown;
            if (row.verdict == Outcome::unknown) {
                unknown(row, row.finding + "; how much more is not known");
            } else {
                judge_without_the_missing(row, run);
            }
            return row;
        }
        row.verdict = *row.found.value >= *invariants.coverage ? Outcome::pass : Outcome::fail;
        const double busy = phase.wall.busy_ns;
        row.finding = "leaf bricks cover " + number(100 * *row.found.value) + " % of the busy time of " +
                      std::to_string(phase.steps) + " " + phase_word(phase.phase) + " steps; " +
                      number(100 * phase.wall.unattributed_ns / busy) + " % lie in no brick";
        judge_without_the_missing(row, run);
        return row;
    }
    unknown(row, analysis::no_step_of(invariants.phase));
    return row;
}

CheckRow check_limit(const Checked& run, const char* what, std::uint64_t found, std::uint64_t limit,
                     const std::string& words) {
    CheckRow row{std::string(what) + " <= " + std::to_string(limit), run.path,
                 found <= limit ? Outcome::pass : Outcome::fail, measured(static_cast<double>(found)),
                 std::to_string(found)};
    if (!words.empty()) {
        row.finding += " (" + words + ")";
    }
    return row;
}

CheckRow check_nodes(const Checked& run) {
    CheckRow row{"node check", run.path, Outcome::pass, {}, {}};
    std::uint64_t compared = 0, differ = 0;
    for (const ReplayRow& graph : run.replays.graphs) {
        compared += graph.node_checks;
        if (graph.node_changes.empty() && graph.baked_in.empty()) {
            continue;
        }
        const std::string what = !graph.node_changes.empty()
                                     ? graph.node_changes.front().kernel + " " +
                                           std::to_string(graph.node_changes.front().before) + " -> " +
                                           std::to_string(graph.node_changes.front().after)
                                     : "baked in: " + graph.baked_in.front();
        row.finding += (differ++ == 0 ? "" : "; ") + ("graph " + std::to_string(graph.key)) + ": " + what;
    }
    if (differ != 0 || run.replays.node_check == NodeCheck::differ || run.replays.baked_in) {
        row.verdict = Outcome::fail;
        row.found = measured(static_cast<double>(differ));
    } else if (run.replays.node_check == NodeCheck::not_compared) {
        unknown(row, run.replays.graphs.empty() ? "no graph was captured" : "no graph was captured twice");
    } else {
        row.found = measured(0);
        row.finding = std::to_string(compared) + " captures agree with the one before of their key";
    }
    return row;
}

} // namespace

Status validate(const Invariants& invariants) {
    const auto wrong = [](const char* sentence) {
        return Status(Error{ErrorCode::invalid_argument, sentence});
    };
    if (invariants.calls.empty() && !invariants.coverage && !invariants.drops && !invariants.pending &&
        !invariants.node_check && !invariants.variation) {
        return wrong("nothing to check: name at least one of --expect, --coverage, --drops, --pending, --node-check, "
                     "--cv, or a file of checks with --file");
    }
    if (invariants.calls.size() > max_expected_calls) {
        return wrong("at most 64 counts can be checked at once; split them over two calls");
    }
    if (invariants.coverage && !(*invariants.coverage > 0 && *invariants.coverage <= 1)) {
        return wrong("--coverage is a share of busy time above 0 and up to 1, such as 0.9");
    }
    if (invariants.variation && !(*invariants.variation > 0 && std::isfinite(*invariants.variation))) {
        return wrong("--cv is a coefficient of variation, a number above 0, such as 0.05");
    }
    return {};
}

std::vector<CheckRow> check_one(const Checked& run, const Invariants& invariants) {
    std::vector<CheckRow> rows;
    for (std::size_t i = 0; i < invariants.calls.size(); ++i) {
        rows.push_back(check_calls(run, invariants.calls[i], run.calls[i], invariants.phase));
    }
    if (invariants.coverage) {
        rows.push_back(check_coverage(run, invariants));
    }
    if (invariants.drops) {
        rows.push_back(
            check_limit(run, "drops", dropped(run.report), *invariants.drops, losses_in_words(run.report, false)));
    }
    if (invariants.pending) {
        rows.push_back(
            check_limit(run, "pending", run.report.unresolved, *invariants.pending, losses_in_words(run.report, true)));
    }
    if (invariants.node_check) {
        rows.push_back(check_nodes(run));
    }
    return rows;
}

Figure mean_period(const Report& report, Phase phase) {
    for (const PhaseSummary& summary : report.phases) {
        if (summary.phase == phase && summary.steps != 0) {
            return measured(summary.period.mean_ns);
        }
    }
    return absent("a run has no counted " + std::string(phase_word(phase)) + " step");
}

CheckRow check_variation(const std::vector<Figure>& mean_periods, const Invariants& invariants) {
    CheckRow row{"variation <= " + number(*invariants.variation), {}, Outcome::unknown, {}, {}};
    double sum = 0, squares = 0;
    for (const Figure& period : mean_periods) {
        if (!period.value) {
            unknown(row, period.reason);
            return row;
        }
        sum += *period.value;
    }
    if (mean_periods.size() < least_runs) {
        unknown(row, "variation over runs needs at least 3 recordings, there " +
                         std::string(mean_periods.size() == 1 ? "is 1" : "are 2"));
        return row;
    }
    if (!(sum > 0)) {
        unknown(row, "the steps of all runs took no time");
        return row;
    }
    const auto runs = static_cast<double>(mean_periods.size());
    for (const Figure& period : mean_periods) {
        squares += (*period.value - sum / runs) * (*period.value - sum / runs);
    }
    const double variation = std::sqrt(squares / (runs - 1)) / (sum / runs);
    row.found = measured(variation);
    row.verdict = variation <= *invariants.variation ? Outcome::pass : Outcome::fail;
    row.finding = "the mean " + std::string(phase_word(invariants.phase)) + " period of " +
                  std::to_string(mean_periods.size()) + " runs is " + number(sum / runs / 1e3) + " us, its variation " +
                  number(variation);
    return row;
}

Outcome verdict_of(const std::vector<CheckRow>& rows) {
    Outcome all = rows.empty() ? Outcome::unknown : Outcome::pass;
    for (const CheckRow& row : rows) {
        all = worse(all, row.verdict);
    }
    return all;
}

Result<ExpectedCalls> parse_expected_calls(std::string_view words) {
    const Error wrong{ErrorCode::invalid_argument,
                      "an expected count is written like lm_head=1/step or sampling=1/token, not \"" +
                          std::string(words) + "\""};
    const auto parts = analysis::assignment_of(words);
    if (!parts || (parts->per != "step" && parts->per != "token")) {
        return wrong;
    }
    ExpectedCalls expected{std::string(parts->brick), 0, parts->per == "token"};
    const char* end = parts->value.data() + parts->value.size();
    const auto read = std::from_chars(parts->value.data(), end, expected.count);
    if (read.ec != std::errc() || read.ptr != end || expected.count > largest_count) {
        return wrong;
    }
    return expected;
}

namespace {

Result<Checked> read_run(const std::string& path, const Invariants& invariants) {
    const Result<recording::RecordedRun> recorded = recording::open_run(path);
    if (!recorded.ok()) {
        return recorded.error();
    }
    const recording::RunFacts& facts = *recorded->facts;
    analysis::ReportReader report(facts);
    const std::size_t number = report.ask({});
    CallReader calls(facts, invariants.phase, invariants.calls);
    analysis::ReplayReader replays(facts);
    std::vector<read::Observer*> observers{&report};
    if (!invariants.calls.empty()) {
        observers.push_back(&calls);
    }
    if (invariants.node_check) {
        observers.push_back(&replays);
    }
    if (Status read = read::read(*recorded, observers); !read.ok()) {
        return read.error();
    }
    Checked run;
    run.path = path;
    std::copy_n(facts.metadata.recording_id, 2, run.recording_id);
    run.report = report.take(number);
    run.records_missing = report.records_missing();
    run.calls = calls.take();
    if (invariants.node_check) {
        run.replays = replays.take();
    }
    return run;
}

} // namespace

Result<CheckReport> check_recordings(const std::vector<std::string>& paths, const Invariants& invariants) {
    if (const Status valid = validate(invariants); !valid.ok()) {
        return valid.error();
    }
    CheckReport report;
    std::vector<Figure> periods;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (const std::string& path : paths) {
        const Result<Checked> run = read_run(path, invariants);
        if (!run.ok()) {
            return run.error();
        }
        if (!seen.emplace(run->recording_id[0], run->recording_id[1]).second) {
            return Error{
                ErrorCode::invalid_argument,
                path + " is a recording that was named before; name each run once, or its variation is too small"};
        }
        for (CheckRow& row : check_one(*run, invariants)) {
            report.rows.push_back(std::move(row));
        }
        periods.push_back(mean_period(run->report, invariants.phase));
    }
    if (invariants.variation) {
        report.rows.push_back(check_variation(periods, invariants));
    }
    report.verdict = verdict_of(report.rows);
    return report;
}

Result<Invariants> invariants_of(const CheckQuestion& question) {
    Invariants all;
    if (!question.file.empty()) {
        const Result<Invariants> read = read_checks_file(question.file);
        if (!read.ok()) {
            return read.error();
        }
        all = *read;
    }
    all.phase = question.phase.value_or(all.phase);
    std::vector<ExpectedCalls> of_file;
    of_file.swap(all.calls);
    for (const std::string& words : question.expected) {
        const Result<ExpectedCalls> expected = parse_expected_calls(words);
        if (!expected.ok()) {
            return expected.error();
        }
        all.calls.push_back(*expected);
    }
    const std::size_t asked = all.calls.size();
    for (const ExpectedCalls& calls : of_file) {
        bool replaced = false;
        for (std::size_t i = 0; i < asked; ++i) {
            replaced = replaced || analysis::brick_of_word(all.calls[i].brick) == analysis::brick_of_word(calls.brick);
        }
        if (!replaced) {
            all.calls.push_back(calls);
        }
    }
    const auto take = [](auto& into, const auto& from) {
        into = from ? from : into;
    };
    take(all.coverage, question.coverage);
    take(all.variation, question.variation);
    take(all.drops, question.drops);
    take(all.pending, question.pending);
    all.node_check = all.node_check || question.node_check;
    return all;
}

namespace {

Result<CheckReport> read_check(const std::vector<std::string>& files, const CheckQuestion& question) {
    const Result<Invariants> invariants = invariants_of(question);
    return invariants.ok() ? check_recordings(files, *invariants) : Result<CheckReport>(invariants.error());
}

} // namespace

const answers::Entry& check_answer() {
    static const answers::Entry entry = [] {
        answers::Entry made = answers::entry_of<CheckQuestion, CheckReport, read_check>(
            "check", "Check invariants of a healthy profile: calls per step, coverage, losses, node counts, variation",
            {{"recording", "Recordings (.plumb); each is checked", true, true}});
        made.documents.push_back(answers::document_of<ChecksFile>());
        return made;
    }();
    return entry;
}

} // namespace plumb
