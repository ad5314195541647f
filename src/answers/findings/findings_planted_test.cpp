// SPDX-License-Identifier: Apache-2.0
// Ten kinds of fault, planted in decodes in virtual time, and decodes without any: what is found first, and whether a bound holds.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "answers/findings/planted_engine_testing.hpp"
#include "answers/planted_answer_testing.hpp"
#include "page/words.hpp"
#include "support/sanitizers.hpp"
#include "support/text_of_file.hpp"

namespace plumb {

const answers::Entry& findings_answer();

namespace findings::planted_engine {
namespace {

constexpr int seeds = 30;
constexpr double told_from = 0.05;          // of the step: from here on a fault has to be found
constexpr double tick_ns = 2;               // of the tape
const std::vector<const char*> kinds = [] { // that an engine in virtual time can have
    std::vector<const char*> words = page::all_words_of<FindingKind>();
    words.resize(static_cast<std::size_t>(FindingKind::own_cost) + 1);
    return words;
}();

struct FaultTrial {
    std::vector<PlantedFault> faults;
    std::vector<double> costs_ns; // of each
    double step_ns = 0;
    std::size_t largest = 0;
    EngineMode mode = EngineMode::host;
    std::string brick; // of the largest
    std::uint32_t layer = 0;
    support::json found;
    std::string text;
};

PlantedFault drawn_fault(FindingKind kind, std::uint64_t seed, std::uint64_t which) {
    return {kind, 0.03 + 0.27 * drawn(seed, 70 + which), static_cast<std::uint32_t>(drawn(seed, 80 + which) * 1e6)};
}

EngineMode drawn_mode(std::uint64_t seed, FindingKind kind) {
    std::vector<EngineMode> fitting;
    for (const EngineMode mode : {EngineMode::host, EngineMode::eager, EngineMode::graph}) {
        if (can_have(mode, kind)) {
            fitting.push_back(mode);
        }
    }
    return fitting[static_cast<std::size_t>(drawn(seed, 60) * static_cast<double>(fitting.size()))];
}

FaultTrial trial_of(FindingKind kind, std::uint64_t seed) {
    FaultTrial trial;
    trial.mode = drawn_mode(seed, kind);
    trial.faults = {drawn_fault(kind, seed, 0)};
    if (drawn(seed, 61) < 1.0 / 3) {
        std::vector<FindingKind> others;
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            const auto other = static_cast<FindingKind>(i);
            if (other != kind && can_have(trial.mode, other)) {
                others.push_back(other);
            }
        }
        const auto chosen = static_cast<std::size_t>(drawn(seed, 62) * static_cast<double>(others.size()));
        trial.faults.push_back(drawn_fault(others[chosen], seed, 1));
    }
    const VirtualEngine engine(seed, trial.mode);
    VirtualRun run = engine.run(trial.faults);
    trial.step_ns = run.mean_counted_ns;
    for (std::size_t i = 0; i < trial.faults.size(); ++i) {
        trial.costs_ns.push_back(engine.cost_ns(trial.faults, i));
        trial.largest = trial.costs_ns[i] > trial.costs_ns[trial.largest] ? i : trial.largest;
    }
    trial.brick = engine.brick_of(trial.faults[trial.largest]);
    trial.layer = engine.layer_of(trial.faults[trial.largest]);
    const answers::Said said = answers::said_of(findings_answer(), std::move(run.tape));
    trial.found = said.document["runs"][0]["findings"];
    trial.text = said.text;
    return trial;
}

const char* kind_of(const PlantedFault& fault) { return kinds[static_cast<std::size_t>(fault.kind)]; }

bool is_right(const FaultTrial& trial) {
    if (trial.found.empty() || trial.found[0]["kind"] != kind_of(trial.faults[trial.largest])) {
        return false;
    }
    const FindingKind kind = trial.faults[trial.largest].kind;
    return (trial.brick.empty() || trial.found[0]["subject"] == trial.brick) &&
           (kind != FindingKind::odd_layer || trial.found[0]["layer"] == trial.layer);
}

std::string words_of(const FaultTrial& trial) {
    std::ostringstream out;
    out << "mode " << static_cast<int>(trial.mode) << ", step " << trial.step_ns / 1e3 << " us";
    for (std::size_t i = 0; i < trial.faults.size(); ++i) {
        out << ", " << kind_of(trial.faults[i]) << " planted " << 100 * trial.faults[i].share << " %, costs "
            << 100 * trial.costs_ns[i] / trial.step_ns << " %";
    }
    out << ", in " << trial.brick << " layer " << trial.layer << "\n" << trial.text;
    return out.str();
}

/// By the kind of the largest fault, and of the first finding; the last column is none.
class ConfusionTable {
  public:
    void add(const FaultTrial& trial) {
        const std::string row = kind_of(trial.faults[trial.largest]);
        const std::string first = trial.found.empty() ? "none" : trial.found[0]["kind"].get<std::string>();
        ++counts_[row][first];
    }
    [[nodiscard]] std::string markdown() const {
        std::vector<std::string> columns(kinds.begin(), kinds.end());
        columns.emplace_back("none");
        std::string out = "| planted, first found |";
        for (const std::string& column : columns) {
            out += " " + column + " |";
        }
        out += "\n|---|";
        for (std::size_t i = 0; i < columns.size(); ++i) {
            out += "--:|";
        }
        for (const char* kind : kinds) {
            out += "\n| " + std::string(kind) + " |";
            for (const std::string& column : columns) {
                const auto row = counts_.find(kind);
                const auto count =
                    row == counts_.end() ? std::map<std::string, int>::const_iterator() : row->second.find(column);
                out += row != counts_.end() && count != row->second.end() ? " " + std::to_string(count->second) + " |"
                                                                          : " |";
            }
        }
        return out + "\n";
    }

