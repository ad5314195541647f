// SPDX-License-Identifier: Apache-2.0
// plumb path: the execution graph of one step, its critical path and what to shorten.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/execgraph.hpp"

namespace {

using namespace plumb::cli;

struct PathArguments {
    std::string recording;
    std::optional<std::uint64_t> step;
    std::uint64_t window_us = 1000;
    bool tree = false;
    bool dot = false;
    bool csr = false;
    bool json = false;
};

std::string rendered(const PathArguments& arguments, const plumb::PathReport& report) {
    if (arguments.tree) {
        return plumb::render_tree(report.graph, report.analysis);
    }
    if (arguments.dot) {
        return plumb::render_dot(report.graph, report.analysis);
    }
    if (arguments.csr) {
        return plumb::render_csr(report.graph);
    }
    return arguments.json ? plumb::render_json(report)
                          : plumb::render_text(report, {stdout_has_color(), stdout_columns()});
}

int path(const PathArguments& arguments) {
    plumb::Result<plumb::PathReport> result = [&arguments] {
        const Ticker ticker("reading " + arguments.recording);
        plumb::PathOptions options;
        options.step = arguments.step;
        options.window_ns = static_cast<std::int64_t>(arguments.window_us) * 1000;
        return plumb::path_recording(arguments.recording, options);
    }();
    if (!result) {
        return say_error(result.error().message, arguments.json || arguments.csr);
    }
    std::cout << rendered(arguments, *result);
    return exit_ok;
}

} // namespace

void add_path(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<PathArguments>();
    CLI::App& app =
        *root.add_subcommand("path", "Show the critical path of a step, what has slack and what to shorten");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_option("--step", arguments->step, "Number of the step (default: the decode step of median length)");
    app.add_option("--window", arguments->window_us,
                   "Transfers that come back within so many us are ping-pong (default 1000)")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{3'600'000'000}));
    CLI::Option* tree = app.add_flag("--tree", arguments->tree, "What contains what, with times and slack");
    CLI::Option* dot = app.add_flag("--dot", arguments->dot, "The graph for Graphviz");
    CLI::Option* csr = app.add_flag("--csr", arguments->csr, "The graph in compressed rows (schema plumb.path_csr/1)");
    CLI::Option* json = app.add_flag("--json", arguments->json, "As JSON (schema plumb.path/1)");
    tree->excludes(dot)->excludes(csr)->excludes(json);
    dot->excludes(csr)->excludes(json);
    csr->excludes(json);
    app.callback([arguments, &exit_code] { exit_code = path(*arguments); });
}
