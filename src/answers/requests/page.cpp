// SPDX-License-Identifier: Apache-2.0
// Times of requests as a table, then the requests that waited longest, and for which step.
#include <algorithm>

#include "answers/requests/requests.hpp"

namespace plumb {
namespace {

using namespace page;

struct Label {
    const char* what;
    const char* words;
    bool always; // shown also where it is not known
};
constexpr Label labels[] = {{"ttft", "time to first token", true},
                            {"tpot", "time per output token", true},
                            {"queue", "in queue", true},
                            {"prefill", "in prefill", false},
                            {"kv_transfer", "in KV transfer", false},
                            {"decode", "in decode", false},
                            {"stalled", "stalled between steps", false},
                            {"total", "arrival to end", true}};

void add_times(Page& page, const RequestsReport& report) {
    TextTable table({""}, {"requests", "mean ms", "p50 ms", "p90 ms", "p99 ms", "max ms"});
    for (const RequestTime& time : report.times) {
        const auto* label = std::find_if(std::begin(labels), std::end(labels),
                                         [&](const Label& each) { return time.what == each.what; });
        if (label == std::end(labels) || (time.count == 0 && !label->always)) {
            continue;
        }
        const auto ms = [&](const Figure& figure) {
            return page.figure(label->words, figure, 1e6, 3);
        };
        table.add_row({label->words, grouped(time.count), ms(time.mean_ns), ms(time.p50_ns), ms(time.p90_ns),
                       ms(time.p99_ns), ms(time.max_ns)});
    }
    page.table(std::move(table));
}

void add_waits(Page& page, const RequestsReport& report) {
    if (report.waits.empty()) {
        return;
    }
    page.blank();
    page.line("the longest waits, and the step that took most of each:", Tone::heading);
    TextTable table({"in"}, {"request", "at ms", "waited ms", "steps", "step", "took ms", "tokens", "TTFT ms"},
                    {"step's phase"});
    if (report.traced != 0) {
        table.add_column("trace", TextTable::Align::left);
    }
    for (const RequestWait& wait : report.waits) {
        const bool known = wait.step.has_value();
        table.add_row({word_of(wait.phase), wait.id, fixed(static_cast<double>(wait.begin_ns) / 1e6, 1),
                       fixed(wait.wait_ns / 1e6, 3), grouped(wait.steps), known ? std::to_string(*wait.step) : "-",
                       known ? fixed(wait.step_ns / 1e6, 3) : "-", known ? grouped(wait.step_tokens) : "-",
                       page.figure("request " + wait.id, wait.ttft_ns, 1e6, 3), known ? word_of(wait.step_phase) : "-",
                       wait.trace});
    }
    page.table(std::move(table));
}

} // namespace

page::Page page_of(const RequestsReport& report, const TextOptions&) {
    Page page;
    page.line(grouped(report.requests) + (report.requests == 1 ? " request, " : " requests, ") + grouped(report.ended) +
                  " ended, " + grouped(report.cut) + " without an end, " + grouped(report.traced) + " with a trace id",
              Tone::heading);
    page.blank();
    add_times(page, report);
    add_waits(page, report);
    page.reasons();
    page.notes(report.notes);
    return page;
}

} // namespace plumb
