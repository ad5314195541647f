// SPDX-License-Identifier: Apache-2.0
#include "answers/census/census.hpp"

namespace plumb {

page::Page page_of(const CensusReport& report, const TextOptions&) {
    page::Page page;
    page::TextTable table({"phase"}, {"steps", "mean us"});
    for (const CensusRow& row : report.rows) {
        table.add_row(
            {page::word_of(row.phase), page::grouped(row.steps), page.figure("mean us", row.mean_ns, 1e3, 1)});
    }
    page.table(std::move(table));
    page.reasons();
    return page;
}

} // namespace plumb
