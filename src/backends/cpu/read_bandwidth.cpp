// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/read_bandwidth.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu_features.hpp"
#include "base/os.hpp"

namespace plumb::backends::cpu {
namespace {

struct Lanes64 {
    using Type = std::uint64_t __attribute__((vector_size(64), may_alias));
};
struct Lanes32 {
    using Type = std::uint64_t __attribute__((vector_size(32), may_alias));
};
struct Lanes16 {
    using Type = std::uint64_t __attribute__((vector_size(16), may_alias));
};

// Where the lines of a turn lie apart: whole pages, and no power of two, whose lines would share banks of memory.
constexpr std::size_t line_bytes = 33 * std::size_t{4096};

/// Exclusive or of all. Eight independent sums, so that loads and not additions are the limit; by name, and as wide as the
/// processor's own registers, so that they live in those: wider ones are kept on the stack, and a Zen 3 then reads a quarter
/// less. `Lines` places are read by turns: the processor's prefetcher follows each of them.
template <class Width, unsigned Lines>
__attribute__((always_inline)) inline std::uint64_t read_lanes(const void* memory, std::size_t bytes) {
    using Lanes = typename Width::Type;
    constexpr std::size_t line = line_bytes / sizeof(Lanes), each = 8 / Lines;
    const auto* lanes = static_cast<const Lanes*>(memory);
    const Lanes* const end = lanes + bytes / sizeof(Lanes);
    Lanes a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};
    for (; static_cast<std::size_t>(end - lanes) >= Lines * line; lanes += Lines * line) {
        const Lanes* const stop = lanes + line;
        for (const Lanes* at = lanes; at != stop; at += each) {
            a ^= at[0 / each * line + 0 % each];
            b ^= at[1 / each * line + 1 % each];
            c ^= at[2 / each * line + 2 % each];
            d ^= at[3 / each * line + 3 % each];
            e ^= at[4 / each * line + 4 % each];
            f ^= at[5 / each * line + 5 % each];
            g ^= at[6 / each * line + 6 % each];
            h ^= at[7 / each * line + 7 % each];
        }
    }
    for (; lanes != end; ++lanes) {
        a ^= lanes[0];
    }
    const Lanes all = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
    std::uint64_t result = 0;
    for (std::size_t k = 0; k < sizeof(Lanes) / sizeof(result); ++k) {
        result ^= all[k];
    }
    return result;
}

#if defined(__x86_64__)
// Chosen by hand: the compiler's own choice is made before a thread sanitizer has begun, and dies there.
template <unsigned Lines>
__attribute__((target("avx512f"))) std::uint64_t read_all_avx512(const void* memory, std::size_t bytes) {
    return read_lanes<Lanes64, Lines>(memory, bytes);
}
template <unsigned Lines>
__attribute__((target("avx2"))) std::uint64_t read_all_avx2(const void* memory, std::size_t bytes) {
    return read_lanes<Lanes32, Lines>(memory, bytes);
}
#endif

template <unsigned Lines>
std::uint64_t read_all(const void* memory, std::size_t bytes) {
#if defined(__x86_64__)
    if (PLUMB_CPU_HAS(AVX512F, "avx512f")) {
        return read_all_avx512<Lines>(memory, bytes);
    }
    if (PLUMB_CPU_HAS(AVX2, "avx2")) {
        return read_all_avx2<Lines>(memory, bytes);
    }
#endif
    return read_lanes<Lanes16, Lines>(memory, bytes);
}

} // namespace

void ReadBandwidth::Free::operator()(void* memory) const { munmap(memory, bytes); }

ReadBandwidth::ReadBandwidth(std::size_t bytes)
    : bytes_(bytes), memory_(nullptr, Free{bytes}), workers_(base::usable_cpus()) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
#if defined(MADV_HUGEPAGE)
        madvise(memory, bytes, MADV_HUGEPAGE); // refused where there are none: small pages then
#endif
        memory_.reset(memory);
        const std::size_t part = bytes_ / workers_.size() / 4096 * 4096;
        workers_.run(workers_.size(),
                     [&](unsigned index) { std::memset(static_cast<char*>(memory) + index * part, 1, part); });
        choose_way();
    }
}

void ReadBandwidth::choose_way() {
    double best = 0;
    const Read ways[] = {read_all<1>, read_all<4>, read_all<1>, read_all<4>};
    Read fastest = ways[0];
    for (const Read way : ways) {
        const double reached = pass(workers_.size(), way);
        if (reached > best) {
            best = reached;
            fastest = way;
        }
    }
    read_ = fastest;
}

double ReadBandwidth::pass(unsigned threads, Read read) {
    const std::size_t part = bytes_ / threads / 4096 * 4096;
    std::vector<std::uint64_t> sums(threads);
    const auto begin = std::chrono::steady_clock::now();
    workers_.run(threads, [&](unsigned index) {
        sums[index] = read(static_cast<const char*>(memory_.get()) + index * part, part);
    });
    const auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    for (const std::uint64_t sum : sums) {
        asm volatile("" ::"r"(sum)); // the sums are used
    }
    return static_cast<double>(part * threads) / ns;
}

Result<double> ReadBandwidth::measure(unsigned threads) {
    if (memory_ == nullptr) {
        return Error{ErrorCode::out_of_memory,
                     "the system gives no " + std::to_string(bytes_ >> 20) + " MiB to read from; free some memory"};
    }
    return pass(threads == 0 ? workers_.size() : std::min(threads, workers_.size()), read_);
}

} // namespace plumb::backends::cpu
