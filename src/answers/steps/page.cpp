// SPDX-License-Identifier: Apache-2.0
// The slowest steps as a table.
#include "answers/steps/steps.hpp"

namespace plumb {

page::Page page_of(const StepsReport& report, const TextOptions&) {
    using namespace page;
    Page page;
    page.line(grouped(report.steps) + " steps, " + grouped(report.counted) +
                  " counted (warm-up and sampled ones apart)",
              Tone::heading);
    TextTable table({"phase"}, {"step", "at ms", "period ms", "span ms", "tokens", "x median"});
    const Figure no_tokens{{}, "the step carries none"};
    for (const SlowStep& step : report.slowest) {
        table.add_row({word_of(step.phase), std::to_string(step.step),
                       fixed(static_cast<double>(step.begin_ns) / 1e6, 1), fixed(step.period_ns / 1e6, 3),
                       fixed(step.span_ns / 1e6, 3),
                       step.tokens ? grouped(*step.tokens) : page.figure("tokens", no_tokens, 1, 0),
                       page.figure("x median", step.times_median, 1, 2)});
    }
    if (table.rows() != 0) {
        page.line("the slowest:");
        page.table(std::move(table));
    }
    page.reasons();
    page.notes(report.notes);
    return page;
}

} // namespace plumb
