// SPDX-License-Identifier: Apache-2.0
// What a benchmark prints: the machine, aligned tables, each target with PASS or MISS. Owned by main(); one thread.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "support/figures.hpp"

namespace bench {

/// The command line every benchmark takes.
struct Options {
    std::string json;                                        // write the figures there
    bool check = false;                                      // a miss is exit 1
    std::vector<std::pair<std::string, std::string>> values; // --key value, as far as the benchmark knows the key

    [[nodiscard]] std::string value(const std::string& key, const std::string& otherwise) const;
};

/// Exits with 2 and one sentence on bad words; prints usage and exits 0 on --help. `keys`: further "--key meaning" pairs.
[[nodiscard]] Options parse_options(int argc, char** argv, const std::string& what,
                                    const std::vector<std::pair<std::string, std::string>>& keys = {});

enum class Bound { at_most, at_least };

struct Target {
    Bound bound;
    double limit;
};

class Board {
  public:
    explicit Board(Options options);

    /// Key and value of the results.
    void put(const std::string& key, double value) { figures_[key] = value; }
    void put(const std::string& key, const Spread& spread) { bench::put(figures_, key, spread); }
    void merge(const std::string& prefix, const Figures& figures);
    [[nodiscard]] const Figures& figures() const { return figures_; }

    void say(const std::string& line) const;
    /// Begins a table: the first column is the label, then these, then target and verdict.
    void table(const std::string& title, const std::vector<std::string>& columns);
    /// `judged`: key of the figure that the target is about; a figure that is absent is a miss.
    void row(const std::string& label, const std::vector<std::string>& cells, const std::string& judged = {},
             std::optional<Target> target = {});
    /// Prints the open table.
    void end_table();

    /// Prints the count of misses, writes the JSON; main() returns what it gives.
    [[nodiscard]] int finish();

  private:
    Options options_;
    Figures figures_;
    std::string title_;
    std::vector<std::vector<std::string>> rows_;
    std::vector<std::string> misses_;
    int judged_ = 0;
};

/// "17.32", or "n/a" for what was not measured.
[[nodiscard]] std::string text(double value, int digits);
/// "17.21..17.40"
[[nodiscard]] std::string range(const Spread& spread, int digits);

/// Runs and shows each case that --only does not leave out; the exit status.
template <class Cases, class Run, class Show>
int run_cases(const Cases& cases, const Options& options, Board& board, Run run, Show show) {
    for (const auto& one : cases) {
        if (options.value("--only", one.shape) != one.shape) {
            continue;
        }
        if (const plumb::Status status = run(one, options, board); !status.ok()) {
            std::fprintf(stderr, "%s\n", status.error().message.c_str());
            return 2;
        }
        show(one, board);
    }
    return board.finish();
}

} // namespace bench
