// SPDX-License-Identifier: Apache-2.0
// The decoder's operations as CUDA kernels, one thread each: nvcc compiles them for the GPU (kernels.cu), the tests for a
// machine of fibres that finds races, overruns and barriers not all come to (host_block_testing.hpp).
//
// A machine M has: thread(), threads(), block_x(), block_y(), block_z(); load<T>(address), store(address, value),
// stream<T>(address), for what is read once; from_half(bits); to_half(value), to the nearest, to even of two; shared(i),
// set_shared(i, value): floats of the block; sync(): all of the block; and of a warp, all lanes of which must come: sum(value),
// exchange(value, mask), the value of lane own ^ mask.
#pragma once

#include <cmath>

#include "decoder/kernels/cuda/packed.hpp"

namespace plumb::decoder::cuda {

template <class M>
PLUMB_KERNEL float load_float(M& m, std::uint64_t base, std::uint64_t index) {
    return m.template load<float>(base + index * 4);
}
template <class M>
PLUMB_KERNEL std::int32_t load_int(M& m, std::uint64_t base, std::uint64_t index) {
    return m.template load<std::int32_t>(base + index * 4);
}
template <class T, class M>
PLUMB_KERNEL void store_at(M& m, std::uint64_t base, std::uint64_t index, T value) {
    m.store(base + index * sizeof(T), value);
}
template <class M>
PLUMB_KERNEL std::uint32_t element_of(M& m) {
    return m.block_x() * m.threads() + m.thread();
}

// --- Rows ---------------------------------------------------------------------------------------------------------

/// Grid: rows.
template <Type type, class M>
PLUMB_KERNEL void embed(M& m, const EmbedArgs& a) {
    const auto token = static_cast<std::uint64_t>(load_int(m, a.tokens, m.block_x()));
    for (std::uint32_t eight = m.thread(); eight < a.table.cols / 8; eight += m.threads()) {
        float values[8];
        load_8<type>(m, a.table, token, eight, values);
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            store_at(m, a.out, std::uint64_t{m.block_x()} * a.table.cols + eight * 8 + i, values[i]);
        }
    }
}

/// The sum over the block, for every thread of it; one float of shared memory a warp.
template <class M>
PLUMB_KERNEL float sum_of_block(M& m, float value) {
    value = m.sum(value);
    if (m.threads() == 32) {
        return value;
    }
    if (m.thread() % 32 == 0) {
        m.set_shared(m.thread() / 32, value);
    }
    m.sync();
    float all = 0;
    for (unsigned warp = 0; warp < m.threads() / 32; ++warp) {
        all += m.shared(warp);
    }
    return all;
}

/// Grid: rows. `out` may be `in`.
template <class M>
PLUMB_KERNEL void rms_norm(M& m, const NormArgs& a) {
    const std::uint64_t first = std::uint64_t{m.block_x()} * a.cols;
    float squares = 0;
    for (std::uint32_t i = m.thread(); i < a.cols; i += m.threads()) {
        const float x = load_float(m, a.in, first + i);
        squares += x * x;
    }
    const float mean = sum_of_block(m, squares) / static_cast<float>(a.cols);
    const float scale = 1.0f / sqrtf(mean + a.epsilon);
    for (std::uint32_t i = m.thread(); i < a.cols; i += m.threads()) {
        store_at(m, a.out, first + i, load_float(m, a.in, first + i) * scale * load_float(m, a.weight, i));
    }
}

// --- Products -----------------------------------------------------------------------------------------------------

template <class M>
PLUMB_KERNEL const ProductPart& part_of_block(M& m, const ProductArgs& a) {
    unsigned part = 0;
    while (part + 1 < a.count && a.parts[part + 1].first_block <= m.block_x()) {
        ++part;
    }
    return a.parts[part];
}

/// The expert whose slots hold this row.
template <class M>
PLUMB_KERNEL std::uint32_t expert_of_row(M& m, const ProductArgs& a, std::uint32_t row) {
    std::uint32_t expert = 0;
    while (expert + 1 < a.experts && load_int(m, a.offsets, expert + 1) <= static_cast<std::int32_t>(row)) {
        ++expert;
    }
    return expert;
}

