// SPDX-License-Identifier: Apache-2.0
// For tests: traces into folders of their own, imported, and what the recordings hold. Owned by the test; one thread.
#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "import/folder_testing.hpp"
#include "import/import.hpp"
#include "import/planted_trace_testing.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/name_table.hpp"
#include "resolve/resolve.hpp"

namespace plumb::imported {

/// What a recording says of device operations.
struct ReadBack {
    struct Op {
        std::string name, track;
        std::int64_t begin = 0, end = 0;
        std::uint64_t step = 0;
        bool launched = false;
        int layer = -1;
        std::int64_t launch = 0; // begin of its call
        auto key() const { return std::tie(begin, track, end, name); }
    };
    std::vector<Op> ops; // sorted
    std::vector<resolve::ResolvedStep> steps;
    std::shared_ptr<recording::RunFacts> facts;
    resolve::Losses losses;
};

inline ReadBack read_back(const std::string& path) {
    ReadBack read;
    const Result<recording::RecordedRun> run = recording::open_run(path);
    EXPECT_TRUE(run.ok()) << run.error().message;
    read.facts = run->facts;
    const resolve::NameTable names(read.facts->names);
    resolve::ResolveOptions options;
    options.warmup_steps = read.facts->metadata.warmup_steps;
    Result<resolve::Resolution> resolved = resolve::resolve(
        *run, options, [](const auto&, const auto&) {},
        [&](const resolve::ResolvedBatch& batch) {
            for (const resolve::Sample& sample : batch.samples) {
                if (sample.kind == resolve::SampleKind::scope) {
                    read.ops.push_back(
                        {names.text(sample.name), batch.track->info.name, sample.begin_ns,
                         sample.begin_ns + sample.duration_ns, sample.step, sample.launch != resolve::no_launch,
                         sample.layer ? static_cast<int>(*sample.layer) : -1,
                         sample.launch != resolve::no_launch ? batch.launches[sample.launch].begin_ns : 0});
                }
            }
        });
    EXPECT_TRUE(resolved.ok());
    for (std::size_t i = 0; i < resolved->steps->size(); ++i) {
        read.steps.push_back((*resolved->steps)[i]);
    }
    read.losses = resolved->losses;
    std::sort(read.ops.begin(), read.ops.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
    EXPECT_TRUE(read.facts->notes.empty());
    return read;
}

/// Every operation of one process of the plan is there, with its time, name and step.
inline void expect_plan(const ReadBack& read, const PlannedTrace& planned, std::uint64_t process,
                        bool steps_known = true) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::vector<ReadBack::Op> wanted;
    for (const PlannedCall& call : planned.calls) {
        first = call.process == process ? std::min(first, call.start) : first;
    }
    for (const PlannedOp& op : planned.ops) {
        first = op.process == process ? std::min(first, op.start) : first;
    }
    for (const PlannedOp& op : planned.ops) {
        if (op.process == process) {
            wanted.push_back({op.brick, "gpu:" + std::to_string(op.device) + " stream " + std::to_string(op.stream),
                              op.start - first, op.end - first, static_cast<std::uint64_t>(op.step), false, op.layer});
        }
    }
    std::sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
    ASSERT_EQ(read.ops.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_EQ(read.ops[i].key(), wanted[i].key()) << i << " " << read.ops[i].name << " " << wanted[i].name;
        if (steps_known) {
            ASSERT_EQ(read.ops[i].step, wanted[i].step) << i;
            ASSERT_EQ(read.ops[i].layer, wanted[i].layer) << i << " " << wanted[i].name;
        }
    }
}

inline std::string note_with(const ImportedRun& run, const std::string& word) {
    for (const std::string& note : run.notes) {
        if (note.find(word) != note.npos) {
            return note;
        }
    }
    return {};
}

inline std::vector<ImportedRun> import_file(const std::string& trace, const std::string& out,
                                            ImportOptions options = {}) {
    options.out = out;
    Result<std::vector<ImportedRun>> made = import_traces({trace}, options);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *std::move(made) : std::vector<ImportedRun>();
}

inline void save_as(const std::string& format, const PlannedTrace& planned, const std::string& path,
                    const KinetoForm& form = {}) {
    if (format == "kineto") {
        save(path, as_kineto(planned, form));
    } else if (format == "kineto.gz") {
        save_packed(path, as_kineto(planned, form));
    } else if (format == "nsys") {
        save_nsys(planned, path);
    } else if (format == "rpd") {
        save_rpd(planned, path);
    } else {
        save(path, as_rocprofv3(planned));
    }
}

} // namespace plumb::imported
