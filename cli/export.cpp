// SPDX-License-Identifier: Apache-2.0
// plumb export: every sample of a recording, for other programs.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/write_output.hpp"
#include "plumb/results.hpp"

void add_export(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<plumb::cli::WriteArguments>();
    arguments->format = "jsonl";
    CLI::App& app = *root.add_subcommand("export", "Write the samples of a recording as JSON lines, CSV or a trace");
    std::vector<std::string> formats;
    for (const plumb::ExportFormat& format : plumb::known_formats()) {
        formats.push_back(format.name);
    }
    plumb::cli::add_write_options(app, *arguments, formats);
    app.callback([arguments, &exit_code] { exit_code = plumb::cli::write_output(*arguments); });
}
