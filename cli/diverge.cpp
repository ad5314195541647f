// SPDX-License-Identifier: Apache-2.0
// plumb diverge: the first operation where two recorded runs part.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/numerics.hpp"

namespace {

using namespace plumb::cli;

struct DivergeArguments {
    std::string a, b;
    std::optional<double> tolerance;
    std::string expect;
    bool json = false;
};

int diverge(const DivergeArguments& arguments) {
    if (arguments.tolerance && arguments.expect == "exact") {
        return say_error("--expect exact leaves no tolerance; give one of the two", arguments.json);
    }
    plumb::DivergeOptions options;
    options.tolerance = arguments.tolerance;
    options.exact = arguments.expect == "exact";
    plumb::Result<plumb::DivergeReport> result = [&] {
        const Ticker ticker("comparing " + arguments.a + " and " + arguments.b);
        return plumb::diverge_recordings(arguments.a, arguments.b, options);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return result->same() ? exit_ok : exit_failed;
}

} // namespace

void add_diverge(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<DivergeArguments>();
    CLI::App& app = *root.add_subcommand("diverge", "Name the first operation where two recorded runs part");
    app.add_option("a", arguments->a, "Recording made with tensors=all (.plumb): the reference")
        ->type_name("FILE")
        ->required();
    app.add_option("b", arguments->b, "Recording to compare with it")->type_name("FILE")->required();
    app.add_option("--tolerance", arguments->tolerance,
                   "Relative L2 distance that counts as the same (default: by the coarsest element type)");
    app.add_option("--expect", arguments->expect, "exact: all bits must agree")->check(CLI::IsMember({"exact"}));
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.diverge/1)");
    app.callback([arguments, &exit_code] { exit_code = diverge(*arguments); });
}
