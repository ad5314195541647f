// SPDX-License-Identifier: Apache-2.0
// The decoder's operations in OpenCL C 1.2. Every pointer comes with the index of its first value, since a buffer holds
// more than one thing. Work-items are few and long where the device is a CPU (`span` values each), short elsewhere.

float dot_f32(global const float* a, global const float* b, uint n) {
    float16 sums = (float16)(0);
    uint i = 0;
    for (; i + 16 <= n; i += 16)
        sums = fma(vload16(0, a + i), vload16(0, b + i), sums);
    float8 s8 = sums.lo + sums.hi;
    float4 s4 = s8.lo + s8.hi;
    float sum = (s4.x + s4.y) + (s4.z + s4.w);
    for (; i < n; ++i)
        sum = fma(a[i], b[i], sum);
    return sum;
}

// A bf16 is the upper half of a float.
float16 widen16(ushort16 v) { return as_float16(convert_uint16(v) << 16); }
float widen(ushort v) { return as_float((uint)v << 16); }

float dot_bf16(global const ushort* a, global const float* b, uint n) {
    float16 sums = (float16)(0);
    uint i = 0;
    for (; i + 16 <= n; i += 16)
        sums = fma(widen16(vload16(0, a + i)), vload16(0, b + i), sums);
    float8 s8 = sums.lo + sums.hi;
    float4 s4 = s8.lo + s8.hi;
    float sum = (s4.x + s4.y) + (s4.z + s4.w);
    for (; i < n; ++i)
        sum = fma(widen(a[i]), b[i], sum);
    return sum;
}

// Item (output, row). y[row][output] = W[output] . x[row] + bias[output]
kernel void product_f32(global const float* w, ulong w_at, global const float* x, ulong x_at, global const float* bias,
                        ulong bias_at, int has_bias, global float* y, ulong y_at, uint cols, uint outputs) {
    const size_t o = get_global_id(0), r = get_global_id(1);
    const float sum = dot_f32(w + w_at + o * cols, x + x_at + r * cols, cols);
    y[y_at + r * outputs + o] = has_bias ? sum + bias[bias_at + o] : sum;
}

kernel void product_bf16(global const ushort* w, ulong w_at, global const float* x, ulong x_at,
                         global const float* bias, ulong bias_at, int has_bias, global float* y, ulong y_at, uint cols,
                         uint outputs) {
    const size_t o = get_global_id(0), r = get_global_id(1);
    const float sum = dot_bf16(w + w_at + o * cols, x + x_at + r * cols, cols);
    y[y_at + r * outputs + o] = has_bias ? sum + bias[bias_at + o] : sum;
}

// Item (row); ids are an argument, so that the host may forget them at once.
int id_of(int16 ids, uint row) {
    const int all[16] = {ids.s0, ids.s1, ids.s2, ids.s3, ids.s4, ids.s5, ids.s6, ids.s7,
                         ids.s8, ids.s9, ids.sa, ids.sb, ids.sc, ids.sd, ids.se, ids.sf};
    return all[row];
}

kernel void embed_f32(global const float* table, ulong table_at, int16 ids, uint cols, global float* out,
                      ulong out_at) {
    const uint r = get_global_id(0);
    global const float* from = table + table_at + (size_t)id_of(ids, r) * cols;
    for (uint i = 0; i < cols; ++i)
        out[out_at + (size_t)r * cols + i] = from[i];
}

kernel void embed_bf16(global const ushort* table, ulong table_at, int16 ids, uint cols, global float* out,
                       ulong out_at) {
    const uint r = get_global_id(0);
    global const ushort* from = table + table_at + (size_t)id_of(ids, r) * cols;
    for (uint i = 0; i < cols; ++i)
        out[out_at + (size_t)r * cols + i] = widen(from[i]);
}

// Item (row).
kernel void rms_norm(global const float* x, ulong x_at, global const float* weight, ulong weight_at, float epsilon,
                     uint cols, global float* out, ulong out_at) {
    const size_t r = get_global_id(0);
    global const float* in = x + x_at + r * cols;
    const float mean = dot_f32(in, in, cols) / (float)cols;
    const float scale = 1.0f / sqrt(mean + epsilon);
    for (uint i = 0; i < cols; ++i)
        out[out_at + r * cols + i] = in[i] * scale * weight[weight_at + i];
}

