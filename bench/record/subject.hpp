// SPDX-License-Identifier: Apache-2.0
// What is measured, as functions behind a plain table: the same code is linked into an executable with libplumb.a, and
// into a shared library with libplumb.so. Whoever includes this needs no libplumb.
// Thread rule: loops and pen functions from the recording threads; open, flush, close from one other thread.
#pragma once

#include <cstdint>

#include "plumb/layout.hpp"

namespace bench {

enum class Kind : unsigned { empty, floor, on, work, named, lap, device, kernel, transfer, off, compiled_out };
inline constexpr unsigned kinds = 11;
inline constexpr const char* kind_names[kinds] = {"empty",  "floor",  "on",       "work", "named",       "lap",
                                                  "device", "kernel", "transfer", "off",  "compiled_out"};
/// Kinds that leave records in a ring.
inline constexpr bool records(Kind kind) { return kind >= Kind::on && kind <= Kind::transfer; }

/// Records of the floor's array: 16 KiB, which stay in L1.
inline constexpr std::uint64_t scratch_records = 1024;

struct Subject {
    /// n scopes (or whatever the kind is) one after the other; the ticks they took, all together.
    std::uint64_t (*loops[kinds])(plumb::detail::Record* scratch, std::uint64_t n);
    /// A stamp, one scope, a stamp, …: n stamps. Null where a kind has none; `empty` is the stamps alone.
    void (*stamps[kinds])(plumb::detail::Record* scratch, std::uint64_t* out, std::uint64_t n);
    /// n times a body of `size` units, between two clock reads or inside a scope; ticks.
    std::uint64_t (*body_between_reads)(std::uint64_t n, unsigned size);
    std::uint64_t (*body_in_scope)(std::uint64_t n, unsigned size);
    /// Records decode-like steps: layers of bricks with real work of many lengths. Returns the scopes recorded.
    std::uint64_t (*decode_like)(unsigned steps, unsigned layers);

    /// Starts recording into that file, everything else by default. Null, or what went wrong.
    const char* (*open)(const char* path);
    /// Whether everything recorded so far reached the file.
    bool (*flush)();
    bool (*close)();

    // The calling thread's ring.
    std::uint64_t (*written)(); // records ever
    std::uint64_t (*waiting)(); // of them, not yet in the recording
    std::uint64_t (*dropped)();
    std::uint64_t (*capacity)();
};

} // namespace bench

extern "C" __attribute__((visibility("default"))) const bench::Subject* plumb_bench_subject();
