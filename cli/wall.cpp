// SPDX-License-Identifier: Apache-2.0
// plumb wall: where the wall clock went, who waits for whom, and what there is to gain.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/words.hpp"
#include "plumb/wall.hpp"

namespace {

using namespace plumb::cli;

struct WallArguments {
    std::string recording;
    std::string phase;
    std::optional<std::uint64_t> step;
    std::size_t slowest = 0;
    bool json = false;
};

int wall(const WallArguments& arguments) {
    plumb::WallOptions options;
    if (!arguments.phase.empty()) {
        options.phase = phase_of_word(arguments.phase);
    }
    options.step = arguments.step;
    options.slowest = arguments.slowest;
    const plumb::Result<plumb::WallReport> result = [&] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::wall_recording(arguments.recording, options);
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

void add_wall(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<WallArguments>();
    CLI::App& app = *root.add_subcommand(
        "wall", "Show who was busy and who waited for whom: host-bound or device-bound, and what there is to gain");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    CLI::Option* phase = app.add_option("--phase", arguments->phase, "Only the steps of one phase")
                             ->check(CLI::IsMember({"decode", "prefill", "mixed"}));
    CLI::Option* step = app.add_option("--step", arguments->step, "Only the step of this number");
    CLI::Option* slowest =
        app.add_option("--slowest", arguments->slowest, "Also list so many of the slowest steps (at most 1000)")
            ->check(CLI::Range(std::size_t{0}, std::size_t{1000}));
    step->excludes(phase)->excludes(slowest);
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.wall/1)");
    app.callback([arguments, &exit_code] { exit_code = wall(*arguments); });
}
