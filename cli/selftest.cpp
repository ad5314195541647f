// SPDX-License-Identifier: Apache-2.0
// plumb selftest: what this machine can measure, how well, and what it cannot and why.
#include "plumb/command_json.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/peaks.hpp"

namespace {

using namespace plumb::cli;

void print_line(const std::string& name, const std::string& value) {
    constexpr std::size_t columns = 27; // the longest name of a capability
    std::cout << terminal_text(fmt::format("    {:<{}} {}", name, columns, value)) << '\n';
}

void print_figure(const char* name, const plumb::Figure& figure, const char* unit) {
    print_line(name,
               figure.value ? fmt::format("{:.1f} {}", *figure.value, unit) : fmt::format("n/a ({})", figure.reason));
}

void print_capabilities(const std::vector<plumb::Capability>& capabilities) {
    for (const plumb::Capability& capability : capabilities) {
        print_line(capability.name, capability.supported ? std::string("yes") : "no: " + capability.reason);
    }
}

void print_device(const plumb::DeviceSelfTest& test) {
    const std::string driver = test.device.driver.empty() ? std::string() : ", driver " + test.device.driver;
    std::cout << terminal_text(fmt::format("  {}: {}{}", test.device.index, test.device.name, driver)) << '\n';
    print_line("source", test.source.empty() ? "none" : test.source + " on clock " + test.clock);
    plumb::Figure megahertz = test.ticks_per_second;
    if (megahertz.value) {
        megahertz.value = *megahertz.value / 1e6;
    }
    print_figure("clock rate", megahertz, "MHz");
    print_figure("floor (empty scope)", test.floor_ns, "ns");
    print_figure("begin and end", test.begin_end_ns, "ns");
    print_figure("clock read", test.clock_read_ns, "ns");
    print_figure("clock pair", test.clock_pair_ns, "ns");
    print_figure("clock fit, residual", test.fit_residual_ns, "ns");
    print_figure("clock fit, bound", test.fit_bound_ns, "ns");
    print_capabilities(test.device.capabilities);
    print_capabilities(test.capabilities);
}

void print_text(const plumb::SelfTest& test) {
    std::cout << terminal_text(test.cpu.empty() ? "cpu: unknown" : test.cpu) << '\n'
              << terminal_text("clock " + test.clock + ": " + test.clock_reason) << '\n';
    for (const plumb::BackendSelfTest& backend : test.backends) {
        std::cout << terminal_text(backend.name +
                                   (backend.unavailable.empty() ? "" : ": unavailable: " + backend.unavailable))
                  << '\n';
        for (const plumb::DeviceSelfTest& device : backend.devices) {
            print_device(device);
        }
    }
}

int selftest(bool as_json) {
    const plumb::Result<plumb::SelfTest> test = plumb::run_selftest();
    if (!test) {
        return say_error(test.error().message, as_json);
    }
    if (as_json) {
        std::cout << plumb::render_json(*test);
    } else {
        print_text(*test);
    }
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
