// SPDX-License-Identifier: Apache-2.0
// plumb export: every sample of a recording, for other programs.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/kept_memory.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/write_output.hpp"
#include "cli/write_tables.hpp"
#include "plumb/results.hpp"
#include "upload/upload.hpp"

namespace {

using namespace plumb::cli;

struct ExportArguments {
    std::vector<std::string> recordings;
    WriteArguments write; // of one recording
    std::string to;       // a database; empty: a file
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
    keep_freed_memory();
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

std::string json_of(const std::vector<plumb::upload::Uploaded>& all) {
    std::string text = "{\"uploaded\": [";
    for (const plumb::upload::Uploaded& one : all) {
        text += (&one == all.data() ? "" : ", ") +
                ("{\"recording\": " + json_text(one.recording) + ", \"shard\": " + json_text(one.shard)) +
                ", \"scopes\": " + std::to_string(one.scopes) + ", \"steps\": " + std::to_string(one.steps) + '}';
    }
    return text + "]}\n";
}

int export_to_database(const ExportArguments& arguments) {
    const bool json = arguments.write.json;
    if (arguments.write.has_window()) {
        return say_error(
            "a database takes whole recordings: leave out --steps, --layers, --tracks and --slowest, and choose in the query",
            json);
    }
    const plumb::Result<plumb::upload::Target> target = plumb::upload::parse_target(arguments.to);
    if (!target) {
        return say_error(target.error().message, json);
    }
    catch_interrupts();
    std::vector<plumb::upload::Uploaded> done;
    for (const std::string& recording : arguments.recordings) {
        plumb::upload::UploadProgress progress;
        plumb::Result<plumb::upload::Uploaded> one = [&] {
            const Ticker ticker("sending " + recording, [&progress] { return progress.bytes.load(); });
            return plumb::upload::upload_recording(recording, *target, interrupted(), progress);
        }();
        if (!one) {
            return say_error(recording + ": " + one.error().message + " (" + std::to_string(done.size()) + " of " +
                                 std::to_string(arguments.recordings.size()) + " recordings were committed)",
                             json);
        }
        if (!json) {
            std::cout << recording << ": " << one->scopes << " scopes and " << one->steps << " steps committed on "
                      << one->shard << std::endl;
        }
        done.push_back(*std::move(one));
    }
    if (json) {
        std::cout << json_of(done);
    }
    return exit_ok;
}

} // namespace

void add_export(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<ExportArguments>();
    arguments->write.format = "jsonl";
    CLI::App& app = *root.add_subcommand(
        "export", "Write the samples of a recording as JSON lines, CSV, a trace, OTLP or Parquet, or into ClickHouse");
    app.add_option("recording", arguments->recordings, "Recording (.plumb); several for parquet and --to")
        ->type_name("FILE")
        ->required();
    std::vector<std::string> formats;
    for (const plumb::ExportFormat& format : plumb::known_formats()) {
        formats.push_back(format.name);
    }
    add_write_options(app, arguments->write, formats);
    app.get_option("--output")
        ->description("File to write; - is standard output. The folder to write into for parquet");
    app.add_option("--to", arguments->to,
                   "Instead of a file: a database of ClickHouse, and its shards, whose tables are there")
        ->type_name("clickhouse://HOST:PORT,…/DATABASE")
        ->excludes("--format")
        ->excludes("--output");
    app.callback([arguments, &exit_code] {
        exit_code = !arguments->to.empty()                ? export_to_database(*arguments)
                    : has_tables(arguments->write.format) ? export_tables(*arguments)
                                                          : export_stream(*arguments);
    });
}
