// SPDX-License-Identifier: Apache-2.0
// The same loop with the profiler compiled out, and without a profiler at all: their instructions must be the same.
#define PLUMB_DISABLE
#include "record/loops.hpp"

using plumb::Brick;
using plumb::host;
using plumb::detail::read_ticks;

BENCH_LOOP(plumb_bench_compiled_out) {
    (void)scratch;
    const std::uint64_t begin = read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        PLUMB_BRICK(*bench::stage.on, host, Brick::rms_norm, plumb::bytes(n),
                    plumb::flops(2.0 * static_cast<double>(i)));
        BENCH_BODY();
    }
    return read_ticks() - begin;
}

BENCH_LOOP(plumb_bench_empty_again) {
    (void)scratch;
    const std::uint64_t begin = read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        BENCH_BODY();
    }
    return read_ticks() - begin;
}
