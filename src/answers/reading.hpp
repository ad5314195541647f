// SPDX-License-Identifier: Apache-2.0
// One reading of a recording, for an answer or for several. One thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/report_builder.hpp"
#include "analysis/wall_report.hpp"
#include "answers/answer.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"
#include "recording/recorded_run.hpp"

namespace plumb::answers {

class Reading {
  public:
    /// `cut`: what a live run cleared by reset(). REQUIRES: the run outlives it.
    explicit Reading(const recording::RecordedRun& run, resolve::Cut cut = {}) : run_(run), cut_(std::move(cut)) {}

    [[nodiscard]] const recording::RunFacts& facts() const { return *run_.facts; }
    /// Reads along from the first call on; several answers are made of reports.
    [[nodiscard]] analysis::ReportReader& report();
    /// The account of the wall clock, once for all who ask alike.
    [[nodiscard]] Pending<WallReport> wall(const WallOptions& options);
    /// An observer of the caller's own; it lives as long as the reading.
    template <class Observer, class... Arguments>
    Observer& join(Arguments&&... arguments) {
        auto made = std::make_unique<Observer>(std::forward<Arguments>(arguments)...);
        Observer& joined = *made;
        observers_.push_back(std::move(made));
        return joined;
    }
    /// Steps of warm-up, for all who read along; without: as many as the recording says.
    void warm_up(std::uint64_t steps) { warmup_steps_ = steps; }

    /// Once, behind the last join(). Nothing is read where nobody joined.
    [[nodiscard]] Status read();

  private:
    const recording::RecordedRun& run_;
    resolve::Cut cut_;
    analysis::ReportReader* report_ = nullptr;
    bool report_tells_wall_ = false; // a report tells one account what periods are made of
    std::vector<std::pair<WallOptions, Pending<WallReport>>> walls_;
    std::vector<std::unique_ptr<read::Observer>> observers_;
    std::optional<std::uint64_t> warmup_steps_;
};

/// Error: what reading the run gives, or what begin() refuses.
template <class R, class Begin>
[[nodiscard]] Result<R> read_run(const recording::RecordedRun& run, Begin&& begin, resolve::Cut cut = {}) {
    Reading reading(run, std::move(cut));
    const Result<Pending<R>> pending = begin(reading);
    if (!pending.ok()) {
        return pending.error();
    }
    if (const Status read = reading.read(); !read.ok()) {
        return read.error();
    }
    return (*pending)();
}

/// Error: also what opening the file gives.
template <class R, class Begin>
[[nodiscard]] Result<R> read_one(const std::string& path, Begin&& begin) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    return run.ok() ? read_run<R>(*run, begin) : Result<R>(run.error());
}

/// Options and one kind of result, from `begin(reading, options)`.
template <class Options, class R, Result<Pending<R>> (*begin)(Reading&, const Options&)>
[[nodiscard]] Result<Pending<AnswerPointer>> begin_answer(Reading& reading, const OptionValues& values) {
    const Result<Options> options = options_from<Options>(values);
    if (!options.ok()) {
        return options.error();
    }
    Result<Pending<R>> pending = begin(reading, *options);
    if (!pending.ok()) {
        return pending.error();
    }
    return Pending<AnswerPointer>([take = *std::move(pending)] { return answer_of(take()); });
}

/// Most answers.
template <class Options, class R, Result<Pending<R>> (*begin)(Reading&, const Options&)>
[[nodiscard]] Entry joining_entry(const char* name, const char* summary) {
    Entry entry = entry_for<Options, R>(name, summary);
    entry.begin = begin_answer<Options, R, begin>;
    return entry;
}

/// An answer that is asked for; of the values those count that it has an option for.
struct Asked {
    const Entry* entry = nullptr;
    OptionValues values;
    bool operator==(const Asked&) const = default;
};

/// Several answers about one recording, from one reading; one that cannot be given says why in its place.
[[nodiscard]] Document together_document();
[[nodiscard]] Result<Pending<AnswerPointer>> begin_together(Reading& reading, const std::vector<Asked>& questions);

/// Of a run that goes on, as ask() of a file; `cut` is what it cleared. Error also unsupported: one reading does not
/// give that answer.
[[nodiscard]] Result<Answer> ask_of_run(std::string_view name, const recording::RecordedRun& run,
                                        const resolve::Cut& cut, const OptionValues& options);

} // namespace plumb::answers
