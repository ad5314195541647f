// SPDX-License-Identifier: Apache-2.0
// Traces that begin or end within a step: that step is none, and the others are as they were.
#include <algorithm>
#include <iterator>

#include "import/import_testing.hpp"

namespace plumb::imported {
namespace {

struct WindowCase {
    std::string name;
    PlannedRun run;
    std::string format;
    bool calls = true; // are in the trace
};
std::ostream& operator<<(std::ostream& out, const WindowCase& of) { return out << of.name; }

std::vector<WindowCase> window_cases() {
    std::vector<WindowCase> all;
    PlannedRun annotated;
    annotated.annotated = true;
    PlannedRun eager = annotated;
    eager.graph = false;
    PlannedRun side;
    side.side_stream = true;
    PlannedRun ahead;
    ahead.ahead = true;
    const std::pair<const char*, PlannedRun> runs[] = {
        {"graph", {}}, {"annotated", annotated}, {"eager", eager}, {"side", side}, {"ahead", ahead}};
    for (const auto& [name, run] : runs) {
        for (const char* format : {"kineto", "nsys", "rpd", "rocprofv3"}) {
            const bool annotates = std::string(format) != "rocprofv3";
            if (annotates || !run.annotated) {
                all.push_back({std::string(name) + "_" + format, run, format});
            }
            if (!run.annotated && std::string(format) != "rpd") { // where a launch is a row of its own
                all.push_back({std::string(name) + "_without_calls_" + format, run, format, false});
            }
        }
    }
    return all;
}

class ImportWindows : public testing::TestWithParam<WindowCase> {
  protected:
    /// A plan whose first or last step lacks operations, seven more each time.
    void import_windows(bool at_end) {
        const TraceFolder folder;
        PlannedTrace planned = plan(GetParam().run);
        if (!GetParam().calls) {
            planned.calls.clear();
        }
        const int step = at_end ? planned.steps - 1 : 0;
        std::vector<PlannedOp> ops;
        std::copy_if(planned.ops.begin(), planned.ops.end(), std::back_inserter(ops),
                     [step](const PlannedOp& op) { return op.step == step; });
        for (std::size_t i = 1; i + 1 < ops.size(); i += 7) {
            PlannedTrace seen = at_end ? window_of(planned, 0, ops[i].end)
                                       : window_of(planned, ops[i].start, planned.ops.back().end + 1'000'000);
            if (GetParam().run.ahead && seen.steps == 0) {
                break; // all launches lie before it
            }
            ASSERT_GE(seen.steps, 1);
            const std::string trace = folder / "trace" + std::to_string(i);
            save_as(GetParam().format, seen, trace);
            const ImportedRun made = import_file(trace, folder / "run" + std::to_string(i) + ".plumb").at(0);
            EXPECT_EQ(made.steps, static_cast<std::uint64_t>(seen.steps)) << i;
            EXPECT_NE(note_with(made, "to no step"), "") << i;
            if (at_end && GetParam().run.graph) {
                EXPECT_EQ(note_with(made, "behind the trace"), "1 step ended behind the trace: left out") << i;
            }
            ReadBack read = read_back(made.recording);
            ASSERT_EQ(read.steps.size(), static_cast<std::size_t>(seen.steps)) << i;
            for (ReadBack::Op& op : read.ops) { // half a pass has no roles by place
                op.name = op.step == resolve::no_step ? "of no step" : op.name;
            }
            for (PlannedOp& op : seen.ops) {
                op.brick = op.step < 0 ? "of no step" : op.brick;
            }
            expect_plan(read, seen, 4711);
        }
    }
};

TEST_P(ImportWindows, a_step_that_the_end_cuts_is_left_out) { import_windows(true); }
TEST_P(ImportWindows, a_step_that_the_begin_cuts_is_left_out) {
    if (GetParam().format == "rpd") {
        GTEST_SKIP() << "rpd knows the process of an operation by its call alone, which is lost";
    }
    import_windows(false);
}

INSTANTIATE_TEST_SUITE_P(Import, ImportWindows, testing::ValuesIn(window_cases()),
                         [](const testing::TestParamInfo<WindowCase>& of) { return of.param.name; });

} // namespace
} // namespace plumb::imported
