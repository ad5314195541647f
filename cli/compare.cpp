// SPDX-License-Identifier: Apache-2.0
// plumb compare: what changed between runs, gates on it, and the history of a folder of runs.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/compare.hpp"

namespace {

using namespace plumb::cli;

struct CompareArguments {
    std::vector<std::string> recordings;
    std::vector<std::string> base, changed;
    std::vector<std::string> gates;
    std::vector<std::string> ignored;
    std::string history;
    double same = 1;
    bool json = false;
    bool markdown = false;
};

plumb::CompareOptions options_of(const CompareArguments& arguments) {
    plumb::CompareOptions options;
    options.same_band = arguments.same / 100;
    options.ignored_fields = arguments.ignored;
    return options;
}

int show_history(const CompareArguments& arguments) {
    const plumb::Result<plumb::History> history = [&arguments] {
        const Ticker ticker("reading " + arguments.history);
        return plumb::history_of(arguments.history, options_of(arguments));
    }();
    if (!history) {
        return say_error(history.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*history);
    } else {
        std::cout << plumb::render_text(*history, {stdout_has_color(), stdout_columns()});
    }
    return exit_ok;
}

/// Two recordings as they stand, or any number after --base and --new.
plumb::Status take_sides(CompareArguments& arguments) {
    const bool named = !arguments.base.empty() || !arguments.changed.empty();
    if (!named && arguments.recordings.size() == 2) {
        arguments.base = {arguments.recordings[0]};
        arguments.changed = {arguments.recordings[1]};
        return {};
    }
    if (named && arguments.recordings.empty() && !arguments.base.empty() && !arguments.changed.empty()) {
        return {};
    }
    return plumb::Error{plumb::ErrorCode::invalid_argument,
                        "say what to compare: plumb compare base.plumb new.plumb, or --base A... --new B... with at "
                        "least 3 runs a side, or --history FOLDER"};
}

plumb::Result<plumb::Comparison> compare_files(const CompareArguments& arguments) {
    std::vector<plumb::Gate> gates;
    for (const std::string& text : arguments.gates) {
        plumb::Result<plumb::Gate> gate = plumb::parse_gate(text);
        if (!gate) {
            return gate.error();
        }
        gates.push_back(*std::move(gate));
    }
    const Ticker ticker("reading " + std::to_string(arguments.base.size() + arguments.changed.size()) + " recordings");
    return plumb::compare_recordings(arguments.base, arguments.changed, gates, options_of(arguments));
}

int compare(CompareArguments arguments) {
    if (!arguments.history.empty()) {
        return show_history(arguments);
    }
    if (plumb::Status status = take_sides(arguments); !status) {
        return say_error(status.error().message, arguments.json);
    }
    const plumb::Result<plumb::Comparison> comparison = compare_files(arguments);
    if (!comparison) {
        return say_error(comparison.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*comparison);
    } else if (arguments.markdown) {
        std::cout << plumb::render_markdown(*comparison);
    } else {
        std::cout << plumb::render_text(*comparison, {stdout_has_color(), stdout_columns()});
    }
    return plumb::exit_code(*comparison);
}

} // namespace

void add_compare(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<CompareArguments>();
    CLI::App& app = *root.add_subcommand("compare", "Compare runs: what became faster or slower, with gates");
    auto* files = app.add_option("recordings", arguments->recordings, "Two recordings: the base and the new one")
                      ->type_name("FILE");
    auto* base = app.add_option("--base", arguments->base, "Recordings of the base; at least 3 for a verdict")
                     ->type_name("FILE");
    auto* changed =
        app.add_option("--new", arguments->changed, "Recordings of what is compared with it")->type_name("FILE");
    auto* gates =
        app.add_option("--gate", arguments->gates,
                       "Limit on a change: decode.step.p50=+2%, brick:attention.p50=+5%, category:ffn.mean=+1%, "
                       "layer:3.p50=+3%, fingerprint")
            ->type_name("GATE")
            ->take_all();
    app.add_option("--ignore-key", arguments->ignored, "Field of the comparability key that may differ")
        ->type_name("FIELD");
    app.add_option("--same", arguments->same, "SAME: the whole interval lies within so many percent")
        ->type_name("PERCENT")
        ->capture_default_str();
    auto* history = app.add_option("--history", arguments->history, "Trend over all recordings of a folder instead")
                        ->type_name("FOLDER");
    auto* json =
        app.add_flag("--json", arguments->json, "As JSON (schema plumb.compare/1; plumb.history/1 with --history)");
    auto* markdown = app.add_flag("--markdown", arguments->markdown, "As Markdown, for a pull request");
    json->excludes(markdown);
    for (CLI::Option* other : {files, base, changed, gates, markdown}) {
        history->excludes(other);
    }
    app.callback([arguments, &exit_code] { exit_code = compare(*arguments); });
}
