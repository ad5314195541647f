// SPDX-License-Identifier: Apache-2.0
#include "cli/write_output.hpp"

#include <iostream>

#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/results.hpp"

namespace plumb::cli {

int write_output(const WriteArguments& arguments, const std::string& format) {
    const bool to_stdout = arguments.output == "-";
    if (to_stdout && arguments.json) {
        return say_error("--json describes the file written: name one with -o", true);
    }
    Result<std::unique_ptr<OutputFile>> opened = OutputFile::open(arguments.output, {arguments.recording});
    if (!opened) {
        return say_error(opened.error().message, arguments.json);
    }
    OutputFile& file = **opened;
    Status status;
    {
        const Ticker ticker("writing " + arguments.output, [&file] { return file.written(); });
        status = export_recording(arguments.recording, format, file.stream());
        if (status.ok()) {
            status = file.commit();
        }
    }
    if (file.reader_left()) {
        return exit_ok;
    }
    if (!status.ok()) {
        return say_error(file.error_or(status.error()).message, arguments.json);
    }
    if (arguments.json) {
        std::cout << "{\"written\": " << json_text(arguments.output) << ", \"bytes\": " << file.written() << "}\n";
    }
    return exit_ok;
}

} // namespace plumb::cli
