// SPDX-License-Identifier: Apache-2.0
// plumb help: the same text as --help, docs/reference/cli.md and the page for man, all made from the command tree.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/nearest.hpp"
#include "cli/output.hpp"
#include "plumb/answer.hpp"

namespace {

using namespace plumb::cli;

std::string escaped(std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
        text.insert(at, 1, '\\');
    }
    return text;
}

void print_options(const CLI::App& app) {
    std::cout << "| option | value | meaning |\n|---|---|---|\n";
    for (const CLI::Option* option : visible_options(app)) {
        std::cout << "| `" << escaped(names_of(*option)) << "` | " << escaped(value_of(*option)) << " | "
                  << escaped(meaning_of(*option)) << " |\n";
    }
}

void print_command(const CLI::App& app) {
    std::cout << "\n## " << path_of(app) << "\n" << app.get_description() << ".\n\n    " << usage_of(app) << "\n\n";
    print_options(app);
    for (const CLI::App* command : visible_commands(app)) {
        print_command(*command);
    }
}

void print_markdown(const CLI::App& root) {
    std::cout << "# The command `plumb`\n\nMade by `plumb help --markdown`; a test compares the two.\n\n"
              << root.get_description() << ".\n\n| command | what it does |\n|---|---|\n";
    for (const CLI::App* command : visible_commands(root)) {
        std::cout << "| `plumb " << command->get_name() << "` | " << escaped(command->get_description()) << " |\n";
    }
    std::cout << "\n"
              << root.get_footer()
              << " With `--json` an error is `{\"error\": \"…\"}` on standard output, else one line on standard error. "
                 "Colour appears only on a terminal and not where NO_COLOR is set.\n";
    for (const CLI::App* command : visible_commands(root)) {
        print_command(*command);
    }
}

/// As roff reads it: no line of a text is a request, no hyphen is broken.
std::string roff(const std::string& text) {
    std::string out = "\\&";
    for (const char c : text) {
        out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    }
    return out + "\n";
}

void print_man_command(const CLI::App& app) {
    std::cout << ".SH " << roff(path_of(app)) << roff(app.get_description() + ".") << ".PP\n" << roff(usage_of(app));
    for (const CLI::Option* option : visible_options(app)) {
        std::cout << ".TP\n" << roff(names_of(*option) + " " + value_of(*option)) << roff(meaning_of(*option));
    }
    for (const CLI::App* command : visible_commands(app)) {
        print_man_command(*command);
    }
}

void print_man(const CLI::App& root) {
    std::cout << ".TH PLUMB 1 \"\" \"" << root.version() << "\"\n.ad l\n.SH NAME\n"
              << roff("plumb - " + root.get_description()) << ".SH SYNOPSIS\n"
              << roff(usage_of(root)) << ".SH EXIT STATUS\n"
              << roff(root.get_footer());
    for (const CLI::App* command : visible_commands(root)) {
        print_man_command(*command);
    }
}

struct HelpArguments {
    std::vector<std::string> command;
    std::string schema;
    bool markdown = false;
    bool reference = false;
    bool man = false;
};

int print_schema(const std::string& name) {
    const plumb::Result<std::string> schema = plumb::json_schema(name);
    if (!schema) {
        return say_error(schema.error().message, false);
    }
    std::cout << *schema;
    return exit_ok;
}

int help(const CLI::App& root, const HelpArguments& arguments) {
    if (arguments.markdown) {
        print_markdown(root);
        return exit_ok;
    }
    if (arguments.man) {
        print_man(root);
        return exit_ok;
    }
    if (arguments.reference) {
        std::cout << plumb::json_reference();
        return exit_ok;
    }
    if (!arguments.schema.empty()) {
        return print_schema(arguments.schema);
    }
    const CLI::App* app = &root;
    for (const std::string& word : arguments.command) {
        std::vector<std::string> names;
        const CLI::App* found = nullptr;
        for (const CLI::App* command : visible_commands(*app)) {
            names.push_back(command->get_name());
            found = command->get_name() == word ? command : found;
        }
        if (found == nullptr) {
            const std::string near = nearest(word, names);
            return say_error("there is no command \"" + word + "\"" +
                                 (near.empty() ? "; see plumb --help" : "; did you mean " + near + "?"),
                             false);
        }
        app = found;
    }
    std::cout << help_of(*app);
    return exit_ok;
}

} // namespace

void add_help(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<HelpArguments>();
    CLI::App& app = *root.add_subcommand("help", "Show the help of a command");
    app.add_option("command", arguments->command, "Command to explain");
    app.add_option("--schema", arguments->schema, "Print the JSON Schema of an output, such as plumb.wall/2")
        ->type_name("SCHEMA");
    app.add_flag("--reference", arguments->reference, "All outputs in JSON, field by field, in Markdown")->group("");
    app.add_flag("--man", arguments->man, "All commands, as a page for man")->group("");
    app.add_flag("--markdown", arguments->markdown, "All commands, as docs/reference/cli.md has them")->group("");
    app.callback([arguments, &root, &exit_code] { exit_code = help(root, *arguments); });
}
