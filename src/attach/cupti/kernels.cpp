// SPDX-License-Identifier: Apache-2.0
#include "attach/cupti/kernels.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
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
constexpr milliseconds longest_idle_window{1000}; // without a launch; another tool may want CUPTI
constexpr std::size_t most_launches = std::size_t{1} << 20;

/// What launching threads tell.
struct ToldLaunches {
    std::mutex mutex;
    std::vector<KernelLaunch> seen;
    std::size_t steps = 0; // begun, as launches tell
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
    std::atomic<Profiler*> recorder{nullptr};     // made with the first launch
    std::uint64_t kernels = 0, windows = 0, lost = 0;
    steady_clock::duration open{}; // CUPTI was on, with launches
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
    Profiler* const recorder = all->recorder.load(std::memory_order_acquire);
    if (recorder == nullptr) {
        return; // its kernels are of no step
    }
    const std::uint64_t step = recorder->context().step_plus_one;
    const std::lock_guard lock(all->launches.mutex);
    ToldLaunches& launches = all->launches;
    if (launches.seen.size() == most_launches) {
        launches.beyond_bound = true;
        return;
    }
    launches.steps += step != 0 && (launches.seen.empty() || launches.seen.back().step_plus_one != step) ? 1 : 0;
    launches.seen.push_back({correlation, reinterpret_cast<std::uintptr_t>(&thread_mark), step});
}

CuptiOptions options() {
    CuptiOptions made;
    made.launched = note_launch;
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
    for (std::uint64_t KernelTrace::*count :
         {&KernelTrace::untimed, &KernelTrace::backwards, &KernelTrace::beyond_bound, &KernelTrace::outside,
          &KernelTrace::dropped}) {
        to.*count += more.*count;
    }
}

std::uint64_t lost_in(const KernelTrace& trace) {
    return trace.untimed + trace.backwards + trace.beyond_bound + trace.outside + trace.dropped;
}

struct OpenedWindow {
    KernelTrace trace;
    std::vector<KernelLaunch> launches;
    std::size_t closing = 0;
    bool lost = false;
    steady_clock::duration length{}; // from its first launch on; 0: there was none
    bool last = false;               // the process is about to end
};

/// Of this window; none: nothing was launched yet.
std::optional<steady_clock::time_point> first_launch(const KernelCollection& all) {
    const std::int64_t ns = all.first_launch_ns.load(std::memory_order_relaxed);
    return ns != 0 ? std::optional(steady_clock::time_point(steady_clock::duration(ns))) : std::nullopt;
}

/// Lets the program run until the window has what it is for. False: nothing was launched.
bool wait_for_content(KernelCollection& all, bool& stops) {
    const steady_clock::time_point opened = steady_clock::now();
    while (!stops && !first_launch(all) && steady_clock::now() - opened < longest_idle_window) {
        stops = stops_within(all, look);
    }
    if (!first_launch(all)) {
        return false;
    }
    all.recorder.store(&profiler(), std::memory_order_release); // there is a recording from here on
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

/// Until a kernel has run that was launched after the content of the window was complete.
void wait_for_device(KernelCollection& all, CuptiReader& reader, OpenedWindow& window, bool& stops) {
    std::uint32_t last = 0;
    {
        const std::lock_guard lock(all.launches.mutex);
        window.closing = all.launches.seen.size();
        last = window.closing != 0 ? all.launches.seen.back().correlation : 0;
    }
    const steady_clock::time_point begin = steady_clock::now();
    bool came = false;
    while (!stops && !came && steady_clock::now() - begin < longest_lag) {
        stops = stops_within(all, look);
        if (Result<KernelTrace> taken = reader.take(); taken) {
            came = std::any_of(taken->kernels.begin(), taken->kernels.end(),
                               [last](const TracedKernel& kernel) { return kernel.correlation > last; });
            add(window.trace, *std::move(taken));
        }
    }
}

Result<OpenedWindow> open_window(KernelCollection& all) {
    {
        const std::lock_guard lock(all.launches.mutex);
        all.launches.seen.clear();
        all.launches.steps = 0;
        all.launches.beyond_bound = false;
    }
    all.first_launch_ns.store(0, std::memory_order_relaxed);
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(options());
    if (!reader) {
        return reader.error();
    }
    OpenedWindow window;
    if (wait_for_content(all, window.last)) {
        wait_for_device(all, **reader, window, window.last);
    }
    Result<KernelTrace> rest = (*reader)->stop();
    reader->reset();
    if (!rest) {
        return rest.error();
    }
    window.trace.version = rest->version;
    add(window.trace, *std::move(rest));
    window.length = first_launch(all) ? steady_clock::now() - *first_launch(all) : steady_clock::duration{};
    const std::lock_guard lock(all.launches.mutex);
    window.launches.swap(all.launches.seen);
    window.lost = all.launches.beyond_bound || lost_in(window.trace) != 0;
    return window;
}

void write_window(KernelCollection& all, OpenedWindow& window) {
    std::vector<TracedKernel>& kernels = window.trace.kernels;
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const TracedKernel& a, const TracedKernel& b) { return a.begin_ns < b.begin_ns; });
    static auto* const writer = new KernelWriter(profiler());
    const std::uint64_t written =
        writer->write(kernels, arrange(kernels, window.launches, window.closing, window.lost));
    ++all.windows;
    all.open += window.length;
    all.kernels += written;
    all.lost += lost_in(window.trace) + kernels.size() - written;
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
                       (all.windows == 1 ? " window" : " windows") + " of together " + decimal(open * 1000) +
                       " ms (of " + decimal(whole) + " s)";
    if (all.lost != 0) {
        text += ", " + std::to_string(all.lost) + " lost or without a time";
    }
    profiler().describe("kernels", text);
}

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
    thread.join();
}

void collect_kernels(KernelCollection& all) {
    const steady_clock::time_point began = steady_clock::now();
    at_close(stop); // not by who loads us: that may be the profiler itself, while it is made
    for (bool last = false; !last;) {
        Result<OpenedWindow> window = open_window(all);
        if (!window) {
            const bool for_now = all.windows != 0 && window.error().code == ErrorCode::already_exists;
            say((for_now ? "no kernels were recorded for a while: " : "kernels are not recorded: ") +
                window.error().message);
            if (!for_now) {
                traces.store(false, std::memory_order_relaxed); // alone
                return;
            }
        } else if (window->length.count() != 0) {
            write_window(all, *window);
            describe(all, began);
        }
        const steady_clock::duration length = window ? window->length : steady_clock::duration{};
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
    pthread_atfork(nullptr, nullptr, [] {
        collection.store(nullptr, std::memory_order_release);
        traces.store(false, std::memory_order_relaxed);
    });
    const std::lock_guard lock(all->mutex);
    all->thread = base::start_quiet_thread([all] { collect_kernels(*all); });
}

} // namespace plumb::attach::cupti
