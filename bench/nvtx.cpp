// SPDX-License-Identifier: Apache-2.0
// What one NVTX range costs a program that is recorded through its ranges, against two bare clock reads (docs/internals/benchmarks.md).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "caller.h"
#include "plumb/results.hpp"
#include "support/board.hpp"
#include "support/loops.hpp"
#include "support/temporary_folder.hpp"
#include "support/ticks.hpp"

namespace {

using namespace bench;
using plumb::Error;
using plumb::ErrorCode;
using plumb::Result;
using plumb::Status;

constexpr std::uint64_t ranges_of_burst = 4'000;
constexpr std::size_t bursts_of_round = 9;
constexpr useconds_t pause_us =
    30'000; // a ring has room for sixteen bursts, and the drain begins when it is a quarter full

/// What an engine says of its modules: texts of that length, one after the other in one buffer.
constexpr std::size_t modules = 64;
struct Texts {
    std::vector<std::string> of_module;
    std::string buffer;
    nvtxDomainHandle_t domain = nullptr;
    nvtxEventAttributes_t registered{};
};

std::uint64_t loop_empty(Texts&, std::uint64_t n) { return empty_loop(n); }
__attribute__((noinline)) std::uint64_t loop_reads(Texts&, std::uint64_t n) {
    return timed(n, [](std::uint64_t) {
        const std::uint64_t begin = plumb::detail::read_ticks();
        body();
        const std::uint64_t end = plumb::detail::read_ticks();
        asm volatile("" ::"r"(begin), "r"(end));
    });
}
__attribute__((noinline)) std::uint64_t loop_literal(Texts&, std::uint64_t n) {
    return timed(n, [](std::uint64_t) {
        nvtxRangePushA("attention");
        body();
        nvtxRangePop();
    });
}
__attribute__((noinline)) std::uint64_t loop_registered(Texts& texts, std::uint64_t n) {
    return timed(n, [&texts](std::uint64_t) {
        nvtxDomainRangePushEx(texts.domain, &texts.registered);
        body();
        nvtxDomainRangePop(texts.domain);
    });
}
__attribute__((noinline)) std::uint64_t loop_copy(Texts& texts, std::uint64_t n) {
    return timed(n, [&texts](std::uint64_t i) {
        texts.buffer = texts.of_module[i % modules];
        asm volatile("" ::"r"(texts.buffer.data()) : "memory");
    });
}
__attribute__((noinline)) std::uint64_t loop_modules(Texts& texts, std::uint64_t n) {
    return timed(n, [&texts](std::uint64_t i) {
        texts.buffer = texts.of_module[i % modules];
        nvtxRangePushA(texts.buffer.c_str());
        body();
        nvtxRangePop();
    });
}

struct Kind {
    const char* key;
    const char* label;
    std::uint64_t (*loop)(Texts&, std::uint64_t);
    bool is_range; // that is recorded
};
constexpr std::size_t reads = 1; // what all are held against
constexpr Kind kinds[] = {{"empty", "empty loop", loop_empty, false},
                          {"reads", "two clock reads", loop_reads, false},
                          {"registered", "range with a registered string", loop_registered, true},
                          {"literal", "range with a literal", loop_literal, true},
                          {"copy", "copying the text of a module, 155 bytes", loop_copy, false},
                          {"modules", "the same, and a range of that text", loop_modules, true}};
constexpr std::size_t count = std::size(kinds);

/// Ticks a range: the median of some bursts, with pauses for the drain, so that nothing is dropped.
double round_of(const Kind& kind, Texts& texts, std::uint64_t& recorded) {
    std::vector<double> bursts;
    for (std::size_t i = 0; i < bursts_of_round; ++i) {
        if (kind.is_range) {
            usleep(pause_us);
        }
        bursts.push_back(static_cast<double>(kind.loop(texts, ranges_of_burst)) / static_cast<double>(ranges_of_burst));
        recorded += kind.is_range ? ranges_of_burst : 0;
    }
    return median_of(std::move(bursts));
}

/// The child, in which the library is: measures, and leaves its figures in a file.
int measure(const char* file, int rounds) {
    Texts texts;
    for (std::size_t i = 0; i < modules; ++i) {
        texts.of_module.push_back(
            fmt::format("{{'Module': 'top.model.layers.{}.self_attn.qkv_proj', 'TrainableParams': "
                        "{{'weight': [1152, 896]}}, 'Inputs': [[{}, 896]], 'StaticParams': "
                        "{{'in_features': 896}}}}",
                        i % 24, i + 1));
    }
    texts.domain = nvtxDomainCreateA("bench");
    texts.registered.version = NVTX_VERSION;
    texts.registered.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    texts.registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    texts.registered.message.registered = nvtxDomainRegisterStringA(texts.domain, "registered");

    const TickRate rate;
    std::uint64_t recorded = 0;
    std::vector<std::vector<double>> ticks(count), ratios(count);
    for (std::size_t k = 0; k < count; ++k) { // warm
        (void)round_of(kinds[k], texts, recorded);
    }
    for (int round = 0; round < rounds; ++round) {
        double now[count] = {};
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t k = (i + static_cast<std::size_t>(round)) % count;
            now[k] = round_of(kinds[k], texts, recorded);
        }
        for (std::size_t k = 0; k < count; ++k) {
            ticks[k].push_back(now[k]);
            ratios[k].push_back(now[k] / now[reads]);
        }
    }
    Figures figures{{"recorded", static_cast<double>(recorded)}};
    for (std::size_t k = 0; k < count; ++k) {
        std::for_each(ticks[k].begin(), ticks[k].end(), [&rate](double& value) { value *= rate.ns_per_tick(); });
        put(figures, std::string(kinds[k].key) + ".ns", spread_of(ticks[k]));
        put(figures, std::string(kinds[k].key) + ".ratio", spread_of(ratios[k]));
    }
    return write_json(file, figures) ? 0 : 2;
}

