// SPDX-License-Identifier: Apache-2.0
// plumb check: invariants of a healthy profile, on one or several recordings.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/checks_file.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/words.hpp"
#include "plumb/invariants.hpp"

namespace {

using namespace plumb::cli;

struct CheckArguments {
    std::vector<std::string> recordings;
    std::vector<std::string> expected;
    std::optional<double> coverage, variation;
    std::optional<std::uint64_t> drops, pending;
    bool node_check = false;
    std::string file, phase;
    bool json = false;
};

/// What the file says, then what the command line says: that wins, and its counts come in addition.
plumb::Result<plumb::Invariants> invariants_of(const CheckArguments& arguments) {
    plumb::Invariants all;
    if (!arguments.file.empty()) {
        const plumb::Result<plumb::Invariants> read = read_checks_file(arguments.file);
        if (!read) {
            return read.error();
        }
        all = *read;
    }
    if (!arguments.phase.empty()) {
        all.phase = phase_of_word(arguments.phase);
    }
    for (const std::string& words : arguments.expected) {
        const plumb::Result<plumb::ExpectedCalls> expected = plumb::parse_expected_calls(words);
        if (!expected) {
            return expected.error();
        }
        all.calls.push_back(*expected);
    }
    const auto take = [](auto& into, const auto& from) {
        into = from ? from : into;
    };
    take(all.coverage, arguments.coverage);
    take(all.variation, arguments.variation);
    take(all.drops, arguments.drops);
    take(all.pending, arguments.pending);
    all.node_check = all.node_check || arguments.node_check;
    return all;
}

/// Reading an unsigned number would take -1 for the largest there is.
std::string from_zero_on(std::string& word) {
    return word.find('-') == std::string::npos ? "" : "takes a whole number from 0 on, not \"" + word + "\"";
}

int check(const CheckArguments& arguments) {
    const plumb::Result<plumb::Invariants> invariants = invariants_of(arguments);
    if (!invariants) {
        return say_error(invariants.error().message, arguments.json);
    }
    const plumb::Result<plumb::CheckReport> result = [&] {
        const Ticker ticker("reading " + arguments.recordings.front());
        return plumb::check_recordings(arguments.recordings, *invariants);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return exit_code_of(result->verdict);
}

} // namespace

void add_check(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<CheckArguments>();
    CLI::App& app = *root.add_subcommand(
        "check", "Check invariants of a healthy profile: calls per step, coverage, losses, node counts, variation");
    app.add_option("recording", arguments->recordings, "Recordings (.plumb); each is checked")
        ->type_name("FILE")
        ->required();
    app.add_option("--expect", arguments->expected,
                   "Calls of a brick in every step: lm_head=1/step or sampling=1/token; may be repeated")
        ->type_name("BRICK=COUNT")
        ->allow_extra_args(false);
    app.add_option("--coverage", arguments->coverage, "Leaf bricks cover at least this share of busy time, 0 to 1");
    app.add_option("--drops", arguments->drops, "At most so many records were lost")
        ->check(CLI::Validator(from_zero_on, ""));
    app.add_option("--pending", arguments->pending, "At most so many scopes were recorded but have no time")
        ->check(CLI::Validator(from_zero_on, ""));
    app.add_flag("--node-check", arguments->node_check,
                 "No captured graph changed its kernels from one capture to the next, or has a value baked in");
    app.add_option("--cv", arguments->variation,
                   "Over at least 3 recordings: standard deviation / mean of their mean periods is at most this");
    app.add_option("--phase", arguments->phase,
                   "For --expect, --coverage and --cv: steps of this phase (default decode)")
        ->check(CLI::IsMember({"decode", "prefill", "mixed"}));
    app.add_option("--file", arguments->file, "Take checks from this file (schema plumb.checks/1)")->type_name("JSON");
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.check/1)");
    app.callback([arguments, &exit_code] { exit_code = check(*arguments); });
}
