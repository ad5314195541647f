// SPDX-License-Identifier: Apache-2.0
// The kernels that find a device's peaks; src/backends/peak_measurement.hpp says what they compute. WORDS, FLOATS, LANES and
// MULTIPLY_ADD are defined before this text, after what the device is.

kernel void plumb_fill(global uint* memory, uint words, uint factor) {
    for (ulong i = get_global_id(0); i < words; i += get_global_size(0))
        memory[i] = (uint)i * factor + 1;
}

// A group reads a part of its own, its items side by side; eight sums, so that loads and not additions are the limit.
kernel void plumb_read(global const WORDS* memory, global WORDS* sums, uint of_group) {
    const ulong step = get_local_size(0);
    const ulong end = ((ulong)get_group_id(0) + 1) * of_group;
    ulong i = (ulong)get_group_id(0) * of_group + get_local_id(0);
    WORDS a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (; i < end; i += 8 * step) {
        a += memory[i];
        b += memory[i + step];
        c += memory[i + 2 * step];
        d += memory[i + 3 * step];
        e += memory[i + 4 * step];
        f += memory[i + 5 * step];
        g += memory[i + 6 * step];
        h += memory[i + 7 * step];
    }
    sums[get_global_id(0)] = ((a + b) + (c + d)) + ((e + f) + (g + h));
}

kernel void plumb_multiply_adds(global FLOATS* sums, float seed, uint rounds) {
    const FLOATS first = (FLOATS)(LANES)*16.0f + (seed + 256.0f * (float)(get_global_id(0) % 64));
    const FLOATS half_of = (FLOATS)(0.5f), one = (FLOATS)(1.0f);
    // Chains that begin alike are one chain to a compiler.
    FLOATS a = first, b = first + 1.0f, c = first + 2.0f, d = first + 3.0f, e = first + 4.0f, f = first + 5.0f;
    FLOATS g = first + 6.0f, h = first + 7.0f, i = first + 8.0f, j = first + 9.0f, k = first + 10.0f, l = first + 11.0f;
    for (uint round = 0; round < rounds; ++round) {
        a = MULTIPLY_ADD(a, half_of, one);
        b = MULTIPLY_ADD(b, half_of, one);
        c = MULTIPLY_ADD(c, half_of, one);
        d = MULTIPLY_ADD(d, half_of, one);
        e = MULTIPLY_ADD(e, half_of, one);
        f = MULTIPLY_ADD(f, half_of, one);
        g = MULTIPLY_ADD(g, half_of, one);
        h = MULTIPLY_ADD(h, half_of, one);
        i = MULTIPLY_ADD(i, half_of, one);
        j = MULTIPLY_ADD(j, half_of, one);
        k = MULTIPLY_ADD(k, half_of, one);
        l = MULTIPLY_ADD(l, half_of, one);
    }
    sums[get_global_id(0)] = ((a + b) + (c + d)) + ((e + f) + (g + h)) + ((i + j) + (k + l));
}
