// SPDX-License-Identifier: Apache-2.0
#include "record/loops.hpp"
#include "record/subject.hpp"

namespace bench {
namespace {

using plumb::Brick;
using plumb::host;
using plumb::detail::read_ticks;

template <class Body>
__attribute__((always_inline)) inline std::uint64_t timed(std::uint64_t n, Body body) {
    const std::uint64_t begin = read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        body(i);
    }
    return read_ticks() - begin;
}

template <class Body>
__attribute__((always_inline)) inline void stamped(std::uint64_t* out, std::uint64_t n, Body body) {
    for (std::uint64_t i = 0; i < n; ++i) {
        out[i] = read_ticks();
        body(i);
    }
}

/// Two plain clock reads and one 16-byte store: what no recorder can do without.
__attribute__((always_inline)) inline void floor_scope(plumb::detail::Record* scratch, std::uint64_t i) {
    const std::uint64_t begin = read_ticks();
    BENCH_BODY();
    const std::uint64_t end = read_ticks();
    scratch[i % scratch_records] = {begin, end - begin};
    BENCH_BODY(); // the store is made, every time
}

} // namespace
} // namespace bench

using namespace bench;

BENCH_LOOP(plumb_bench_empty) {
    (void)scratch;
    return timed(n, [](std::uint64_t) { BENCH_BODY(); });
}

BENCH_LOOP(plumb_bench_floor) {
    return timed(n, [=](std::uint64_t i) { floor_scope(scratch, i); });
}

BENCH_LOOP(plumb_bench_on) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, host, Brick::rms_norm);
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_work) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, host, Brick::qkv_projection, plumb::bytes(2064384), plumb::flops(2.0 * 896 * 1152));
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_named) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    const plumb::Name name = stage.name;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, host, name);
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_lap) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    PLUMB_BRICK(prof, host, Brick::attention);
    PLUMB_LAP(prof, host, Brick::rope_embedding);
    return timed(n, [&](std::uint64_t) {
        PLUMB_LAP(prof, host, Brick::rope_embedding);
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_device) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    const plumb::Queue queue = free_queue();
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, queue, Brick::rms_norm);
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_kernel) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    const plumb::Name name = stage.name;
    return timed(n, [&](std::uint64_t) {
        prof.record_kernel(name, 0x1234, {64, 1, 1}, {256}, 4096, plumb::bytes(2064384),
                           plumb::flops(2.0 * 896 * 1152));
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_transfer) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    return timed(n, [&](std::uint64_t i) {
        prof.record_transfer(i, i + 1, 4096, plumb::TransferDirection::host_to_device);
        BENCH_BODY();
    });
}

BENCH_LOOP(plumb_bench_off) {
    (void)scratch;
    plumb::Profiler& prof = *stage.off;
    return timed(n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, host, Brick::rms_norm);
        BENCH_BODY();
    });
}

BENCH_STAMPS(plumb_bench_stamps_empty) {
    (void)scratch;
    stamped(out, n, [](std::uint64_t) { BENCH_BODY(); });
}

BENCH_STAMPS(plumb_bench_stamps_floor) {
    stamped(out, n, [=](std::uint64_t i) { floor_scope(scratch, i); });
}

BENCH_STAMPS(plumb_bench_stamps_on) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    stamped(out, n, [&](std::uint64_t) {
        PLUMB_BRICK(prof, host, Brick::rms_norm);
        BENCH_BODY();
    });
}

BENCH_STAMPS(plumb_bench_stamps_lap) {
    (void)scratch;
    plumb::Profiler& prof = *stage.on;
    PLUMB_BRICK(prof, host, Brick::attention);
    PLUMB_LAP(prof, host, Brick::rope_embedding);
    stamped(out, n, [&](std::uint64_t) {
        PLUMB_LAP(prof, host, Brick::rope_embedding);
        BENCH_BODY();
    });
}
