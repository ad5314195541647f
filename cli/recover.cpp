// SPDX-License-Identifier: Apache-2.0
// plumb recover: folds what a dead run left in its rings into its recording.
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

struct RecoverArguments {
    std::string recording;
    bool json = false;
};

int recover(const RecoverArguments& arguments) {
    const plumb::Result<plumb::Answer> answer = [&arguments] {
        const Ticker ticker("recovering " + arguments.recording);
        return plumb::recover_recording(arguments.recording);
    }();
    if (!answer) {
        return say_error(answer.error().message, arguments.json);
    }
    std::cout << (arguments.json ? answer->json() : answer->text());
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
