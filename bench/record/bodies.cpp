// SPDX-License-Identifier: Apache-2.0
// Real work for scopes to stand around: arithmetic and memory in L1.
#include "record/loops.hpp"
#include "record/subject.hpp"

namespace bench {
namespace {

using plumb::Brick;
using plumb::host;
using plumb::detail::read_ticks;

struct Data {
    float a[1024], b[1024], sum;
};

Data& data() {
    static thread_local Data mine = [] {
        Data made{};
        for (unsigned i = 0; i < 1024; ++i) {
            made.a[i] = static_cast<float>(i % 7) * 0.125F;
            made.b[i] = static_cast<float>(i % 5) * 0.25F;
        }
        return made;
    }();
    return mine;
}

/// A sum in order (latency) and a scaled store (memory) over `size` floats, in turns of at most 1024.
__attribute__((noinline)) void body(Data& d, unsigned size) {
    float sum = d.sum;
    for (unsigned done = 0; done < size;) {
        const unsigned part = size - done < 1024 ? size - done : 1024;
        for (unsigned i = 0; i < part; ++i) {
            sum += d.a[i] * d.b[i];
            d.b[i] = d.b[i] * 0.5F + 0.0625F;
        }
        done += part;
    }
    d.sum = sum * 1e-3F;
}

} // namespace
} // namespace bench

using namespace bench;

std::uint64_t plumb_bench_body_between_reads(std::uint64_t n, unsigned size) {
    Data& mine = data();
    const std::uint64_t begin = read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t first = read_ticks();
        BENCH_BODY();
        body(mine, size);
        BENCH_BODY();
        const std::uint64_t duration = read_ticks() - first;
        asm volatile("" ::"r"(duration)); // read, and thrown away
    }
    return read_ticks() - begin;
}

std::uint64_t plumb_bench_body_in_scope(std::uint64_t n, unsigned size) {
    Data& mine = data();
    plumb::Profiler& prof = *stage.on;
    const std::uint64_t begin = read_ticks();
    for (std::uint64_t i = 0; i < n; ++i) {
        PLUMB_BRICK(prof, host, Brick::rms_norm);
        body(mine, size);
    }
    return read_ticks() - begin;
}

namespace {

/// One brick of a decode step, and how many units of work it is.
struct Part {
    Brick brick;
    unsigned size;
};
constexpr Part layer_parts[] = {
    {Brick::rms_norm, 500},        {Brick::qkv_projection, 9000}, {Brick::rope_embedding, 700},
    {Brick::kv_append, 150},       {Brick::attention, 4000},      {Brick::output_projection, 6000},
    {Brick::residual_add, 120},    {Brick::rms_norm, 500},        {Brick::gate_projection, 30000},
    {Brick::up_projection, 30000}, {Brick::activation, 1500},     {Brick::down_projection, 30000},
    {Brick::residual_add, 120},
};

void one_brick(plumb::Profiler& prof, Data& mine, const Part& part) {
    PLUMB_BRICK(prof, host, part.brick, plumb::bytes(part.size * 4U), plumb::flops(part.size * 4U));
    body(mine, part.size);
}

} // namespace

std::uint64_t plumb_bench_decode_like(unsigned steps, unsigned layers) {
    Data& mine = data();
    plumb::Profiler& prof = *stage.on;
    for (unsigned step = 0; step < steps; ++step) {
        PLUMB_STEP(prof, host, plumb::Phase::decode, plumb::tokens(1), plumb::kv_length(step));
        one_brick(prof, mine, {Brick::embedding, 300});
        for (unsigned layer = 0; layer < layers; ++layer) {
            PLUMB_LAYER(prof, layer);
            for (const Part& part : layer_parts) {
                one_brick(prof, mine, part);
            }
        }
        one_brick(prof, mine, {Brick::lm_head, 90000});
        one_brick(prof, mine, {Brick::sampling, 3000});
    }
    const auto per_layer = sizeof layer_parts / sizeof layer_parts[0] + 1; // and the layer itself
    return std::uint64_t{steps} * (layers * per_layer + 4);                // and the step itself
}
