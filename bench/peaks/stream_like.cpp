// SPDX-License-Identifier: Apache-2.0
// A program of its own that shares no code with the library: how fast all threads together read arrays far larger than
// any cache (as STREAM does it: each thread its own part; as one array, and then as four at once), and how many f32
// operations they do in registers. For each line "read" it makes both passes and prints GB/s of the faster, for each line
// "multiply" one of products and prints GFLOP/s.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t bytes_in_all = std::size_t{1} << 30, huge_page = std::size_t{2} << 20;

// As wide as the registers of an instruction set: wider ones would be kept on the stack.
struct Wide {
    typedef double Doubles __attribute__((vector_size(64)));
    typedef float Floats __attribute__((vector_size(64)));
};
struct Middle {
    typedef double Doubles __attribute__((vector_size(32)));
    typedef float Floats __attribute__((vector_size(32)));
};
struct Narrow {
    typedef double Doubles __attribute__((vector_size(16)));
    typedef float Floats __attribute__((vector_size(16)));
};

// One body, compiled for each instruction set by the functions below that it becomes a part of.
#define BODY inline __attribute__((always_inline))

/// `arrays` (1 or 4) neighbours of `count` values each, by turns.
template <class Width>
BODY double sum(const double* data, std::size_t count, std::size_t arrays) {
    using Doubles = typename Width::Doubles;
    const auto* rows = reinterpret_cast<const Doubles*>(data);
    constexpr std::size_t lanes = sizeof(Doubles) / sizeof(double);
    Doubles a = {}, b = {}, c = {}, d = {};
    if (arrays == 1) {
        for (std::size_t i = 0; i < count / lanes; i += 4) {
            a += rows[i];
            b += rows[i + 1];
            c += rows[i + 2];
            d += rows[i + 3];
        }
    } else {
        const std::size_t next = count / lanes;
        for (std::size_t i = 0; i < next; i += 2) {
            a += rows[i] + rows[i + 1];
            b += rows[i + next] + rows[i + next + 1];
            c += rows[i + 2 * next] + rows[i + 2 * next + 1];
            d += rows[i + 3 * next] + rows[i + 3 * next + 1];
        }
    }
    a += b + c + d;
    double all = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        all += a[lane];
    }
    return all;
}

template <class Width>
BODY float multiply_add(std::size_t rounds, float begin) {
    using Floats = typename Width::Floats;
    // No two alike, or they would be one.
    Floats v0 = {begin}, v1 = {-1}, v2 = {-2}, v3 = {-3}, v4 = {-4}, v5 = {-5}, v6 = {-6}, v7 = {-7}, v8 = {-8},
           v9 = {-9};
    const Floats half = Floats{} + .5F;
    for (std::size_t i = 0; i < rounds; ++i) {
        v0 = v0 * half + half;
        v1 = v1 * half + half;
        v2 = v2 * half + half;
        v3 = v3 * half + half;
        v4 = v4 * half + half;
        v5 = v5 * half + half;
        v6 = v6 * half + half;
        v7 = v7 * half + half;
        v8 = v8 * half + half;
        v9 = v9 * half + half;
    }
    v0 += v1 + v2 + v3 + v4 + v5 + v6 + v7 + v8 + v9;
    return v0[0] + v0[sizeof(Floats) / sizeof(float) - 1];
}