/// Each warp, or `split` of them, one output of `inputs` rows. Bound by memory: a weight is read once, 16 bytes a lane.
/// Grid: outputs / (warps / split), rows / inputs. Shared: a float for each warp and row.
template <Type type, unsigned inputs, class M>
PLUMB_KERNEL void gemv(M& m, const ProductArgs& a) {
    const ProductPart& part = part_of_block(m, a);
    const unsigned warp = m.thread() / 32, lane = m.thread() % 32, warps = m.threads() / 32;
    const unsigned piece = warp % a.split;
    const std::uint32_t output = (m.block_x() - part.first_block) * (warps / a.split) + warp / a.split;
    const std::uint32_t row = m.block_y() * inputs;
    const bool any = output < part.outputs;
    float sums[inputs] = {};
    if (any) {
        const std::uint64_t matrix_row =
            output + (a.offsets != 0 ? std::uint64_t{expert_of_row(m, a, row)} * part.outputs : 0);
        const std::uint32_t eights = part.matrix.cols / 8;
#if defined(__CUDACC__)
#pragma unroll 4
#endif
        for (std::uint32_t eight = piece * 32 + lane; eight < eights; eight += 32 * a.split) {
            float weights[8];
            load_8<type>(m, part.matrix, matrix_row, eight, weights);
            PLUMB_UNROLL
            for (unsigned n = 0; n < inputs; ++n) {
                if (row + n < a.rows) {
                    float x[8];
                    load_floats_8(m, a.in + (std::uint64_t{row + n} * part.matrix.cols + eight * 8) * 4, x);
                    PLUMB_UNROLL
                    for (unsigned i = 0; i < 8; ++i) {
                        sums[n] += weights[i] * x[i];
                    }
                }
            }
        }
    }
    PLUMB_UNROLL
    for (unsigned n = 0; n < inputs; ++n) {
        sums[n] = m.sum(sums[n]);
    }
    if (a.split > 1) {
        if (lane == 0) {
            PLUMB_UNROLL
            for (unsigned n = 0; n < inputs; ++n) {
                m.set_shared(warp * inputs + n, sums[n]);
            }
        }
        m.sync();
        if (piece == 0 && lane == 0) {
            for (unsigned other = 1; other < a.split; ++other) {
                PLUMB_UNROLL
                for (unsigned n = 0; n < inputs; ++n) {
                    sums[n] += m.shared((warp + other) * inputs + n);
                }
            }
        }
    }
    if (any && piece == 0 && lane == 0) {
        const float bias = part.bias != 0 ? load_float(m, part.bias, output) : 0.0f;
        PLUMB_UNROLL
        for (unsigned n = 0; n < inputs; ++n) {
            if (row + n < a.rows) {
                store_at(m, part.out, std::uint64_t{row + n} * part.outputs + output, sums[n] + bias);
            }
        }
    }
}

