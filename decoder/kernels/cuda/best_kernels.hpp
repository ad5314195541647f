// SPDX-License-Identifier: Apache-2.0
// The best values of a row in their order, for a sampler that needs no others: of equals the first is better, and what is no
// number is as good as minus infinity. One source for nvcc and for the host, as kernels.hpp.
#pragma once

#include "decoder/kernels/cuda/kernels.hpp"

namespace plumb::decoder::cuda {

PLUMB_KERNEL bool is_better(const BestValue& a, const BestValue& b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
}

/// The best of what the block's threads hold, for every thread. `round` alternates between two places in shared memory, so
/// that one barrier is enough. Shared: four floats a warp.
template <class M>
PLUMB_KERNEL BestValue best_of_block(M& m, BestValue own, unsigned round) {
    const unsigned warps = m.threads() / 32, first = round % 2 * warps * 2;
    best_of_warp(m, own);
    if (m.thread() % 32 == 0) {
        m.set_shared(first + m.thread() / 32 * 2, own.value);
        m.set_shared(first + m.thread() / 32 * 2 + 1, float_of(own.index));
    }
    m.sync();
    BestValue best;
    for (unsigned warp = 0; warp < warps; ++warp) {
        best.see(m.shared(first + warp * 2), m.bits_of(m.shared(first + warp * 2 + 1)));
    }
    return best;
}

/// The a.wanted best of values first, first + step, … below `count`, read(i) each, to a.found or a.out from `to` on. Each thread
/// holds the best of its own; the one whose was taken looks for its next. What is not there has an index that is none.
template <class M, class Read>
PLUMB_KERNEL void write_best(M& m, const BestArgs& a, std::uint32_t first, std::uint32_t step, std::uint32_t count,
                             std::uint64_t to, const Read& read) {
    BestValue own;
    for (std::uint32_t i = first; i < count; i += step) {
        const BestValue one = read(i);
        own.see(one.value, one.index);
    }
    for (std::uint32_t place = 0; place < a.wanted; ++place) {
        const BestValue best = best_of_block(m, own, place);
        if (m.thread() == 0) {
            m.store(to + place * 8, best.value);
            m.store(to + place * 8 + 4, best.index);
        }
        if (best.index == own.index && best.index != 0xffffffffu) {
            own = BestValue();
            for (std::uint32_t i = first; i < count; i += step) {
                const BestValue one = read(i);
                if (is_better(best, one)) {
                    own.see(one.value, one.index);
                }
            }
        }
    }
}

/// Grid: parts, rows. Shared: four floats a warp.
template <class M>
PLUMB_KERNEL void best_of_part(M& m, const BestArgs& a) {
    const std::uint64_t row = std::uint64_t{m.block_y()} * a.cols;
    const std::uint64_t to = a.found + (std::uint64_t{m.block_y()} * a.parts + m.block_x()) * a.wanted * 8;
    write_best(m, a, element_of(m), a.parts * m.threads(), a.cols, to, [&](std::uint32_t i) {
        BestValue one;
        const float value = load_float(m, a.values, row + i);
        one.value = value == value ? value : -INFINITY;
        one.index = i;
        return one;
    });
}

/// Grid: rows. What the parts found becomes one. Shared: four floats a warp.
template <class M>
PLUMB_KERNEL void best_of_parts(M& m, const BestArgs& a) {
    const std::uint32_t found = a.parts * a.wanted;
    const std::uint64_t from = a.found + std::uint64_t{m.block_x()} * found * 8;
    const std::uint64_t to = a.out + std::uint64_t{m.block_x()} * a.wanted * 8;
    write_best(m, a, m.thread(), m.threads(), found, to, [&](std::uint32_t i) {
        BestValue one;
        one.value = m.template load<float>(from + i * 8);
        one.index = m.template load<std::uint32_t>(from + i * 8 + 4);
        return one;
    });
}

} // namespace plumb::decoder::cuda