// Item (head, row). The table holds cos then sin of `pairs` angles for each position.
kernel void rope(global float* heads, ulong heads_at, global const float* table, ulong table_at, uint head_size,
                 uint cols, uint pairs, int halves, uint first) {
    const size_t h = get_global_id(0), r = get_global_id(1);
    global float* head = heads + heads_at + r * cols + h * head_size;
    global const float* cosines = table + table_at + (size_t)(first + r) * 2 * pairs;
    global const float* sines = cosines + pairs;
    for (uint i = 0; i < pairs; ++i) {
        const uint a = halves ? i : 2 * i, b = halves ? i + pairs : 2 * i + 1;
        const float x = head[a], y = head[b];
        head[a] = x * cosines[i] - y * sines[i];
        head[b] = x * sines[i] + y * cosines[i];
    }
}

// Item (kv head, row). The cache is [kv_head][context][size].
kernel void kv_append(global float* keys, ulong keys_at, global float* values, ulong values_at, global const float* key,
                      ulong key_at, global const float* value, ulong value_at, uint size, uint cols, ulong context,
                      uint first) {
    const size_t h = get_global_id(0), r = get_global_id(1);
    const size_t from = r * cols + h * size, to = (h * context + first + r) * size;
    for (uint i = 0; i < size; ++i) {
        keys[keys_at + to + i] = key[key_at + from + i];
        values[values_at + to + i] = value[value_at + from + i];
    }
}

// Item (head, row): softmax and weighted sum in one pass over the positions 0 … first + row; the sum so far shrinks
// whenever a larger score comes.
kernel void attention(global const float* keys, ulong keys_at, global const float* values, ulong values_at,
                      global const float* queries, ulong queries_at, global float* out, ulong out_at, uint size,
                      uint cols, uint group, ulong context, uint first) {
    const size_t h = get_global_id(0), r = get_global_id(1);
    const size_t kv = h / group * context * size;
    global const float* k = keys + keys_at + kv;
    global const float* v = values + values_at + kv;
    global const float* q = queries + queries_at + r * cols + h * size;
    global float* sum = out + out_at + r * cols + h * size;
    const float factor = 1.0f / sqrt((float)size);
    float largest = -INFINITY, total = 0;
    for (uint i = 0; i < size; ++i)
        sum[i] = 0;
    for (size_t p = 0; p <= first + r; ++p, k += size, v += size) {
        const float score = dot_f32(q, k, size) * factor;
        if (score > largest) {
            const float shrink = exp(largest - score);
            total *= shrink;
            for (uint i = 0; i < size; ++i)
                sum[i] *= shrink;
            largest = score;
        }
        const float share = exp(score - largest);
        total += share;
        for (uint i = 0; i < size; ++i)
            sum[i] = fma(share, v[i], sum[i]);
    }
    for (uint i = 0; i < size; ++i)
        sum[i] /= total;
}

// Items of `span` values each, `n` in all.
kernel void add(global float* x, ulong x_at, global const float* y, ulong y_at, ulong n, uint span) {
    const size_t begin = get_global_id(0) * span;
    const size_t end = min((ulong)(begin + span), n);
    for (size_t i = begin; i < end; ++i)
        x[x_at + i] += y[y_at + i];
}

kernel void silu_multiply(global const float* gate, ulong gate_at, global const float* up, ulong up_at,
                          global float* out, ulong out_at, ulong n, uint span) {
    const size_t begin = get_global_id(0) * span;
    const size_t end = min((ulong)(begin + span), n);
    for (size_t i = begin; i < end; ++i) {
        const float g = gate[gate_at + i];
        out[out_at + i] = g / (1.0f + exp(-g)) * up[up_at + i];
    }
}

// One item: the first of the largest values. A NaN is none.
kernel void largest(global const float* values, ulong at, uint n, global int* index) {
    uint best = 0;
    for (uint i = 1; i < n; ++i)
        if (values[at + i] > values[at + best] || (isnan(values[at + best]) && !isnan(values[at + i])))
            best = i;
    *index = (int)best;
}
