// SPDX-License-Identifier: Apache-2.0
#include "backends/measure_selftest.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "asking/analysis_table.hpp"
#include "backends/pair_fit.hpp"
#include "backends/registry.hpp"
#include "base/os.hpp"
#include "clock/host_clock.hpp"
#include "plumb/selftest.hpp"

namespace plumb {
namespace {

Figure figure(const Result<double>& result) {
    return result ? Figure{*result, ""} : Figure{std::nullopt, result.error().message};
}

/// Median host time of one call in nanoseconds. `call` gives a Status; the first error is the figure's reason.
template <class Call>
Result<double> median_cost_ns(Call call) {
    std::vector<double> costs;
    for (int round = 0; round < 33; ++round) {
        constexpr int calls = 32;
        const std::int64_t begin = clock::monotonic_ns();
        for (int i = 0; i < calls; ++i) {
            if (Status done = call(); !done) {
                return done.error();
            }
        }
        costs.push_back(static_cast<double>(clock::monotonic_ns() - begin) / calls);
    }
    std::nth_element(costs.begin(), costs.begin() + costs.size() / 2, costs.end());
    return costs[costs.size() / 2];
}

/// Pairs spread over a few milliseconds: enough for a rate to some parts per million.
Result<std::vector<DeviceClockPair>> read_pairs(QueueTimer& timer) {
    constexpr std::int64_t gap_ns = 500'000;
    std::vector<DeviceClockPair> pairs;
    std::int64_t next = clock::monotonic_ns();
    const std::int64_t limit = next + 200 * gap_ns; // of a device that is too busy to answer now and then
    while (pairs.size() < 9) {
        if (clock::monotonic_ns() < next) {
            continue;
        }
        const Result<DeviceClockPair> pair = timer.clock_pair();
        const bool later = !pair && pair.error().code == ErrorCode::pending && next < limit;
        if (!pair && !later) {
            return pair.error();
        }
        if (pair) {
            pairs.push_back(*pair);
        }
        next += gap_ns;
    }
    return pairs;
}

Result<clock::Correlation> fit_clock(QueueTimer& timer) {
    const Result<std::vector<DeviceClockPair>> read = read_pairs(timer);
    if (!read) {
        return read.error();
    }
    return backends::fit_of(*read);
}

DeviceSelfTest test_device(Backend& backend, Device device) {
    DeviceSelfTest test;
    const Result<std::unique_ptr<QueueTimer>> made = backend.make_queue_timer(device.index, nullptr, TimerOptions{});
    test.device = std::move(device);
    if (!made) {
        for (Figure* absent : {&test.ticks_per_second, &test.floor_ns, &test.begin_end_ns, &test.clock_read_ns,
                               &test.clock_pair_ns, &test.fit_residual_ns, &test.fit_bound_ns}) {
            *absent = Figure{std::nullopt, made.error().message};
        }
        return test;
    }
    QueueTimer& timer = **made;
    test.source = timer.source();
    test.clock = timer.clock_name();
    for (Capability& capability : timer.capabilities()) {
        const auto& known = test.device.capabilities;
        if (std::none_of(known.begin(), known.end(), [&](const Capability& k) { return k.name == capability.name; })) {
            test.capabilities.push_back(std::move(capability));
        }
    }

    const Result<clock::Correlation> fit = fit_clock(timer);
    const auto of_fit = [&](double value) {
        return fit ? Result<double>(value) : Result<double>(fit.error());
    };
    test.ticks_per_second = figure(of_fit(fit ? 1e9 / fit->ns_per_tick() : 0));
    test.fit_residual_ns = figure(of_fit(fit ? fit->residual_ns() : 0));
    const Result<DeviceClockPair> now = timer.clock_pair();
    test.fit_bound_ns = figure(now ? of_fit(fit ? fit->bound_ns({now->ticks}) : 0) : Result<double>(now.error()));

    test.floor_ns = figure(timer.floor_ns());
    test.begin_end_ns = figure(median_cost_ns([&]() -> Status {
        const Result<DeviceToken> token = timer.begin();
        if (!token) {
            return token.error();
        }
        const Status ended = timer.end(*token);
        timer.cancel(*token);
        return ended;
    }));
    test.clock_pair_ns = figure(median_cost_ns([&]() -> Status {
        const Result<DeviceClockPair> pair = timer.clock_pair();
        return pair ? Status() : Status(pair.error());
    }));
    test.clock_read_ns = {std::nullopt, "the host reads this clock in pairs only"};
    if (timer.clock_is_host()) {
        const clock::HostClockSource source = clock::machine_clock();
        constexpr int reads = 64; // so many that making a Status costs next to nothing
        const Result<double> cost = median_cost_ns([&]() -> Status {
            for (int i = 0; i < reads; ++i) {
                [[maybe_unused]] volatile std::uint64_t sink = clock::now_ticks(source).value;
            }
            return {};
        });
        test.clock_read_ns = figure(cost ? Result<double>(*cost / reads) : cost);
    }
    return test;
}

} // namespace

SelfTest measure_selftest() {
    SelfTest test;
    const clock::HostClockChoice choice = clock::choose_host_clock(clock::facts_of_this_machine());
    test.cpu = base::cpu_model();
    test.clock = clock::name_of(choice.kind);
    test.clock_reason = choice.reason;
    for (Backend* backend : registered_backends()) {
        BackendSelfTest result;
        result.name = backend->name();
        Result<std::vector<Device>> devices = backend->enumerate();
        if (!devices) {
            result.unavailable = devices.error().message;
        } else {
            for (Device& device : *devices) {
                result.devices.push_back(test_device(*backend, std::move(device)));
            }
        }
        test.backends.push_back(std::move(result));
    }
    return test;
}

Result<Answer> run_selftest() {
    const Result<asking::AnalysisPointer> analysis = asking::analysis(); // before all the work
    return analysis.ok() ? (*analysis)->answer_of_selftest(measure_selftest()) : Result<Answer>(analysis.error());
}

} // namespace plumb