/// A tile of outputs and rows by each block, four by four of them by each thread; weights are widened into shared memory.
/// Grid: outputs / tile_outputs, rows / tile_rows, experts or 1.
template <Type type, class M>
PLUMB_KERNEL void tile(M& m, const ProductArgs& a) {
    const ProductPart& part = part_of_block(m, a);
    const std::uint32_t cols = part.matrix.cols;
    const std::uint32_t output = (m.block_x() - part.first_block) * tile_outputs;
    std::uint32_t row = m.block_y() * tile_rows, end = a.rows;
    std::uint64_t matrix_row = output;
    if (a.offsets != 0) {
        row += static_cast<std::uint32_t>(load_int(m, a.offsets, m.block_z()));
        end = static_cast<std::uint32_t>(load_int(m, a.offsets, m.block_z() + 1));
        matrix_row += std::uint64_t{m.block_z()} * part.outputs;
    }
    if (row >= end) {
        return; // the whole block
    }
    constexpr unsigned eights = tile_depth / 8, inputs_at = tile_depth * tile_pitch;
    const unsigned own_output = m.thread() % (tile_outputs / 4) * 4, own_row = m.thread() / (tile_outputs / 4) * 4;
    const bool any = row + own_row < end; // an expert often has a few rows
    float sums[4][4] = {};
    for (std::uint32_t depth = 0; depth < cols; depth += tile_depth) {
        for (unsigned i = m.thread(); i < (tile_outputs + tile_rows) * eights; i += tile_threads) {
            const bool weights = i < tile_outputs * eights;
            const unsigned from = weights ? i : i - tile_outputs * eights;
            const unsigned line = from / eights, eight = from % eights;
            float values[8] = {};
            if (depth + eight * 8 < cols) {
                if (weights && output + line < part.outputs) {
                    load_8<type>(m, part.matrix, matrix_row + line, depth / 8 + eight, values);
                } else if (!weights && row + line < end) {
                    load_floats_8(m, a.in + (std::uint64_t{row + line} * cols + depth + eight * 8) * 4, values);
                }
            }
            PLUMB_UNROLL
            for (unsigned k = 0; k < 8; ++k) {
                m.set_shared(weights ? (eight * 8 + k) * tile_pitch + line
                                     : inputs_at + (eight * 8 + k) * tile_row_pitch + line,
                             values[k]);
            }
        }
        m.sync();
#if defined(__CUDACC__)
#pragma unroll 8
#endif
        for (unsigned k = 0; k < (any ? tile_depth : 0); ++k) {
            float w[4], x[4];
            PLUMB_UNROLL
            for (unsigned i = 0; i < 4; ++i) {
                w[i] = m.shared(k * tile_pitch + own_output + i);
                x[i] = m.shared(inputs_at + k * tile_row_pitch + own_row + i);
            }
            PLUMB_UNROLL
            for (unsigned r = 0; r < 4; ++r) {
                PLUMB_UNROLL
                for (unsigned o = 0; o < 4; ++o) {
                    sums[r][o] += w[o] * x[r];
                }
            }
        }
        m.sync();
    }
    PLUMB_UNROLL
    for (unsigned o = 0; o < 4; ++o) {
        const std::uint32_t to = output + own_output + o;
        if (to < part.outputs) {
            const float bias = part.bias != 0 ? load_float(m, part.bias, to) : 0.0f;
            PLUMB_UNROLL
            for (unsigned r = 0; r < 4; ++r) {
                if (row + own_row + r < end) {
                    store_at(m, part.out, std::uint64_t{row + own_row + r} * part.outputs + to, sums[r][o] + bias);
                }
            }
        }
    }
}

// --- Attention ----------------------------------------------------------------------------------------------------

/// A thread for each pair of each head of each row.
template <class M>
PLUMB_KERNEL void rope(M& m, const RopeArgs& a) {
    const std::uint32_t heads = a.cols / a.size, index = element_of(m);
    if (index >= a.rows * heads * a.pairs) {
        return;
    }
    const std::uint32_t pair = index % a.pairs, head = index / a.pairs % heads, row = index / a.pairs / heads;
    const std::uint64_t angles = static_cast<std::uint64_t>(load_int(m, a.positions, row)) * 2 * a.pairs + pair;
    const float cosine = load_float(m, a.table, angles), sine = load_float(m, a.table, angles + a.pairs);
    const std::uint64_t at = std::uint64_t{row} * a.cols + head * a.size;
    const std::uint64_t one = at + (a.halves != 0 ? pair : 2 * pair);
    const std::uint64_t other = a.halves != 0 ? one + a.pairs : one + 1;
    const float x = load_float(m, a.heads, one), y = load_float(m, a.heads, other);
    store_at(m, a.heads, one, x * cosine - y * sine);
    store_at(m, a.heads, other, x * sine + y * cosine);
}

/// A thread for each value of each row.
template <class M>
PLUMB_KERNEL void kv_append(M& m, const AppendArgs& a) {
    const std::uint32_t index = element_of(m);
    if (index >= a.rows * a.cols) {
        return;
    }
    const std::uint32_t row = index / a.cols, col = index % a.cols;
    const auto position = static_cast<std::uint64_t>(load_int(m, a.cache.positions, row));
    const std::uint64_t to = row / a.cache.rows_of_sequence * a.cache.stride +
                             (col / a.cache.size * a.cache.context + position) * a.cache.size + col % a.cache.size;
    store_at(m, a.cache.keys, to, load_float(m, a.key, index));
    store_at(m, a.cache.values, to, load_float(m, a.value, index));
}

