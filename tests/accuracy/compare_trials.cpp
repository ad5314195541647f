// SPDX-License-Identifier: Apache-2.0
#include "compare_trials.hpp"

#include <algorithm>
#include <cmath>
#include <istream>
#include <map>
#include <ostream>
#include <random>
#include <sstream>

#include "stats/bootstrap.hpp"
#include "stats/median.hpp"

namespace trials {
namespace {

using namespace plumb;
using analysis::NamedRun;
using analysis::RunFigures;
using analysis::RunRow;

std::string column_of(const RunRow& row) {
    std::string name = subject_word(row.id.subject);
    if (row.id.subject == CompareSubject::brick) {
        name += ":" + row.id.name + ":" + std::to_string(static_cast<int>(row.category));
    } else if (row.id.subject == CompareSubject::category) {
        name += ":" + row.id.name;
    } else if (row.id.subject == CompareSubject::layer) {
        name += ":" + std::to_string(row.id.layer);
    }
    return name;
}

RunRow row_of(const std::string& column) {
    RunRow row;
    row.id.phase = Phase::decode;
    std::istringstream words(column);
    std::string kind, name, category;
    std::getline(words, kind, ':');
    std::getline(words, name, ':');
    std::getline(words, category, ':');
    if (kind == "brick") {
        row.id.subject = CompareSubject::brick;
        row.id.name = name;
        row.category = static_cast<Category>(std::atoi(category.c_str()));
    } else if (kind == "category") {
        row.id.subject = CompareSubject::category;
        row.id.name = name;
    } else if (kind == "layer") {
        row.id.subject = CompareSubject::layer;
        row.id.layer = static_cast<std::uint32_t>(std::atoi(name.c_str()));
    }
    return row;
}

void set_time(RunRow& row, double ns) {
    row.p50 = row.p90 = row.mean = row.central = ns;
    row.p99 = std::nan("");
}

/// The brick takes so much longer, and so does all that holds it; of the layers each its part.
void plant(RunFigures& run, const Plan& plan) {
    double added = 0;
    std::string category;
    double layers = 0;
    for (RunRow& row : run.rows) {
        layers += row.id.subject == CompareSubject::layer ? 1 : 0;
        if (row.id.subject == CompareSubject::brick && row.id.name == plan.brick) {
            added = row.p50 * plan.change;
            category = category_word(row.category);
            set_time(row, row.p50 + added);
        }
    }
    for (RunRow& row : run.rows) {
        const CompareSubject subject = row.id.subject;
        if (subject == CompareSubject::step || (subject == CompareSubject::category && row.id.name == category)) {
            set_time(row, row.p50 + added);
        } else if (subject == CompareSubject::layer) {
            set_time(row, row.p50 + added / layers);
        }
    }
}

NamedRun run_of(const Pool& pool, std::size_t index) {
    NamedRun run;
    run.name = std::to_string(index);
    run.figures.start_realtime_ns = static_cast<std::int64_t>(index);
    run.figures.phases[static_cast<std::size_t>(Phase::decode)].steps = 1000;
    for (std::size_t column = 0; column < pool.columns.size(); ++column) {
        run.figures.rows.push_back(row_of(pool.columns[column]));
        set_time(run.figures.rows.back(), pool.runs[index][column]);
    }
    return run;
}

void count(const Comparison& comparison, const Plan& plan, Outcome& outcome) {
    bool wrong = false;
    bool named = false;
    for (const CompareRow& row : comparison.rows) {
        const bool planted = row.subject == CompareSubject::brick && row.name == plan.brick;
        // What holds the slowed brick did become slower; saying so is right.
        const bool holds = !plan.brick.empty() && row.subject != CompareSubject::brick;
        named = named || (planted && row.verdict == Verdict::slow);
        wrong = wrong || row.verdict == Verdict::fast || (row.verdict == Verdict::slow && !planted && !holds);
    }
    outcome.false_verdicts += wrong ? 1 : 0;
    outcome.named += named ? 1 : 0;
    ++outcome.pairs;
}

} // namespace

Result<Pool> read_pool(std::istream& in) {
    Pool pool;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        std::istringstream words(line);
        if (pool.columns.empty()) {
            for (std::string word; words >> word;) {
                pool.columns.push_back(word);
            }
            continue;
        }
        std::vector<double> run;
        for (double value = 0; words >> value;) {
            run.push_back(value);
        }
        if (run.size() != pool.columns.size()) {
            return Error{ErrorCode::invalid_argument, "a run of the pool has not one number per column"};
        }
        pool.runs.push_back(std::move(run));
    }
    return pool;
}

void write_pool(const Pool& pool, const std::string& comment, std::ostream& out) {
    std::istringstream lines(comment);
    for (std::string line; std::getline(lines, line);) {
        out << "# " << line << '\n';
    }
    const char* gap = "";
    for (const std::string& column : pool.columns) {
        out << gap << column;
        gap = " ";
    }
    out << '\n';
    for (const auto& run : pool.runs) {
        gap = "";
        for (const double value : run) {
            out << gap << std::llround(value);
            gap = " ";
        }
        out << '\n';
    }
}

Pool pool_of(const std::vector<RunFigures>& runs) {
    std::map<std::string, std::vector<double>> columns;
    double step = 0;
    for (const RunFigures& run : runs) {
        for (const RunRow& row : run.rows) {
            if (row.id.phase != Phase::decode || std::isnan(row.p50)) {
                continue;
            }
            columns[column_of(row)].push_back(row.p50);
            if (row.id.subject == CompareSubject::step) {
                step = std::max(step, row.p50);
            }
        }
    }
    Pool pool;
    pool.runs.resize(runs.size());
    for (const auto& [name, values] : columns) {
        if (values.size() != runs.size() || stats::median(values) < 0.01 * step) {
            continue;
        }
        pool.columns.push_back(name);
        for (std::size_t run = 0; run < runs.size(); ++run) {
            pool.runs[run].push_back(values[run]);
        }
    }
    return pool;
}

Outcome run_trials(const Pool& pool, const Plan& plan) {
    Outcome outcome;
    const std::size_t window = 2 * plan.runs_a_side;
    if (pool.runs.size() < window) {
        return outcome;
    }
    std::mt19937_64 random(plan.seed);
    for (std::size_t pair = 0; pair < plan.pairs; ++pair) {
        const std::size_t first = pair * (pool.runs.size() - window + 1) / plan.pairs;
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < window; ++i) {
            order.push_back(first + i);
        }
        std::shuffle(order.begin(), order.end(), random);
        std::vector<NamedRun> sides[2];
        for (std::size_t i = 0; i < window; ++i) {
            NamedRun run = run_of(pool, order[i]);
            const std::size_t side = i < plan.runs_a_side ? 0 : 1;
            if (side == 1 && !plan.brick.empty()) {
                plant(run.figures, plan);
            }
            sides[side].push_back(std::move(run));
        }
        count(analysis::compare_runs(sides[0], sides[1], {}, {}), plan, outcome);
    }
    return outcome;
}

std::vector<std::string> bricks_of(const Pool& pool) {
    std::vector<std::pair<double, std::string>> bricks;
    for (std::size_t column = 0; column < pool.columns.size(); ++column) {
        const RunRow row = row_of(pool.columns[column]);
        if (row.id.subject == CompareSubject::brick && !pool.runs.empty()) {
            bricks.emplace_back(-pool.runs[0][column], row.id.name);
        }
    }
    std::sort(bricks.begin(), bricks.end());
    std::vector<std::string> names;
    for (auto& [weight, name] : bricks) {
        names.push_back(std::move(name));
    }
    return names;
}

} // namespace trials
