// SPDX-License-Identifier: Apache-2.0
// plumb trace: a recording in Chrome trace format.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/write_output.hpp"

void add_trace(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<plumb::cli::WriteArguments>();
    CLI::App& app = *root.add_subcommand("trace", "Write a recording in Chrome trace format, for a trace viewer");
    app.add_option("recording", arguments->recording, "Recording (.plumb)")->type_name("FILE")->required();
    app.add_option("-o,--output", arguments->output, "File to write; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
    app.add_flag("--json", arguments->json, "Print name and size of the file written as JSON");
    app.callback([arguments, &exit_code] { exit_code = plumb::cli::write_output(*arguments, "chrome_trace"); });
}
