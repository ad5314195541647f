// SPDX-License-Identifier: Apache-2.0
// plumb recover: folds what a dead run left in its rings into its recording.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/command_json.hpp"

namespace {

using namespace plumb::cli;

struct RecoverArguments {
    std::string recording;
    bool json = false;
};

void print_text(const plumb::RecoverSummary& summary) {
    if (summary.rings == 0 && summary.records_recovered == 0) {
        std::cout << "nothing to recover: no ring of this run is left\n";
    } else {
        std::cout << summary.records_recovered << (summary.records_recovered == 1 ? " record" : " records")
                  << " recovered\n";
    }
    for (const std::string& note : summary.notes) {
        std::cout << "note  " << terminal_text(note) << '\n';
    }
}

int recover(const RecoverArguments& arguments) {
    plumb::Result<plumb::RecoverSummary> summary = [&arguments] {
        const Ticker ticker("recovering " + arguments.recording);
        return plumb::recover_recording(arguments.recording);
    }();
    if (!summary) {
        return say_error(summary.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*summary);
    } else {
        print_text(*summary);
    }
    return exit_ok;
}

} // namespace

void add_recover(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<RecoverArguments>();
    CLI::App& app = *root.add_subcommand("recover", "Fold what a killed run left in its rings into its recording");
    app.add_option("recording", arguments->recording, "Recording (.plumb) of a process that has ended")
        ->type_name("FILE")
        ->required();
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.recover/1)");
    app.callback([arguments, &exit_code] { exit_code = recover(*arguments); });
}
