// SPDX-License-Identifier: Apache-2.0
// What push and pop cost in Python, against two calls of an extension that does nothing (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;

struct Kind {
    const char* key;
    const char* label;
    std::optional<double> most; // of the ratio to two empty calls, with the extension
};
constexpr Kind kinds[] = {{"empty", "two calls of an empty extension", {}},
                          {"push", "plumb.push(b); plumb.pop()", 3},
                          {"push_work", "the same with bytes and flops", {}},
                          {"push_off", "the same, off", 1.5},
                          {"with", "with b:", {}},
                          {"with_off", "with b:, off", {}},
                          {"with_made", "with plumb.brick(\"attention\", bytes=…):", {}},
                          {"with_python", "with an empty class of Python", {}}};

using Rounds = std::map<std::string, std::vector<double>>; // nanoseconds by kind

/// Empty where the Python failed; it has said why.
Rounds rounds_of(const char* core, int rounds) {
    const TemporaryFolder folder;
    const std::string command =
        fmt::format("'{}' '{}' '{}' '{}' {} '{}' {}", PLUMB_BENCH_PYTHON, PLUMB_BENCH_BURSTS, PLUMB_BENCH_PACKAGE,
                    PLUMB_BENCH_EMPTY, core, folder.file("run.plumb"), rounds);
    Rounds found;
    std::FILE* pipe = popen(command.c_str(), "r");
    char kind[32];
    double ns = 0;
    while (pipe != nullptr && std::fscanf(pipe, "%31s %lf", kind, &ns) == 2) {
        found[kind].push_back(ns);
    }
    return pipe != nullptr && pclose(pipe) == 0 ? found : Rounds{};
}

bool measure(Board& board, const char* core, int rounds) {
    Rounds found = rounds_of(core, rounds);
    const std::vector<double> loop = found["loop"];
    board.table(fmt::format("One thread, over {}; the loop subtracted", core),
                {"ns", "ratio", "quartiles", "ratio to"});
    for (const Kind& kind : kinds) {
        if (found[kind.key].size() != loop.size() || loop.empty()) {
            return false;
        }
        std::vector<double> took, ratios;
        for (std::size_t i = 0; i < loop.size(); ++i) {
            took.push_back(found[kind.key][i] - loop[i]);
            ratios.push_back(took[i] / (found["empty"][i] - loop[i]));
        }
        const std::string key = fmt::format("{}.{}", core, kind.key);
        const Spread ratio = spread_of(ratios);
        board.put(key + ".ns", spread_of(took));
        board.put(key + ".ratio", ratio);
        const bool judged = kind.most && core == std::string("extension");
        board.row(kind.label, {text(median_of(took), 1), text(ratio.median, 2), range(ratio, 2), "two empty calls"},
                  key + ".ratio", judged ? std::optional<Target>({Bound::at_most, *kind.most}) : std::nullopt);
    }
    board.end_table();
    return true;
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What push and pop cost in Python, against two empty calls.",
                                          {{"--rounds", "N   interleaved rounds, at least 9 (default 15)"}});
    const int rounds = std::max(9, std::atoi(options.value("--rounds", "15").c_str()));
    Board board(options);
    board.say(fmt::format("{}: bursts of 4000 (400 over ctypes), 9 a round, {} rounds, kinds interleaved",
                          PLUMB_BENCH_PYTHON, rounds));
    return measure(board, "extension", rounds) && measure(board, "ctypes", rounds) ? board.finish() : 2;
}
