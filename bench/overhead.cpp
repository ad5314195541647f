// SPDX-License-Identifier: Apache-2.0
// What profiling costs a real decode: the reference decoder with the profiler on against off (docs/benchmarks.md).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>

#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"
#include "stats/bootstrap.hpp"
#include "support/board.hpp"
#include "support/models.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::Profiler;
using plumb::Result;
using plumb::Status;
using plumb::decoder::Decoder;

struct Case {
    const char* key;
    const char* shape;
    int threads;
    std::size_t prompt;
    std::size_t steps; // of one run: a fresh prompt, then so many decode steps, timed
    double block_ms;   // a block is as many runs as fill this
    int pairs;         // of a block on and a block off
    double limit;      // upper end of the interval of on / off
};
constexpr Case cases[] = {
    {"tiny_llama.t1", "tiny-llama", 1, 8, 128, 200, 80, 1.02},
    {"tiny_llama.t2", "tiny-llama", 2, 8, 128, 200, 80, 1.02},
    {"qwen2_5_0_5b.t2", "qwen2.5-0.5b", 2, 16, 4, 200, 120, 1.005},
};

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Block {
    double ms = 0;   // all of it, the flush at its end included
    double step = 0; // median, ms
};

/// One decoder and one profiler that is switched on and off between blocks.
class Bed {
  public:
    Bed(const Case& c, const std::string& recording) : case_(c), profiler_(config(recording)) {}

    Status load(const std::string& model) {
        plumb::decoder::Options options;
        options.threads = case_.threads;
        options.context = case_.prompt + case_.steps + 1;
        Result<Decoder> decoder = Decoder::load(model, options);
        if (!decoder.ok()) {
            return decoder.error();
        }
        decoder_ = std::make_unique<Decoder>(*std::move(decoder));
        prompt_ = decoder_->random_prompt(case_.prompt, 1);
        return profiler_.status();
    }

    /// The decode steps of `runs` runs. On: until their records are in the file.
    Result<Block> block(bool on, int runs) {
        double sum = 0;
        std::vector<double> steps;
        double last = 0;
        const auto after_step = [&](std::size_t, std::size_t) {
            const double now = now_ms();
            steps.push_back(now - last);
            last = now;
        };
        for (int run = 0; run < runs; ++run) {
            profiler_.disable();
            decoder_->reset();
            if (Status fed = decoder_->prefill(prompt_, profiler_); !fed.ok()) {
                return fed.error();
            }
            if (on) {
                if (Status enabled = profiler_.enable(); !enabled.ok()) {
                    return enabled.error();
                }
            }
            const double begin = last = now_ms();
            if (Result<std::size_t> done = decoder_->decode(case_.steps, profiler_, after_step); !done.ok()) {
                return done.error();
            }
            sum += now_ms() - begin;
        }
        if (on) {
            // What the drain has not written yet would otherwise be paid by the block without profiling.
            const double begin = now_ms();
            if (Status flushed = profiler_.flush(std::chrono::seconds(60)); !flushed.ok()) {
                return flushed.error();
            }
            sum += now_ms() - begin;
        }
        return Block{sum, median_of(std::move(steps))};
    }

    Result<plumb::Report> report() {
        if (Status enabled = profiler_.enable(); !enabled.ok()) {
            return enabled.error();
        }
        return profiler_.snapshot();
    }

  private:
    static plumb::Config config(const std::string& recording) {
        plumb::Config config;
        config.on = true;
        config.out = recording;
        return config;
    }

    const Case& case_;
    Profiler profiler_;
    std::unique_ptr<Decoder> decoder_;
    std::vector<std::int32_t> prompt_;
};

struct Pairs {
    std::vector<double> ratios;      // of whole blocks, on / off
    std::vector<double> step_ratios; // of their median steps
    std::vector<double> off_step;    // ms
    double on_ms = 0;
};

Result<Pairs> measure(const Case& c, Bed& bed, int pairs) {
    Result<Block> one = bed.block(false, 1);
    one = one.ok() ? bed.block(true, 1) : one; // warm: caches, plans, the thread's ring
    if (!one.ok()) {
        return one.error();
    }
    const int runs = std::max(1, static_cast<int>(std::lround(c.block_ms / one->ms)));
    Pairs result;
    for (int pair = 0; pair < pairs; ++pair) {
        Block halves[2]; // off, on
        for (int half = 0; half < 2; ++half) {
            const bool on = (half + pair) % 2 == 1; // whichever comes first meets the same drift
            Result<Block> taken = bed.block(on, runs);
            if (!taken.ok()) {
                return taken.error();
            }
            halves[on ? 1 : 0] = *taken;
        }
        result.ratios.push_back(halves[1].ms / halves[0].ms);
        result.step_ratios.push_back(halves[1].step / halves[0].step);
        result.off_step.push_back(halves[0].step);
        result.on_ms += halves[1].ms;
    }
    return result;
}

