// SPDX-License-Identifier: Apache-2.0
#include "answers/audit/audit.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/imported_words.hpp"
#include "answers/answer.hpp"
#include "answers/audit/clock_fit.hpp"
#include "answers/audit/device_side.hpp"
#include "answers/audit/tally.hpp"
#include "recording/import_notes.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

using audit::DeviceLane;
using audit::DeviceSide;
using stats::absent;
using stats::measured;

constexpr double calendar_window_ns = 5e9; // what two programs of one machine may disagree about the time of day
constexpr std::size_t most_streams = 16;   // of the trace that are looked at
constexpr std::size_t most_lanes_tried = 3;
constexpr double least_tick_said_ns = 100;

std::string seconds(double ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", ns / 1e9);
    return text;
}

class Audit {
  public:
    Audit(const DeviceSide& ours, const DeviceSide& trace, AuditReport& report)
        : ours_(ours), trace_(trace), report_(report) {}

    void run() {
        prepare();
        if (apart() || !find()) {
            return;
        }
        place();
    }

  private:
    struct Stream {
        const DeviceLane* lane;
        audit::StreamEnds ends;
    };

    void prepare() {
        std::vector<const DeviceLane*> largest;
        for (const DeviceLane& lane : trace_.lanes) {
            largest.push_back(&lane);
        }
        std::stable_sort(largest.begin(), largest.end(), [](const DeviceLane* a, const DeviceLane* b) {
            return a->intervals.size() > b->intervals.size();
        });
        largest.resize(std::min(largest.size(), most_streams));
        for (const DeviceLane* lane : largest) {
            streams_.push_back({lane, audit::StreamEnds(lane->intervals)});
        }
        for (const DeviceLane& lane : ours_.lanes) {
            ends_.emplace_back(lane.intervals);
        }
        if (ours_.realtime_less_host_ns && trace_.realtime_less_host_ns) {
            near_ = static_cast<double>(*ours_.realtime_less_host_ns - *trace_.realtime_less_host_ns);
        }
    }

    /// Where both sides know their rank, or the time of day, they must be those of one run.
    bool apart() {
        const std::string& rank = ours_.facts->metadata.rank;
        const std::string& other = trace_.facts->metadata.rank;
        if (!rank.empty() && !other.empty() && rank != other) {
            report_.reason = "the trace is of rank " + other + ", the recording of rank " + rank;
            return true;
        }
        if (!near_) {
            return false;
        }
        const double begin = static_cast<double>(ours_.first_ns()) + *near_;
        const double end = static_cast<double>(ours_.last_ns()) + *near_;
        const double before = static_cast<double>(trace_.first_ns()) - end;
        const double after = begin - static_cast<double>(trace_.last_ns());
        if (std::max(before, after) <= calendar_window_ns) {
            return false;
        }
        report_.reason = before > 0 ? "the trace begins " + seconds(before) + " after the recording's last scope"
                                    : "the trace ends " + seconds(after) + " before the recording's first scope";
        return true;
    }

