// SPDX-License-Identifier: Apache-2.0
// plumb import: recordings out of traces that other tools wrote.
#include <atomic>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "import/import.hpp"

namespace {

using namespace plumb::cli;

struct ImportArguments {
    std::vector<std::string> traces;
    plumb::imported::ImportOptions options;
    std::string phase;
    std::uint64_t tokens = 0;
};

using Runs = std::vector<plumb::imported::ImportedRun>;

/// A sentence, and the recordings that it is about: as it is, and with other figures in it.
struct SharedNote {
    std::string text;
    std::vector<std::string> with_it, with_others;
};

std::string without_figures(const std::string& text) {
    std::string made;
    for (const char c : text) {
        if (c < '0' || c > '9') {
            made += c;
        } else if (made.empty() || made.back() != '0') {
            made += '0';
        }
    }
    return made;
}

std::vector<SharedNote> shared_notes(const Runs& runs) {
    std::vector<SharedNote> notes; // in the order of their first recording
    std::map<std::string, std::size_t> known;
    for (const plumb::imported::ImportedRun& run : runs) {
        const std::string name = terminal_text(std::filesystem::path(run.recording).filename().string());
        for (const std::string& text : run.notes) {
            const auto [found, is_new] = known.try_emplace(without_figures(text), notes.size());
            if (is_new) {
                notes.push_back({text, {}, {}});
            }
            SharedNote& note = notes[found->second];
            std::vector<std::string>& about = note.text == text ? note.with_it : note.with_others;
            if (about.empty() || about.back() != name) {
                about.push_back(name);
            }
        }
    }
    return notes;
}

/// Each sentence once, with the recordings that it is about where it is not about all of them.
void print_notes(const Runs& runs) {
    for (const SharedNote& note : shared_notes(runs)) {
        const bool all = note.with_it.size() == runs.size();
        std::cout << "note  " << (all ? "" : fmt::format("{}: ", fmt::join(note.with_it, ", ")))
                  << terminal_text(note.text);
        if (!note.with_others.empty()) {
            std::cout << fmt::format("; with other figures: {}", fmt::join(note.with_others, ", "));
        }
        std::cout << '\n';
    }
}

void print_runs(const Runs& runs) {
    for (const plumb::imported::ImportedRun& run : runs) {
        std::cout << terminal_text(run.recording) << "  " << run.operations
                  << (run.operations == 1 ? " operation, " : " operations, ") << run.steps
                  << (run.steps == 1 ? " step" : " steps") << " from " << terminal_text(run.trace) << " (" << run.tool
                  << ")\n";
    }
    print_notes(runs);
}

int import_all(ImportArguments& arguments) {
    static const std::map<std::string, plumb::Phase> phases = {
        {"prefill", plumb::Phase::prefill}, {"decode", plumb::Phase::decode}, {"mixed", plumb::Phase::mixed}};
    if (!arguments.phase.empty()) {
        arguments.options.phase = phases.at(arguments.phase);
    }
    if (arguments.tokens != 0) {
        arguments.options.tokens = arguments.tokens;
    }
    std::vector<std::string> skipped;
    arguments.options.skipped = &skipped;
    const auto made = [&arguments] {
        catch_interrupts();
        std::atomic<std::uint64_t> bytes{0};
        arguments.options.stop = &interrupted();
        arguments.options.bytes = &bytes;
        const Ticker ticker("importing " + arguments.traces.front(), [&bytes] { return bytes.load(); });
        return plumb::imported::import_traces(arguments.traces, arguments.options);
    }();
    if (!made) {
        return say_error(made.error().message, false);
    }
    print_runs(*made);
    for (const std::string& sentence : skipped) {
        std::cout << "skipped  " << terminal_text(sentence) << '\n';
    }
    return exit_ok;
}

} // namespace

void add_import(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ImportArguments>();
    CLI::App& app = *root.add_subcommand("import", "Make recordings out of traces that other tools wrote");
    app.add_option(
           "trace", arguments->traces,
           "Traces, one for each rank, or folders of them: PyTorch profiler (Kineto) JSON, rocprofv3 JSON, SQLite "
           "exports of Nsight Systems and rpd; also as gzip")
        ->type_name("FILE")
        ->required();
    app.add_option("-o,--out", arguments->options.out,
                   "Recording to write; of several they are numbered: run-0.plumb, run-1.plumb")
        ->type_name("FILE")
        ->required();
    app.add_option("--phase", arguments->phase, "What all steps are, where the trace does not say")
        ->check(CLI::IsMember({"prefill", "decode", "mixed"}));
    app.add_option("--tokens", arguments->tokens, "Tokens of each step, where the trace does not say")
        ->type_name("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
    app.add_option("--rules", arguments->options.rules,
                   "Rules for kernel names, before plumb's own (docs/reference/kernel_rules.md)")
        ->type_name("FILE")
        ->allow_extra_args(false);
    CLI::Option* layers = app.add_option("--layers", arguments->options.layers,
                                         "Layers of the model, where the order of kernels leaves it open")
                              ->type_name("N")
                              ->check(CLI::Range(1U, 65535U));
    app.add_option("--config", arguments->options.config, "The model's config.json, which says how many layers it has")
        ->type_name("FILE")
        ->excludes(layers);
    app.add_option(
           "--evidence", arguments->options.evidence,
           "What may be used, with commas between: annotation, stack, capture, name, place; all of them unless said otherwise")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember({"annotation", "stack", "capture", "name", "place"}));
    app.add_option("--capture", arguments->options.captures,
                   "Trace of the capture of graphs: its modules are those of the replays (docs/reference/import.md)")
        ->type_name("FILE")
        ->allow_extra_args(false);
    app.add_option("--max-size", arguments->options.max_size, "Bytes of a trace, unpacked, beyond which it is refused")
        ->type_name("BYTES");
    app.callback([arguments, &exit_code] { exit_code = import_all(*arguments); });
}
