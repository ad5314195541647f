// SPDX-License-Identifier: Apache-2.0
// What recording costs, against two clock reads and a store in the same run (docs/internals/benchmarks.md).
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>

#include "record/listing.hpp"
#include "record/part.hpp"
#include "support/board.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace bench;

constexpr Target at_most(double limit) { return {Bound::at_most, limit}; }

struct Way {
    const char* key;
    const char* title;
    const char* program; // null: this one
};
constexpr Way ways[] = {
    {"static", "an executable with libplumb.a", nullptr},
    {"shared", "a shared library with libplumb.so, loaded with the program", "bench_record_linked"},
    {"dlopen", "the same shared library, loaded by dlopen", "bench_record_dlopen"},
};

bool run_way(const Way& way, const PartOptions& options, Board& board) {
    Figures figures;
    if (way.program == nullptr) {
        if (!run_part(*plumb_bench_subject(), options, figures)) {
            return false;
        }
    } else {
        const TemporaryFolder folder;
        const std::string json = folder.file("part.json");
        const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / way.program;
        const std::string command = fmt::format("'{}' --rounds {} --json '{}'", program.string(), options.rounds, json);
        if (std::system(command.c_str()) != 0 || !read_json(json, figures)) {
            return false;
        }
    }
    board.merge(std::string(way.key) + ".", figures);
    return true;
}

void kind_row(Board& board, const std::string& prefix, const char* label, const char* kind,
              std::optional<Target> target = {}) {
    const std::string key = prefix + kind;
    if (!has(board.figures(), key + ".ns")) {
        return;
    }
    const Spread ns = get(board.figures(), key + ".ns");
    const Spread ratio = get(board.figures(), key + ".ratio");
    board.row(label, {text(ns.median, 2), range(ns, 2), text(ratio.median, 3), range(ratio, 3)}, key + ".ratio",
              target);
}

void less_empty_row(Board& board, const std::string& key, const char* label, std::optional<Target> target) {
    const Spread ns = get(board.figures(), key);
    board.row(label, {text(ns.median, 2), range(ns, 2)}, key, target);
}

void loops_table(Board& board, const Way& way, unsigned threads) {
    const std::string prefix = fmt::format("{}.t{}.", way.key, threads);
    if (!has(board.figures(), prefix + "floor.ns")) {
        return;
    }
    board.table(fmt::format("Per scope, {} thread{}, in {}", threads, threads == 1 ? "" : "s", way.title),
                {"ns", "quartiles", "÷ floor", "quartiles"});
    kind_row(board, prefix, "floor: 2 rdtsc + 16-byte store", "floor");
    kind_row(board, prefix, "brick, on", "on", at_most(threads == 1 ? 1.10 : 1.15));
    kind_row(board, prefix, "brick with bytes and flops", "work");
    kind_row(board, prefix, "named brick", "named", at_most(1.3));
    kind_row(board, prefix, "lap", "lap", at_most(0.60));
    kind_row(board, prefix, "device scope, host part", "device", at_most(2.0));
    kind_row(board, prefix, "record_kernel with bytes and flops", "kernel");
    kind_row(board, prefix, "record_transfer", "transfer");
    less_empty_row(board, prefix + "off.less_empty_ns", "off, less the empty loop", at_most(0.2));
    less_empty_row(board, prefix + "compiled_out.less_empty_ns", "compiled out, less the empty loop", {});
    const double dropped = get(board.figures(), prefix + "burst_drops").median;
    board.row("dropped in all bursts", {text(dropped, 0)}, prefix + "burst_drops", at_most(0));
    board.end_table();
}

/// The generated code itself, of the executable and of the shared library.
void show_code(Board& board) {
    board.say("\nThe floor's loop in this program (objdump):");
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::vector<std::string> floor = listing_of(self, "plumb_bench_floor");
    for (const std::string& line : floor) {
        board.say("    " + line);
    }
    if (floor.empty()) {
        board.say("    n/a: install binutils, so that objdump can show it");
    }
    board.table("Compiled out (PLUMB_DISABLE): instructions of the loop, less those of the loop without a macro",
                {"with macro", "without", "difference"});
    const std::pair<std::string, std::string> files[] = {{"executable", self}, {"shared library", PLUMB_BENCH_SUBJECT}};
    for (const auto& [name, file] : files) {
        const auto with = listing_of(file, "plumb_bench_compiled_out");
        const auto without = listing_of(file, "plumb_bench_empty_again");
        const std::string key =
            fmt::format("compiled_out.instructions.{}", name == files[0].first ? "static" : "shared");
        if (!with.empty() && !without.empty()) {
            // The same count but other instructions is a difference too.
            const auto more = static_cast<double>(with.size()) - static_cast<double>(without.size());
            board.put(key, with == without ? 0.0 : std::max(more, 1.0));
        }
        board.row(
            name,
            {std::to_string(with.size()), std::to_string(without.size()), text(get(board.figures(), key).median, 0)},
            key, at_most(0));
    }
    board.end_table();
}

