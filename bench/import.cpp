// SPDX-License-Identifier: Apache-2.0
// What plumb import takes for a trace, beside Python's json and sqlite3 on the same files (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <vector>

#include "import/planted_trace_testing.hpp"
#include "recording/child.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
namespace fs = std::filesystem;
namespace planted = plumb::imported;

constexpr double mega = 1e6;
constexpr int kernels_of_layer = 9;

/// Steps of 36 layers, as many as hold so many operations.
planted::PlannedRun run_of(std::uint64_t operations) {
    planted::PlannedRun run;
    run.layers = 36;
    run.steps = static_cast<int>(std::max<std::uint64_t>(1, operations / (kernels_of_layer * 36 + 3)));
    return run;
}

void write_prefill(const std::string& path, double megabytes) {
    constexpr double bytes_of_kernel = 27'000; // with its launch and all that Python does beside it
    planted::PlannedRun run = run_of(static_cast<std::uint64_t>(megabytes * mega / bytes_of_kernel));
    run.graph = false;
    run.annotated = run.prefill = true;
    std::ofstream to(path, std::ios::binary);
    planted::write_kineto(to, planted::plan(run), planted::kineto_of_prefill());
    if (!to.flush()) {
        stop(path + " could not be written; set TMPDIR to a folder with more room");
    }
}

std::uint64_t write_replays(const std::string& path, std::uint64_t operations) {
    const planted::PlannedTrace planned = planted::plan(run_of(operations));
    planted::save_nsys(planned, path);
    return planned.ops.size();
}

/// A program with its standard output closed.
Child run(const std::string& name, const std::vector<std::string>& words) {
    return in_child(name.c_str(), [&words] {
        std::vector<char*> arguments;
        for (const std::string& word : words) {
            arguments.push_back(const_cast<char*>(word.c_str()));
        }
        arguments.push_back(nullptr);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
        execvp(arguments[0], arguments.data());
        return false;
    });
}

Child import(const std::string& trace, const std::string& out) {
    std::error_code ignored;
    fs::remove(out, ignored);
    return run("plumb import", {PLUMB_BENCH_COMMAND, "import", trace, "-o", out});
}

constexpr const char* read_json_by_python = "import json, sys; json.load(open(sys.argv[1], 'rb'))";
constexpr const char* read_sqlite_by_python =
    "import sqlite3, sys; base = sqlite3.connect(sys.argv[1]); "
    "base.execute('SELECT start, end, deviceId, streamId, correlationId, globalPid, demangledName, graphNodeId, gridX, gridY, "
    "gridZ FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchall()";

/// Rates of one kind of file: by plumb, by its CPU time, by the peer.
struct Rates {
    std::vector<double> rate, of_core, peer;
    double peak_mib = 0;

    void add(double amount, const Child& child) {
        rate.push_back(amount / child.seconds);
        of_core.push_back(amount / child.cpu_seconds);
        peak_mib = std::max(peak_mib, child.peak_mib);
    }
    void put(Board& board, const std::string& key) const {
        board.put(key + ".rate", spread_of(rate));
        board.put(key + ".rate_of_core", spread_of(of_core));
        board.put(key + ".peak_mib", peak_mib);
        if (!peer.empty()) {
            board.put(key + ".python_rate", spread_of(peer));
        }
    }
};

