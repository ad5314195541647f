// SPDX-License-Identifier: Apache-2.0
// recover_recording() of results.hpp, and what answers there are to the functions of selftest.hpp.
#include "answers/commands.hpp"

#include <algorithm>
#include <utility>

#include "answers/answer.hpp"
#include "recording/recovery.hpp"

namespace plumb {
namespace {

template <class R>
Answer answer(R result, unsigned indent) {
    return Answer(new answers::AnswerOf<R>(std::move(result), indent));
}

/// What a system or a driver says of itself.
void add(page::Page& page, const std::string& text) { page.line(page::printable(text, page::sentence_columns)); }

void add_line(page::Page& page, const std::string& name, const std::string& value) {
    constexpr std::size_t columns = 28; // the longest name of a capability, and a space
    std::string line = "    " + name;
    line.resize(std::max(line.size() + 1, columns + 4), ' ');
    add(page, line + value);
}

void add_figure(page::Page& page, const char* name, const Figure& figure, double unit, const char* of_unit) {
    add_line(page, name,
             figure.value ? page::fixed(*figure.value / unit, 1) + " " + of_unit : "n/a (" + figure.reason + ")");
}

void add_device(page::Page& page, const DeviceSelfTest& test) {
    const std::string driver = test.device.driver.empty() ? std::string() : ", driver " + test.device.driver;
    add(page, "  " + std::to_string(test.device.index) + ": " + test.device.name + driver);
    add_line(page, "source", test.source.empty() ? "none" : test.source + " on clock " + test.clock);
    add_figure(page, "clock rate", test.ticks_per_second, 1e6, "MHz");
    add_figure(page, "floor (empty scope)", test.floor_ns, 1, "ns");
    add_figure(page, "begin and end", test.begin_end_ns, 1, "ns");
    add_figure(page, "clock read", test.clock_read_ns, 1, "ns");
    add_figure(page, "clock pair", test.clock_pair_ns, 1, "ns");
    add_figure(page, "clock fit, residual", test.fit_residual_ns, 1, "ns");
    add_figure(page, "clock fit, bound", test.fit_bound_ns, 1, "ns");
    for (const Capability& capability : capabilities_of(test)) {
        add_line(page, capability.name, capability.supported ? "yes" : "no: " + capability.reason);
    }
}

} // namespace

Result<Answer> recover_recording(const std::string& path) {
    Result<recording::Recovery> recovered = recording::recover(path);
    if (!recovered.ok()) {
        return recovered.error();
    }
    return answer(RecoverSummary{recovered->records, recovered->ring_removed ? 1U : 0U, std::move(recovered->notes)},
                  0);
}

page::Page page_of(const RecoverSummary& summary, const TextOptions&) {
    page::Page page;
    page.line(summary.rings == 0 && summary.records_recovered == 0
                  ? "nothing to recover: no ring of this run is left"
                  : std::to_string(summary.records_recovered) +
                        (summary.records_recovered == 1 ? " record recovered" : " records recovered"));
    page.notes(summary.notes);
    return page;
}

Answer answers::answer_of_selftest(SelfTest test) { return answer(std::move(test), 1); }

std::vector<Capability> capabilities_of(const DeviceSelfTest& test) {
    std::vector<Capability> all = test.device.capabilities;
    all.insert(all.end(), test.capabilities.begin(), test.capabilities.end());
    return all;
}

page::Page page_of(const SelfTest& test, const TextOptions&) {
    page::Page page;
    add(page, test.cpu.empty() ? "cpu: unknown" : test.cpu);
    add(page, "clock " + test.clock + ": " + test.clock_reason);
    for (const BackendSelfTest& backend : test.backends) {
        add(page, backend.name + (backend.unavailable.empty() ? "" : ": unavailable: " + backend.unavailable));
        for (const DeviceSelfTest& device : backend.devices) {
            add_device(page, device);
        }
    }
    return page;
}

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