/// A softmax's sum so far: every score is taken less the largest one.
struct Softmax {
    float largest = -INFINITY;
    float weight = 0;

    /// Makes room for a score; what was summed before shrinks by the factor returned.
    PLUMB_KERNEL float raise(float score) {
        if (score <= largest) {
            return 1;
        }
        const float shrink = largest == -INFINITY ? 0.0f : expf(largest - score);
        largest = score;
        weight *= shrink;
        return shrink;
    }
};

/// Flash decoding: a block for each head, stretch of positions and row. Eight lanes share a position, each has the values
/// sub * 4 + 32 j of it; each group of eight takes one position out of as many as there are groups, and all are merged in the end.
/// Grid: heads, splits, rows. Shared: for each group of the block the head's values and two floats.
template <unsigned widest, class M>
PLUMB_KERNEL void attend(M& m, const AttendArgs& a) {
    constexpr unsigned runs = widest / 32;
    const unsigned size = a.cache.size, group = m.thread() / 8, groups = m.threads() / 8, sub = m.thread() % 8;
    const std::uint32_t head = m.block_x(), row = m.block_z();
    const auto seen = static_cast<std::uint32_t>(load_int(m, a.cache.positions, row)) + 1;
    const std::uint32_t oldest = a.window != 0 && seen > a.window ? seen - a.window : 0;
    const std::uint32_t stretch = (seen - oldest + a.splits - 1) / a.splits;
    const std::uint32_t begin = oldest + m.block_y() * stretch;
    const std::uint32_t end = begin + stretch < seen ? begin + stretch : seen;
    const std::uint64_t cache =
        row / a.cache.rows_of_sequence * a.cache.stride + std::uint64_t{head / a.group} * a.cache.context * size;
    const std::uint64_t query = (std::uint64_t{row} * a.heads + head) * size;
    const bool wide = size % 4 == 0;
    const auto load_4 = [&](std::uint64_t base, std::uint64_t at, unsigned d, float(&out)[4]) {
        if (wide && d < size) {
            const Floats4 all = m.template load<Floats4>(base + (at + d) * 4);
            out[0] = all.x, out[1] = all.y, out[2] = all.z, out[3] = all.w;
            return;
        }
        PLUMB_UNROLL
        for (unsigned i = 0; i < 4; ++i) {
            out[i] = d + i < size ? load_float(m, base, at + d + i) : 0.0f;
        }
    };
    float q[runs][4], sums[runs][4] = {};
    PLUMB_UNROLL
    for (unsigned j = 0; j < runs; ++j) {
        load_4(a.queries, query, sub * 4 + 32 * j, q[j]);
    }
    const float factor = 1.0f / sqrtf(static_cast<float>(size));
    Softmax softmax;
    // All groups go round equally often: their lanes meet in exchange().
    for (std::uint32_t first = begin; first < end; first += groups) {
        const std::uint32_t position = first + group;
        const bool there = position < end;
        const std::uint64_t at = cache + std::uint64_t{position} * size;
        float score = 0;
        if (there) {
            PLUMB_UNROLL
            for (unsigned j = 0; j < runs; ++j) {
                float k[4];
                load_4(a.cache.keys, at, sub * 4 + 32 * j, k);
                score += q[j][0] * k[0] + q[j][1] * k[1] + q[j][2] * k[2] + q[j][3] * k[3];
            }
        }
        PLUMB_UNROLL
        for (unsigned mask = 1; mask < 8; mask *= 2) {
            score += m.exchange(score, mask);
        }
        if (!there) {
            continue;
        }
        score *= factor;
        const float shrink = softmax.raise(score);
        const float share = expf(score - softmax.largest);
        softmax.weight += share;
        PLUMB_UNROLL
        for (unsigned j = 0; j < runs; ++j) {
            float v[4];
            load_4(a.cache.values, at, sub * 4 + 32 * j, v);
            PLUMB_UNROLL
            for (unsigned i = 0; i < 4; ++i) {
                sums[j][i] = sums[j][i] * shrink + share * v[i];
            }
        }
    }
    const unsigned pitch = size + 2;
    PLUMB_UNROLL
    for (unsigned j = 0; j < runs; ++j) {
        PLUMB_UNROLL
        for (unsigned i = 0; i < 4; ++i) {
            if (sub * 4 + 32 * j + i < size) {
                m.set_shared(group * pitch + sub * 4 + 32 * j + i, sums[j][i]);
            }
        }
    }
    if (sub == 0) {
        m.set_shared(group * pitch + size, softmax.largest);
        m.set_shared(group * pitch + size + 1, softmax.weight);
    }
    m.sync();
    Softmax whole;
    for (unsigned g = 0; g < groups; ++g) {
        const float largest = m.shared(g * pitch + size);
        whole.largest = largest > whole.largest ? largest : whole.largest;
    }
    for (unsigned g = 0; g < groups; ++g) {
        const float weight = m.shared(g * pitch + size + 1);
        whole.weight += weight == 0 ? 0.0f : weight * expf(m.shared(g * pitch + size) - whole.largest);
    }
    const std::uint64_t partial =
        a.partial + ((std::uint64_t{row} * a.heads + head) * a.splits + m.block_y()) * pitch * 4;
    for (unsigned d = m.thread(); d < size; d += m.threads()) {
        float sum = 0;
        for (unsigned g = 0; g < groups; ++g) {
            if (m.shared(g * pitch + size + 1) != 0) {
                sum += m.shared(g * pitch + d) * expf(m.shared(g * pitch + size) - whole.largest);
            }
        }
        if (a.splits == 1) {
            store_at(m, a.out, query + d, sum / whole.weight);
        } else {
            store_at(m, partial, d, sum);
        }
    }
    if (a.splits > 1 && m.thread() == 0) {
        store_at(m, partial, size, whole.largest);
        store_at(m, partial, size + 1, whole.weight);
    }
}

