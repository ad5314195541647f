// SPDX-License-Identifier: Apache-2.0
#include "cli/peaks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "cli/output.hpp"
#include "plumb/selftest.hpp"
#ifdef PLUMB_CLI_DECODER
#include "decoder/kernels/cpu/bf16_peak.hpp"
#endif

namespace plumb::cli {
namespace {

/// One line that is rewritten while it lasts; nothing where stderr is no terminal.
class PeakLine {
  public:
    PeakLine() : terminal_(isatty(STDERR_FILENO) == 1) {}
    PeakLine(const PeakLine&) = delete;
    PeakLine& operator=(const PeakLine&) = delete;
    ~PeakLine() {
        if (terminal_) {
            std::fputs("\r\x1b[K", stderr);
        }
    }
    void show(const char* what, int done, int total) const {
        if (terminal_) {
            std::fprintf(stderr, "\r\x1b[Kmeasuring %s  %d/%d", what, done, total);
        }
    }

  private:
    bool terminal_;
};

plumb::PeakTest measure() {
    const PeakLine line;
    plumb::PeakTest test =
        plumb::measure_peaks([&](const char* what, int done, int total) { line.show(what, done, total); });
#ifdef PLUMB_CLI_DECODER
    for (plumb::Peaks& peaks : test.peaks) {
        if (peaks.place != "host") {
            continue;
        }
        line.show("bf16 products, all cores", 0, 1);
        const plumb::Result<double> bf16 = plumb::decoder::cpu::bf16_teraflops();
        peaks.bf16_teraflops = bf16 ? plumb::Figure{*bf16, {}} : plumb::Figure{std::nullopt, bf16.error().message};
    }
#endif
    return test;
}

void print_figure(const char* name, const plumb::Figure& figure, double scale, const char* unit) {
    const std::string value =
        figure.value ? fmt::format("{:.2f} {}", *figure.value / scale, unit) : fmt::format("n/a ({})", figure.reason);
    std::cout << terminal_text(fmt::format("  {:<28} {}", name, value)) << '\n';
}

void print_text(const plumb::PeakTest& test, const std::string& file) {
    constexpr double kib = 1024, mib = 1024 * 1024, giga = 1e-3;
    for (const plumb::Peaks& peaks : test.peaks) {
        std::cout << terminal_text(peaks.place + ": " + peaks.name) << '\n';
        print_figure("read bandwidth", peaks.read_gigabytes_per_second, 1, "GB/s");
        print_figure("read bandwidth, one thread", peaks.one_thread_gigabytes_per_second, 1, "GB/s");
        print_figure("f32 multiply-adds", peaks.f32_teraflops, giga, "GFLOP/s");
        print_figure("f32, one thread", peaks.one_thread_f32_teraflops, giga, "GFLOP/s");
        print_figure("bf16 products", peaks.bf16_teraflops, giga, "GFLOP/s");
        print_figure("L1 data cache of a core", peaks.l1_bytes, kib, "KiB");
        print_figure("L2 cache of a core", peaks.l2_bytes, kib, "KiB");
        print_figure("last-level caches, all", peaks.last_level_cache_bytes, mib, "MiB");
    }
    for (const auto& [what, why] : test.unsupported) {
        std::cout << terminal_text(what + ": n/a (" + why + ")") << '\n';
    }
    for (const std::string& note : test.notes) {
        std::cout << terminal_text("note  " + note) << '\n';
    }
    std::cout << terminal_text("kept in " + file + "; recordings made here from now on carry these peaks") << '\n';
}

} // namespace

int measure_and_store_peaks(bool as_json) {
    if (const plumb::Result<std::string> file = plumb::peaks_file(); !file) {
        return say_error(file.error().message, as_json);
    }
    const plumb::PeakTest test = measure();
    const plumb::Result<std::string> file = plumb::store_peaks(test.peaks);
    if (!file) {
        return say_error(file.error().message, as_json);
    }
    if (as_json) {
        std::cout << plumb::render_json(test, *file);
    } else {
        print_text(test, *file);
    }
    return exit_ok;
}

} // namespace plumb::cli
