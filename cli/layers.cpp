// SPDX-License-Identifier: Apache-2.0
// plumb layers: bricks across layers, and the layers that are unlike the others.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/words.hpp"
#include "plumb/layers.hpp"

namespace {

using namespace plumb::cli;

struct LayersArguments {
    std::string recording;
    std::string metric = "p50";
    std::string phase;
    bool json = false;
};

int layers(const LayersArguments& arguments) {
    plumb::LayerOptions options;
    options.metric = plumb::metric_of_word(arguments.metric).value_or(plumb::LayerMetric::p50);
    if (!arguments.phase.empty()) {
        options.phase = phase_of_word(arguments.phase);
    }
    const plumb::Result<plumb::LayerReport> result = [&] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::layers_recording(arguments.recording, options);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json);
    }
    if (arguments.json) {
        std::cout << plumb::render_json(*result);
    } else {
        std::cout << plumb::render_text(*result, {stdout_has_color(), stdout_columns()});
    }
    return exit_ok;
}

} // namespace

void add_layers(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<LayersArguments>();
    CLI::App& app = *root.add_subcommand("layers", "Show every brick in every layer, and the layers that are odd");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_option("--metric", arguments->metric,
                   "What to compare: of a call; sum, self and calls per step; roofline: percent of it")
        ->check(CLI::IsMember({"p50", "p90", "p99", "mean", "max", "sum", "self", "calls", "roofline"}))
        ->capture_default_str();
    app.add_option("--phase", arguments->phase, "Only the steps of one phase")
        ->check(CLI::IsMember({"decode", "prefill", "mixed"}));
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.layers/1)");
    app.callback([arguments, &exit_code] { exit_code = layers(*arguments); });
}
