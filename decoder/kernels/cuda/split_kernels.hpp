// SPDX-License-Identifier: Apache-2.0
// What stands around a product of a library that multiplies 16-bit values: its input, floats, as pieces that add up to it, so
// that none is rounded to 16 bits; and what is left to do with its output. One source for nvcc and for the host, as kernels.hpp.
#pragma once

#include "decoder/kernels/cuda/kernels.hpp"

namespace plumb::decoder::cuda {

/// A thread for each value. Eight bits of the fraction at a time, cut off: three pieces have all 24.
template <class M>
PLUMB_KERNEL void split_bf16(M& m, const SplitArgs& a) {
    const std::uint64_t index = element_of(m), count = std::uint64_t{a.rows} * a.cols;
    if (index >= count) {
        return;
    }
    float left = load_float(m, a.in, index);
    PLUMB_UNROLL
    for (unsigned piece = 0; piece < bf16_pieces; ++piece) {
        const bool finite = left - left == 0;
        std::uint32_t bits = m.bits_of(left);
        bits |= left != left ? 0x00400000u : 0u; // what makes it no number might be cut off
        store_at(m, a.out, piece * count + index, static_cast<std::uint16_t>(bits >> 16));
        left = finite ? left - float_of(bits & 0xffff0000u) : 0.0f;
    }
}

/// Grid: rows. The row is scaled by a power of two that brings its largest value near the largest of a half; of what a half
/// cannot hold, the second one holds the rest. Shared: a float for each warp.
template <class M>
PLUMB_KERNEL void split_f16(M& m, const SplitArgs& a) {
    const std::uint64_t first = std::uint64_t{m.block_x()} * a.cols, count = std::uint64_t{a.rows} * a.cols;
    float largest = 0;
    PLUMB_ROLLED
    for (std::uint32_t i = m.thread(); i < a.cols; i += m.threads()) {
        const float size = fabsf(load_float(m, a.in, first + i));
        largest = size > largest ? size : largest;
    }
    PLUMB_ROLLED
    for (unsigned mask = 16; mask > 0; mask /= 2) {
        const float other = m.exchange(largest, mask);
        largest = other > largest ? other : largest;
    }
    if (m.thread() % 32 == 0) {
        m.set_shared(m.thread() / 32, largest);
    }
    m.sync();
    PLUMB_ROLLED
    for (unsigned warp = 0; warp < m.threads() / 32; ++warp) {
        const float other = m.shared(warp);
        largest = other > largest ? other : largest;
    }
    // 2^14 <= largest * factor < 2^15; of a row that is all zero or not finite: 1.
    int power = 14 + 127 - static_cast<int>(m.bits_of(largest) >> 23);
    power = largest - largest != 0 || largest == 0 ? 0 : power > 126 ? 126 : power;
    const float factor = float_of(static_cast<std::uint32_t>(127 + power) << 23);
    PLUMB_ROLLED
    for (std::uint32_t i = m.thread(); i < a.cols; i += m.threads()) {
        const float value = load_float(m, a.in, first + i) * factor;
        const std::uint16_t upper = m.to_half(value);
        const float rest = value - m.from_half(upper);
        store_at(m, a.out, first + i, upper);
        store_at(m, a.out, count + first + i, m.to_half(rest - rest == 0 ? rest : 0.0f));
    }
    if (m.thread() == 0) {
        store_at(m, a.scales, m.block_x(), float_of(static_cast<std::uint32_t>(127 - power) << 23));
    }
}

/// A thread for each value.
template <class M>
PLUMB_KERNEL void finish_product(M& m, const FinishArgs& a) {
    const std::uint64_t index = element_of(m);
    if (index >= std::uint64_t{a.rows} * a.cols) {
        return;
    }
    const float scale = a.scales != 0 ? load_float(m, a.scales, index / a.cols) : 1.0f;
    const float bias = a.bias != 0 ? load_float(m, a.bias, index % a.cols) : 0.0f;
    store_at(m, a.out, index, load_float(m, a.out, index) * scale + bias);
}

} // namespace plumb::decoder::cuda