void row(Board& board, const char* label, const std::string& key, int digits, std::optional<Target> target = {}) {
    const bool there = has(board.figures(), key);
    const Spread value = there ? get(board.figures(), key) : Spread{};
    const bool spread = has(board.figures(), key + ".low");
    board.row(label, {there ? text(value.median, digits) : "n/a", spread ? range(value, digits) : ""}, key, target);
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(
        argc, argv, "What plumb import takes for a trace, beside Python's json and sqlite3.",
        {{"--megabytes", "N   of plain JSON (default 200; Python reads as much)"},
         {"--large", "N       megabytes of a second file, which Python does not read (default 0; all of it: 2000)"},
         {"--operations", "N  in the database (default 1000000)"},
         {"--rounds", "N      (default 5)"}});
    const double megabytes = std::max(1.0, std::atof(options.value("--megabytes", "200").c_str()));
    const double large = std::atof(options.value("--large", "0").c_str());
    const auto operations = std::strtoull(options.value("--operations", "1000000").c_str(), nullptr, 10);
    const int rounds = std::max(3, std::atoi(options.value("--rounds", "5").c_str()));
    Board board(options);
    const TemporaryFolder folder;
    const std::string json = folder.file("prefill.json"), packed = json + ".gz",
                      database = folder.file("replays.sqlite");
    const std::string out = folder.file("run.plumb"), much = folder.file("large.json");
    // In children, whose memory goes with them: the commands' begins with this program's.
    (void)in_child("writing the traces", [&] {
        write_prefill(json, megabytes);
        if (large > 0) {
            write_prefill(much, large);
        }
        return true;
    });
    (void)run("gzip", {"gzip", "-k", "-1", json});
    (void)in_child("writing the database", [&] { return write_replays(database, operations) > 0; });
    const double size = static_cast<double>(fs::file_size(json)) / mega;
    const double million = static_cast<double>(run_of(operations).steps) * (kernels_of_layer * 36 + 3) / mega;
    board.say(fmt::format(
        "{:.0f} MB of JSON, {:.1f} MB as gzip, {:.2f} million kernels in {:.0f} MB of SQLite; {} rounds, by turns",
        size, static_cast<double>(fs::file_size(packed)) / mega, million,
        static_cast<double>(fs::file_size(database)) / mega, rounds));
    Rates plain, gzip, sqlite, whole;
    for (int round = 0; round < rounds; ++round) {
        plain.add(size, import(json, out));
        gzip.add(size, import(packed, out));
        sqlite.add(million, import(database, out));
        plain.peer.push_back(size / run("python3 json", {PLUMB_BENCH_PYTHON, "-c", read_json_by_python, json}).seconds);
        sqlite.peer.push_back(
            million / run("python3 sqlite3", {PLUMB_BENCH_PYTHON, "-c", read_sqlite_by_python, database}).seconds);
        if (large > 0) {
            whole.add(static_cast<double>(fs::file_size(much)) / mega, import(much, out));
        }
    }
    plain.put(board, "json");
    gzip.put(board, "gzip");
    sqlite.put(board, "sqlite");
    if (large > 0) {
        whole.put(board, "large");
    }
    board.table("plumb import, from file to recording", {"value", "quartiles"});
    row(board, "plain JSON, MB/s", "json.rate", 0, Target{Bound::at_least, 250});
    row(board, "  for each second of CPU time", "json.rate_of_core", 0);
    row(board, "  memory at most, MiB", "json.peak_mib", 0, Target{Bound::at_most, 512});
    row(board, "  the peer: Python's json.load, MB/s", "json.python_rate", 0);
    if (large > 0) {
        row(board, "a large one, MB/s", "large.rate", 0, Target{Bound::at_least, 250});
        row(board, "  memory at most, MiB", "large.peak_mib", 0, Target{Bound::at_most, 512});
    }
    row(board, "as gzip, MB/s of JSON", "gzip.rate", 0);
    row(board, "  memory at most, MiB", "gzip.peak_mib", 0, Target{Bound::at_most, 512});
    row(board, "SQLite (nsys), million kernels/s", "sqlite.rate", 2);
    row(board, "  for each second of CPU time", "sqlite.rate_of_core", 2, Target{Bound::at_least, 2});
    row(board, "  memory at most, MiB", "sqlite.peak_mib", 0, Target{Bound::at_most, 512});
    row(board, "  the peer: Python's sqlite3, its rows alone", "sqlite.python_rate", 2);
    board.end_table();
    return board.finish();
}
