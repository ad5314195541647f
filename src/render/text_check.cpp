// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "page/text_table.hpp"
#include "plumb/invariants.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;

constexpr std::size_t sentence_columns = 1000;

std::string_view word(Outcome verdict) {
    return verdict == Outcome::pass ? "PASS  " : verdict == Outcome::fail ? "FAIL  " : "N/A   ";
}

} // namespace

std::string render_text(const CheckReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::set<std::string> recordings;
    std::size_t counts[3] = {};
    for (const CheckRow& row : report.rows) {
        recordings.insert(row.recording);
        ++counts[static_cast<std::size_t>(row.verdict)];
    }
    recordings.erase(std::string());
    std::string out;
    for (const CheckRow& row : report.rows) {
        out += row.verdict == Outcome::pass ? std::string_view() : style.warning;
        out += word(row.verdict);
        out += style.plain;
        out += printable(row.check, sentence_columns) + "  ";
        if (recordings.size() > 1 && !row.recording.empty()) {
            out += printable(row.recording, sentence_columns) + "  ";
        }
        out += printable(row.finding, sentence_columns) + '\n';
    }
    out += style.heading;
    out += report.verdict == Outcome::pass   ? "CHECK passed"
           : report.verdict == Outcome::fail ? "CHECK failed"
                                             : "CHECK undecided";
    out += style.plain;
    out += "  " + grouped(counts[0]) + " passed, " + grouped(counts[1]) + " failed, " + grouped(counts[2]) + " n/a\n";
    return out;
}

} // namespace plumb
