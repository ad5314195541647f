// SPDX-License-Identifier: Apache-2.0
// plumb replays: what became of the captured graphs of a run.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/results.hpp"

namespace {

using namespace plumb::cli;

struct ReplaysArguments {
    std::string recording;
    bool json = false;
};

int replays(const ReplaysArguments& arguments) {
    plumb::Result<plumb::ReplayReport> result = [&arguments] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::replays_recording(arguments.recording);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return result->node_check == plumb::NodeCheck::differ || result->baked_in ? exit_failed : exit_ok;
}

} // namespace

void add_replays(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ReplaysArguments>();
    CLI::App& app = *root.add_subcommand(
        "replays", "Show what became of captured graphs: replays, eager steps, padding, node check, costs");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.replays/1)");
    app.callback([arguments, &exit_code] { exit_code = replays(*arguments); });
}
