// SPDX-License-Identifier: Apache-2.0
// What the attach library costs an engine that nobody changed: steps with it and without, by turns (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/start.hpp"
#include "attach/turns.hpp"
#include "plumb/plumb.hpp"
#include "plumb/results.hpp"
#include "stats/bootstrap.hpp"
#include "support/board.hpp"
#include "support/models.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::Error;
using plumb::ErrorCode;
using plumb::Result;
using plumb::Status;

struct Case {
    const char* shape; // of the model; "lookalike" has none: its nodes take no time; "start" runs none
    const char* label;
    int pairs;
};
constexpr Case cases[] = {
    {"lookalike", "the look-alike, 24 layers of nodes that take no time", 2000},
    {"qwen2.5-0.5b", "llama.cpp, qwen2.5-0.5b q8_0, 1 thread", 600},
    {"start", "plumb run -- /bin/true, against /bin/true alone", 200},
};

/// Median and interval of the differences, in pairs.
Result<Spread> more(const std::vector<double>& with, const std::vector<double>& without) {
    std::vector<double> differences(with.size());
    std::transform(with.begin(), with.end(), without.begin(), differences.begin(), std::minus<>());
    const auto interval = plumb::stats::bootstrap_median(differences);
    if (!interval.ok()) {
        return interval.error();
    }
    return Spread{median_of(differences), interval->low, interval->high};
}

/// The child: measures, and leaves its figures in a file.
int turns(char** words) {
    const auto pairs = bench::attach::measure({words[0], words[1], std::atoi(words[2])});
    if (!pairs.ok()) {
        std::fprintf(stderr, "%s\n", pairs.error().message.c_str());
        return 2;
    }
    const Result<Spread> added = more(pairs->on, pairs->off);
    if (!added.ok()) {
        std::fprintf(stderr, "%s\n", added.error().message.c_str());
        return 2;
    }
    Figures figures{{"off_ns", median_of(pairs->off)}};
    put(figures, "more_ns", *added);
    return write_json(words[3], figures) ? 0 : 2;
}

/// A folder with libllama and libggml as npm has them; empty: none.
std::string engine_folder(const Options& options) {
    const char* cache = std::getenv("PLUMB_ENGINE_CACHE");
    const std::string standard = std::string(cache != nullptr ? cache : "build/engines") +
                                 "/node-llama-cpp-3.22.1/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64";
    const std::string folder = options.value("--engine", standard);
    return std::filesystem::is_directory(folder) ? folder : "";
}

