// SPDX-License-Identifier: Apache-2.0
// Why threads were off the CPU: a table of them, and what was counted for the process.
#include <algorithm>

#include "answers/wall/wall.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t thread_columns = 40;
constexpr std::size_t most_threads = 8;

/// What was counted for `covered_ns` of the steps: for one of the mean length.
Figure of_a_step(Figure counted, double covered_ns, const WallPhase& phase) {
    if (counted.value) {
        *counted.value *= phase.period_ns / static_cast<double>(phase.steps) / covered_ns;
    }
    return counted;
}

} // namespace

void add_off_cpu(Page& page, const WallPhase& phase) {
    if (!phase.off_cpu || phase.steps == 0) {
        return;
    }
    const OffCpuCauses& causes = *phase.off_cpu;
    if (causes.intervals == 0) {
        page.reason("why off the CPU", causes.run_queue_ns);
        page.reasons();
        return;
    }
    const auto us = [&](double ns) {
        return figure_text(of_a_step({ns, {}}, causes.covered_ns, phase), 1e3, 1);
    };
    const auto count = [&](const Figure& figure) {
        return figure_text(of_a_step(figure, causes.covered_ns, phase), 1, 2);
    };
    TextTable table({"why off the CPU, us per step"}, {"on a CPU", "run queue", "blocked", "migrations"});
    for (std::size_t i = 0; i < std::min(causes.threads.size(), most_threads); ++i) {
        const OffCpuThread& thread = causes.threads[i];
        table.add_row(
            {printable(thread.name, thread_columns), us(thread.on_cpu_ns), us(thread.run_queue_ns),
             us(thread.blocked_ns),
             page.figure("migrations", of_a_step(thread.migrations, thread.migrations_observed_ns, phase), 1, 2)});
    }
    page.blank();
    if (table.rows() != 0) {
        page.table(std::move(table));
    }
    if (causes.threads.size() > most_threads) {
        page.line("  and " + grouped(causes.threads.size() - most_threads) + " more threads: --json has them all");
    }
    page.line("process  per step " + count(causes.voluntary_switches) + " voluntary and " +
                  count(causes.involuntary_switches) + " involuntary switches, " + count(causes.minor_faults) +
                  " minor and " + count(causes.major_faults) + " major page faults; stolen from the machine " +
                  figure_text(of_a_step(causes.stolen_ns, causes.covered_ns, phase), 1e3, 1) + " us, in " +
                  grouped(causes.intervals) + (causes.intervals == 1 ? " sample over " : " samples over ") +
                  fixed(100 * std::min(1.0, causes.covered_ns / phase.period_ns), 0) + " % of the time of these steps",
              Tone::faint);
    page.reason("why off the CPU", causes.run_queue_ns);
    page.reason("stolen", causes.stolen_ns);
    page.reasons();
}

} // namespace plumb
