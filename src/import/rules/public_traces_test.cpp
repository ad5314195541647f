// SPDX-License-Identifier: Apache-2.0
// The rules on real traces, by names alone. PLUMB_TRACES names a folder of them; nothing of it lies in this repository.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "import/rules/kernel_rules.hpp"

namespace plumb::imported {
namespace {

/// Name and ns of each name of the trace.
std::vector<std::pair<std::string, double>> names_of(const std::filesystem::path& trace) {
    std::vector<std::pair<std::string, double>> names;
    const std::string command = "python3 '" PLUMB_TRACE_NAMES "' '" + trace.string() + "'";
    FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> part{};
    while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
        text.append(part.data(), got);
    }
    EXPECT_EQ(pclose(pipe), 0) << command;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t tab = line.find('\t');
        names.emplace_back(nlohmann::json::parse(line.substr(tab + 1)).get<std::string>(),
                           std::stod(line.substr(0, tab)));
    }
    return names;
}

TEST(PublicTraces, HoldNextToNoNameThatNoRuleKnows) {
    const char* folder = std::getenv("PLUMB_TRACES");
    if (folder == nullptr) {
        GTEST_SKIP() << "PLUMB_TRACES names no folder of traces";
    }
    Result<KernelRules> rules = KernelRules::load({});
    ASSERT_TRUE(rules) << rules.error().message;
    int traces = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        const std::string path = entry.path().string();
        if (!entry.is_regular_file() || !path.ends_with(".gz")) {
            continue;
        }
        std::map<Certainty, double> time;
        std::map<double, std::string> unknown;
        double all = 0;
        for (const auto& [name, ns] : names_of(entry.path())) {
            const KernelLabel label = rules->label(name);
            time[label.certainty] += ns;
            all += ns;
            if (label.certainty == Certainty::unknown) {
                unknown[-ns] = name;
            }
        }
        EXPECT_LE(time[Certainty::unknown], 0.001 * all)
            << path << ", first of all " << (unknown.empty() ? "" : unknown.begin()->second);
        std::printf("%s: by name unknown %.2f %%, weak %.2f %%\n", path.c_str(), 100 * time[Certainty::unknown] / all,
                    100 * time[Certainty::weak] / all);
        ++traces;
    }
    EXPECT_GT(traces, 0) << folder;
    EXPECT_EQ(rules->given_up(), 0U);
}

} // namespace
} // namespace plumb::imported
