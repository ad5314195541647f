// SPDX-License-Identifier: Apache-2.0
// plumb completion: a script for a shell that asks this command, at each key, what may follow the words typed so far. The answer
// comes from the command tree, so the script never changes.
#include <algorithm>
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/help_text.hpp"
#include "cli/output.hpp"

namespace {

using namespace plumb::cli;

constexpr const char* bash_script = R"sh(# bash: source <(plumb completion bash)
_plumb() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null))
}
complete -o default -F _plumb plumb
)sh";

// Sourced, and as a file in fpath, whose first use is a call of what it defines.
constexpr const char* zsh_script = R"sh(#compdef plumb
# zsh: source <(plumb completion zsh)
_plumb() {
  local found=(${(f)"$("${words[1]}" completion zsh -- "${(@)words[1,CURRENT]}" 2>/dev/null)"})
  if (( ${#found} )); then compadd -- $found; else _files; fi
}
if [[ ${funcstack[1]} == _plumb ]]; then _plumb; else compdef _plumb plumb; fi
)sh";

constexpr const char* fish_script = R"sh(# fish: plumb completion fish | source
function __plumb_words
  set -l before (commandline -opc)
  set -l current (commandline -ct)
  $before[1] completion fish -- $before "$current" 2>/dev/null
end
complete -c plumb -n 'count (__plumb_words) >/dev/null' -f -a '(__plumb_words)'
)sh";

struct Candidate {
    std::string word, meaning;
};

/// What may stand where the last of `words` is being typed; the first is the name of the command. Empty: a file.
std::vector<Candidate> candidates(const CLI::App& root, const std::vector<std::string>& words) {
    const CLI::App* app = &root;
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        for (const CLI::App* command : visible_commands(*app)) {
            if (command->get_name() == words[i]) {
                app = command;
                break;
            }
        }
    }
    const std::string before = words.size() < 2 ? "" : words[words.size() - 2];
    std::vector<Candidate> values, flags, plain;
    for (const CLI::App* command : visible_commands(*app)) {
        plain.push_back({command->get_name(), command->get_description()});
    }
    for (const CLI::Option* option : visible_options(*app)) {
        for (const std::string& flag : flags_of(*option)) {
            flags.push_back({flag, option->get_description()});
        }
        const bool follows = !option->get_positional() && option->check_name(before);
        for (const std::string& choice : choices_of(*option)) {
            if (follows || option->get_positional()) {
                (follows ? values : plain).push_back({choice, option->get_description()});
            }
        }
    }
    return !values.empty() ? values : words.back().starts_with('-') ? flags : plain;
}

void print_candidates(const CLI::App& root, const std::vector<std::string>& words, bool meanings) {
    for (const Candidate& candidate : candidates(root, words)) {
        if (candidate.word.starts_with(words.back())) {
            std::cout << candidate.word << (meanings ? "\t" + candidate.meaning : "") << '\n';
        }
    }
}

} // namespace

void add_completion(CLI::App& root, int& exit_code) {
    auto shell = std::make_shared<std::string>();
    auto words = std::make_shared<std::vector<std::string>>();
    CLI::App& app = *root.add_subcommand("completion", "Print a script that completes commands and options in a shell");
    app.add_option("shell", *shell, "Shell to complete in")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.add_option("words", *words, "Instead: print what the last of these words may become (after --)");
    app.callback([shell, words, &root, &exit_code] {
        exit_code = exit_ok;
        if (!words->empty()) {
            print_candidates(root, *words, *shell == "fish");
            return;
        }
        std::cout << (*shell == "bash" ? bash_script : *shell == "zsh" ? zsh_script : fish_script);
    });
}
