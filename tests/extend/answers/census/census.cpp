// SPDX-License-Identifier: Apache-2.0
#include "answers/census/census.hpp"

#include "answers/reading.hpp"

namespace plumb {

CensusReport census_of(const Report& report, const CensusOptions& options) {
    CensusReport census;
    for (const PhaseSummary& phase : report.phases) {
        if (phase.steps >= options.least) {
            census.rows.push_back({phase.phase, phase.steps, {phase.period.mean_ns, {}}});
        }
    }
    return census;
}

namespace {

Result<answers::Pending<CensusReport>> begin(answers::Reading& reading, const CensusOptions& options) {
    analysis::ReportReader& reader = reading.report();
    return answers::Pending<CensusReport>(
        [&reader, number = reader.ask({}), options] { return census_of(reader.take(number), options); });
}

} // namespace

const answers::Entry& census_answer() {
    static const answers::Entry entry =
        answers::joining_entry<CensusOptions, CensusReport, begin>("census", "Count the steps of each phase");
    return entry;
}

} // namespace plumb
