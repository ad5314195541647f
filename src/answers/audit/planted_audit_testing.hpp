// SPDX-License-Identifier: Apache-2.0
// For tests: work on a device that was planned, as our recording saw it and as a vendor's trace did, each with flaws of the test's
// choice. One thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "planted/tape.hpp"
#include "plumb/backend.hpp"

namespace plumb::audit {

inline constexpr std::int64_t us = 1'000;

struct PlannedKernel {
    std::string name;
    std::int64_t begin = 0, end = 0; // true
    std::int64_t launched = 0;       // on the host
};

struct PlannedScope {
    Brick brick = Brick::attention;
    std::uint64_t step = 0;
    std::int64_t begin = 0, end = 0; // true: from the end of what ran before
    std::int64_t launch_begin = 0, launch_end = 0;
};

struct PlannedWork {
    std::vector<PlannedKernel> kernels;
    std::vector<PlannedScope> scopes;
};

/// Steps of some layers; each kernel takes a little more or less than it should, as on a device. `part`: of the usual length.
inline PlannedWork plan_work(std::uint64_t seed = 1, int steps = 30, int layers = 6, double part = 1) {
    std::mt19937_64 random(seed);
    const auto about = [&random](std::int64_t ns) {
        return ns + std::int64_t(random() % std::uint64_t(ns / 25 + 1)) - ns / 50;
    };
    PlannedWork work;
    std::int64_t host = 5'000 * us;
    std::int64_t device = host;
    for (int step = 0; step < steps; ++step) {
        host = std::max(host, device) + about(300 * us);
        device = host + 10 * us;
        const auto scope = [&](Brick brick, const std::vector<std::pair<const char*, std::int64_t>>& kernels) {
            PlannedScope made{brick, std::uint64_t(step), 0, 0, host, 0};
            made.begin = device;
            for (const auto& [name, ns] : kernels) {
                host += 1 * us;
                const std::int64_t begin = device + about(1'000);
                device = begin + about(std::int64_t(double(ns) * part));
                work.kernels.push_back({name, begin, device, host});
                host += 2 * us;
            }
            made.end = device;
            made.launch_end = host;
            work.scopes.push_back(made);
        };
        for (int layer = 0; layer < layers; ++layer) {
            scope(Brick::rms_norm, {{"norm_kernel", 6 * us}});
            scope(Brick::attention, {{"rope_kernel", 4 * us}, {"flash_kernel", 60 * us}});
            scope(Brick::down_projection, {{"gemm_kernel", 90 * us}});
        }
        scope(Brick::lm_head, {{"head_kernel", 250 * us}});
    }
    return work;
}

/// What our recording gets wrong.
struct OurFlaws {
    std::map<Brick, double> longer_ns; // each scope of the brick ends so much later; below 0: earlier
    std::set<std::size_t> missing;     // scopes
    std::uint64_t every = 1;           // steps that are timed
    bool launches = true;
    std::int64_t misplaced_ns = 0; // each step as a whole, by less than so much
    std::int64_t realtime = 0;     // of the zero of the host's clock; 0: not known
};

inline planted::Tape our_recording(const PlannedWork& work, const OurFlaws& flaws = {}) {
    planted::Tape tape;
    tape.track(1);
    recording::TrackInfo queue{2, recording::TrackKind::device_queue, 0, 0, "stream 1", "cuda_event"};
    tape.device_track(queue);
    for (recording::ClockPair& pair : tape.clock_pairs_) {
        pair.realtime_ns = flaws.realtime == 0 ? 0 : flaws.realtime + pair.monotonic_ns;
    }
    std::size_t index = 0;
    std::uint64_t step = ~std::uint64_t{0};
    std::int64_t off = 0;
    std::mt19937_64 random(7);
    std::int64_t begin = 0;
    std::int64_t end = 0;
    for (const PlannedScope& scope : work.scopes) {
        const std::size_t number = index++;
        if (scope.step != step) {
            if (step != ~std::uint64_t{0}) {
                tape.step_end(1, Phase::decode, begin, end);
            }
            begin = scope.launch_begin;
            tape.step_begin(1, scope.step, Phase::decode, begin);
            step = scope.step;
            off = flaws.misplaced_ns == 0
                      ? 0
                      : std::int64_t(random() % std::uint64_t(2 * flaws.misplaced_ns)) - flaws.misplaced_ns;
        }
        end = scope.end;
        if (flaws.missing.contains(number) || scope.step % flaws.every != 0) {
            continue;
        }
        const auto wrong = flaws.longer_ns.find(scope.brick);
        const std::int64_t by = wrong == flaws.longer_ns.end() ? 0 : std::int64_t(wrong->second);
        if (flaws.launches) {
            const auto cause = tape.submit_scope(1, scope.brick, 2, scope.launch_begin, scope.launch_end);
            tape.cause(2, cause);
        }
        tape.device_scope(2, scope.brick, scope.step, -1, scope.begin + off, scope.end + by + off);
    }
    tape.step_end(1, Phase::decode, begin, end);
    tape.deliver_all();
    return tape;
}

/// What is otherwise about the trace.
struct TraceFlaws {
    std::int64_t ahead_ns = 3'600'000'000'000; // its clock, at zero
    double drift_ppm = 0;                      // it runs faster
    std::set<std::size_t> missing;             // kernels
    std::vector<PlannedKernel> elsewhere;      // on another stream
    std::int64_t from = 0, to = 1'000'000'000'000;
    std::int64_t tick = 2;
    std::int64_t realtime = 0; // of the zero of its clock
};

inline planted::Tape their_trace(const PlannedWork& work, const TraceFlaws& flaws = {}) {
    planted::Tape tape;
    const auto seen = [&flaws](std::int64_t ns) {
        const auto clock = std::int64_t(std::llround(double(ns) * (1 + flaws.drift_ppm * 1e-6)));
        return (clock + flaws.ahead_ns) / flaws.tick * flaws.tick;
    };
    tape.track(1, "thread 100", "imported:kineto");
    tape.device_track({2, recording::TrackKind::device_queue, 0, 0, "gpu:0 stream 7", "imported:kineto"}, "gpu:0");
    tape.device_track({3, recording::TrackKind::device_queue, 0, 0, "gpu:0 stream 20", "imported:kineto"}, "gpu:0");
    tape.metadata_.costs = {{"floor.imported:kineto", double(flaws.tick)}};
    tape.clock_pairs_.clear();
    for (const std::uint32_t clock : {0U, 1U}) {
        for (const std::int64_t at : {seen(0), seen(100'000'000'000)}) {
            const std::uint64_t ticks = planted::Tape::at(at) + (clock == 0 ? 0 : planted::Tape::device_ahead);
            tape.clock_pairs_.push_back({clock, ticks, at, flaws.realtime == 0 ? 0 : flaws.realtime + at, 0});
        }
    }
    std::uint16_t next = first_interned_id;
    std::map<std::string, std::uint16_t> names;
    const auto put = [&](const PlannedKernel& kernel, std::uint32_t stream) {
        const auto [found, is_new] = names.try_emplace(kernel.name, next);
        if (is_new) {
            tape.names_.push_back({next++, Category::other, kernel.name});
        }
        Name name = Brick::attention;
        name.id = found->second;
        const auto cause = tape.submit_scope(1, name, stream, seen(kernel.launched), seen(kernel.launched) + us);
        tape.cause(stream, cause);
        tape.device_scope(stream, name, 0, -1, seen(kernel.begin), seen(kernel.end));
    };
    for (std::size_t i = 0; i < work.kernels.size(); ++i) {
        const PlannedKernel& kernel = work.kernels[i];
        if (!flaws.missing.contains(i) && kernel.begin >= flaws.from && kernel.end <= flaws.to) {
            put(kernel, 2);
        }
    }
    for (const PlannedKernel& kernel : flaws.elsewhere) {
        put(kernel, 3);
    }
    tape.deliver_all();
    return tape;
}

} // namespace plumb::audit
