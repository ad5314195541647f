// SPDX-License-Identifier: Apache-2.0
// What it costs a real decode to look at every tensor: tensors=nonfinite and tensors=all against tensors=off, all profiled
// (docs/internals/benchmarks.md).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"
#include "stats/bootstrap.hpp"
#include "stats/median.hpp"
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
    const char* type;
    std::size_t prompt; // tokens of a prefill turn; 0: turns are decode steps
    int rounds;
};
constexpr Case cases[] = {
    {"qwen2_5_0_5b.decode", "qwen2.5-0.5b", "bf16", 0, 400},
    {"qwen2_5_0_5b.prefill", "qwen2.5-0.5b", "bf16", 64, 40},
    {"tiny_llama.decode", "tiny-llama", "bf16", 0, 2000},
    {"tiny_llama.prefill", "tiny-llama", "bf16", 64, 400},
};

constexpr std::size_t modes = 3;
constexpr const char* words[modes] = {"off", "nonfinite", "all"};
constexpr double limits[modes] = {0, 1.01, 1.05};
constexpr std::size_t steps_between_prompts = 128;

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// One decoder, and a profiler for each mode.
class Bed {
  public:
    Bed(const Case& c, const TemporaryFolder& folder) : case_(c) {
        for (std::size_t mode = 0; mode < modes; ++mode) {
            recordings_[mode] = folder.file(std::string(words[mode]) + ".plumb");
            profilers_[mode] = std::make_unique<Profiler>(
                plumb::Config::parse("on,out=" + recordings_[mode] + ",tensors=" + words[mode]));
        }
    }

    Status load(const std::string& model) {
        plumb::decoder::Options options;
        options.context = std::max<std::size_t>(case_.prompt, 8) + steps_between_prompts + 1;
        Result<Decoder> decoder = Decoder::load(model, options);
        if (!decoder.ok()) {
            return decoder.error();
        }
        decoder_ = std::make_unique<Decoder>(*std::move(decoder));
        prompt_ = decoder_->random_prompt(std::max<std::size_t>(case_.prompt, 8), 1);
        for (const auto& profiler : profilers_) {
            if (Status status = profiler->status(); !status.ok()) {
                return status;
            }
            profiler->disable();
        }
        return {};
    }

    /// Milliseconds of one turn: a prefill, or a decode step.
    Result<double> turn(std::size_t mode) {
        Profiler& profiler = *profilers_[mode];
        if (case_.prompt != 0) {
            decoder_->reset();
        } else if (left_ == 0) {
            decoder_->reset();
            if (Status fed = decoder_->prefill(prompt_, profiler); !fed.ok()) {
                return fed.error();
            }
            left_ = steps_between_prompts;
        }
        if (Status enabled = profiler.enable(); !enabled.ok()) {
            return enabled.error();
        }
        const double begin = now_ms();
        Status done;
        if (case_.prompt != 0) {
            done = decoder_->prefill(prompt_, profiler);
        } else {
            --left_;
            const Result<std::size_t> steps = decoder_->decode(1, profiler);
            done = steps.ok() ? Status{} : Status{steps.error()};
        }
        const double ms = now_ms() - begin;
        profiler.disable();
        return done.ok() ? Result<double>(ms) : Result<double>(done.error());
    }

    /// Bytes on disk of a mode's recording, finished.
    Result<double> finish(std::size_t mode) {
        if (Status closed = profilers_[mode]->close(); !closed.ok()) {
            return closed.error();
        }
        return static_cast<double>(std::filesystem::file_size(recordings_[mode]));
    }

  private:
    const Case& case_;
    std::string recordings_[modes];
    std::unique_ptr<Profiler> profilers_[modes];
    std::unique_ptr<Decoder> decoder_;
    std::vector<std::int32_t> prompt_;
    std::size_t left_ = 0; // decode steps before the next prompt
};

Status run_case(const Case& c, const Options& options, Board& board) {
    const TemporaryFolder folder;
    const Result<std::string> model = model_file(options.value("--models", default_models), c.shape, c.type);
    if (!model.ok()) {
        return model.error();
    }
    Bed bed(c, folder);
    if (Status loaded = bed.load(*model); !loaded.ok()) {
        return loaded;
    }
    const int rounds = std::max(9, std::atoi(options.value("--rounds", std::to_string(c.rounds)).c_str()));
    std::vector<double> off;
    std::vector<double> ratios[modes];
    constexpr int warm = 4;
    for (int round = -warm; round < rounds; ++round) {
        double ms[modes] = {};
        for (std::size_t i = 0; i < modes; ++i) { // each mode meets each place in a round as often
            const std::size_t mode = (i + static_cast<std::size_t>(round + warm)) % modes;
            const Result<double> taken = bed.turn(mode);
            if (!taken.ok()) {
                return taken.error();
            }
            ms[mode] = *taken;
        }
        if (round >= 0) {
            off.push_back(ms[0]);
            for (std::size_t mode = 1; mode < modes; ++mode) {
                ratios[mode].push_back(ms[mode] / ms[0]);
            }
        }
    }
    const std::string key = std::string(c.key) + ".";
    board.put(key + "turn_ms", plumb::stats::median(off));
    for (std::size_t mode = 1; mode < modes; ++mode) {
        const auto interval = plumb::stats::bootstrap_median(ratios[mode]);
        if (!interval.ok()) {
            return interval.error();
        }
        board.put(key + words[mode], Spread{plumb::stats::median(ratios[mode]), interval->low, interval->high});
    }
    const Result<double> bytes = bed.finish(2);
    if (!bytes.ok()) {
        return bytes.error();
    }
    board.put(key + "bytes_per_turn", *bytes / (rounds + warm));
    return {};
}

void show(const Case& c, Board& board) {
    const std::string key = std::string(c.key) + ".";
    const std::string what = c.prompt != 0 ? fmt::format("prefill of {} tokens", c.prompt) : "decode step";
    board.table(fmt::format("{} {}, {}", c.shape, c.type, what), {"value", "95 % interval"});
    board.row("tensors=off, ms", {text(get(board.figures(), key + "turn_ms").median, 3)});
    // The targets are about a decode step of a real model: a step of tiny-llama is little more than its activations.
    const bool judged = std::string(c.shape) != "tiny-llama" && c.prompt == 0;
    for (std::size_t mode = 1; mode < modes; ++mode) {
        const Spread ratio = get(board.figures(), key + words[mode]);
        board.row(fmt::format("tensors={} / off", words[mode]), {text(ratio.median, 4), range(ratio, 4)},
                  key + words[mode], judged ? std::optional<Target>({Bound::at_most, limits[mode]}) : std::nullopt);
    }
    board.row("tensors=all, bytes on disk", {text(get(board.figures(), key + "bytes_per_turn").median, 0)});
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What it costs to look at every tensor of a real decode.",
                                          {{"--models", "FOLDER  where model files are kept (default build/models)"},
                                           {"--only", "SHAPE     one shape only"},
                                           {"--rounds", "N       of one turn in each mode"}});
    Board board(options);
    board.say(
        "turns with tensors=off, nonfinite and all, one after the other in changing order, all profiled; median of the "
        "ratios to the turn with off of the same round, 95 % interval by bootstrap");
    return run_cases(cases, options, board, run_case, show);
}
