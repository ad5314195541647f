// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "answers/check/check.hpp"

namespace plumb {

page::Page page_of(const CheckReport& report, const TextOptions&) {
    using namespace page;
    constexpr const char* words[] = {"PASS  ", "FAIL  ", "N/A   "};
    constexpr const char* heads[] = {"CHECK passed", "CHECK failed", "CHECK undecided"};
    std::set<std::string> recordings;
    std::size_t counts[3] = {};
    for (const CheckRow& row : report.rows) {
        recordings.insert(row.recording);
        ++counts[static_cast<std::size_t>(row.verdict)];
    }
    recordings.erase(std::string());
    const auto shown = [](const std::string& sentence) {
        return printable(sentence, sentence_columns);
    };
    Page page;
    for (const CheckRow& row : report.rows) {
        const bool named = recordings.size() > 1 && !row.recording.empty();
        page.line({Span(words[static_cast<std::size_t>(row.verdict)],
                        row.verdict == Outcome::pass ? Tone::plain : Tone::warning),
                   shown(row.check) + "  " + (named ? shown(row.recording) + "  " : "") + shown(row.finding)});
    }
    page.line(
        {Span(heads[static_cast<std::size_t>(report.verdict)], Tone::heading),
         "  " + grouped(counts[0]) + " passed, " + grouped(counts[1]) + " failed, " + grouped(counts[2]) + " n/a"});
    return page;
}

} // namespace plumb
