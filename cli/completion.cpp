// SPDX-License-Identifier: Apache-2.0
// plumb completion: scripts that complete commands, options and their values in a shell, made from the command tree.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace {

using namespace plumb::cli;

/// Calls visit(path, app) for the root (path "") and every command below it ("/report", "/model/make").
void walk(const CLI::App& app, const std::string& path,
          const std::function<void(const std::string&, const CLI::App&)>& visit) {
    visit(path, app);
    for (const CLI::App* command : visible_commands(app)) {
        walk(*command, path + "/" + command->get_name(), visit);
    }
}

std::string words_of(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : " ") + word;
    }
    return out;
}

std::vector<std::string> command_words(const CLI::App& app) {
    std::vector<std::string> words;
    for (const CLI::App* command : visible_commands(app)) {
        words.push_back(command->get_name());
    }
    return words;
}

std::vector<std::string> option_words(const CLI::App& app) {
    std::vector<std::string> words;
    for (const CLI::Option* option : visible_options(app)) {
        for (const std::string& flag : flags_of(*option)) {
            words.push_back(flag);
        }
    }
    return words;
}

/// Values that an option or an argument may take, with the words that may stand before them ("" for an argument).
void for_each_choice(const CLI::App& app,
                     const std::function<void(const std::string& flag, const std::string& values)>& visit) {
    for (const CLI::Option* option : visible_options(app)) {
        const std::vector<std::string> choices = choices_of(*option);
        if (choices.empty()) {
            continue;
        }
        if (option->get_positional()) {
            visit("", words_of(choices));
        }
        for (const std::string& flag : flags_of(*option)) {
            visit(flag, words_of(choices));
        }
    }
}

/// Shell lines that follow the words of the command line into `at`, shared by bash and zsh.
std::string path_cases(const CLI::App& root) {
    std::string out;
    walk(root, "", [&out](const std::string& path, const CLI::App&) {
        if (!path.empty()) {
            out += (out.empty() ? "" : "|") + path;
        }
    });
    return "    case \"$at/$word\" in\n      " + out + ") at=\"$at/$word\" ;;\n    esac\n";
}

/// Shell functions that print what may stand at a command: options, and other words. Shared by bash and zsh.
std::string word_functions(const CLI::App& root) {
    std::string options, plain;
    walk(root, "", [&](const std::string& path, const CLI::App& app) {
        std::string words = words_of(command_words(app));
        for_each_choice(app, [&words](const std::string& flag, const std::string& choices) {
            words += flag.empty() ? (words.empty() ? "" : " ") + choices : "";
        });
        plain += "    \"" + path + "\") echo \"" + words + "\" ;;\n";
        options += "    \"" + path + "\") echo \"" + words_of(option_words(app)) + "\" ;;\n";
    });
    return "_plumb_options() {\n  case \"$1\" in\n" + options + "  esac\n}\n" + "_plumb_plain() {\n  case \"$1\" in\n" +
           plain + "  esac\n}\n";
}

/// Shell lines that set `words` from `at`, `before` and `current`, shared by bash and zsh.
std::string word_cases(const CLI::App& root) {
    std::string out = "  case \"$at $before\" in\n";
    walk(root, "", [&out](const std::string& path, const CLI::App& app) {
        for_each_choice(app, [&](const std::string& flag, const std::string& choices) {
            out += flag.empty() ? "" : "    \"" + path + " " + flag + "\") words=\"" + choices + "\" ;;\n";
        });
    });
    return out + "    *) case \"$current\" in\n"
                 "         -*) words=\"$(_plumb_options \"$at\")\" ;;\n"
                 "         *) words=\"$(_plumb_plain \"$at\")\" ;;\n"
                 "       esac ;;\n  esac\n";
}

std::string bash_script(const CLI::App& root) {
    return "# bash: source <(plumb completion bash)\n" + word_functions(root) +
           "_plumb() {\n"
           "  local current=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" at=\"\" word words=\"\"\n"
           "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
           path_cases(root) + "  done\n" + word_cases(root) +
           "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "}\n"
           "complete -o default -F _plumb plumb\n";
}

std::string zsh_script(const CLI::App& root) {
    return "#compdef plumb\n# zsh: source <(plumb completion zsh)\n" + word_functions(root) +
           "_plumb() {\n"
           "  local current=\"${words[CURRENT]}\" before=\"${words[CURRENT-1]}\" at=\"\" word line=(\"${words[@]}\")\n"
           "  for word in \"${line[@]:1:CURRENT-2}\"; do\n" +
           path_cases(root) + "  done\n  local words=\"\"\n" + word_cases(root) +
           "  if [[ -n \"$words\" ]]; then compadd -- ${=words}; else _files; fi\n"
           "}\n"
           "compdef _plumb plumb\n";
}

std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char character : text) {
        out += character == '\'' ? "\\'" : std::string(1, character);
    }
    return out + "'";
}

void append_fish_options(std::string& out, const std::string& path, const CLI::App& app) {
    const std::string head = "complete -c plumb -n " + quoted("__plumb_at " + (path.empty() ? "/" : path));
    for (const CLI::App* command : visible_commands(app)) {
        out += head + " -f -a " + command->get_name() + " -d " + quoted(command->get_description()) + "\n";
    }
    for (const CLI::Option* option : visible_options(app)) {
        const std::string choices = words_of(choices_of(*option));
        if (option->get_positional()) {
            out += choices.empty() ? "" : head + " -f -a " + quoted(choices) + "\n";
            continue;
        }
        out += head;
        for (const std::string& flag : flags_of(*option)) {
            out += flag[1] == '-' ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
        }
        if (!choices.empty()) {
            out += " -x -a " + quoted(choices);
        } else if (option->get_items_expected_max() > 0) {
            out += " -r";
        }
        out += " -d " + quoted(option->get_description()) + "\n";
    }
}

std::string fish_script(const CLI::App& root) {
    std::string paths, lines;
    walk(root, "", [&](const std::string& path, const CLI::App& app) {
        paths += path.empty() ? "" : " " + path;
        append_fish_options(lines, path, app);
    });
    return "# fish: plumb completion fish | source\n"
           "function __plumb_at\n"
           "  set -l at\n"
           "  for word in (commandline -opc)[2..-1]\n"
           "    contains -- \"$at/$word\"" +
           paths +
           "; and set at \"$at/$word\"\n"
           "  end\n"
           "  test -n \"$at\"; or set at /\n"
           "  test \"$at\" = \"$argv[1]\"\n"
           "end\n" +
           lines;
}

} // namespace

void add_completion(CLI::App& root, int& exit_code) {
    auto shell = std::make_shared<std::string>();
    CLI::App& app = *root.add_subcommand("completion", "Print a script that completes commands and options in a shell");
    app.add_option("shell", *shell, "Shell to complete in")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.callback([shell, &root, &exit_code] {
        std::cout << (*shell == "bash" ? bash_script(root) : *shell == "zsh" ? zsh_script(root) : fish_script(root));
        exit_code = exit_ok;
    });
}
