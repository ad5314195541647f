// SPDX-License-Identifier: Apache-2.0
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/processor_counters.hpp"

namespace plumb::base {
namespace {

struct Event {
    const char* name;
    std::uint64_t config;
};
constexpr Event events[] = {
    {"cycles", PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_references", PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
};
constexpr std::size_t event_count = std::size(events);

int open_event(const Event& event, int thread) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = event.config;
    attributes.inherit = 1;
    attributes.exclude_kernel = 1; // what perf_event_paranoid = 2 allows
    attributes.exclude_hv = 1;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string reason_of(int error) {
    if (error == EACCES || error == EPERM) {
        return "the system does not allow it: set kernel.perf_event_paranoid to 2 or less, or allow perf_event_open in "
               "the container";
    }
    if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP) {
        return "this machine offers no processor counters (a virtual machine without them?)";
    }
    if (error == EMFILE || error == ENFILE) {
        return "too few files may be open for four of each thread: raise the limit (ulimit -n)";
    }
    if (error == ENOSYS) {
        return "this kernel has no perf_event_open";
    }
    return "perf_event_open failed with error " + std::to_string(error);
}

class PerfCounters final : public CounterReader {
  public:
    PerfCounters() {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
            open_thread(std::atoi(entry.path().filename().c_str()));
        }
        if (error) {
            reason_ = "the threads of this process cannot be listed: is /proc mounted?";
        }
        close_refused();
    }
    ~PerfCounters() override {
        for (const Open& one : open_) {
            close(one.file);
        }
    }

    CounterTotals read() override {
        CounterTotals result{{}, reason_};
        for (std::size_t event = 0; event < event_count; ++event) {
            std::uint64_t total = 0;
            bool whole = true, any = false;
            for (const Open& one : open_) {
                if (one.event != event) {
                    continue;
                }
                std::uint64_t values[3] = {}; // count, time enabled, time running
                any = true;
                whole = whole && ::read(one.file, values, sizeof values) == sizeof values && values[1] == values[2];
                total += values[0];
            }
            if (any && whole) {
                result.totals.emplace_back(events[event].name, total);
            } else if (any) { // what was counted for a part of the time would have to be guessed for the rest
                result.reason = std::string(events[event].name) + " shared its counter with another program";
            }
        }
        return result;
    }

  private:
    struct Open {
        std::size_t event;
        int file;
    };

    void open_thread(int thread) {
        for (std::size_t event = 0; event < event_count; ++event) {
            const int file = open_event(events[event], thread);
            if (file >= 0) {
                open_.push_back({event, file});
            } else if (errno != ESRCH) { // a thread that has just ended
                reason_ = reason_of(errno);
                refused_[event] = true;
            }
        }
    }

    /// What some threads refuse is not known of the process, and files kept for it would be the program's loss.
    void close_refused() {
        const auto rest =
            std::partition(open_.begin(), open_.end(), [&](const Open& one) { return !refused_[one.event]; });
        std::for_each(rest, open_.end(), [](const Open& one) { close(one.file); });
        open_.erase(rest, open_.end());
    }

    std::vector<Open> open_;
    std::array<bool, event_count> refused_{};
    std::string reason_;
};

} // namespace

std::unique_ptr<CounterReader> open_processor_counters() { return std::make_unique<PerfCounters>(); }

} // namespace plumb::base
