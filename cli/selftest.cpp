// SPDX-License-Identifier: Apache-2.0
// plumb selftest: what this machine can measure, how well, and what it cannot and why.
#include "plumb/selftest.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/peaks.hpp"

namespace {

using namespace plumb::cli;

int selftest(bool as_json) {
    const plumb::Result<plumb::Answer> answer = plumb::run_selftest();
    if (!answer) {
        return say_error(answer.error().message, as_json);
    }
    std::cout << (as_json ? answer->json() : answer->text());
    return exit_ok;
}

} // namespace

void add_selftest(CLI::App& root, int& exit_code) {
    auto as_json = std::make_shared<bool>(false);
    auto peaks = std::make_shared<bool>(false);
    CLI::App& app =
        *root.add_subcommand("selftest", "Measure floor, cost and clock fit of every source on this machine");
    app.add_flag("--json", *as_json, "As JSON (schema plumb.selftest/1; with --peaks plumb.peaks/1)");
    app.add_flag(
        "--peaks", *peaks,
        "Instead: measure read bandwidth and FLOP/s with all cores, some seconds, and keep them for recordings");
    app.callback(
        [as_json, peaks, &exit_code] { exit_code = *peaks ? measure_and_store_peaks(*as_json) : selftest(*as_json); });
}