    bool find() {
        std::vector<std::size_t> order(ours_.lanes.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        std::stable_sort(order.begin(), order.end(),
                         [this](std::size_t a, std::size_t b) { return ends_[a].all.size() > ends_[b].all.size(); });
        order.resize(std::min(order.size(), most_lanes_tried));
        for (const std::size_t lane : order) {
            for (const Stream& stream : streams_) {
                const auto fit = audit::find_line(ends_[lane], stream.ends, near_, calendar_window_ns);
                if (fit && (!first_ || fit->agreeing > first_->agreeing)) {
                    first_ = fit;
                }
            }
            if (first_) {
                return true;
            }
        }
        report_.reason =
            "there is no way to lay the two clocks over each other so that our scopes end where operations of the trace "
            "end; is it of the same process and the same time?";
        if (near_) {
            report_.reason += " Looked within " + seconds(calendar_window_ns) + " of what the time of day says.";
        }
        return false;
    }

    void place() {
        audit::Tally tally(ours_, trace_);
        report_.fits = true;
        for (std::size_t i = 0; i < ours_.lanes.size(); ++i) {
            const DeviceLane& lane = ours_.lanes[i];
            AuditLane& row = report_.lanes.emplace_back();
            row.name = lane.info.name;
            row.source = lane.info.source;
            row.calls = lane.intervals.size();
            const Stream* on = nullptr;
            audit::Fit best;
            for (const Stream& stream : streams_) {
                const audit::Fit fit = audit::refine_line(ends_[i], stream.ends, first_->line);
                if (fit.holds(audit::chance_of_known_line) && (on == nullptr || fit.agreeing > best.agreeing)) {
                    best = fit;
                    on = &stream;
                }
            }
            if (on == nullptr) {
                row.offset_ns = row.drift_ppm = row.residual_ns = row.placement_ns =
                    absent("on no stream of the trace operations end where its scopes do");
                continue;
            }
            row.stream = on->lane->info.name;
            row.ends = best.ends;
            row.agreeing = best.agreeing;
            const std::int64_t middle = (ours_.first_ns() + ours_.last_ns()) / 2;
            row.offset_ns = measured(-best.line.shift(middle));
            row.drift_ppm = measured(-best.line.slope * 1e6);
            row.residual_ns = measured(best.residual_ns);
            const audit::LaneClock clock(ends_[i], on->ends, best.line);
            row.placement_ns = measured(clock.placement_ns());
            tally.add(lane, *on->lane, clock);
        }
        tally.finish(report_);
        if (report_.fits && !tally.follows() && !near_) {
            report_.verdict = Outcome::unknown;
            report_.notes.emplace_back(
                "Neither the time of day nor single calls tell this run from another one of the same "
                "work, so the audit decides nothing.");
        }
    }

    const DeviceSide& ours_;
    const DeviceSide& trace_;
    AuditReport& report_;
    std::vector<Stream> streams_;       // the largest first
    std::vector<audit::LaneEnds> ends_; // of each lane of ours
    std::optional<double> near_;        // what is added to our time to get that of the trace, roughly
    std::optional<audit::Fit> first_;
};

Error wrong(const char* sentence) { return {ErrorCode::invalid_argument, sentence}; }

void say_tick(const DeviceSide& trace, AuditReport& report) {
    if (trace.tick_ns() >= least_tick_said_ns) {
        report.notes.push_back("All times of the trace are multiples of " +
                               page::grouped(static_cast<std::uint64_t>(trace.tick_ns())) +
                               " ns: errors of a call below that say nothing.");
    }
}

/// The file that it was made of.
std::string trace_name(const recording::RunFacts& facts) {
    for (const auto& [key, text] : facts.descriptions) {
        if (key == recording::trace_key) {
            return text;
        }
    }
    return {};
}

/// Of a trace of several processes, that of the recorded one: the one that fits.
Result<AuditReport> read_audit(const std::vector<std::string>& files, const AuditQuestion& question) {
    const Result<recording::RecordedRun> ours = recording::open_run(files[0]);
    if (!ours.ok()) {
        return ours.error();
    }
    std::optional<AuditReport> best;
    for (std::size_t i = 1; i < files.size(); ++i) {
        const Result<recording::RecordedRun> trace = recording::open_run(files[i]);
        if (!trace.ok()) {
            return trace.error();
        }
        Result<AuditReport> report = audit_runs(*ours, *trace, question);
        if (!report.ok()) {
            return report;
        }
        report->recording = files[0];
        report->trace = report->trace.empty() ? files[i] : report->trace;
        if (!best || report->inside > best->inside) {
            best = *std::move(report);
        }
    }
    if (files.size() > 2) {
        best->notes.push_back("Of " + std::to_string(files.size() - 1) +
                              " processes in the traces the one that fits best is taken.");
    }
    return *std::move(best);
}

} // namespace

Result<AuditReport> audit_runs(const recording::RecordedRun& our_run, const recording::RecordedRun& trace_run,
                               const AuditQuestion& question) {
    if (question.max_error && !(*question.max_error >= 0 && *question.max_error <= 1e6)) {
        return wrong("--max-error takes percent, from 0 on");
    }
    const Result<DeviceSide> ours = audit::device_side_of(our_run);
    if (!ours.ok()) {
        return ours.error();
    }
    const Result<DeviceSide> trace = audit::device_side_of(trace_run);
    if (!trace.ok()) {
        return trace.error();
    }
    if (analysis::is_imported(ours->facts->tracks)) {
        return wrong(
            "the first file was made of a trace; give the recording that plumb made while the trace was taken");
    }
    if (!analysis::is_imported(trace->facts->tracks)) {
        return wrong("the second file is a recording of plumb's own; give the trace of another tool");
    }
    if (ours->lanes.empty()) {
        return wrong("the recording holds no scope of a device: was a queue or a captured graph recorded?");
    }
    if (trace->lanes.empty()) {
        return wrong("the trace holds no operation of a device");
    }
    AuditReport report;
    report.trace = trace_name(*trace->facts);
    report.tool = trace->lanes.front().info.source.substr(analysis::imported_source.size());
    if (question.max_error) {
        report.max_error = *question.max_error / 100;
    }
    report.ours_ns = report.span_ns = report.error = report.covered = report.uncovered = report.follows =
        absent("the trace does not fit");
    for (const DeviceSide* side : {&*ours, &*trace}) {
        report.notes.insert(report.notes.end(), side->complaints.begin(), side->complaints.end());
    }
    say_tick(*trace, report);
    Audit(*ours, *trace, report).run();
    return report;
}

const answers::Entry& audit_answer() {
    static const answers::Entry entry = answers::entry_of<AuditQuestion, AuditReport, read_audit>(
        "audit", "Hold a recording's device times against a vendor's trace of the same work, brick by brick",
        {{"recording", "Recording made while the trace was taken (.plumb)"},
         {"trace", "The trace: any file that plumb import takes, or what it made of one (.plumb)", true, true}});
    return entry;
}

} // namespace plumb
