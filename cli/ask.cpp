// SPDX-License-Identifier: Apache-2.0
// Every answer as a subcommand, made from what the library lists: plumb wall run.plumb --phase decode is
// ask("wall", {"run.plumb"}, {{"phase", "decode"}}).
#include <charconv>
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/imported_traces.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/rank_traces.hpp"
#include "cli/ticker.hpp"
#include "cli/words.hpp"
#include "plumb/answer.hpp"

namespace {

using namespace plumb::cli;
using Kind = plumb::AnswerOption::Kind;

struct Question {
    const plumb::AnswerInfo* info = nullptr;
    std::map<std::string, std::vector<std::string>> files; // by name of the argument
    plumb::OptionValues options;
    bool json = false;
    bool markdown = false;
    std::string page;  // file to write; empty: none
    std::string trace; // the same
};

plumb::Result<std::vector<std::string>> files_of(const Question& question, ImportedTraces& traces) {
    std::vector<std::string> files;
    for (const plumb::AnswerFile& file : question.info->files) {
        const auto given = question.files.find(file.name);
        if (given == question.files.end()) {
            continue;
        }
        std::vector<std::string> paths = given->second;
        if (file.name == "trace") {
            plumb::Result<std::vector<std::string>> imported = traces.recordings_of(paths);
            if (!imported) {
                return imported.error();
            }
            paths = *std::move(imported);
        }
        files.insert(files.end(), paths.begin(), paths.end());
    }
    return files;
}

/// Files and folders: of the arguments, and of options that take one.
std::vector<std::string> paths_of(const Question& question) {
    std::vector<std::string> paths;
    for (const auto& [name, given] : question.files) {
        paths.insert(paths.end(), given.begin(), given.end());
    }
    for (const auto& [name, value] : question.options) {
        for (const plumb::AnswerOption& option : question.info->options) {
            if (option.name == name && (option.value == "FILE" || option.value == "FOLDER")) {
                paths.push_back(value);
            }
        }
    }
    return paths;
}

std::string shown(const Question& question, const plumb::Answer& answer) {
    return question.json       ? answer.json()
           : question.markdown ? answer.markdown()
                               : answer.text({stdout_has_color(), stdout_columns()});
}

/// Out of line: a debugger stops here (docs/internals/architecture.md).
PLUMB_NOINLINE int answer(const Question& question) {
    ImportedTraces traces;
    const std::vector<std::string> paths = paths_of(question);
    const plumb::Result<plumb::Answer> answer = [&]() -> plumb::Result<plumb::Answer> {
        const Ticker ticker("reading " +
                            (paths.size() == 1 ? paths.front() : std::to_string(paths.size()) + " recordings"));
        const plumb::Result<std::vector<std::string>> files = files_of(question, traces);
        return files ? plumb::ask(question.info->name, *files, question.options)
                     : plumb::Result<plumb::Answer>(files.error());
    }();
    if (!answer) {
        return say_error(answer.error().message, question.json);
    }
    if (!question.page.empty()) {
        const plumb::Status written = write_answer_page(question.page, paths, *answer);
        if (!written) {
            return say_error(written.error().message, question.json);
        }
    }
    if (!question.trace.empty()) {
        const plumb::Status written = write_rank_traces(question.trace, paths, *answer);
        if (!written) {
            return say_error(written.error().message, question.json);
        }
    }
    std::cout << shown(question, *answer);
    return exit_code_of(answer->outcome());
}

std::string text_of(std::uint64_t value) { return std::to_string(value); }
std::string text_of(double value) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
std::string text_of(const std::string& value) { return value; }

/// An option whose value the library reads as T, so that what does not fit is refused where it was typed.
template <class T>
CLI::Option* add_value(CLI::App& app, const plumb::AnswerOption& option, const std::shared_ptr<Question>& question) {
    return app.add_option_function<T>(
        "--" + option.name,
        [question, name = option.name](const T& value) { question->options.emplace_back(name, text_of(value)); },
        option.meaning);
}

CLI::Option* add_list(CLI::App& app, const plumb::AnswerOption& option, const std::shared_ptr<Question>& question) {
    CLI::Option* added = app.add_option_function<std::vector<std::string>>(
        "--" + option.name,
        [question, name = option.name](const std::vector<std::string>& values) {
            for (const std::string& value : values) {
                question->options.emplace_back(name, value);
            }
        },
        option.meaning);
    return option.several ? added : added->allow_extra_args(false);
}

CLI::Option* add_option(CLI::App& app, const plumb::AnswerOption& option, const std::shared_ptr<Question>& question) {
    if (option.kind == Kind::flag) {
        return app.add_flag_callback(
            "--" + option.name,
            [question, name = option.name, json = option.json] {
                question->options.emplace_back(name, "");
                question->json = question->json || json;
            },
            option.meaning);
    }
    CLI::Option* added = option.repeated               ? add_list(app, option, question)
                         : option.kind == Kind::count  ? add_value<std::uint64_t>(app, option, question)
                         : option.kind == Kind::number ? add_value<double>(app, option, question)
                                                       : add_value<std::string>(app, option, question);
    if (!option.value.empty()) {
        added->type_name(option.value);
    }
    if (!option.choices.empty()) {
        added->check(CLI::IsMember(option.choices));
    }
    if (option.most != 0) {
        added->check(CLI::Range(std::uint64_t{0}, option.most));
    }
    if (!option.initial.empty()) {
        added->default_str(option.initial);
    }
    return added;
}

using Added = std::map<std::string, CLI::Option*>; // by name

void add_files(CLI::App& app, const plumb::AnswerInfo& info, const std::shared_ptr<Question>& question, Added& all) {
    for (const plumb::AnswerFile& file : info.files) {
        CLI::Option* added =
            file.several
                ? app.add_option(file.name, question->files[file.name], file.meaning)
                : app.add_option_function<std::string>(
                      file.name,
                      [question, name = file.name](const std::string& path) { question->files[name] = {path}; },
                      file.meaning);
        all[file.name] = added->type_name("FILE")->required(file.required);
    }
}

} // namespace

void add_answer(CLI::App& root, const plumb::AnswerInfo& info, int& exit_code) {
    auto question = std::make_shared<Question>();
    question->info = &info;
    CLI::App& app = *root.add_subcommand(info.name, info.summary);
    Added added;
    add_files(app, info, question, added);
    for (const plumb::AnswerOption& option : info.options) {
        added[option.name] = add_option(app, option, question);
    }
    if (!info.json.empty()) {
        added["json"] = app.add_flag("--json", question->json, info.json);
    }
    if (!info.markdown.empty()) {
        added["markdown"] = app.add_flag("--markdown", question->markdown, info.markdown)->excludes(added.at("json"));
    }
    if (has_page(info.name)) {
        added["page"] =
            app.add_option("--page", question->page, "Also write it as one HTML file, to look at and to share")
                ->type_name("FILE");
    }
    if (info.name == "ranks") {
        added["trace"] = app.add_option("--trace", question->trace,
                                        "Also write the traces of all ranks, on one clock, as one TAR for Perfetto")
                             ->type_name("FILE");
    }
    for (const plumb::AnswerOption& option : info.options) {
        for (const std::string& other : option.excludes) {
            added.at(option.name)->excludes(added.at(other));
        }
    }
    app.callback([question, &exit_code] { exit_code = answer(*question); });
}
