// SPDX-License-Identifier: Apache-2.0
// The measured loops, by C names, so that a disassembler finds them. Thread rule: any thread, after the profiler is open.
#pragma once

#include <cstdint>

#include "plumb/plumb.hpp"

/// The compiler forgets what it knows of memory: work of the caller stands here.
#define BENCH_BODY() asm volatile("" ::: "memory")
#define BENCH_LOOP(name) \
    extern "C" __attribute__((noinline)) std::uint64_t name(plumb::detail::Record* scratch, std::uint64_t n)
#define BENCH_STAMPS(name) \
    extern "C" __attribute__((noinline)) void name(plumb::detail::Record* scratch, std::uint64_t* out, std::uint64_t n)

namespace bench {

/// What the loops record with. Set before any loop runs.
struct Stage {
    plumb::Profiler* on = nullptr;
    plumb::Profiler* off = nullptr;
    plumb::Name name{};
};
extern Stage stage;
/// A device queue of the calling thread that costs nothing itself.
plumb::Queue free_queue();

} // namespace bench

BENCH_LOOP(plumb_bench_empty);
BENCH_LOOP(plumb_bench_floor);
BENCH_LOOP(plumb_bench_on);
BENCH_LOOP(plumb_bench_work);
BENCH_LOOP(plumb_bench_named);
BENCH_LOOP(plumb_bench_lap);
BENCH_LOOP(plumb_bench_device);
BENCH_LOOP(plumb_bench_kernel);
BENCH_LOOP(plumb_bench_transfer);
BENCH_LOOP(plumb_bench_off);
BENCH_LOOP(plumb_bench_compiled_out);
BENCH_LOOP(plumb_bench_empty_again); // beside compiled_out, in the unit with PLUMB_DISABLE

BENCH_STAMPS(plumb_bench_stamps_empty);
BENCH_STAMPS(plumb_bench_stamps_floor);
BENCH_STAMPS(plumb_bench_stamps_on);
BENCH_STAMPS(plumb_bench_stamps_lap);

extern "C" std::uint64_t plumb_bench_body_between_reads(std::uint64_t n, unsigned size);
extern "C" std::uint64_t plumb_bench_body_in_scope(std::uint64_t n, unsigned size);
extern "C" std::uint64_t plumb_bench_decode_like(unsigned steps, unsigned layers);
