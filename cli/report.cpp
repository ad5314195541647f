// SPDX-License-Identifier: Apache-2.0
// plumb report: the results of a recording as a table or as JSON.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/results.hpp"

namespace {

using namespace plumb::cli;

struct ReportArguments {
    std::string recording;
    std::string phase;
    std::optional<std::uint64_t> warmup;
    bool layers = false;
    bool json = false;
};

plumb::ReportOptions options_of(const ReportArguments& arguments) {
    plumb::ReportOptions options;
    if (!arguments.phase.empty()) {
        options.phase = arguments.phase == "prefill"  ? plumb::Phase::prefill
                        : arguments.phase == "decode" ? plumb::Phase::decode
                                                      : plumb::Phase::mixed;
    }
    if (arguments.warmup) {
        options.warmup_steps = *arguments.warmup;
        options.recording_warmup = false;
    }
    options.brick_layers = arguments.layers;
    return options;
}

int report(const ReportArguments& arguments) {
    plumb::Result<plumb::Report> result = [&arguments] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::report_recording(arguments.recording, options_of(arguments));
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return exit_ok;
}

} // namespace

void add_report(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ReportArguments>();
    CLI::App& app = *root.add_subcommand("report", "Show where the time of a recorded run went, brick by brick");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_option("--phase", arguments->phase, "Only the steps of one phase")
        ->check(CLI::IsMember({"decode", "prefill", "mixed"}));
    app.add_option("--warmup", arguments->warmup,
                   "Decode steps to keep apart at the start (default: what the recording says)");
    app.add_flag("--layers", arguments->layers, "Add a table of every brick in every layer");
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.report/1)");
    app.callback([arguments, &exit_code] { exit_code = report(*arguments); });
}