template <class M>
PLUMB_KERNEL void attend_32(M& m, const AttendArgs& a) {
    attend<32>(m, a);
}
template <class M>
PLUMB_KERNEL void attend_64(M& m, const AttendArgs& a) {
    attend<64>(m, a);
}
template <class M>
PLUMB_KERNEL void attend_128(M& m, const AttendArgs& a) {
    attend<128>(m, a);
}
template <class M>
PLUMB_KERNEL void attend_256(M& m, const AttendArgs& a) {
    attend<256>(m, a);
}

/// Grid: heads, rows. The stretches of attend() become one; an empty one has weight 0.
template <class M>
PLUMB_KERNEL void attend_merge(M& m, const AttendArgs& a) {
    const unsigned size = a.cache.size, pitch = size + 2;
    const std::uint64_t head = std::uint64_t{m.block_y()} * a.heads + m.block_x();
    const std::uint64_t partial = a.partial + head * a.splits * pitch * 4;
    float largest = -INFINITY;
    for (unsigned s = 0; s < a.splits; ++s) {
        const float other = load_float(m, partial, s * pitch + size);
        largest = other > largest ? other : largest;
    }
    float weight = 0;
    for (unsigned s = 0; s < a.splits; ++s) {
        const float own = load_float(m, partial, s * pitch + size + 1);
        weight += own == 0 ? 0.0f : own * expf(load_float(m, partial, s * pitch + size) - largest);
    }
    for (unsigned d = m.thread(); d < size; d += m.threads()) {
        float sum = 0;
        for (unsigned s = 0; s < a.splits; ++s) {
            if (load_float(m, partial, s * pitch + size + 1) != 0) {
                sum += load_float(m, partial, s * pitch + d) * expf(load_float(m, partial, s * pitch + size) - largest);
            }
        }
        store_at(m, a.out, head * size + d, sum / weight);
    }
}

// --- Elements -----------------------------------------------------------------------------------------------------

template <class M>
PLUMB_KERNEL void add(M& m, const ElementArgs& a) {
    const std::uint32_t i = element_of(m);
    if (i < a.count) {
        store_at(m, a.out, i, load_float(m, a.a, i) + load_float(m, a.b, i));
    }
}

