// SPDX-License-Identifier: Apache-2.0
#include "attach/cupti/kernels.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attach/attachment.hpp"
#include "attach/cupti/kernel_writer.hpp"
#include "attach/cupti/window.hpp"
#include "backends/cuda/cupti.hpp"
#include "base/os.hpp"
#include "plumb/api.hpp"
#include "plumb/record.hpp"

namespace plumb::attach::cupti {
namespace {

using backends::cuda::CuptiOptions;
using backends::cuda::CuptiReader;
using backends::cuda::KernelTrace;
using backends::cuda::TracedKernel;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds shortest_window{50}; // from its first launch on
constexpr milliseconds longest_window{500};
constexpr std::size_t wanted_steps = 6;  // begun; the first and the last are not whole
constexpr milliseconds longest_lag{200}; // of the device behind its host, that is waited for
constexpr milliseconds look{5};
constexpr int pause_factor = 19; // CUPTI is on for at most a twentieth of the time
constexpr milliseconds shortest_pause{1000};
constexpr milliseconds longest_idle_window{100}; // without a launch
constexpr milliseconds longest_first_window{
    1000}; // the same, before the program's first one; another tool may want CUPTI
constexpr std::size_t most_launches = std::size_t{1} << 20;

/// What launching threads tell.
struct ToldLaunches {
    std::mutex mutex;
    std::vector<KernelLaunch> seen;
    std::size_t steps = 0;         // begun, as launches tell
    std::uint64_t newest_step = 0; // plus one; of several threads one may be in an older one
    bool beyond_bound = false;
};

/// Never destroyed: threads may be in here until the process has ended.
struct KernelCollection {
    std::mutex mutex; // of what follows
    std::condition_variable changed;
    bool stopping = false;
    std::thread thread;

