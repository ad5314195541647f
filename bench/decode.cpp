// SPDX-License-Identifier: Apache-2.0
// How near the reference decoder comes to the speed of light: the time to read what a step must read, at the bandwidth
// this machine reaches in the same run (docs/internals/benchmarks.md).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <numeric>

#include "backends/cpu/read_bandwidth.hpp"
#include "decode/library_rate.hpp"
#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"
#include "support/board.hpp"
#include "support/models.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;
using plumb::Result;
using plumb::Status;
using plumb::decoder::Decoder;

constexpr std::size_t prompt = 64;
constexpr std::size_t steps_per_round = 8;
constexpr std::size_t prefill_tokens = 128; // chunks of 64

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Weights once, and the keys and values of the positions so far.
double bytes_of_step(const Decoder& decoder, double positions) {
    const auto& config = decoder.config();
    const double cache = positions * 2.0 * static_cast<double>(config.layers * config.kv_size()) * sizeof(float);
    return static_cast<double>(decoder.weights().bytes) + cache;
}

/// Of the matrices of the layers, for one token.
double flops_of_token(const Decoder& decoder) {
    double out = 0;
    for (const auto& layer : decoder.weights().layers) {
        for (const auto* linear :
             {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down}) {
            out += 2.0 * static_cast<double>(linear->weight.rows * linear->weight.cols);
        }
    }
    return out;
}

/// Chunks of the prompt against the library's own large product, by turns. Packed types are multiplied in f32.
Status prefill_rounds(const std::string& key, const std::string& model, int rounds, Board& board) {
    plumb::decoder::Options settings;
    settings.context = prefill_tokens;
    Result<Decoder> decoder = Decoder::load(model, settings);
    if (!decoder.ok()) {
        return decoder.error();
    }
    const bool bf16 = decoder->backend().input_type(decoder->weights().type) == plumb::decoder::Type::bf16;
    const auto prompt_ids = decoder->random_prompt(prefill_tokens, 1);
    plumb::Config off;
    plumb::Profiler profiler(off);
    std::vector<double> library, reached, shares;
    for (int round = 0; round < rounds; ++round) {
        const auto rate = library_gflops(bf16);
        decoder->reset();
        const double begin = now_ns();
        if (const Status fed = decoder->prefill(prompt_ids, profiler); !fed.ok()) {
            return fed;
        }
        const double gflops = flops_of_token(*decoder) * static_cast<double>(prefill_tokens) / (now_ns() - begin);
        if (round == 0 || !rate) {
            continue; // the first warms the caches up
        }
        library.push_back(*rate);
        reached.push_back(gflops);
        shares.push_back(gflops / *rate);
    }
    if (!shares.empty()) {
        board.put(key + "library_gflops", spread_of(library));
        board.put(key + "prefill_gflops", spread_of(reached));
        board.put(key + "prefill_share", spread_of(shares));
    }
    return {};
}

/// Time of a decode step of several sequences, for each of them, against that of one sequence alone.
Status batch_rounds(const std::string& key, const std::string& model, int rounds, Board& board) {
    for (const std::size_t batch : {1U, 4U, 8U, 32U}) {
        plumb::decoder::Options settings;
        settings.batch = batch;
        settings.context = prompt + static_cast<std::size_t>(rounds + 1) * 2;
        Result<Decoder> decoder = Decoder::load(model, settings);
        if (!decoder.ok()) {
            return decoder.error();
        }
        plumb::Config off;
        plumb::Profiler profiler(off);
        for (std::size_t i = 0; i < batch; ++i) {
            if (const Status fed = decoder->prefill(decoder->random_prompt(prompt, i), profiler, {}, i); !fed.ok()) {
                return fed;
            }
        }
        std::vector<double> rates;
        for (int round = 0; round < rounds; ++round) {
            const double begin = now_ns();
            if (const auto done = decoder->decode(2, profiler); !done.ok()) {
                return done.error();
            }
            rates.push_back(2e9 * static_cast<double>(batch) / (now_ns() - begin));
        }
        board.put(key + fmt::format("batch_{}_tok_s", batch), spread_of(rates));
    }
    return {};
}

struct Projections {
    double bytes = 0, ns = 0;
};

/// The bricks whose weights are at least 4 MB: what they read, over the time they took.
Projections large_projections(const plumb::Report& report) {
    Projections sum;
    for (const plumb::Row& row : report.bricks) {
        const double bytes = row.bytes_per_call.value.value_or(0);
        if (row.key.phase == plumb::Phase::decode && bytes >= 4e6 && row.time.p50_ns.value) {
            sum.bytes += bytes * row.calls_per_step;
            sum.ns += *row.time.p50_ns.value * row.calls_per_step;
        }
    }
    return sum;
}

struct Goal {
    const char* type;
    double step, projections; // shares of read bandwidth to reach
};
constexpr Goal goals[] = {{"bf16", 0.70, 0.75}, {"f32", 0.80, 0.80}, {"q8_0", 0.70, 0.70}, {"f16", 0, 0},
                          {"q6_k", 0, 0},       {"q4_k", 0, 0},      {"q4_0", 0, 0}};

