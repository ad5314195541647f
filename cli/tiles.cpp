// SPDX-License-Identifier: Apache-2.0
// plumb tiles: what the tiles of kernels cost, level by level, and a map of them.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "plumb/tiles.hpp"

namespace {

using namespace plumb::cli;

struct TilesArguments {
    std::string recording;
    std::string level;
    bool json = false;
};

int tiles(const TilesArguments& arguments) {
    plumb::TileOptions options;
    options.level = plumb::tile_level_of_word(arguments.level);
    const plumb::Result<plumb::TileReport> result = [&] {
        const Ticker ticker("reading " + arguments.recording);
        return plumb::tiles_recording(arguments.recording, options);
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

void add_tiles(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<TilesArguments>();
    CLI::App& app = *root.add_subcommand("tiles", "Show the tiles of kernels: cost by level, a map, the slow ones");
    app.add_option("recording", arguments->recording, "Recording (.plumb); of a finished, killed or running process")
        ->type_name("FILE")
        ->required();
    app.add_option("--level", arguments->level, "Only the tiles of one level")
        ->check(CLI::IsMember({"macro", "midi", "micro"}));
    app.add_flag("--json", arguments->json, "As JSON (schema plumb.tiles/1)");
    app.callback([arguments, &exit_code] { exit_code = tiles(*arguments); });
}