  private:
    std::map<std::string, std::map<std::string, int>> counts_;
};

TEST(PlantedFindings, the_first_one_is_the_largest_fault_and_no_bound_is_below_what_a_fault_costs) {
    ConfusionTable confusion;
    int told = 0, right = 0, faults = 0, bounded = 0;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const FaultTrial trial = trial_of(static_cast<FindingKind>(kind), kind * 1'000 + seed);
            if (trial.costs_ns[trial.largest] >= told_from * trial.step_ns) {
                ++told;
                right += is_right(trial) ? 1 : 0;
                confusion.add(trial);
            }
            for (std::size_t i = 0; i < trial.faults.size(); ++i) {
                ++faults;
                for (const support::json& finding : trial.found) {
                    if (finding["kind"] == kind_of(trial.faults[i]) &&
                        (trial.faults[i].kind != FindingKind::odd_layer ||
                         finding["layer"] ==
                             VirtualEngine(kind * 1'000 + seed, trial.mode).layer_of(trial.faults[i]))) {
                        ++bounded;
                        EXPECT_GE(finding["at_most_ns"].get<double>() + tick_ns, trial.costs_ns[i]) << words_of(trial);
                        break;
                    }
                }
            }
        }
    }
    const std::string table = confusion.markdown() + "\n" + std::to_string(right) + " of " + std::to_string(told) +
                              " faults of 5 % of a step or more are the first finding; " + std::to_string(bounded) +
                              " of all " + std::to_string(faults) + " were found at all.\n";
    const std::string document =
        support::text_of_file(std::string(PLUMB_TEST_SOURCE_DIR) + "/docs/reference/findings.md");
    EXPECT_NE(document.find(table), std::string::npos) << "put this into docs/reference/findings.md:\n" << table;
    EXPECT_GE(told, 250);
    EXPECT_GE(right, 0.9 * told);
}

TEST(PlantedFindings, nothing_is_found_in_300_clean_runs) {
    for (std::uint64_t seed = 0; seed < draws(300); ++seed) {
        const auto mode = static_cast<EngineMode>(seed % 3);
        const VirtualEngine engine(50'000 + seed, mode);
        const answers::Said said = answers::said_of(findings_answer(), engine.run({}).tape);
        EXPECT_TRUE(said.document["runs"][0]["findings"].empty()) << "mode " << seed % 3 << "\n" << said.text;
    }
}

} // namespace
} // namespace findings::planted_engine
} // namespace plumb