    ToldLaunches launches;
    std::atomic<std::int64_t> first_launch_ns{0}; // of this window, on the steady clock; 0: none yet
    std::uint64_t kernels = 0, windows = 0, lost = 0;
    steady_clock::duration open{}; // CUPTI was on
};

std::atomic<KernelCollection*> collection{nullptr}; // null in a forked child
std::atomic<bool> traces{false};

__thread char thread_mark PLUMB_TLS_MODEL = 0; // its address stands for the thread

/// On a launching thread, in the middle of the driver.
void note_launch(std::uint32_t correlation) {
    KernelCollection* const all = collection.load(std::memory_order_acquire);
    if (all == nullptr) {
        return;
    }
    if (all->first_launch_ns.load(std::memory_order_relaxed) == 0) { // alone; of two firsts either will do
        all->first_launch_ns.store(steady_clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    }
    Profiler* const recorder = made_profiler();
    const std::uint64_t step = recorder != nullptr ? recorder->context().step_plus_one : 0;
    const std::lock_guard lock(all->launches.mutex);
    ToldLaunches& launches = all->launches;
    if (launches.seen.size() == most_launches) {
        launches.beyond_bound = true;
        return;
    }
    if (step > launches.newest_step) {
        launches.newest_step = step;
        ++launches.steps;
    }
    launches.seen.push_back({correlation, reinterpret_cast<std::uintptr_t>(&thread_mark), step});
}

void stop();

CuptiOptions options() {
    CuptiOptions made;
    made.launched = note_launch;
    made.origins = false;
    // Before CUPTI's own handlers at exit, which would find us at work.
    made.loaded = [] {
        static const int registered = std::atexit(stop);
        (void)registered;
    };
    for (const char* name :
         {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"}) { // the program's own, if it has one
        if (void* const loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD); loaded != nullptr) {
            dlclose(loaded);
            made.libraries.emplace_back(name);
        }
    }
    return made;
}

/// True: the process is about to end.
bool stops_within(KernelCollection& all, steady_clock::duration time) {
    std::unique_lock lock(all.mutex);
    return all.changed.wait_for(lock, time, [&all] { return all.stopping; });
}

void add(KernelTrace& to, KernelTrace&& more) {
    to.kernels.insert(to.kernels.end(), std::make_move_iterator(more.kernels.begin()),
                      std::make_move_iterator(more.kernels.end()));
    to.unusable.insert(to.unusable.end(), more.unusable.begin(), more.unusable.end());
    for (std::uint64_t KernelTrace::*count :
         {&KernelTrace::untimed, &KernelTrace::backwards, &KernelTrace::beyond_bound, &KernelTrace::outside,
          &KernelTrace::dropped}) {
        to.*count += more.*count;
    }
}

struct OpenedWindow {
    KernelTrace trace;
    std::vector<KernelLaunch> launches;
    WindowGaps gaps;
    steady_clock::duration length{}; // CUPTI was on
    bool last = false;               // the process is about to end
    Status status;                   // an error: CUPTI did not give what it had
};

/// Of this window; none: nothing was launched yet.
std::optional<steady_clock::time_point> first_launch(const KernelCollection& all) {
    const std::int64_t ns = all.first_launch_ns.load(std::memory_order_relaxed);
    return ns != 0 ? std::optional(steady_clock::time_point(steady_clock::duration(ns))) : std::nullopt;
}

/// Lets the program run until the window has what it is for. False: nothing was launched.
bool wait_for_content(KernelCollection& all, steady_clock::time_point opened, bool& stops) {
    const milliseconds patience = all.windows == 0 ? longest_first_window : longest_idle_window;
    while (!stops && !first_launch(all) && steady_clock::now() - opened < patience) {
        stops = stops_within(all, look);
    }
    if (!first_launch(all)) {
        return false;
    }
    (void)profiler(); // there is a recording from here on
    const auto has_enough = [&all] {
        const steady_clock::duration length = steady_clock::now() - *first_launch(all);
        const std::lock_guard lock(all.launches.mutex);
        const bool has_steps =
            all.launches.steps == 0 || all.launches.steps >= wanted_steps; // or the program tells of none
        return length >= longest_window || (length >= shortest_window && has_steps);
    };
    while (!stops && !has_enough()) {
        stops = stops_within(all, look);
    }
    return true;
}

/// Until a kernel has ended that was launched after the content of the window was complete.
void wait_for_device(KernelCollection& all, CuptiReader& reader, OpenedWindow& window) {
    std::uint32_t last = 0;
    {
        const std::lock_guard lock(all.launches.mutex);
        window.gaps.closing = all.launches.seen.size();
        last = window.gaps.closing != 0 ? all.launches.seen.back().correlation : 0;
    }
    const steady_clock::time_point begin = steady_clock::now();
    bool came = false;
    while (!window.last && !came && steady_clock::now() - begin < longest_lag) {
        window.last = stops_within(all, look);
        Result<KernelTrace> taken = reader.take();
        if (!taken) {
            window.status = taken.error();
            return;
        }
        came = std::any_of(taken->kernels.begin(), taken->kernels.end(),
                           [last](const TracedKernel& kernel) { return kernel.correlation > last; });
        add(window.trace, *std::move(taken));
    }
}

Result<OpenedWindow> open_window(KernelCollection& all) {
    {
        const std::lock_guard lock(all.launches.mutex);
        all.launches.seen.clear();
        all.launches.steps = 0;
        all.launches.newest_step = 0;
        all.launches.beyond_bound = false;
    }
    all.first_launch_ns.store(0, std::memory_order_relaxed);
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(options());
    if (!reader) {
        return reader.error();
    }
    const steady_clock::time_point opened = steady_clock::now();
    OpenedWindow window;
    {
        const std::lock_guard lock(all.launches.mutex);
        window.gaps.opening = all.launches.seen.size();
    }
    if (wait_for_content(all, opened, window.last)) {
        wait_for_device(all, **reader, window);
    }
    if (Result<KernelTrace> rest = (*reader)->stop(); rest) {
        add(window.trace, *std::move(rest));
    } else if (window.status) {
        window.status = rest.error();
    }
    reader->reset();
    const std::lock_guard lock(all.launches.mutex);
    if (!all.launches.seen.empty() || all.windows != 0) { // before the first launch there is nothing to slow
        window.length = steady_clock::now() - opened;
    }
    window.launches.swap(all.launches.seen);
    window.gaps.closing = std::min(window.gaps.closing, ended_launches(window.launches, window.trace.kernels));
    window.gaps.unusable.swap(window.trace.unusable);
    window.gaps.any =
        all.launches.beyond_bound || window.trace.beyond_bound + window.trace.dropped != 0 || !window.status;
    return window;
}

/// Kernels of these launches that have no time.
std::uint64_t unusable_of(const OpenedWindow& window, std::size_t from, std::size_t to) {
    std::unordered_set<std::uint32_t> launches;
    for (std::size_t i = from; i < to; ++i) {
        launches.insert(window.launches[i].correlation);
    }
    return static_cast<std::uint64_t>(
        std::count_if(window.gaps.unusable.begin(), window.gaps.unusable.end(),
                      [&launches](std::uint32_t correlation) { return launches.count(correlation) != 0; }));
}

void write_window(KernelCollection& all, OpenedWindow& window) {
    std::vector<TracedKernel>& kernels = window.trace.kernels;
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const TracedKernel& a, const TracedKernel& b) { return a.begin_ns < b.begin_ns; });
    static auto* const writer = new KernelWriter(profiler());
    const std::uint64_t written = writer->write(kernels, arrange(kernels, window.launches, window.gaps));
    ++all.windows;
    all.kernels += written;
    all.lost += window.trace.beyond_bound + window.trace.dropped +
                unusable_of(window, window.gaps.opening, window.gaps.closing) + kernels.size() - written;
}

/// Why no more windows are opened after this one; success: there may be more.
Status usable(const OpenedWindow& window) {
    if (!window.status) {
        return window.status;
    }
    const bool none_timed = window.trace.kernels.empty() && window.trace.untimed == 0;
    if (none_timed && unusable_of(window, 0, window.launches.size()) != 0) {
        return Error{ErrorCode::already_exists, "another tool has changed CUPTI's clock"};
    }
    if (uses_queues()) {
        return Error{ErrorCode::already_exists, "scopes on the program's CUDA streams time the same work"};
    }
    return {};
}

std::string decimal(double value) {
    const auto tenths = static_cast<std::uint64_t>(value * 10 + 0.5);
    return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10);
}

