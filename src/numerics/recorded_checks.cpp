// SPDX-License-Identifier: Apache-2.0
#include "numerics/recorded_checks.hpp"

namespace plumb::numerics {
namespace {

std::string in_file(const std::string& path, const std::string& sentence) { return path + ": " + sentence; }

std::vector<std::string> lost_checks(const recording::RunFacts& facts) {
    std::vector<std::string> lost;
    for (const auto& [reason, count] : facts.counters.drops) {
        if (count != 0 && reason.find("check") != std::string::npos) {
            lost.push_back(std::to_string(count) + " lost: " + reason);
        }
    }
    return lost;
}

} // namespace

void add_notes(const recording::RunFacts& facts, const std::string& path, std::vector<std::string>& notes) {
    for (const std::string& note : facts.notes) {
        notes.push_back(in_file(path, note));
    }
    for (const std::string& lost : lost_checks(facts)) {
        notes.push_back(in_file(path, lost));
    }
}

std::string description(const recording::RunFacts& facts, const std::string& of) {
    std::string last;
    for (const auto& [name, value] : facts.descriptions) {
        last = name == of ? value : last;
    }
    return last;
}

std::string looked_at(const recording::RunFacts& facts) {
    std::string last = description(facts, "checked");
    return last.rfind("0 ", 0) == 0 ? std::string() : last;
}

std::string lacking_checks(const recording::RunFacts& facts) {
    std::string what = looked_at(facts).empty() ? "checks of tensors"
                                                : "fingerprints of the tensors it looked at, as with tensors=nonfinite";
    for (const std::string& lost : lost_checks(facts)) {
        what += ", " + lost;
    }
    return what + "; record with PLUMB=\"on,tensors=all\" a program that has PLUMB_TENSOR, or plumb decode";
}

} // namespace plumb::numerics
