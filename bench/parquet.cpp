// SPDX-License-Identifier: Apache-2.0
// What a scope costs on its way into Parquet, beside the same scopes on their way into CSV, and how many bytes it takes there
// (docs/internals/benchmarks.md). One recording is decode-like steps recorded here and now and repeated; another may be named.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <ostream>

#include "cli/kept_memory.hpp"
#include "plumb/plumb.hpp"
#include "recording/child.hpp"
#include "recording/counting.hpp"
#include "recording/outcome.hpp"
#include "recording/run_stream.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;

using Export = std::function<plumb::Status(std::ostream&)>;

double bytes_of(const Export& write) {
    Counting counting;
    std::ostream out(&counting);
    need(write(out));
    return counting.bytes;
}

/// Processor time, all threads: what one core takes if it has nothing else to do. A short recording is written so often that the
/// process itself does not count.
Child timed(const char* name, const std::vector<Export>& files, double times) {
    return in_child(name, [&] {
        double bytes = 0;
        for (double turn = 0; turn < times; ++turn) {
            for (const Export& write : files) {
                bytes += bytes_of(write);
            }
        }
        return bytes > 0;
    });
}

double lines_of(const Export& write) {
    class Lines final : public std::streambuf {
      public:
        double count = 0;

      private:
        std::streamsize xsputn(const char* text, std::streamsize size) override {
            count += static_cast<double>(std::count(text, text + size, '\n'));
            return size;
        }
    } lines;
    std::ostream out(&lines);
    need(write(out));
    return lines.count;
}

void measure(Board& board, const std::string& key, const std::string& title, const std::string& path, int rounds) {
    const Export csv = [&](std::ostream& out) {
        return plumb::export_recording(path, "csv", out);
    };
    const Export scopes = [&](std::ostream& out) {
        return plumb::export_table(path, "parquet", "scopes", out);
    };
    const Export steps = [&](std::ostream& out) {
        return plumb::export_table(path, "parquet", "steps", out);
    };
    const double rows = lines_of(csv) - 1; // a name with a newline would count twice: there is none here
    const double times = std::max(1.0, std::ceil(1e6 / rows));
    std::vector<double> rate, csv_rate, ratio, wall;
    double peak = 0;
    for (int round = 0; round < rounds; ++round) {
        const Child text = timed("export csv", {csv}, times);
        const Child tables = timed("export parquet", {scopes, steps}, times);
        rate.push_back(times * rows / tables.cpu_seconds / 1e6);
        wall.push_back(times * rows / tables.seconds / 1e6);
        csv_rate.push_back(times * rows / text.cpu_seconds / 1e6);
        ratio.push_back(tables.cpu_seconds / text.cpu_seconds);
        peak = std::max(peak, tables.peak_mib);
    }
    board.put(key + ".rows", rows);
    board.put(key + ".bytes_per_scope", (bytes_of(scopes) + bytes_of(steps)) / rows);
    board.put(key + ".csv_bytes_per_scope", bytes_of(csv) / rows);
    board.put(key + ".million_scopes_per_core_second", spread_of(rate));
    board.put(key + ".million_scopes_per_s", spread_of(wall));
    board.put(key + ".csv_million_scopes_per_core_second", spread_of(csv_rate));
    board.put(key + ".over_csv", spread_of(ratio));
    board.put(key + ".peak_mib", peak);
    board.table(fmt::format("{}, {:.3g} rows", title, rows), {"value", "quartiles"});
    const auto line = [&](const char* label, const char* figure, int digits, std::optional<Target> target = {}) {
        const std::string name = key + "." + figure;
        const Spread value = get(board.figures(), name);
        board.row(label, {text(value.median, digits), has(board.figures(), name + ".low") ? range(value, digits) : ""},
                  name, target);
    };
    line("bytes a scope, both tables", "bytes_per_scope", 2, Target{Bound::at_most, 5});
    line("  as CSV", "csv_bytes_per_scope", 1);
    line("million scopes/s of a core", "million_scopes_per_core_second", 1, Target{Bound::at_least, 5});
    line("  CSV", "csv_million_scopes_per_core_second", 1);
    line("processor time ÷ CSV", "over_csv", 2);
    line("million scopes/s, as it runs", "million_scopes_per_s", 1);
    line("memory at most, MiB", "peak_mib", 0, Target{Bound::at_most, 256});
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options =
        parse_options(argc, argv, "What a scope costs on its way into Parquet, beside CSV.",
                      {{"--scopes", "N      of the generated recording (default 4000000)"},
                       {"--rounds", "N      (default 5)"},
                       {"--recording", "FILE   also this one (default: build/demo/run.plumb, if ./dev demo left it)"}});
    const double count = std::max(100000.0, std::atof(options.value("--scopes", "4000000").c_str()));
    const int rounds = std::max(3, std::atoi(options.value("--rounds", "5").c_str()));
    const std::string demo = options.value("--recording", "build/demo/run.plumb");
    plumb::cli::keep_freed_memory(); // as plumb export does
    Board board(options);
    const TemporaryFolder folder;
    record_run(folder.file("run.plumb"));
    const Run run = read_run(folder.file("run.plumb"));
    const auto turns = static_cast<std::uint64_t>(std::ceil(count / count_scopes(run.records)));
    write_long_recording(run, folder.file("many.plumb"), turns);
    measure(board, "generated", "Generated", folder.file("many.plumb"), rounds);
    if (std::filesystem::exists(demo)) {
        measure(board, "demo", demo, demo, rounds);
    }
    return board.finish();
}
