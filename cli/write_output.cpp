// SPDX-License-Identifier: Apache-2.0
#include "cli/write_output.hpp"

#include <charconv>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <utility>

#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/results.hpp"

namespace plumb::cli {
namespace {

template <class T>
std::optional<T> whole_number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                                     : std::nullopt;
}

/// "100:200" is 100 to 199, "100:" all from 100 on, ":200" all below, "100" that one.
std::optional<std::pair<std::uint64_t, std::uint64_t>> steps_of(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        const auto one = whole_number<std::uint64_t>(text);
        return one ? std::optional(std::pair(*one, *one)) : std::nullopt;
    }
    const std::string_view from = text.substr(0, colon), to = text.substr(colon + 1);
    const auto first = from.empty() ? std::optional<std::uint64_t>(0) : whole_number<std::uint64_t>(from);
    const auto end =
        to.empty() ? std::optional(std::numeric_limits<std::uint64_t>::max()) : whole_number<std::uint64_t>(to);
    return first && end && *first < *end ? std::optional(std::pair(*first, *end - 1)) : std::nullopt;
}

/// "0-3" is 0 to 3, "7" that one.
std::optional<std::pair<std::uint32_t, std::uint32_t>> layers_of(std::string_view text) {
    const std::size_t dash = text.find('-');
    const auto first = whole_number<std::uint32_t>(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number<std::uint32_t>(text.substr(dash + 1));
    return first && last && *first <= *last ? std::optional(std::pair(*first, *last)) : std::nullopt;
}

/// Empty, or why it is none.
std::string window_of(const WriteArguments& arguments, ExportWindow& window) {
    window.steps = steps_of(arguments.steps);
    if (!arguments.steps.empty() && !window.steps) {
        return "--steps " + arguments.steps +
               " is no range of steps: write 100:200 for steps 100 to 199, or one number";
    }
    window.layers = layers_of(arguments.layers);
    if (!arguments.layers.empty() && !window.layers) {
        return "--layers " + arguments.layers + " is no range of layers: write 0-3 for layers 0 to 3, or one number";
    }
    window.tracks = arguments.tracks;
    window.slowest = arguments.slowest;
    return {};
}

} // namespace

void add_write_options(CLI::App& app, WriteArguments& arguments, const std::vector<std::string>& formats) {
    app.add_option("--format", arguments.format, "Format to write")
        ->check(CLI::IsMember(formats))
        ->capture_default_str();
    app.add_option("-o,--output", arguments.output, "File to write; - is standard output")
        ->type_name("FILE")
        ->capture_default_str();
    app.add_option("--steps", arguments.steps,
                   "Only these steps: 100:200 is 100 to 199; 100: and :200 are open; or one")
        ->type_name("A:B");
    app.add_option("--layers", arguments.layers, "Only these layers: 0-3 is 0 to 3; or one")->type_name("A-B");
    app.add_option("--tracks", arguments.tracks, "Only these threads and queues: ids, or parts of names")
        ->type_name("T,T")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--slowest", arguments.slowest, "Only so many of the slowest steps")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
        ->type_name("N");
    app.add_flag("--json", arguments.json, "Print name and size of the file written as JSON");
}

int write_output(const WriteArguments& arguments) {
    ExportWindow window;
    if (const std::string wrong = window_of(arguments, window); !wrong.empty()) {
        return say_error(wrong, arguments.json);
    }
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
    std::vector<std::string> notes;
    {
        const Ticker ticker("writing " + arguments.output, [&file] { return file.written(); });
        Result<std::vector<std::string>> said =
            export_recording(arguments.recording, arguments.format, file.stream(), window);
        status = said.ok() ? file.commit() : said.error();
        if (said.ok()) {
            notes = std::move(*said);
        }
    }
    if (file.reader_left()) {
        return exit_ok;
    }
    if (!status.ok()) {
        return say_error(file.error_or(status.error()).message, arguments.json);
    }
    for (const std::string& note : notes) {
        std::cerr << "plumb: " << terminal_text(note) << '\n';
    }
    if (arguments.json) {
        std::cout << "{\"written\": " << json_text(arguments.output) << ", \"bytes\": " << file.written() << "}\n";
    }
    return exit_ok;
}

} // namespace plumb::cli