/// `prefix`: "off." without the library, "" with it.
Status run_child(Board& board, const std::string& prefix, int rounds) {
    const TemporaryFolder folder;
    const std::string file = folder.file("figures.json");
    const std::string recording = folder.file("run.plumb");
    const pid_t child = fork();
    if (child == 0) {
        setenv("PLUMB", ("on,out=" + recording).c_str(), 1);
        setenv("NVTX_INJECTION64_PATH", prefix.empty() ? PLUMB_BENCH_ATTACH : "", 1);
        const std::string words = std::to_string(rounds);
        execl("/proc/self/exe", "bench_nvtx", "measure", file.c_str(), words.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    Figures figures;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !read_json(file, figures)) {
        return Error{ErrorCode::failed, "the process that measures did not end well"};
    }
    board.merge(prefix, figures);
    if (!prefix.empty()) {
        return {};
    }
    const Result<plumb::Report> report = plumb::report_recording(recording);
    if (!report.ok()) {
        return report.error();
    }
    double found = 0;
    for (const plumb::Row& row : report->bricks) {
        found += static_cast<double>(row.time.count);
    }
    board.put("lost", figures.at("recorded") - found);
    return {};
}

void show(Board& board) {
    board.table("One thread, with libplumb-attach.so", {"ns", "ratio", "quartiles"});
    for (const Kind& kind : kinds) {
        const std::string key = kind.key;
        const Spread ratio = get(board.figures(), key + ".ratio");
        const bool judged = key == "registered" || key == "literal";
        board.row(kind.label,
                  {text(get(board.figures(), key + ".ns").median, 2), text(ratio.median, 3), range(ratio, 3)},
                  key + ".ratio", judged ? std::optional<Target>({Bound::at_most, 3}) : std::nullopt);
    }
    board.row("ranges that are not in the recording", {text(board.figures().at("lost"), 0), "", ""}, "lost",
              Target{Bound::at_most, 0});
    board.end_table();
    board.table("The same without a library", {"ns", "ratio", "quartiles"});
    for (const Kind& kind : kinds) {
        if (kind.is_range) {
            const std::string key = std::string("off.") + kind.key;
            const Spread ratio = get(board.figures(), key + ".ratio");
            board.row(kind.label,
                      {text(get(board.figures(), key + ".ns").median, 2), text(ratio.median, 3), range(ratio, 3)});
        }
    }
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "measure") == 0) {
        return measure(argv[2], std::atoi(argv[3]));
    }
    const Options options = parse_options(argc, argv, "What one NVTX range costs a program that is recorded by them.",
                                          {{"--rounds", "N   interleaved rounds, at least 9 (default 15)"}});
    const int rounds = std::max(9, std::atoi(options.value("--rounds", "15").c_str()));
    Board board(options);
    board.say(fmt::format("bursts of {} ranges, {} a round, {} rounds, kinds interleaved; ratios to two clock reads",
                          ranges_of_burst, bursts_of_round, rounds));
    for (const char* prefix : {"", "off."}) {
        if (const Status ran = run_child(board, prefix, rounds); !ran.ok()) {
            std::fprintf(stderr, "%s\n", ran.error().message.c_str());
            return 2;
        }
    }
    show(board);
    return board.finish();
}
