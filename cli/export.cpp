// SPDX-License-Identifier: Apache-2.0
// plumb export: every sample of a recording, for other programs.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/write_output.hpp"
#include "cli/write_tables.hpp"
#include "plumb/results.hpp"

namespace {

using namespace plumb::cli;

struct ExportArguments {
    std::vector<std::string> recordings;
    WriteArguments write; // of one recording
    std::string format = "jsonl";
};

bool has_tables(const std::string& format) {
    const std::vector<plumb::ExportFormat>& all = plumb::known_formats();
    return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == format && each.tables; });
}

int export_tables(const ExportArguments& arguments) {
    const auto& [recordings, write, format] = arguments;
    if (write.output == "-") {
        return say_error(format + " is several files: name the folder that they go into with -o", write.json);
    }
    const plumb::Result<WrittenTables> written = write_tables(recordings, format, write.output);
    if (!written) {
        return say_error(written.error().message, write.json);
    }
    if (write.json) {
        std::cout << "{\"written\": " << json_text(write.output) << ", \"bytes\": " << written->bytes << "}\n";
    }
    return exit_ok;
}

int export_stream(ExportArguments& arguments) {
    if (arguments.recordings.size() != 1) {
        return say_error(arguments.format + " is written of one recording at a time; parquet takes several",
                         arguments.write.json);
    }
    arguments.write.recording = arguments.recordings.front();
    return write_output(arguments.write, arguments.format);
}

} // namespace

void add_export(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ExportArguments>();
    CLI::App& app =
        *root.add_subcommand("export", "Write every sample of a recording as JSON lines, CSV, a trace or Parquet");
    app.add_option("recording", arguments->recordings, "Recording (.plumb); several for parquet")
        ->type_name("FILE")
        ->required();
    std::vector<std::string> formats;
    for (const plumb::ExportFormat& format : plumb::known_formats()) {
        formats.push_back(format.name);
    }
    app.add_option("--format", arguments->format, "Format to write")
        ->check(CLI::IsMember(formats))
        ->capture_default_str();
    app.add_option("-o,--output", arguments->write.output,
                   "File to write; - is standard output. The folder to write into for parquet")
        ->type_name("FILE")
        ->capture_default_str();
    app.add_flag("--json", arguments->write.json, "Print name and size of the file written as JSON");
    app.callback([arguments, &exit_code] {
        exit_code = has_tables(arguments->format) ? export_tables(*arguments) : export_stream(*arguments);
    });
}