/// At the head of the report, as it stands after each window.
void describe(const KernelCollection& all, steady_clock::time_point began) {
    const double whole = std::chrono::duration<double>(steady_clock::now() - began).count();
    const double open = std::chrono::duration<double>(all.open).count();
    std::string text = std::to_string(all.kernels) + " kernels by CUPTI, in " + std::to_string(all.windows) +
                       (all.windows == 1 ? " window" : " windows") + "; it was on for " + decimal(open * 1000) +
                       " ms of " + decimal(whole) + " s";
    if (all.lost != 0) {
        text += ", " + std::to_string(all.lost) + " lost or without a time";
    }
    profiler().describe("kernels", text);
}

/// The last window is written. Idempotent.
void stop() {
    KernelCollection* const all = collection.load(std::memory_order_acquire);
    if (all == nullptr) {
        return;
    }
    std::thread thread;
    {
        const std::lock_guard lock(all->mutex);
        all->stopping = true;
        thread = std::move(all->thread);
    }
    all->changed.notify_all();
    if (thread.joinable()) {
        thread.join();
    }
}

void give_up(const std::string& reason) {
    say("kernels are not recorded: " + reason);
    traces.store(false, std::memory_order_relaxed); // alone
}

void collect_kernels(KernelCollection& all) {
    const steady_clock::time_point began = steady_clock::now();
    at_close(stop); // not by who loads us: that may be the profiler itself, while it is made
    for (bool last = false; !last;) {
        Result<OpenedWindow> window = open_window(all);
        if (!window && (all.windows == 0 || window.error().code != ErrorCode::already_exists)) {
            return give_up(window.error().message);
        }
        steady_clock::duration length{};
        if (!window) {
            say("no kernels were recorded for a while: " + window.error().message);
        } else {
            length = window->length;
            all.open += length;
            const Status more = usable(*window);
            if (uses_queues()) {
                window->trace.kernels.clear();
            }
            if (!window->launches.empty()) {
                write_window(all, *window);
                describe(all, began);
            }
            if (!more) {
                return give_up(more.error().message);
            }
        }
        last = (window && window->last) ||
               stops_within(all, std::max<steady_clock::duration>(shortest_pause, pause_factor * length));
    }
}

} // namespace

bool traces_kernels() noexcept { return traces.load(std::memory_order_relaxed); }

void open_door() {
    if (!wanted() || collection.load(std::memory_order_relaxed) != nullptr) {
        return;
    }
    auto* const all = new KernelCollection;
    collection.store(all, std::memory_order_release);
    traces.store(true, std::memory_order_relaxed);
    pthread_atfork(nullptr, nullptr, [] { collection.store(nullptr, std::memory_order_release); });
    const std::lock_guard lock(all->mutex);
    try {
        all->thread = base::start_quiet_thread([all] { collect_kernels(*all); });
    } catch (const std::system_error& error) {
        give_up(std::string("no thread could be started: ") + error.what());
    }
}

} // namespace plumb::attach::cupti