Status run_type(const Goal& goal, const Options& options, Board& board) {
    const Result<std::string> model = model_file(options.value("--models", default_models), "qwen2.5-0.5b", goal.type);
    if (!model.ok()) {
        return model.error();
    }
    const int rounds = std::max(9, std::atoi(options.value("--rounds", "15").c_str()));
    plumb::decoder::Options settings;
    settings.context = prompt + static_cast<std::size_t>(rounds + 1) * steps_per_round + 1;
    Result<Decoder> decoder = Decoder::load(*model, settings);
    if (!decoder.ok()) {
        return decoder.error();
    }
    const TemporaryFolder folder;
    plumb::Config config;
    config.on = true;
    config.out = folder.file("run.plumb");
    plumb::Profiler profiler(config);
    Status status = decoder->prefill(decoder->random_prompt(prompt, 1), profiler);
    Result<std::size_t> done =
        status.ok() ? decoder->decode(steps_per_round, profiler) : Result<std::size_t>(status.error());
    plumb::backends::cpu::ReadBandwidth bandwidth;
    std::vector<double> read, reached, shares;
    for (int round = 0; done.ok() && round < rounds; ++round) {
        const Result<double> pass = bandwidth.measure();
        if (!pass.ok()) {
            return pass.error();
        }
        read.push_back(*pass);
        const double begin = now_ns();
        const double first = static_cast<double>(decoder->position());
        done = decoder->decode(steps_per_round, profiler);
        const double ns = (now_ns() - begin) / static_cast<double>(steps_per_round);
        reached.push_back(bytes_of_step(*decoder, first + steps_per_round / 2.0) / ns);
        shares.push_back(reached.back() / read.back());
    }
    if (!done.ok()) {
        return done.error();
    }
    const std::string key = std::string(goal.type) + ".";
    board.put(key + "read_gb_s", spread_of(read));
    board.put(key + "step_gb_s", spread_of(reached));
    board.put(key + "step_share", spread_of(shares));
    board.put(key + "step_ms", bytes_of_step(*decoder, static_cast<double>(prompt)) / median_of(reached) / 1e6);
    const Result<plumb::Report> report = profiler.snapshot();
    if (!report.ok()) {
        return report.error();
    }
    const Projections large = large_projections(*report);
    if (large.ns > 0) {
        board.put(key + "projection_gb_s", large.bytes / large.ns);
        board.put(key + "projection_share", large.bytes / large.ns / median_of(read));
    }
    if (const Status fed = prefill_rounds(key, *model, rounds, board); !fed.ok()) {
        return fed;
    }
    return batch_rounds(key, *model, rounds, board);
}

std::optional<Target> step_goal(const Goal& goal) {
    return goal.step > 0 ? std::optional(Target{Bound::at_least, goal.step}) : std::nullopt;
}
std::optional<Target> prefill_goal(const Goal& goal) {
    return goal.step > 0 ? std::optional(Target{Bound::at_least, 0.60}) : std::nullopt;
}

void show(const Goal& goal, Board& board) {
    const std::string key = std::string(goal.type) + ".";
    board.table(fmt::format("qwen2.5-0.5b {}, decode, profiling on", goal.type), {"value", "quartiles"});
    const auto line = [&](const char* label, const char* name, int digits, std::optional<Target> target = {}) {
        if (!has(board.figures(), key + name)) {
            return;
        }
        const Spread value = get(board.figures(), key + name);
        board.row(label,
                  {text(value.median, digits), has(board.figures(), key + name + ".low") ? range(value, digits) : ""},
                  key + name, target);
    };
    line("read bandwidth of all cores, GB/s", "read_gb_s", 1);
    line("a decode step reads, GB/s", "step_gb_s", 1);
    line("step, ms", "step_ms", 2);
    line("share of the speed of light, step", "step_share", 3, step_goal(goal));
    line("large projections read, GB/s", "projection_gb_s", 1);
    line("share of it, large projections", "projection_share", 3,
         goal.step > 0 ? std::optional(Target{Bound::at_least, goal.projections}) : std::nullopt);
    line("oneDNN's large product, GFLOP/s", "library_gflops", 0);
    line("prefill of 128 tokens, GFLOP/s", "prefill_gflops", 0);
    line("share of it, prefill", "prefill_share", 3, prefill_goal(goal));
    for (const int batch : {1, 4, 8, 32}) {
        line(fmt::format("decode of {}, tokens/s", batch).c_str(), fmt::format("batch_{}_tok_s", batch).c_str(), 1);
    }
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "How near the reference decoder comes to the speed of light.",
                                          {{"--models", "FOLDER  where model files are kept (default build/models)"},
                                           {"--types", "LIST    of the matrices (default bf16,f32,q8_0)"},
                                           {"--rounds", "N       of bandwidth and decode, by turns (default 15)"}});
    const std::string types = "," + options.value("--types", "bf16,f32,q8_0") + ",";
    Board board(options);
    board.say(fmt::format("rounds of one bandwidth measurement and {} decode steps, by turns", steps_per_round));
    for (const Goal& goal : goals) {
        if (types.find("," + std::string(goal.type) + ",") == std::string::npos) {
            continue;
        }
        if (const Status status = run_type(goal, options, board); !status.ok()) {
            fmt::print(stderr, "{}\n", status.error().message);
            return 2;
        }
        show(goal, board);
    }
    return board.finish();
}
