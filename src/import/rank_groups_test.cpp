// SPDX-License-Identifier: Apache-2.0
// Process groups of a trace: collectives of two tensor parallel groups are not taken for those of one.
#include <gtest/gtest.h>

#include "answers/ranks/ranks.hpp"
#include "import/folder_testing.hpp"
#include "import/import.hpp"

namespace plumb::imported {
namespace {

/// Four ranks: 0 1 and 2 3 reduce among themselves, each pair on its own, and all four now and then. `described`: torch knows a word.
std::string trace_of(int rank, bool described) {
    const std::string word = described ? "TP" : "undefined";
    std::string text =
        R"({"distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 4, "pg_config": [
        {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}, )" +
        (rank < 2 ? R"({"pg_name": "3", "pg_desc": ")" + word + R"(", "ranks": [0, 1]})"
                  : R"({"pg_name": "4", "pg_desc": ")" + word + R"(", "ranks": [2, 3]})") +
        R"(, {"pg_name": "9", "pg_desc": "odd", "ranks": ["x", -1, 99999999999]}, {"pg_name": 7}, 5]}, "traceEvents": [)";
    const auto reduce = [&](const char* name, const std::string& group, int at, int us) {
        text += std::string(text.back() == '[' ? "" : ", ") + R"({"ph": "X", "cat": "kernel", "name": ")" + name +
                R"(", "pid": 0, "tid": 7, "ts": )" + std::to_string(at) + R"(, "dur": )" + std::to_string(us) +
                R"(, "args": {"device": 0, "stream": 7, "Process Group Name": ")" + group + R"("}})";
    };
    const char* kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    for (int i = 0; i < 50; ++i) {
        // The second pair reduces twice as often.
        for (int n = 0; n < (rank < 2 ? 1 : 2); ++n) {
            reduce(kernel, rank < 2 ? "3" : "4", 1000 * i + 100 * n + rank, 40 - rank % 2);
        }
        reduce(kernel, "0", 1000 * i + 500 + rank, 60 - rank);
    }
    return text + "]}";
}

TEST(RankGroups, F10_of_a_trace_keep_collectives_of_two_groups_apart) {
    for (const bool described : {false, true}) {
        const TraceFolder folder;
        std::vector<std::string> made;
        for (int rank = 0; rank < 4; ++rank) {
            const std::string trace = folder / ("rank" + std::to_string(rank) + ".json");
            save(trace, trace_of(rank, described));
            ImportOptions import;
            import.out = folder / ("r" + std::to_string(rank) + ".plumb");
            const auto imported = import_traces({trace}, import);
            ASSERT_TRUE(imported.ok()) << imported.error().message;
        }
        const Result<RanksReport> report = read_ranks({folder / ""}, {});
        ASSERT_TRUE(report.ok()) << report.error().message;
        EXPECT_EQ(report->world, 4U);
        std::map<std::string, std::uint64_t> found;
        for (const CollectiveRow& row : report->groups) {
            EXPECT_EQ(row.brick, "all_reduce");
            found[row.group] += row.collectives;
        }
        const std::map<std::string, std::uint64_t> undescribed{{"", 50}, {"ranks 0 1", 50}, {"ranks 2 3", 100}};
        const std::map<std::string, std::uint64_t> words{{"", 50}, {"TP", 150}};
        EXPECT_EQ(found, described ? words : undescribed);
        EXPECT_TRUE(report->contradictions.empty());
    }
}

} // namespace
} // namespace plumb::imported
