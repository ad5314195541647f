// SPDX-License-Identifier: Apache-2.0
// For tests: a report of a planted source, and its rows by name. Plain functions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/report_builder.hpp"
#include "planted/tape.hpp"

namespace plumb::analysis {

inline Report report_of(planted::Tape& source, const ReportOptions& options = {}, const resolve::Cut& cut = {}) {
    auto report = build_report(source, options, cut);
    EXPECT_TRUE(report.ok());
    return report.ok() ? *report : Report{};
}

inline bool has_row(const std::vector<Row>& rows, Phase phase, const std::string& name) {
    for (const Row& row : rows) {
        if (row.key.phase == phase && row.key.name == name) {
            return true;
        }
    }
    return false;
}

/// An empty row, and a failed test, where there is none.
inline const Row* row_of(const std::vector<Row>& rows, Phase phase, const std::string& name) {
    for (const Row& row : rows) {
        if (row.key.phase == phase && row.key.name == name) {
            return &row;
        }
    }
    ADD_FAILURE() << "no row " << name;
    static const Row empty;
    return &empty;
}

inline const PhaseSummary* phase_of(const Report& report, Phase phase) {
    for (const PhaseSummary& summary : report.phases) {
        if (summary.phase == phase) {
            return &summary;
        }
    }
    ADD_FAILURE() << "no such phase";
    static const PhaseSummary empty;
    return &empty;
}

inline std::uint64_t loss_of(const Report& report, const std::string& words) {
    for (const LossRow& loss : report.losses) {
        if (loss.reason.find(words) != std::string::npos) {
            return loss.count;
        }
    }
    return 0;
}

inline bool has_note(const Report& report, const std::string& words) {
    for (const std::string& note : report.notes) {
        if (note.find(words) != std::string::npos) {
            return true;
        }
    }
    return false;
}

} // namespace plumb::analysis
