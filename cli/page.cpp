// SPDX-License-Identifier: Apache-2.0
// plumb page: recordings as one HTML file that needs nothing else. The page is a built template (web/); what is put into it are
// the documents of the answers, as they are.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/page_template.hpp"
#include "cli/ticker.hpp"
#include "plumb/answer.hpp"

namespace {

using namespace plumb::cli;

constexpr std::string_view place = "@PLUMB_DATA@";
constexpr const char* answers =
    "findings,wall,layers,layers:metric=mean,replays,requests,steps:slowest=40,timeline:slowest=5,histogram";

struct PageArguments {
    std::vector<std::string> recordings;
    std::string output;
    bool json = false;
};

/// JSON that may stand in a script element: nothing in it ends the element, opens a comment or ends a line. No space but in words.
void append_script_text(std::string& out, std::string_view json) {
    bool word = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        word = word != (c == '"');
        if (c == '<' || c == '>' || c == '&') {
            static constexpr char digits[] = "0123456789abcdef";
            out += "\\u00";
            out += digits[static_cast<unsigned char>(c) >> 4];
            out += digits[static_cast<unsigned char>(c) & 15];
        } else if (json.substr(i, 2) == "\xe2\x80" && i + 2 < json.size() &&
                   (json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
            out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
            i += 2;
        } else if (c == '\\') {
            out += json.substr(i++, 2); // what it escapes ends no word
        } else if (c != '\n' && (word || c != ' ')) {
            out += c;
        }
    }
}

/// Name of the file without its folders, which are nobody's business.
std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// The document with names of files where it has their paths, those in folders that were named among them.
std::string without_folders(std::string json, std::vector<std::string> paths) {
    for (std::size_t i = 0, named = paths.size(); i < named; ++i) {
        std::error_code error;
        for (std::filesystem::directory_iterator at(paths[i], error), end; !error && at != end; at.increment(error)) {
            paths.push_back(at->path().string());
        }
    }
    std::sort(paths.begin(), paths.end(),
              [](const std::string& a, const std::string& b) { return a.size() > b.size(); }); // one may begin another
    const auto inside = [](const std::string& text) {
        const std::string quoted = json_text(text);
        return quoted.substr(1, quoted.size() - 2);
    };
    for (const std::string& path : paths) {
        const std::string from = inside(path), to = inside(name_of(path));
        if (from == to || to.empty()) {
            continue;
        }
        for (std::size_t at = json.find(from); at != std::string::npos; at = json.find(from, at + to.size())) {
            json.replace(at, from.size(), to);
        }
    }
    return json;
}

std::string page_data(std::string_view key, const std::string& list) {
    return "{\"schema\": \"plumb.page/1\", \"version\": " + json_text(PLUMB_BUILD_VERSION) + ", \"" + std::string(key) +
           "\": [" + list + "]}";
}

plumb::Result<std::string> data_of(const std::vector<std::string>& recordings) {
    std::string runs;
    for (const std::string& recording : recordings) {
        const Ticker ticker("reading " + recording);
        const plumb::Result<plumb::Answer> answer = plumb::ask("report", {recording}, {{"with", answers}});
        if (!answer) {
            return answer.error();
        }
        runs += (runs.empty() ? "{\"file\": " : ", {\"file\": ") + json_text(name_of(recording)) +
                ", \"found\": " + answer->json() + "}";
    }
    return page_data("runs", runs);
}

/// Error: that of writing; a reader that has seen enough is none.
plumb::Status write_page(const std::string& output, const std::vector<std::string>& inputs, std::string_view data,
                         std::uint64_t& bytes) {
    plumb::Result<std::unique_ptr<OutputFile>> opened = OutputFile::open(output, inputs);
    if (!opened) {
        return opened.error();
    }
    OutputFile& file = **opened;
    const std::string page_text = page_template();
    const std::string_view page = page_text;
    const std::size_t at = page.find(place);
    std::string script;
    append_script_text(script, data);
    file.stream() << page.substr(0, at) << script << page.substr(at + place.size());
    const plumb::Status status = file.commit();
    bytes = file.written();
    return status.ok() || file.reader_left() ? plumb::Status{} : plumb::Status{file.error_or(status.error())};
}

int page(const PageArguments& arguments) {
    const std::string& first = arguments.recordings.front();
    const std::size_t stem = first.size() - (first.ends_with(".plumb") ? std::string_view(".plumb").size() : 0);
    const std::string output = arguments.output.empty() ? first.substr(0, stem) + ".html" : arguments.output;
    if (output == "-" && arguments.json) {
        return say_error("--json describes the file written: name one with -o", true);
    }
    const plumb::Result<std::string> data = data_of(arguments.recordings);
    if (!data) {
        return say_error(data.error().message, arguments.json);
    }
    std::uint64_t bytes = 0;
    if (const plumb::Status status = write_page(output, arguments.recordings, *data, bytes); !status) {
        return say_error(status.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << "{\"written\": " << json_text(output) << ", \"bytes\": " << bytes << "}\n";
    } else if (output != "-") {
        std::cout << "wrote " << terminal_text(output) << ", " << bytes / 1000 << " kB: open it in a browser\n";
    }
    return exit_ok;
}

} // namespace

plumb::Status plumb::cli::write_answer_page(const std::string& output, const std::vector<std::string>& inputs,
                                            const plumb::Answer& answer) {
    std::uint64_t bytes = 0;
    return write_page(output, inputs, page_data("found", without_folders(answer.json(), inputs)), bytes);
}

void add_page(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<PageArguments>();
    CLI::App& app = *root.add_subcommand("page", "Write recordings as one HTML file, to look at and to share");
    app.add_option("recordings", arguments->recordings, "Recordings (.plumb)")->type_name("FILE")->required();
    app.add_option("-o,--output", arguments->output,
                   "File to write; - is standard output (default: the first recording's name, .html)")
        ->type_name("FILE");
    app.add_flag("--json", arguments->json, "Print name and size of the file written as JSON");
    app.callback([arguments, &exit_code] { exit_code = page(*arguments); });
}