double scopes_per_step(const plumb::Report& report) {
    double sum = 0;
    for (const plumb::Row& row : report.bricks) {
        sum += row.key.phase == plumb::Phase::decode ? row.calls_per_step : 0;
    }
    return sum;
}

std::uint64_t lost(const plumb::Report& report) {
    std::uint64_t sum = 0;
    for (const plumb::LossRow& row : report.losses) {
        sum += row.count;
    }
    return sum;
}

/// Median of the pairs, and its 95 % interval.
void put_interval(Board& board, const std::string& key, const std::vector<double>& ratios) {
    board.put(key, median_of(ratios));
    if (const auto interval = plumb::stats::bootstrap_median(ratios); interval.ok()) {
        board.put(key + ".low", interval->low);
        board.put(key + ".high", interval->high);
    }
}

Status run_case(const Case& c, const Options& options, Board& board) {
    const TemporaryFolder folder;
    const std::string recording = folder.file("run.plumb");
    const Result<std::string> model = model_file(options.value("--models", default_models), c.shape, "bf16");
    if (!model.ok()) {
        return model.error();
    }
    Bed bed(c, recording);
    if (Status loaded = bed.load(*model); !loaded.ok()) {
        return loaded;
    }
    const int pairs = std::max(9, std::atoi(options.value("--pairs", std::to_string(c.pairs)).c_str()));
    Result<Pairs> measured = measure(c, bed, pairs);
    if (!measured.ok()) {
        return measured.error();
    }
    const Result<plumb::Report> report = bed.report();
    if (!report.ok()) {
        return report.error();
    }
    const std::string key = std::string(c.key) + ".";
    const double step_ms = median_of(measured->off_step);
    board.put(key + "step_ms", step_ms);
    board.put(key + "scopes_per_ms", scopes_per_step(*report) / step_ms);
    put_interval(board, key + "ratio", measured->ratios);
    put_interval(board, key + "median_step_ratio", measured->step_ratios);
    if (report->own_cost.drain_cpu_ns.value) {
        board.put(key + "drain_percent_of_a_core", *report->own_cost.drain_cpu_ns.value / measured->on_ms / 1e4);
    }
    board.put(key + "lost", static_cast<double>(lost(*report)));
    board.put(key + "disk_bytes_per_scope",
              static_cast<double>(std::filesystem::file_size(recording)) / static_cast<double>(report->scopes));
    return {};
}

void show(const Case& c, Board& board) {
    const std::string key = std::string(c.key) + ".";
    const auto at = [&](const char* name) {
        return get(board.figures(), key + name).median;
    };
    board.table(fmt::format("{} bf16, {} thread{}, decode", c.shape, c.threads, c.threads == 1 ? "" : "s"),
                {"value", "95 % interval"});
    board.row("step, profiling off, ms", {text(at("step_ms"), 3)});
    board.row("scopes per ms", {text(at("scopes_per_ms"), 0)}, key + "scopes_per_ms",
              std::string(c.shape) == "tiny-llama" ? std::optional<Target>({Bound::at_least, 300}) : std::nullopt);
    const auto interval = [&](const char* label, const char* name, std::optional<Target> target) {
        const Spread ratio = get(board.figures(), key + name);
        board.row(label, {text(ratio.median, 4), range(ratio, 4)}, key + name + ".high", target);
    };
    interval("on / off, whole blocks", "ratio", Target{Bound::at_most, c.limit});
    interval("on / off, median steps", "median_step_ratio", {});
    board.row("drain, % of one core", {text(at("drain_percent_of_a_core"), 2)});
    board.row("scopes lost", {text(at("lost"), 0)}, key + "lost", Target{Bound::at_most, 0});
    board.row("bytes on disk per scope", {text(at("disk_bytes_per_scope"), 2)}, key + "disk_bytes_per_scope",
              Target{Bound::at_most, 6});
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What profiling costs a real decode: on against off.",
                                          {{"--models", "FOLDER  where model files are kept (default build/models)"},
                                           {"--only", "SHAPE     one shape only"},
                                           {"--pairs", "N        pairs of blocks (default 80 or 120)"}});
    Board board(options);
    board.say(
        "blocks of about 200 ms, on and off by turns, the first of a pair alternating; intervals by bootstrap over pairs");
    for (const Case& c : cases) {
        if (options.value("--only", c.shape) != c.shape) {
            continue;
        }
        if (const Status status = run_case(c, options, board); !status.ok()) {
            fmt::print(stderr, "{}\n", status.error().message);
            return 2;
        }
        show(c, board);
    }
    return board.finish();
}