template <class Width>
constexpr double operations = 2.0 * 10 * sizeof(typename Width::Floats) / sizeof(float); // of one round

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,fma")))
#define MIDDLE __attribute__((target("avx2,fma")))
WIDE double sum_wide(const double* data, std::size_t count, std::size_t arrays) {
    return sum<Wide>(data, count, arrays);
}
MIDDLE double sum_middle(const double* data, std::size_t count, std::size_t arrays) {
    return sum<Middle>(data, count, arrays);
}
WIDE float multiply_add_wide(std::size_t rounds, float begin) { return multiply_add<Wide>(rounds, begin); }
MIDDLE float multiply_add_middle(std::size_t rounds, float begin) { return multiply_add<Middle>(rounds, begin); }
const bool wide = __builtin_cpu_supports("avx512f");
const bool middle = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
double best_sum(const double* data, std::size_t count, std::size_t arrays) {
    return wide     ? sum_wide(data, count, arrays)
           : middle ? sum_middle(data, count, arrays)
                    : sum<Narrow>(data, count, arrays);
}
float best_multiply_add(std::size_t rounds, float begin) {
    return wide     ? multiply_add_wide(rounds, begin)
           : middle ? multiply_add_middle(rounds, begin)
                    : multiply_add<Narrow>(rounds, begin);
}
const double operations_per_round = wide ? operations<Wide> : middle ? operations<Middle> : operations<Narrow>;
#else
double best_sum(const double* data, std::size_t count, std::size_t arrays) { return sum<Narrow>(data, count, arrays); }
float best_multiply_add(std::size_t rounds, float begin) { return multiply_add<Narrow>(rounds, begin); }
constexpr double operations_per_round = operations<Narrow>;
#endif

/// All threads do `work(thread)` at once; seconds.
template <class Work>
double seconds(unsigned threads, Work work) {
    std::atomic<unsigned> waiting{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> team;
    for (unsigned i = 0; i < threads; ++i) {
        team.emplace_back([&, i] {
            waiting.fetch_add(1);
            while (!go.load()) {
            }
            work(i);
        });
    }
    while (waiting.load() < threads) {
        std::this_thread::yield();
    }
    const Clock::time_point begin = Clock::now();
    go = true;
    for (std::thread& thread : team) {
        thread.join();
    }
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace

int main() {
    const unsigned threads = std::thread::hardware_concurrency() == 0 ? 1 : std::thread::hardware_concurrency();
    const std::size_t bytes = (bytes_in_all / threads / huge_page + 1) * huge_page, part = bytes / sizeof(double);
    std::vector<std::unique_ptr<double, decltype(&std::free)>> arrays;
    for (unsigned i = 0; i < threads; ++i) {
        arrays.emplace_back(static_cast<double*>(std::aligned_alloc(huge_page, bytes)), &std::free);
        if (arrays.back() == nullptr) {
            std::fputs("there is too little memory for 1 GiB of arrays\n", stderr);
            return 2;
        }
#if defined(MADV_HUGEPAGE)
        madvise(arrays.back().get(), bytes, MADV_HUGEPAGE);
#endif
    }
    std::vector<double> sums(threads * 64);
    seconds(threads, [&](unsigned i) { std::fill_n(arrays[i].get(), part, 1.0); });
    char line[16];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        if (std::strcmp(line, "read\n") == 0) {
            double took = 0;
            for (const std::size_t at_once : {1U, 4U}) {
                const double pass = seconds(
                    threads, [&](unsigned i) { sums[i * 64] = best_sum(arrays[i].get(), part / at_once, at_once); });
                took = took == 0 ? pass : std::min(took, pass);
                for (unsigned i = 0; i < threads; ++i) {
                    if (sums[i * 64] != static_cast<double>(part)) {
                        std::fputs("a sum is wrong: not all was read\n", stderr);
                        return 2;
                    }
                }
            }
            std::printf("%.3f\n", static_cast<double>(bytes) * threads / took / 1e9);
        } else if (std::strcmp(line, "multiply\n") == 0) {
            constexpr std::size_t rounds = 10'000'000;
            const double took = seconds(threads, [&](unsigned i) { sums[i * 64] = best_multiply_add(rounds, 1.0F); });
            std::printf("%.3f\n", operations_per_round * rounds * threads / took / 1e9);
        } else {
            std::fputs("only \"read\" and \"multiply\" are understood\n", stderr);
            return 2;
        }
        std::fflush(stdout);
    }
    return 0;
}
