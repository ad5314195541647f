// SPDX-License-Identifier: Apache-2.0
// recover_recording() of results.hpp, and the JSON of what it and selftest.hpp give.
#include "answers/commands.hpp"

#include "answers/answer.hpp"
#include "recording/recovery.hpp"

namespace plumb {

Result<RecoverSummary> recover_recording(const std::string& path) {
    const Result<recording::Recovery> recovered = recording::recover(path);
    if (!recovered.ok()) {
        return recovered.error();
    }
    RecoverSummary summary;
    summary.records_recovered = recovered->records;
    summary.rings = recovered->ring_removed ? 1 : 0;
    summary.notes = recovered->notes;
    return summary;
}

std::vector<Capability> capabilities_of(const DeviceSelfTest& test) {
    std::vector<Capability> all = test.device.capabilities;
    all.insert(all.end(), test.capabilities.begin(), test.capabilities.end());
    return all;
}

std::string render_json(const RecoverSummary& summary) { return page::json_of(schema_of(summary), summary, 0); }
std::string render_json(const SelfTest& test) { return page::json_of(schema_of(test), test, 1); }
std::string render_json(const PeakTest& test, const std::string& file) {
    const MeasuredPeaks measured{test, file};
    return page::json_of(schema_of(measured), measured, 1);
}

std::vector<answers::Document> answers::documents_of_commands() {
    return {document_of<RecoverSummary>(),
            document_of<SelfTest>(),
            {schema_of(MeasuredPeaks{}), &page::choice_of<MeasuredPeaks, KeptPeaks>}};
}

} // namespace plumb