Status run_child(const std::string& libraries, const std::string& model, int pairs, const std::string& figures,
                 const std::string& recording) {
    const std::string count = std::to_string(pairs);
    const pid_t child = fork();
    if (child == 0) {
        setenv("PLUMB", ("on,out=" + recording).c_str(), 1);
        setenv("GGML_BACKEND_PATH", PLUMB_BENCH_DOORS, 1);
        execl("/proc/self/exe", "bench_attach", "turns", libraries.c_str(), model.c_str(), count.c_str(),
              figures.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        return Error{ErrorCode::failed, "the process that measures did not end well"};
    }
    return {};
}

int pairs_of(const Case& c, const Options& options) {
    return std::max(9, std::atoi(options.value("--pairs", std::to_string(c.pairs)).c_str()));
}

Status run_starts(const Case& c, const Options& options, Board& board) {
    const Result<bench::attach::StartPairs> pairs = bench::attach::measure_starts(pairs_of(c, options));
    if (!pairs.ok()) {
        return pairs.error();
    }
    const auto best = [](const std::vector<double>& of) {
        return *std::min_element(of.begin(), of.end());
    };
    const Result<Spread> wall = more(pairs->under.wall_ms, pairs->alone.wall_ms);
    const Result<Spread> cpu = more(pairs->under.cpu_ms, pairs->alone.cpu_ms);
    if (!wall.ok() || !cpu.ok()) {
        return wall.ok() ? cpu.error() : wall.error();
    }
    board.put("start.alone_ms", median_of(pairs->alone.wall_ms));
    board.put("start.more_ms", *wall);
    board.put("start.more_best_ms", best(pairs->under.wall_ms) - best(pairs->alone.wall_ms));
    board.put("start.more_cpu_ms", *cpu);
    return {};
}

Status run_case(const Case& c, const Options& options, Board& board) {
    if (std::strcmp(c.shape, "start") == 0) {
        return run_starts(c, options, board);
    }
    const bool lookalike = std::strcmp(c.shape, "lookalike") == 0;
    const std::string libraries = lookalike ? PLUMB_BENCH_LOOKALIKE : engine_folder(options);
    if (libraries.empty()) {
        board.say(
            fmt::format("SKIPPED  {}: ./dev test --engines fetches the engine, --engine FOLDER names one", c.label));
        return {};
    }
    const Result<std::string> model = lookalike
                                          ? Result<std::string>("layers=24,scale=0")
                                          : model_file(options.value("--models", default_models), c.shape, "q8_0");
    if (!model.ok()) {
        return model.error();
    }
    const TemporaryFolder folder;
    const std::string recording = folder.file("run.plumb");
    const std::string file = folder.file("figures.json");
    if (Status ran = run_child(libraries, *model, pairs_of(c, options), file, recording); !ran.ok()) {
        return ran;
    }
    Figures figures;
    const Result<plumb::Report> report = plumb::report_recording(recording);
    if (!report.ok() || !read_json(file, figures)) {
        return report.ok() ? Status(Error{ErrorCode::failed, "there are no figures"}) : Status(report.error());
    }
    double nodes = 0;
    for (const plumb::Row& row : report->bricks) {
        nodes += row.key.phase == plumb::Phase::decode ? row.calls_per_step : 0;
    }
    const double off = figures.at("off_ns");
    const Spread more = get(figures, "more_ns");
    const auto scaled = [&](double by) {
        return Spread{more.median * by, more.low * by, more.high * by};
    };
    const std::string key = std::string(c.shape) + ".";
    board.put(key + "off_us", off * 1e-3);
    board.put(key + "nodes", nodes);
    board.put(key + "ns_per_node", scaled(1 / nodes));
    board.put(key + "percent", scaled(100 / off));
    return {};
}

void show_starts(const Case& c, Board& board) {
    const Figures& figures = board.figures();
    const Target target{Bound::at_most, 3};
    board.table(c.label, {"value", "95 % interval"});
    board.row("alone, ms", {text(figures.at("start.alone_ms"), 2)});
    const auto line = [&](const char* label, const char* key) {
        const Spread value = get(figures, key);
        board.row(label, {text(value.median, 2), range(value, 2)}, key, target);
    };
    line("more with it, ms", "start.more_ms");
    line("more CPU time, ms", "start.more_cpu_ms");
    board.row("between the shortest of each, ms", {text(figures.at("start.more_best_ms"), 2)}, "start.more_best_ms",
              target);
    board.end_table();
}

void show(const Case& c, Board& board) {
    if (std::strcmp(c.shape, "start") == 0) {
        show_starts(c, board);
        return;
    }
    const std::string key = std::string(c.shape) + ".";
    if (!has(board.figures(), key + "off_us")) {
        return;
    }
    const bool lookalike = std::strcmp(c.shape, "lookalike") == 0;
    board.table(c.label, {"value", "95 % interval"});
    board.row("step without it, CPU time, us", {text(board.figures().at(key + "off_us"), 1)});
    board.row("nodes in a step", {text(board.figures().at(key + "nodes"), 0)});
    const auto line = [&](const char* label, const char* name, std::optional<Target> target) {
        const Spread value = get(board.figures(), key + name);
        board.row(label, {text(value.median, 2), range(value, 2)}, key + name + ".high", target);
    };
    line("more with it, ns a node", "ns_per_node",
         lookalike ? std::optional<Target>({Bound::at_most, 100}) : std::nullopt);
    line("more with it, % of the step", "percent",
         lookalike ? std::nullopt : std::optional<Target>({Bound::at_most, 1}));
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 6 && std::strcmp(argv[1], "turns") == 0) {
        return turns(argv + 2);
    }
    const Options options =
        parse_options(argc, argv, "What the attach library costs an engine that nobody changed.",
                      {{"--engine", "FOLDER  with libllama and libggml (default: that of ./dev test --engines)"},
                       {"--models", "FOLDER  where model files are kept (default build/models)"},
                       {"--only", "CASE    lookalike, qwen2.5-0.5b or start"},
                       {"--pairs", "N      pairs of steps (default 2000 or 600), or of processes (200)"}});
    Board board(options);
    board.say(
        "single decode steps with the engine's slots led to the attach library and back to the engine, in pairs, the first of a "
        "pair alternating; CPU time of the one thread; median of the differences, 95 % interval by bootstrap");
    return run_cases(cases, options, board, run_case, show);
}
