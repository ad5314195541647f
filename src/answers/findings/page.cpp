// SPDX-License-Identifier: Apache-2.0
// A paragraph for each finding: the claim, what it could gain, what it rests on, what would refute it.
#include <cmath>

#include "answers/findings/findings.hpp"
#include "page/heat.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 60;

std::string value_of(const EvidenceRow& row) {
    const double size = std::abs(row.value.value.value_or(0));
    const bool whole = size == std::floor(size) && (row.unit.empty() || row.unit == "steps" || row.unit == "launches");
    return figure_text(row.value, 1, whole ? 0 : 1) + (row.unit.empty() ? "" : " " + row.unit);
}

void add_finding(Page& page, const Finding& finding, std::size_t number) {
    const std::string phase = finding.phase == Phase::none ? "" : std::string(word_of(finding.phase)) + ": ";
    page.line({Span(std::to_string(number) + "  " + word_of(finding.kind), Tone::heading),
               "  " + phase + printable(finding.claim, sentence_columns)});
    page.line("   at most " + fixed(100 * finding.share, 1) + " % of a step (" + fixed(finding.at_most_ns / 1e3, 1) +
              " us), likely " + fixed(finding.likely_ns / 1e3, 1) + " us; " + word_of(finding.sure) + ": " +
              printable(finding.because, sentence_columns));
    for (const EvidenceRow& row : finding.evidence) {
        page.line("   " + padded(row.command, 14) + " " + padded(printable(row.what, name_columns), name_columns) +
                      " " + value_of(row),
                  Tone::faint);
    }
    page.line("   refuted by " + printable(finding.refuted_by, sentence_columns));
}

} // namespace

page::Page page_of(const FindingsReport& report, const TextOptions&) {
    Page page;
    for (const FindingsOfRun& run : report.runs) {
        if (!run.recording.empty()) {
            page.line(printable(run.recording, name_columns), Tone::heading);
        }
        for (std::size_t i = 0; i < run.findings.size(); ++i) {
            add_finding(page, run.findings[i], i + 1);
        }
        if (run.looked && run.findings.empty()) {
            page.line("no finding: nothing that was looked for takes 2 % of the steps");
        }
        for (const NotLookedFor& missing : run.not_looked_for) {
            page.marked("n/a  ", std::string(word_of(missing.kind)) + ", " + missing.reason, Tone::plain);
        }
        page.notes(run.notes);
    }
    if (!report.together.empty()) {
        page.line("all ranks together", Tone::heading);
    }
    for (std::size_t i = 0; i < report.together.size(); ++i) {
        add_finding(page, report.together[i], i + 1);
    }
    return page;
}

} // namespace plumb
