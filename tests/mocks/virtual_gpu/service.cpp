// SPDX-License-Identifier: Apache-2.0
// Real time only: a thread that lets the device write memory and run host functions when their time has come, though the
// program makes no driver call. It lives as long as the process.
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <thread>

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

namespace {

constexpr std::int64_t longest_nap_ns = 100'000; // something earlier may come meanwhile

struct Service {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
};

Service& service() {
    static Service* const one = new Service;
    return *one;
}

// When the next effect is due; the largest time if there is none.
std::int64_t carry_out_what_is_due() {
    Gpu& g = gpu();
    const std::lock_guard lock(g.mutex);
    if (g.config.time != Time::real_time) {
        return INT64_MAX;
    }
    settle();
    return g.effects.empty() ? INT64_MAX : g.effects.top().time_ns;
}

[[noreturn]] void serve() {
    Service& s = service();
    for (;;) {
        const std::int64_t due = carry_out_what_is_due();
        if (due == INT64_MAX) {
            std::unique_lock lock(s.mutex);
            s.changed.wait(lock, [&s] { return s.woken; });
            s.woken = false;
            continue;
        }
        const std::int64_t left = std::min(due - host_now(), longest_nap_ns);
        if (left > 0) {
            const timespec time{left / 1'000'000'000, left % 1'000'000'000};
            nanosleep(&time, nullptr);
        }
    }
}

} // namespace

void wake_service() {
    static std::once_flag started;
    std::call_once(started, [] { std::thread(serve).detach(); });
    Service& s = service();
    const std::lock_guard lock(s.mutex);
    s.woken = true;
    s.changed.notify_one();
}

} // namespace plumb::vgpu
