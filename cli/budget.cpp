// SPDX-License-Identifier: Apache-2.0
// plumb budget: a target per token against what a run took, brick by brick.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/words.hpp"
#include "plumb/budget.hpp"

namespace {

using namespace plumb::cli;

struct BudgetArguments {
    std::string recording;
    std::optional<double> tokens_per_second, ms_per_token;
    std::vector<std::string> bricks;
    std::string phase = "decode";
    bool json = false;
};

plumb::Result<plumb::BudgetOptions> options_of(const BudgetArguments& arguments) {
    const auto wrong = [](const char* sentence) {
        return plumb::Error{plumb::ErrorCode::invalid_argument, sentence};
    };
    if (arguments.tokens_per_second.has_value() == arguments.ms_per_token.has_value()) {
        return wrong("give the target once: --tok/s 125 or --ms/token 8");
    }
    const double target = arguments.tokens_per_second.value_or(arguments.ms_per_token.value_or(0));
    plumb::BudgetOptions options;
    options.ns_per_token = arguments.ms_per_token ? target * 1e6 : 1e9 / target;
    if (!(target > 0) || !std::isfinite(target) || !(options.ns_per_token >= 1e-3 && options.ns_per_token <= 1e15)) {
        return wrong("the target is a number above 0, such as --tok/s 125 or --ms/token 8");
    }
    options.phase = phase_of_word(arguments.phase);
    for (const std::string& words : arguments.bricks) {
        const plumb::Result<plumb::BrickLimit> limit = plumb::parse_brick_limit(words);
        if (!limit) {
            return limit.error();
        }
        for (const plumb::BrickLimit& other : options.bricks) {
            if (other.brick == limit->brick) {
                return plumb::Error{plumb::ErrorCode::invalid_argument,
                                    "--brick gives " + limit->brick + " two limits; give it one"};
            }
        }
        options.bricks.push_back(*limit);
    }
    return options;
}

int budget(const BudgetArguments& arguments) {
    const plumb::Result<plumb::BudgetOptions> options = options_of(arguments);
    if (!options) {
        return say_error(options.error().message, arguments.json);
    }
    const plumb::Result<plumb::BudgetReport> result = [&] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::budget_recording(arguments.recording, *options);
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

void add_budget(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<BudgetArguments>();
    CLI::App& app = *root.add_subcommand(
        "budget", "Hold a run against a target per token: who breaks the budget, where there is room");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_option("--tok/s", arguments->tokens_per_second,
                   "Target: so many tokens per second, of all sequences together");
    app.add_option("--ms/token", arguments->ms_per_token, "Target: so many milliseconds per token");
    app.add_option("--brick", arguments->bricks,
                   "Limit of a brick, per token or per step: lm_head=400us, sampling=1ms/step; may be repeated")
        ->type_name("BRICK=TIME")
        ->allow_extra_args(false);
    app.add_option("--phase", arguments->phase, "Steps of this phase")
        ->check(CLI::IsMember({"decode", "prefill", "mixed"}))
        ->capture_default_str();
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.budget/1)");
    app.callback([arguments, &exit_code] { exit_code = budget(*arguments); });
}
