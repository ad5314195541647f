// SPDX-License-Identifier: Apache-2.0
// What profiling costs a real decode: the reference decoder with the profiler on against off (docs/internals/benchmarks.md).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <thread>

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
    std::size_t turn;  // decode steps with the profiler on, or off, before the other has its turn
    std::size_t turns; // after a prompt; then a fresh one, so that the kv cache stays short
    int pairs;         // of a turn on and a turn off
    double limit;      // upper end of the interval of on / off
};
constexpr Case cases[] = {
    {"tiny_llama.t1", "tiny-llama", 1, 8, 8, 32, 6000, 1.02},
    {"tiny_llama.t2", "tiny-llama", 2, 8, 8, 32, 6000, 1.02},
    {"qwen2_5_0_5b.t2", "qwen2.5-0.5b", 2, 16, 1, 64, 1500, 1.005},
};

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One decoder and one profiler that is switched on and off between turns.
class Bed {
  public:
    Bed(const Case& c, const std::string& recording) : case_(c), profiler_(config(recording)) {}

    Status load(const std::string& model) {
        plumb::decoder::Options options;
        options.threads = case_.threads;
        options.context = case_.prompt + case_.turn * case_.turns + 1;
        Result<Decoder> decoder = Decoder::load(model, options);
        if (!decoder.ok()) {
            return decoder.error();
        }
        decoder_ = std::make_unique<Decoder>(*std::move(decoder));
        prompt_ = decoder_->random_prompt(case_.prompt, 1);
        left_ = 0;
        return profiler_.status();
    }

    /// Milliseconds of one turn.
    Result<double> turn(bool on) {
        if (left_ == 0) {
            if (Status fresh = start_again(); !fresh.ok()) {
                return fresh.error();
            }
        }
        --left_;
        if (Status switched = set(on); !switched.ok()) {
            return switched.error();
        }
        const double begin = now_ms();
        const Result<std::size_t> done = decoder_->decode(case_.turn, profiler_);
        const double ms = now_ms() - begin;
        return done.ok() ? Result<double>(ms) : Result<double>(done.error());
    }

    /// CPU time of the drain thread so far, ms.
    Result<double> drain_ms() {
        const Result<plumb::Report> now = report();
        return now.ok() ? Result<double>(now->own_cost.drain_cpu_ns.value.value_or(std::nan("")) * 1e-6)
                        : Result<double>(now.error());
    }

    Result<plumb::Report> report() {
        const Status enabled = profiler_.enable();
        return enabled.ok() ? profiler_.snapshot() : Result<plumb::Report>(enabled.error());
    }

  private:
    static plumb::Config config(const std::string& recording) {
        plumb::Config config;
        config.on = true;
        config.out = recording;
        return config;
    }

    Status set(bool on) {
        if (on) {
            return profiler_.enable();
        }
        profiler_.disable();
        return {};
    }

    Status start_again() {
        profiler_.disable();
        decoder_->reset();
        left_ = case_.turns;
        return decoder_->prefill(prompt_, profiler_);
    }

    const Case& case_;
    Profiler profiler_;
    std::unique_ptr<Decoder> decoder_;
    std::vector<std::int32_t> prompt_;
    std::size_t left_ = 0; // turns before the next prompt
};

struct Pairs {
    std::vector<double> ratios;   // on / off
    std::vector<double> off_step; // ms
    double on_ms = 0;
    double drain_share = 0; // the drain's CPU time over the time on, as if the profiler had never been off
};

/// What the drain takes of a core when nothing is recorded.
Result<double> idle_share(Bed& bed) {
    const Result<double> before = bed.drain_ms();
    const double begin = now_ms();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const double ms = now_ms() - begin;
    const Result<double> after = bed.drain_ms();
    if (!before.ok() || !after.ok()) {
        return before.ok() ? after.error() : before.error();
    }
    return (*after - *before) / ms;
}

Result<Pairs> measure_pairs(const Case& c, Bed& bed, int pairs) {
    Pairs result;
    constexpr int warm = 16;
    for (int pair = -warm; pair < pairs; ++pair) {
        double ms[2] = {0, 0}; // off, on
        for (int half = 0; half < 2; ++half) {
            const bool on = (half + pair) % 2 != 0; // off on, on off, …: both meet the same drift
            const Result<double> taken = bed.turn(on);
            if (!taken.ok()) {
                return taken.error();
            }
            ms[on ? 1 : 0] = *taken;
        }
        result.on_ms += ms[1];
        if (pair >= 0) {
            result.ratios.push_back(ms[1] / ms[0]);
            result.off_step.push_back(ms[0] / static_cast<double>(c.turn));
        }
    }
    return result;
}

Result<Pairs> measure(const Case& c, Bed& bed, int pairs) {
    const Result<double> idle = idle_share(bed);
    const Result<double> before = bed.drain_ms();
    const double begin = now_ms();
    Result<Pairs> result = measure_pairs(c, bed, pairs);
    const double ms = now_ms() - begin;
    const Result<double> after = bed.drain_ms();
    if (!idle.ok() || !before.ok() || !after.ok() || !result.ok()) {
        return !result.ok()   ? result.error()
               : !idle.ok()   ? idle.error()
               : !before.ok() ? before.error()
                              : after.error();
    }
    // It also ran while the profiler was off and prompts were fed: that part is not the decode's.
    result->drain_share = (*after - *before - *idle * (ms - result->on_ms)) / result->on_ms;
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
    const auto interval = plumb::stats::bootstrap_median(measured->ratios);
    if (!interval.ok()) {
        return interval.error();
    }
    const double drain = measured->drain_share;
    const double ratio = median_of(measured->ratios);
    board.put(key + "drain_share", drain);
    board.put(key + "ratio", Spread{ratio, interval->low, interval->high});
    // The drain works in turns that are off as well as in those that are on, so the ratio does not see it. Charged in full
    // it is as if the decode had stood still for all of it: the worst that can be, where the decode needs every core.
    board.put(key + "charged_ratio", Spread{ratio + drain, interval->low + drain, interval->high + drain});
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
    const auto line = [&](const char* label, const char* name, const char* judged = "",
                          std::optional<Target> target = {}) {
        const Spread ratio = get(board.figures(), key + name);
        board.row(label, {text(ratio.median, 4), range(ratio, 4)}, key + judged, target);
    };
    line("on / off", "ratio", "ratio.high", Target{Bound::at_most, c.limit});
    board.row("drain thread's CPU time / time on", {text(at("drain_share"), 4)});
    line("on / off, drain charged in full", "charged_ratio");
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
                                           {"--pairs", "N        pairs of turns (default 6000 or 1500)"}});
    Board board(options);
    board.say(
        "short turns of decode steps with the profiler on and off, in pairs, the first of a pair alternating; "
        "median of the pairs, 95 % interval by bootstrap; the drain's CPU time stands beside it, and the ratio with all of it charged");
    return run_cases(cases, options, board, run_case, show);
}
