// SPDX-License-Identifier: Apache-2.0
// plumb export: every sample of a recording, for other programs.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/write_output.hpp"
#include "plumb/results.hpp"

namespace {

struct ExportArguments {
    plumb::cli::WriteArguments write;
    std::string format = "jsonl";
};

} // namespace

void add_export(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ExportArguments>();
    CLI::App& app = *root.add_subcommand("export", "Write every sample of a recording as JSON lines, CSV or a trace");
    app.add_option("recording", arguments->write.recording, "Recording (.plumb)")->type_name("FILE")->required();
    std::vector<std::string> formats;
    for (const plumb::ExportFormat& format : plumb::known_formats()) {
        formats.push_back(format.name);
    }
    app.add_option("--format", arguments->format, "Format to write")
        ->check(CLI::IsMember(formats))
        ->capture_default_str();
    app.add_option("-o,--output", arguments->write.output, "File to write; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
    app.add_flag("--json", arguments->write.json, "Print name and size of the file written as JSON");
    app.callback(
        [arguments, &exit_code] { exit_code = plumb::cli::write_output(arguments->write, arguments->format); });
}
