// SPDX-License-Identifier: Apache-2.0
// How often plumb compare is wrong on real noise: records many runs of one small model, draws pairs of sides from them
// without a change and with one brick slowed down, and counts the verdicts (docs/internals/benchmarks.md).
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/compare_run.hpp"
#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"
#include "recording/reader.hpp"
#include "support/board.hpp"
#include "support/models.hpp"
#include "support/temporary_folder.hpp"
#include "tests/accuracy/compare_trials.hpp"

namespace {

using namespace bench;
using plumb::Result;
using plumb::Status;
using plumb::decoder::Decoder;

struct Workload {
    std::string model;
    std::size_t decodes = 1; // of one run
    std::size_t steps = 128; // of one decode
    std::size_t prompt = 16;
};

Status decode_once(const Workload& work, const std::string& out) {
    plumb::decoder::Options settings;
    settings.threads = 1;
    settings.context = work.prompt + work.steps + 1;
    Result<Decoder> decoder = Decoder::load(work.model, settings);
    if (!decoder.ok()) {
        return decoder.error();
    }
    plumb::Config config;
    config.on = true;
    config.out = out;
    plumb::Profiler profiler(config);
    for (const auto& [key, value] : decoder->description()) {
        profiler.describe(key, value);
    }
    for (std::size_t i = 0; i < work.decodes; ++i) {
        decoder->reset();
        if (Status status = decoder->prefill(decoder->random_prompt(work.prompt, 1), profiler); !status.ok()) {
            return status;
        }
        if (const Result<std::size_t> done = decoder->decode(work.steps, profiler); !done.ok()) {
            return done.error();
        }
    }
    return profiler.close();
}

/// Each run is a process of its own: where memory lies is part of the noise between runs.
bool run_process(const Workload& work, const std::string& out) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(decode_once(work, out).ok() ? 0 : 1);
    }
    int state = 0;
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

Result<plumb::analysis::RunFigures> figures_of(const std::string& path) {
    const Result<plumb::recording::RecordedRun> run = plumb::recording::open_run(path);
    if (!run.ok()) {
        return run.error();
    }
    return plumb::analysis::gather_run(*run);
}

Result<trials::Pool> record_pool(const Workload& work, std::size_t runs) {
    const TemporaryFolder folder;
    const std::string path = folder.file("run.plumb");
    std::vector<plumb::analysis::RunFigures> figures;
    for (std::size_t run = 0; run < runs; ++run) {
        if (!run_process(work, path)) {
            return plumb::Error{plumb::ErrorCode::unavailable, "a run failed"};
        }
        Result<plumb::analysis::RunFigures> one = figures_of(path);
        if (!one.ok()) {
            return one.error();
        }
        figures.push_back(*std::move(one));
        std::remove(path.c_str());
    }
    return trials::pool_of(figures);
}

std::string load_average() {
    std::string line;
    std::ifstream in("/proc/loadavg");
    std::getline(in, line);
    return line.substr(0, line.find(' '));
}

double share(std::size_t part, std::size_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// The least of some changes that is found in 95 % of the pairs; 0: none of them.
double least_found(const trials::Pool& pool, const std::string& brick, std::size_t runs_a_side) {
    for (const double change : {0.01, 0.02, 0.03, 0.05, 0.07, 0.10, 0.15, 0.20, 0.30}) {
        trials::Plan plan;
        plan.brick = brick;
        plan.change = change;
        plan.runs_a_side = runs_a_side;
        const trials::Outcome outcome = trials::run_trials(pool, plan);
        if (share(outcome.named, outcome.pairs) >= 0.95) {
            return change;
        }
    }
    return 0;
}

void show_least(const trials::Pool& pool, Board& board) {
    board.table("least slowdown of one brick that is named in 95 % of 200 pairs, percent (0: above 30)",
                {"5 runs a side", "10", "20"});
    for (const std::string& brick : trials::bricks_of(pool)) {
        std::vector<std::string> cells;
        for (const std::size_t runs : {5, 10, 20}) {
            const double least = 100 * least_found(pool, brick, runs);
            board.put("least." + brick + "." + std::to_string(runs), least);
            cells.push_back(fmt::format("{:.0f}", least));
        }
        board.row(brick, cells);
    }
    board.end_table();
}

void show(const trials::Pool& pool, Board& board) {
    board.table("verdicts at 5 runs a side", {"share of pairs"});
    const trials::Outcome clean = trials::run_trials(pool, {});
    board.put("clean.false", share(clean.false_verdicts, clean.pairs));
    board.row(fmt::format("a false FAST or SLOW, no change, {} pairs", clean.pairs),
              {fmt::format("{:.3f}", share(clean.false_verdicts, clean.pairs))}, "clean.false",
              Target{Bound::at_most, 0.01});
    for (const std::string& brick : trials::bricks_of(pool)) {
        trials::Plan plan;
        plan.brick = brick;
        const trials::Outcome planted = trials::run_trials(pool, plan);
        const std::string key = "planted." + brick;
        board.put(key + ".named", share(planted.named, planted.pairs));
        board.put(key + ".false", share(planted.false_verdicts, planted.pairs));
        board.row(brick + " 3 % slower: named", {fmt::format("{:.3f}", share(planted.named, planted.pairs))},
                  key + ".named", Target{Bound::at_least, 0.95});
        board.row(brick + " 3 % slower: another named",
                  {fmt::format("{:.3f}", share(planted.false_verdicts, planted.pairs))}, key + ".false",
                  Target{Bound::at_most, 0.01});
    }
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "How often plumb compare is wrong on the noise of real runs.",
                                          {{"--models", "FOLDER  where model files are kept (default build/models)"},
                                           {"--shape", "NAME    of the model (default qwen2.5-0.5b)"},
                                           {"--runs", "N       runs to record (default 60)"},
                                           {"--decodes", "N       of one run, 128 steps each (default 1)"},
                                           {"--pool", "FILE    judge this pool instead of recording one"},
                                           {"--keep", "FILE    write the recorded pool there"}});
    Board board(options);
    const std::string shape = options.value("--shape", "qwen2.5-0.5b");
    Workload work;
    work.decodes = static_cast<std::size_t>(std::max(1, std::atoi(options.value("--decodes", "1").c_str())));
    const auto runs = static_cast<std::size_t>(std::max(10, std::atoi(options.value("--runs", "60").c_str())));
    const std::string before = load_average();
    Result<trials::Pool> pool = trials::Pool{};
    if (const std::string kept = options.value("--pool", ""); !kept.empty()) {
        std::ifstream in(kept);
        pool = trials::read_pool(in);
    } else {
        const Result<std::string> model = model_file(options.value("--models", default_models), shape, "bf16");
        if (!model.ok()) {
            fmt::print(stderr, "{}\n", model.error().message);
            return 2;
        }
        work.model = *model;
        pool = record_pool(work, runs);
    }
    if (!pool.ok()) {
        fmt::print(stderr, "{}\n", pool.error().message);
        return 2;
    }
    const std::string what =
        fmt::format("{} runs, {} x {} steps each, {} bf16, one thread; load average {} before, {} after",
                    pool->runs.size(), work.decodes, work.steps, shape, before, load_average());
    board.say(what);
    if (const std::string keep = options.value("--keep", ""); !keep.empty()) {
        std::ofstream out(keep);
        trials::write_pool(*pool, "./dev bench compare --keep FILE\n" + what, out);
    }
    show(*pool, board);
    show_least(*pool, board);
    return board.finish();
}
