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
};

bool has_tables(const std::string& format) {
    const std::vector<plumb::ExportFormat>& all = plumb::known_formats();
    return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == format && each.tables; });
}

int export_tables(const ExportArguments& arguments) {
    const WriteArguments& write = arguments.write;
    if (write.output == "-") {
        return say_error(write.format + " is several files: name the folder that they go into with -o", write.json);
    }
    if (write.has_window()) {
        return say_error(write.format + " is written whole: leave out --steps, --layers, --tracks and --slowest, and "
                                        "choose with plumb sql",
                         write.json);
    }
    const plumb::Result<WrittenTables> written = write_tables(arguments.recordings, write.format, write.output);
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
        return say_error(arguments.write.format + " is written of one recording at a time; parquet takes several",
                         arguments.write.json);
    }
    arguments.write.recording = arguments.recordings.front();
    return write_output(arguments.write);
}

} // namespace

void add_export(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ExportArguments>();
    arguments->write.format = "jsonl";
    CLI::App& app =
        *root.add_subcommand("export", "Write the samples of a recording as JSON lines, CSV, a trace, OTLP or Parquet");
    app.add_option("recording", arguments->recordings, "Recording (.plumb); several for parquet")
        ->type_name("FILE")
        ->required();
    std::vector<std::string> formats;
    for (const plumb::ExportFormat& format : plumb::known_formats()) {
        formats.push_back(format.name);
    }
    add_write_options(app, arguments->write, formats);
    app.get_option("--output")
        ->description("File to write; - is standard output. The folder to write into for parquet");
    app.callback([arguments, &exit_code] {
        exit_code = has_tables(arguments->write.format) ? export_tables(*arguments) : export_stream(*arguments);
    });
}