template <class M>
PLUMB_KERNEL void silu_multiply(M& m, const ElementArgs& a) {
    const std::uint32_t i = element_of(m);
    if (i < a.count) {
        const float gate = load_float(m, a.a, i);
        store_at(m, a.out, i, gate / (1.0f + expf(-gate)) * load_float(m, a.b, i));
    }
}

template <class M>
PLUMB_KERNEL void gelu_multiply(M& m, const ElementArgs& a) {
    const std::uint32_t i = element_of(m);
    if (i < a.count) {
        const float gate = load_float(m, a.a, i);
        const float bent = tanhf(0.797884560802865f * (gate + 0.044715f * gate * gate * gate));
        store_at(m, a.out, i, 0.5f * gate * (1.0f + bent) * load_float(m, a.b, i));
    }
}

template <class M>
PLUMB_KERNEL void scale(M& m, const ElementArgs& a) {
    const std::uint32_t i = element_of(m);
    if (i < a.count) {
        store_at(m, a.out, i, load_float(m, a.a, i) * a.factor);
    }
}

// --- The best -----------------------------------------------------------------------------------------------------

/// A value and where it is. What is no number comes last; of equals the first is best.
struct BestValue {
    float value = -INFINITY;
    std::uint32_t index = 0xffffffffu;

    PLUMB_KERNEL void see(float other, std::uint32_t at) {
        if (other > value || (other == value && at < index)) {
            value = other;
            index = at;
        }
    }
};

template <class M>
PLUMB_KERNEL void best_of_warp(M& m, BestValue& found) {
    for (unsigned mask = 16; mask > 0; mask /= 2) {
        const float value = m.exchange(found.value, mask);
        const std::uint32_t index = m.exchange(found.index, mask);
        found.see(value, index);
    }
}

/// Grid: parts, rows. Shared: two floats a warp.
template <class M>
PLUMB_KERNEL void largest_of_part(M& m, const LargestArgs& a) {
    const std::uint64_t row = std::uint64_t{m.block_y()} * a.cols;
    BestValue best;
    for (std::uint32_t i = element_of(m); i < a.cols; i += a.parts * m.threads()) {
        best.see(load_float(m, a.values, row + i), i);
    }
    best_of_warp(m, best);
    const unsigned warp = m.thread() / 32;
    if (m.thread() % 32 == 0) {
        m.set_shared(2 * warp, best.value);
        m.set_shared(2 * warp + 1, float_of(best.index));
    }
    m.sync();
    if (m.thread() == 0) {
        for (unsigned other = 1; other < m.threads() / 32; ++other) {
            best.see(m.shared(2 * other), m.bits_of(m.shared(2 * other + 1)));
        }
        const std::uint64_t to = a.found + (std::uint64_t{m.block_y()} * a.parts + m.block_x()) * 8;
        m.store(to, best.value);
        m.store(to + 4, best.index);
    }
}

/// Grid: rows; one warp.
template <class M>
PLUMB_KERNEL void largest_of_parts(M& m, const LargestArgs& a) {
    BestValue best;
    for (std::uint32_t i = m.thread(); i < a.parts; i += 32) {
        const std::uint64_t from = a.found + (std::uint64_t{m.block_x()} * a.parts + i) * 8;
        best.see(m.template load<float>(from), m.template load<std::uint32_t>(from + 4));
    }
    best_of_warp(m, best);
    if (m.thread() == 0) {
        store_at(m, a.out, m.block_x(), static_cast<std::int32_t>(best.index < a.cols ? best.index : 0));
    }
}

// --- Experts ------------------------------------------------------------------------------------------------------

