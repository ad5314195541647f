// SPDX-License-Identifier: Apache-2.0
#include "recording/large.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "answers/check/check.hpp"
#include "answers/health/health.hpp"
#include "answers/path/path.hpp"
#include "numerics/diverge.hpp"
#include "plumb/plumb.hpp"
#include "record/subject.hpp"
#include "recording/child.hpp"
#include "recording/counting.hpp"
#include "recording/outcome.hpp"

namespace bench {
namespace {

constexpr double most_mib = 512;
constexpr double most_trace_mib = 64;
constexpr std::uint64_t first_burst = 20'000;

struct Command {
    const char* name;
    double files; // it reads
    double limit; // MiB
    std::function<bool(const std::string&, const std::string&)> run;
};

template <class Export>
bool streams(Export&& give) {
    Counting counting;
    std::ostream out(&counting);
    return give(out).ok() && counting.bytes > 0;
}

plumb::Invariants healthy_run() {
    plumb::Invariants invariants;
    invariants.calls = {{"lm_head", 1, false}};
    invariants.coverage = 0.9;
    invariants.drops = 0;
    invariants.pending = 0;
    invariants.node_check = true;
    return invariants;
}

std::vector<Command> commands() {
    return {
        {"report", 1, most_mib,
         [](const auto& a, const auto&) {
             return !plumb::render_text(need(plumb::report_recording(a))).empty();
         }},
        {"layers", 1, most_mib,
         [](const auto& a, const auto&) {
             return !need(plumb::ask("layers", {a})).text().empty();
         }},
        {"budget", 1, most_mib,
         [](const auto& a, const auto&) {
             return !need(plumb::ask("budget", {a}, {{"ms/token", "1"}})).text().empty();
         }},
        {"check", 1, most_mib,
         [](const auto& a, const auto&) {
             return !need(plumb::check_recordings({a}, healthy_run())).rows.empty();
         }},
        {"replays", 1, most_mib,
         [](const auto& a, const auto&) {
             return !need(plumb::ask("replays", {a})).text().empty();
         }},
        {"path", 1, most_mib,
         [](const auto& a, const auto&) {
             return plumb::path_recording(a).ok();
         }},
        // Without checks of tensors these two have nothing to say; they read what they would have to read.
        {"health", 1, most_mib,
         [](const auto& a, const auto&) {
             (void)plumb::health_recording(a);
             return true;
         }},
        {"compare", 2, most_mib,
         [](const auto& a, const auto& b) {
             return !need(plumb::ask("compare", {a, b})).text().empty();
         }},
        {"diverge", 2, most_mib,
         [](const auto& a, const auto& b) {
             (void)plumb::diverge_recordings(a, b);
             return true;
         }},
        {"trace", 1, most_trace_mib,
         [](const auto& a, const auto&) {
             return streams([&](std::ostream& out) { return plumb::export_recording(a, "chrome_trace", out); });
         }},
        {"trace perfetto", 1, most_trace_mib,
         [](const auto& a, const auto&) {
             plumb::ExportWindow few; // without one it writes 2 million slices, and reads all
             few.steps = {0, 999'999'999};
             return streams([&](std::ostream& out) { return plumb::export_recording(a, "perfetto", out, few); });
         }},
        {"export jsonl", 1, most_trace_mib,
         [](const auto& a, const auto&) {
             return streams([&](std::ostream& out) { return plumb::export_recording(a, "jsonl", out); });
         }},
        {"export csv", 1, most_trace_mib,
         [](const auto& a, const auto&) {
             return streams([&](std::ostream& out) { return plumb::export_recording(a, "csv", out); });
         }},
    };
}

/// Records until `scopes` are in the recording; waits where the ring is a quarter full, so that nothing is dropped.
double record_at_full_speed(const Subject& subject, double scopes) {
    const auto scratch = std::make_unique<plumb::detail::Record[]>(scratch_records);
    const auto loop = subject.loops[static_cast<unsigned>(Kind::on)];
    double recorded = 0;
    while (recorded < scopes) {
        while (subject.waiting() > subject.capacity() / 4) {
            std::this_thread::yield();
        }
        loop(scratch.get(), first_burst / 2);
        recorded += static_cast<double>(first_burst) / 2;
    }
    return recorded;
}

} // namespace

void measure_large(Board& board, const Run& run, const TemporaryFolder& folder, double scopes) {
    const auto turns = static_cast<std::uint64_t>(std::ceil(scopes / count_scopes(run.records)));
    const std::string first = folder.file("large.plumb");
    const std::string second = folder.file("large_again.plumb");
    const double written = write_long_recording(run, first, turns);
    Run again = run;
    again.metadata.recording_id[0] ^= 1; // another run, as far as a comparison can tell
    write_long_recording(again, second, turns);
    board.put("large.scopes", written);
    board.table(fmt::format("{:.3g} scopes in one recording of {:.0f} MB, each command in its own process", written,
                            static_cast<double>(std::filesystem::file_size(first)) / 1e6),
                {"million scopes/s", "CPU ns per scope", "peak MiB"});
    for (const Command& command : commands()) {
        const Child child = in_child(command.name, [&] { return command.run(first, second); });
        const std::string key = fmt::format("large.{}", command.name);
        const double read = written * command.files;
        board.put(key + ".million_scopes_per_s", read / child.seconds / 1e6);
        board.put(key + ".cpu_ns_per_scope", child.cpu_seconds * 1e9 / read);
        board.put(key + ".peak_mib", child.peak_mib);
        board.row(
            command.name,
            {text(read / child.seconds / 1e6, 1), text(child.cpu_seconds * 1e9 / read, 1), text(child.peak_mib, 0)},
            key + ".peak_mib", Target{Bound::at_most, command.limit});
    }
    board.end_table();
    std::filesystem::remove(first);
    std::filesystem::remove(second);
}

void measure_stopping(Board& board, const TemporaryFolder& folder, double scopes) {
    const Subject& subject = *plumb_bench_subject();
    board.table("Stopping a run that records at full speed until it is stopped", {"close, s", "MB on disk", "dropped"});
    for (const double length : {scopes / 1000, scopes / 10, scopes}) {
        const std::string path = folder.file("stopped.plumb");
        std::filesystem::remove(path);
        if (const char* why = subject.open(path.c_str()); why != nullptr) {
            stop(why);
        }
        const double recorded = record_at_full_speed(subject, length);
        const auto dropped = static_cast<double>(subject.dropped());
        const double begin = now_ns();
        if (!subject.close()) {
            stop("the run could not be finished; make room in the temporary folder");
        }
        const std::string key = fmt::format("stop.{:.0f}", recorded);
        board.put(key + ".close_s", (now_ns() - begin) * 1e-9);
        board.row(fmt::format("after {:.3g} scopes", recorded),
                  {text((now_ns() - begin) * 1e-9, 4),
                   text(static_cast<double>(std::filesystem::file_size(path)) / 1e6, 1), text(dropped, 0)},
                  key + ".close_s", Target{Bound::at_most, 0.2});
    }
    board.end_table();
    std::filesystem::remove(folder.file("stopped.plumb"));
}

} // namespace bench
