// SPDX-License-Identifier: Apache-2.0
// plumb health: whether the tensors of a run are sound, layer by layer.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/numerics.hpp"

namespace {

using namespace plumb::cli;

struct HealthArguments {
    std::string recording;
    std::string twin;
    bool json = false;
};

int health(const HealthArguments& arguments) {
    plumb::Result<plumb::HealthReport> result = [&arguments] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::health_recording(arguments.recording, arguments.twin);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return result->finite() ? exit_ok : exit_failed;
}

} // namespace

void add_health(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<HealthArguments>();
    CLI::App& app =
        *root.add_subcommand("health", "Show whether the tensors of a run are sound: NaN, range, growth, by layer");
    app.add_option("recording", arguments->recording, "Recording made with tensors=all or tensors=nonfinite (.plumb)")
        ->type_name("FILE")
        ->required();
    app.add_option("--against", arguments->twin, "Recording of the same run in full precision: error, cosine, SNR")
        ->type_name("FILE");
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.health/1)");
    app.callback([arguments, &exit_code] { exit_code = health(*arguments); });
}
