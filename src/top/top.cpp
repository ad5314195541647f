// SPDX-License-Identifier: Apache-2.0
#include "top/top.hpp"

#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "recording/follower.hpp"
#include "recording/recorded_run.hpp"
#include "top/picture.hpp"
#include "top/running.hpp"
#include "top/window.hpp"

namespace plumb::top {
namespace {

using recording::Follower;

constexpr double usual_seconds = 5;
constexpr double budget_ns = 1e7; // CPU time of one look in a second: with what is around it, below 2 % of a core
constexpr std::size_t least_records = 2000, most_records = std::size_t{1} << 20;
constexpr std::size_t first_records = 60000; // until it is known what one costs
constexpr double silence_worth_saying = 3;   // seconds: a ring may keep records for one

double now_ns(clockid_t clock) {
    struct timespec time = {};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::uint64_t sum_of(const recording::Counters& counters) {
    std::uint64_t sum = 0;
    for (const auto& [reason, count] : counters.drops) {
        sum += count;
    }
    return sum;
}

std::string list_of(const std::vector<Running>& running) {
    std::string list;
    for (const Running& one : running) {
        list += (list.empty() ? "" : "; ") + std::to_string(one.pid) + " (" + one.recording + ")";
    }
    return list;
}

bool is_number(const std::string& text, std::uint32_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

} // namespace

Result<std::string> recording_named(const std::string& argument) {
    struct stat facts = {};
    std::uint32_t pid = 0;
    if (!argument.empty() && (stat(argument.c_str(), &facts) == 0 || !is_number(argument, pid))) {
        return argument;
    }
    std::vector<Running> running = running_recordings();
    if (argument.empty() && running.empty()) {
        return Error{ErrorCode::not_found, "no process of yours is recording now: start one with PLUMB=on or `plumb "
                                           "run`, or name a recording: plumb top run.plumb"};
    }
    if (!argument.empty()) {
        const std::string known = running.empty() ? "" : "; these record: " + list_of(running);
        std::erase_if(running, [pid](const Running& one) { return one.pid != pid; });
        if (running.empty()) {
            return Error{ErrorCode::not_found,
                         "process " + argument + " is not known to record: name its recording instead" + known};
        }
    }
    if (running.size() > 1) {
        return Error{ErrorCode::not_found,
                     argument.empty()
                         ? "several processes are recording: name one of them, as in plumb top " +
                               std::to_string(running.front().pid) + ": " + list_of(running)
                         : "process " + argument + " writes several recordings: name one of them: " + list_of(running)};
    }
    return running.front().recording;
}

struct Top::State {
    State(std::string path, Follower followed) : follower(std::move(followed)) { view.recording = std::move(path); }

    Follower follower;
    Window window;
    View view;
    double seconds = usual_seconds;
    std::size_t records = first_records; // that a look may take
    std::uint64_t dropped = 0;
    bool looked = false;

    Status look();
    Result<Account> account();
    void remember(bool news);
    void note_silence();
    void adapt(double cost_ns);
};

/// A run that had ended before it was looked at is shown as a whole, its ring merged, as `plumb report` does it.
Result<Account> Top::State::account() {
    const bool ended = follower.writer() != Follower::Writer::alive;
    if (!ended || looked) {
        return window.read(follower, seconds, records, ended);
    }
    const Result<recording::RecordedRun> run = recording::open_run(view.recording);
    if (!run) {
        return run.error();
    }
    view.drops = run->facts->counters.drops;
    resolve::ResolveOptions options;
    options.warmup_steps = run->facts->metadata.warmup_steps;
    Result<Account> whole = account_of(*run, options);
    if (whole) {
        whole->removed = run->facts->counters.records_removed != 0;
    }
    return whole;
}

/// The window becomes longer where steps are, and shorter where records cost more than a look may.
void Top::State::adapt(double cost_ns) {
    const Account& made = view.account;
    if (made.records > 1000 && cost_ns > 0) {
        const double affordable = budget_ns * static_cast<double>(made.records) / cost_ns;
        const double next = 0.5 * static_cast<double>(records) + 0.5 * affordable;
        records = std::clamp(static_cast<std::size_t>(next), least_records, most_records);
    }
    const PhaseSummary* phase = main_phase(made.report);
    if (phase == nullptr && made.seconds) {
        seconds = std::min(Window::longest, 2 * seconds);
    } else if (phase != nullptr && phase->steps >= 8) {
        seconds = std::max(usual_seconds, 0.5 * seconds);
    }
}

/// Threads write at most once a second, so a look without news shows what the one before showed; a silence leaves a gap.
void Top::State::remember(bool news) {
    const std::uint64_t now = sum_of(follower.facts()->counters);
    const std::uint64_t more = now - std::min(now, dropped);
    if (news) {
        view.history.push_back(moment_of(view.account, looked ? more : 0));
    } else {
        view.history.push_back(view.silent_seconds ? Moment{} : view.history.back());
    }
    dropped = now;
    if (view.history.size() > history_length) {
        view.history.pop_front();
    }
}

Status Top::State::look() {
    const std::int64_t newest = window.newest_ns();
    if (Status seen = follower.look(); !seen) {
        return seen;
    }
    window.add(follower.take_chunks(), *follower.facts());
    const recording::RunFacts& facts = *follower.facts();
    view.pid = facts.metadata.pid;
    view.ended = follower.writer() != Follower::Writer::alive;
    view.drops = facts.counters.drops;
    const bool news = window.newest_ns() != newest || !looked || view.ended;
    if (news) {
        const double before = now_ns(CLOCK_THREAD_CPUTIME_ID);
        Result<Account> made = account();
        if (!made) {
            return made.error();
        }
        view.account = std::move(*made);
        adapt(now_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    }
    note_silence();
    remember(news);
    looked = true;
    return {};
}

void Top::State::note_silence() {
    view.running_seconds.reset();
    view.silent_seconds.reset();
    if (view.ended) {
        return;
    }
    const auto begun = static_cast<double>(follower.facts()->metadata.start_realtime_ns);
    view.running_seconds = (now_ns(CLOCK_REALTIME) - begun) * 1e-9;
    const double silent = (now_ns(CLOCK_MONOTONIC) - static_cast<double>(window.newest_ns())) * 1e-9;
    if (window.newest_ns() != 0 && silent >= silence_worth_saying) {
        view.silent_seconds = silent;
    }
}

Top::Top(std::unique_ptr<State> state) : state_(std::move(state)) {}
Top::Top(Top&&) noexcept = default;
Top& Top::operator=(Top&&) noexcept = default;
Top::~Top() = default;

Result<Top> Top::open(const std::string& recording, bool live) {
    Result<Follower> follower = Follower::open(recording);
    if (!follower) {
        return follower.error();
    }
    auto state = std::make_unique<State>(recording, std::move(*follower));
    state->records = live ? first_records : most_records;
    return Top(std::move(state));
}

Status Top::look() { return state_->look(); }

bool Top::ended() const { return state_->view.ended; }

std::vector<std::string> Top::lines(std::size_t columns, std::size_t rows, bool color) const {
    if (rows != 0) {
        return picture_of(state_->view, {columns, rows}, color, true);
    }
    View snapshot = state_->view;
    snapshot.history.clear();
    return picture_of(snapshot, {columns, 0}, color, false);
}

std::string Top::farewell() const {
    const View& view = state_->view;
    const bool closed = state_->follower.writer() == Follower::Writer::closed;
    const std::string run = view.pid != 0 ? "process " + std::to_string(view.pid) : "the run";
    return run + (closed ? " ended" : " ended without closing its recording") + ": plumb report " + view.recording +
           " shows the whole run";
}

} // namespace plumb::top
