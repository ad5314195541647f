// SPDX-License-Identifier: Apache-2.0
// The peaks that rooflines stand on, against a program that shares no code with the library, by turns
// (docs/benchmarks.md).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "plumb/selftest.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;

struct Pair {
    double gigabytes = 0, gigaflops = 0;
};

/// What the independent program says; false when it fails.
bool ask_other(Pair& best) {
    std::FILE* pipe = popen(PLUMB_BENCH_STREAM_LIKE, "r");
    Pair one;
    const bool read = pipe != nullptr && std::fscanf(pipe, "%lf %lf", &one.gigabytes, &one.gigaflops) == 2;
    const bool good = pipe != nullptr && pclose(pipe) == 0 && read;
    best = {std::max(best.gigabytes, one.gigabytes), std::max(best.gigaflops, one.gigaflops)};
    return good;
}

bool ask_library(Pair& best) {
    for (const plumb::Peaks& peaks : plumb::measure_peaks().peaks) {
        if (peaks.place != "host" || !peaks.read_gigabytes_per_second.value || !peaks.f32_teraflops.value)
            continue;
        best = {std::max(best.gigabytes, *peaks.read_gigabytes_per_second.value),
                std::max(best.gigaflops, *peaks.f32_teraflops.value * 1000)};
        return true;
    }
    return false;
}

void compare(Board& board, const char* label, const std::string& key, double ours, double theirs) {
    board.put(key + ".plumb", ours);
    board.put(key + ".independent", theirs);
    board.put(key + ".apart_percent", 100 * std::abs(ours / theirs - 1));
    board.row(label, {text(ours, 2), text(theirs, 2), text(100 * std::abs(ours / theirs - 1), 1)},
              key + ".apart_percent", Target{Bound::at_most, 10});
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "Measured peaks against an independent program.",
                                          {{"--rounds", "N       of each, by turns (default 3)"}});
    Board board(options);
    const int rounds = std::max(1, std::atoi(options.value("--rounds", "3").c_str()));
    Pair ours, theirs;
    for (int round = 0; round < rounds; ++round) {
        if (!ask_library(ours) || !ask_other(theirs)) {
            std::fputs("the peaks could not be measured; is there 1 GiB of free memory?\n", stderr);
            return 2;
        }
    }
    board.table(fmt::format("peaks of all cores, best of {} rounds", rounds), {"plumb", "independent", "apart, %"});
    compare(board, "read bandwidth, GB/s", "read", ours.gigabytes, theirs.gigabytes);
    compare(board, "f32 multiply-adds, GFLOP/s", "f32", ours.gigaflops, theirs.gigaflops);
    board.end_table();
    return board.finish();
}
