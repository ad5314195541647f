// SPDX-License-Identifier: Apache-2.0
// plumb trace: a recording for a trace viewer.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/write_output.hpp"

void add_trace(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<plumb::cli::WriteArguments>();
    arguments->format = "chrome_trace";
    CLI::App& app = *root.add_subcommand("trace", "Write a recording, or some steps of it, for a trace viewer");
    app.add_option("recording", arguments->recording, "Recording (.plumb)")->type_name("FILE")->required();
    plumb::cli::add_write_options(app, *arguments, {"chrome_trace", "perfetto"});
    app.callback([arguments, &exit_code] { exit_code = plumb::cli::write_output(*arguments); });
}
