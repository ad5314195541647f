// SPDX-License-Identifier: Apache-2.0
// A pool of real runs of one program -> pairs of sides drawn from it, with and without a planted change, and how often
// the verdicts were wrong. For the benchmark that records a pool and the test that keeps one. Plain functions.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "analysis/compare.hpp"
#include "plumb/result.hpp"

namespace trials {

/// One line per run, one column per row of the decode phase: its median time per step in ns. As text:
/// "# …" lines, a line of column names ("step", "brick:attention:2", "category:ffn", "layer:3"), a line per run.
struct Pool {
    std::vector<std::string> columns;
    std::vector<std::vector<double>> runs;
};

[[nodiscard]] plumb::Result<Pool> read_pool(std::istream& in);
void write_pool(const Pool& pool, const std::string& comment, std::ostream& out);
/// Rows of at least 1 % of the step, of runs that all have them.
[[nodiscard]] Pool pool_of(const std::vector<plumb::analysis::RunFigures>& runs);

struct Plan {
    std::size_t pairs = 200;
    std::size_t runs_a_side = 5;
    std::string brick; // that is slowed down; empty: nothing is planted
    double change = 0.03;
    std::uint64_t seed = 1;
};

struct Outcome {
    std::size_t pairs = 0;
    std::size_t false_verdicts = 0; // pairs in which a row that did not change was named FAST, or SLOW
    std::size_t named = 0;          // pairs in which the slowed brick was named SLOW
};

/// Each pair: consecutive runs from a place of the pool, given to the sides at random, as many to each.
[[nodiscard]] Outcome run_trials(const Pool& pool, const Plan& plan);

/// The bricks of a pool, heaviest first.
[[nodiscard]] std::vector<std::string> bricks_of(const Pool& pool);

} // namespace trials