void single_table(Board& board) {
    board.table(
        fmt::format("Single scopes, {:.1f} million of each, ns less a bare stamp (mean {:.1f} ns); the counter here "
                    "moves in steps of {:.1f} ns",
                    get(board.figures(), "static.single.scopes").median / 1e6,
                    get(board.figures(), "static.single.stamp_ns").median,
                    get(board.figures(), "static.single.counter_step_ns").median),
        {"mean", "p50", "p99", "p99.9", "max"});
    for (const char* kind : {"floor", "on", "lap"}) {
        const std::string key = fmt::format("static.single.{}.", kind);
        std::vector<std::string> cells;
        for (const char* point : {"mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"}) {
            cells.push_back(text(get(board.figures(), key + point).median, 1));
        }
        const bool judged = std::string(kind) == "on";
        board.row(kind, cells, key + "p999_ns", judged ? std::optional<Target>(at_most(50)) : std::nullopt);
    }
    board.end_table();

    const Spread body = get(board.figures(), "static.body.ns");
    const Spread delta = get(board.figures(), "static.body.delta_ns");
    board.table("Around a real body, 301 alternating pairs of 1000", {"ns", "quartiles"});
    board.row("body between two clock reads", {text(body.median, 1), range(body, 1)});
    board.row("more with PLUMB_BRICK around it", {text(delta.median, 2), range(delta, 2)}, "static.body.delta_ns",
              at_most(2.5));
    board.end_table();
}

void drain_table(Board& board) {
    board.table("While the drain works all the time (threads wait where their ring is 3/4 full: nothing is dropped)",
                {"÷ floor", "quartiles", "mean ÷ floor", "million/s", "dropped"});
    for (const unsigned threads : {1U, 2U}) {
        const std::string prefix = fmt::format("static.busy_drain.t{}.", threads);
        if (!has(board.figures(), prefix + "on.ratio")) {
            continue;
        }
        const Spread ratio = get(board.figures(), prefix + "on.ratio");
        board.row(fmt::format("brick, on, {} thread{}", threads, threads == 1 ? "" : "s"),
                  {text(ratio.median, 3), range(ratio, 3),
                   text(get(board.figures(), prefix + "on.mean_ratio").median, 2),
                   text(get(board.figures(), prefix + "scopes_per_s").median / 1e6, 1),
                   text(get(board.figures(), prefix + "drops").median, 0)},
                  prefix + "on.ratio", at_most(1.25));
    }
    board.end_table();

    board.table(fmt::format("As fast as it goes for {} s, nobody waits", sustained_seconds),
                {"tried million/s", "kept million/s", "dropped %", "B/scope on disk"});
    for (const unsigned threads : {1U, 2U}) {
        const std::string prefix = fmt::format("static.sustained.t{}.", threads);
        const double tried = get(board.figures(), prefix + "tried_per_s").median;
        const double kept = get(board.figures(), prefix + "kept_per_s").median;
        board.row(fmt::format("{} thread{}", threads, threads == 1 ? "" : "s"),
                  {text(tried / 1e6, 1), text(kept / 1e6, 1), text(100 * (1 - kept / tried), 1),
                   text(get(board.figures(), prefix + "disk_bytes_per_scope").median, 2)});
    }
    board.end_table();
}

void other_targets(Board& board) {
    board.table("And", {"value"});
    const auto line = [&](const char* label, const char* key, int digits, Target target) {
        board.row(label, {text(get(board.figures(), key).median, digits)}, key, target);
    };
    line("slowdown by a second thread, ÷ the floor's own", "static.two_threads.slowdown_over_floor", 3, at_most(1.05));
    line("bytes of memory per scope", "static.memory_bytes_per_scope", 0, at_most(16));
    line("bytes on disk per scope, decode-like work", "static.decode_like.disk_bytes_per_scope", 2, at_most(6));
    board.end_table();
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse_options(argc, argv, "What recording costs, against two clock reads and a store.",
                                          {{"--rounds", "N   interleaved rounds per kind, at least 9 (default 15)"}});
    PartOptions part;
    part.rounds = static_cast<unsigned>(std::max(9, std::atoi(options.value("--rounds", "15").c_str())));
    Board board(options);
    board.say(fmt::format("bursts of {} scopes, then a wait until the rings are drained; {} bursts a round, {} rounds, "
                          "kinds interleaved; threads bound to cores; recording into a file, default configuration",
                          burst_scopes, bursts_per_round, part.rounds));
    show_code(board);
    for (const Way& way : ways) {
        if (!run_way(way, part, board)) {
            return 2;
        }
        loops_table(board, way, 1);
        loops_table(board, way, 2);
    }
    single_table(board);
    drain_table(board);
    other_targets(board);
    return board.finish();
}