/// A warp for each row: the best logit not chosen yet, `used` times. Grid: rows.
template <class M>
PLUMB_KERNEL void route(M& m, const RouteArgs& a) {
    const std::uint64_t logits = a.logits + std::uint64_t{m.block_x()} * a.experts * 4;
    const std::uint64_t first = std::uint64_t{m.block_x()} * a.used;
    std::uint32_t taken = 0; // of this lane's experts, a bit each
    float top = 0, sum = 0;
    for (std::uint32_t choice = 0; choice < a.used; ++choice) {
        BestValue best;
        std::uint32_t odd = 0xffffffffu; // the first that is no number: chosen when nothing else is left
        for (std::uint32_t e = m.thread(); e < a.experts; e += 32) {
            if ((taken >> (e / 32) & 1u) == 0) {
                const float logit = load_float(m, logits, e);
                best.see(logit, e);
                odd = logit != logit && e < odd ? e : odd;
            }
        }
        best_of_warp(m, best);
        for (unsigned mask = 16; mask > 0; mask /= 2) {
            const std::uint32_t other = m.exchange(odd, mask);
            odd = other < odd ? other : odd;
        }
        const bool number = best.index < a.experts;
        const std::uint32_t expert = number ? best.index : odd;
        if (expert % 32 == m.thread()) {
            taken |= 1u << (expert / 32);
        }
        const float logit = load_float(m, logits, expert);
        top = choice == 0 ? logit : top;
        sum += expf(logit - top);
        if (m.thread() == 0) {
            store_at(m, a.chosen, first + choice, static_cast<std::int32_t>(expert));
            store_at(m, a.weight, first + choice, expf(logit - top));
        }
    }
    if (a.normalise == 0) {
        float part = 0;
        for (std::uint32_t e = m.thread(); e < a.experts; e += 32) {
            part += expf(load_float(m, logits, e) - top);
        }
        sum = m.sum(part);
    }
    if (m.thread() == 0) {
        for (std::uint32_t choice = 0; choice < a.used; ++choice) {
            store_at(m, a.weight, first + choice, load_float(m, a.weight, first + choice) * (a.scale / sum));
        }
    }
}

/// One block, a thread for each expert: it counts its choices, and gives them their slots in their order.
/// Shared: a float for each expert.
template <class M>
PLUMB_KERNEL void order_by_expert(M& m, const OrderArgs& a) {
    const std::uint32_t expert = m.thread();
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < a.choices; ++i) {
        count += load_int(m, a.chosen, i) == static_cast<std::int32_t>(expert) ? 1 : 0;
    }
    m.set_shared(expert, float_of(count));
    m.sync();
    std::uint32_t next = 0;
    for (std::uint32_t before = 0; before < expert; ++before) {
        next += m.bits_of(m.shared(before));
    }
    if (expert >= a.experts) {
        return;
    }
    store_at(m, a.offsets, expert, static_cast<std::int32_t>(next));
    if (expert + 1 == a.experts) {
        store_at(m, a.offsets, a.experts, static_cast<std::int32_t>(a.choices));
    }
    for (std::uint32_t i = 0; i < a.choices; ++i) {
        if (load_int(m, a.chosen, i) == static_cast<std::int32_t>(expert)) {
            store_at(m, a.slot, i, static_cast<std::int32_t>(next++));
        }
    }
}

/// A thread for each value of each choice.
template <class M>
PLUMB_KERNEL void gather_rows(M& m, const GatherArgs& a) {
    const std::uint32_t index = element_of(m);
    if (index < a.choices * a.cols) {
        const std::uint32_t choice = index / a.cols, col = index % a.cols;
        const auto slot = static_cast<std::uint64_t>(load_int(m, a.slot, choice));
        store_at(m, a.out, slot * a.cols + col, load_float(m, a.in, std::uint64_t{choice / a.used} * a.cols + col));
    }
}

/// A thread for each value of each row.
template <class M>
PLUMB_KERNEL void combine_experts(M& m, const CombineArgs& a) {
    const std::uint32_t index = element_of(m);
    if (index >= a.rows * a.cols) {
        return;
    }
    float sum = 0;
    for (std::uint32_t i = 0; i < a.used; ++i) {
        const std::uint64_t choice = std::uint64_t{index / a.cols} * a.used + i;
        const auto slot = static_cast<std::uint64_t>(load_int(m, a.slot, choice));
        sum += load_float(m, a.weight, choice) * load_float(m, a.in, slot * a.cols + index % a.cols);
    }
    store_at(m, a.out, index, sum);
}

} // namespace plumb::decoder::cuda
