// SPDX-License-Identifier: Apache-2.0
// What --kernel-stamps costs decode steps on a CUDA device: steps with and without them in turns, in one run, launched one by
// one and replayed. The weights are made on the device. No figure of it is known: it has not run on hardware.
#include <array>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "decoder/decoder.hpp"
#include "plumb/plumb.hpp"
#include "stats/median.hpp"
#include "support/board.hpp"

namespace {

using namespace bench;
using plumb::Result;
using plumb::Status;
using plumb::decoder::Decoder;
using plumb::decoder::Graphs;

struct StampCase {
    const char* shape;
    int rounds;
};
constexpr StampCase stamp_cases[] = {{"small-llama", 400}, {"llama-3.2-1b", 200}, {"llama-3.1-8b", 100}};
constexpr std::size_t prompt = 16;

double now_ms() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Decoder> load(const StampCase& one, Graphs graphs, bool stamps) {
    Result<plumb::decoder::UnwrittenModel> model =
        plumb::decoder::lay_out_model(*plumb::decoder::find_shape(one.shape), {});
    if (!model) {
        return model.error();
    }
    plumb::decoder::Options options;
    options.backend = "cuda";
    options.graphs = graphs;
    options.kernel_stamps = stamps;
    options.context = prompt + static_cast<std::size_t>(one.rounds);
    return Decoder::load(std::move(*model), options);
}

/// One decoder without stamps, one with them; a step of each in turns, the first one of each apart.
Status run(const StampCase& one, Graphs graphs, const std::string& key, Board& board) {
    plumb::Profiler off{plumb::Config{}};
    std::array<std::unique_ptr<Decoder>, 2> decoders;
    for (std::size_t stamps = 0; stamps < 2; ++stamps) {
        Result<Decoder> loaded = load(one, graphs, stamps == 1);
        if (!loaded) {
            return loaded.error();
        }
        decoders[stamps] = std::make_unique<Decoder>(std::move(*loaded));
        if (Status status = decoders[stamps]->prefill(decoders[stamps]->random_prompt(prompt, 1), off); !status) {
            return status;
        }
    }
    std::array<std::vector<double>, 2> taken;
    for (int round = 0; round < one.rounds; ++round) {
        for (std::size_t turn = 0; turn < 2; ++turn) {
            const std::size_t which = (turn + static_cast<std::size_t>(round)) % 2;
            const double begin = now_ms();
            if (const Result<std::size_t> done = decoders[which]->decode(1, off); !done) {
                return done.error();
            }
            if (round != 0) {
                taken[which].push_back(now_ms() - begin);
            }
        }
    }
    const double without = plumb::stats::median(taken[0]), with = plumb::stats::median(taken[1]);
    board.put(key + "without_ms", without);
    board.put(key + "with_ms", with);
    board.put(key + "ratio", with / without);
    return {};
}

Status run_both(const StampCase& one, const Options&, Board& board) {
    const Status eager = run(one, Graphs::off, std::string(one.shape) + ".eager.", board);
    return eager ? run(one, Graphs::on, std::string(one.shape) + ".graphs.", board) : eager;
}

void show(const StampCase& one, Board& board) {
    board.table(one.shape, {"ms/step without stamps", "with", "with / without"});
    for (const char* how : {"eager", "graphs"}) {
        const std::string key = fmt::format("{}.{}.", one.shape, how);
        const auto at = [&](const char* name) {
            return text(get(board.figures(), key + name).median, 4);
        };
        board.row(how, {at("without_ms"), at("with_ms"), at("ratio")}, key + "ratio");
    }
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What --kernel-stamps costs decode steps on a CUDA device.",
                                          {{"--only", "one shape: llama-3.2-1b"}});
    Board board(options);
    return run_cases(stamp_cases, options, board, run_both, show);
}
