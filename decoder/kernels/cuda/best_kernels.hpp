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
    PLUMB_ROLLED
    for (unsigned warp = 0; warp < warps; ++warp) {
        best.see(m.shared(first + warp * 2), m.bits_of(m.shared(first + warp * 2 + 1)));
    }
    return best;
}

/// Grid: parts, rows. Each thread holds the best of its own; the one whose was taken looks for its next. Where there are fewer than
/// wanted, the rest have an index that is none. Shared: four floats a warp.
template <class M>
PLUMB_KERNEL void best_values(M& m, const BestArgs& a) {
    const std::uint64_t row = std::uint64_t{m.block_y()} * a.cols;
    const std::uint64_t to = a.out + (std::uint64_t{m.block_y()} * a.parts + m.block_x()) * a.wanted * 8;
    const std::uint32_t step = a.parts * m.threads();
    const auto read = [&](std::uint32_t i) {
        BestValue one;
        if (a.pairs != 0) {
            one.value = m.template load<float>(a.in + (row + i) * 8);
            one.index = m.template load<std::uint32_t>(a.in + (row + i) * 8 + 4);
        } else {
            const float value = load_float(m, a.in, row + i);
            one.value = value == value ? value : -INFINITY;
            one.index = i;
        }
        return one;
    };
    BestValue own, last;
    bool look = true;
    PLUMB_ROLLED
    for (std::uint32_t place = 0; place < a.wanted; ++place) {
        if (look) {
            own = BestValue();
            PLUMB_ROLLED
            for (std::uint32_t i = element_of(m); i < a.cols; i += step) {
                const BestValue one = read(i);
                if (place == 0 || is_better(last, one)) {
                    own.see(one.value, one.index);
                }
            }
        }
        last = best_of_block(m, own, place);
        if (m.thread() == 0) {
            m.store(to + place * 8, last.value);
            m.store(to + place * 8 + 4, last.index);
        }
        look = last.index == own.index && last.index != 0xffffffffu;
    }
}

} // namespace plumb::decoder::cuda
