// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/read_bandwidth.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

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

/// Eight independent sums, so that loads and not additions are the limit; by name, and as wide as the processor's own
/// registers, so that they live in those: wider ones are kept on the stack, and a Zen 3 then reads a quarter less.
template <class Width>
__attribute__((always_inline)) inline std::uint64_t read_lanes(const void* memory, std::size_t bytes) {
    using Lanes = typename Width::Type;
    const auto* lanes = static_cast<const Lanes*>(memory);
    const Lanes* const end = lanes + bytes / sizeof(Lanes) / 8 * 8;
    Lanes a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};
    for (; lanes != end; lanes += 8) {
        a ^= lanes[0];
        b ^= lanes[1];
        c ^= lanes[2];
        d ^= lanes[3];
        e ^= lanes[4];
        f ^= lanes[5];
        g ^= lanes[6];
        h ^= lanes[7];
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
__attribute__((target("avx512f"))) std::uint64_t read_all_avx512(const void* memory, std::size_t bytes) {
    return read_lanes<Lanes64>(memory, bytes);
}
__attribute__((target("avx2"))) std::uint64_t read_all_avx2(const void* memory, std::size_t bytes) {
    return read_lanes<Lanes32>(memory, bytes);
}
#endif

std::uint64_t read_all(const void* memory, std::size_t bytes) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return read_all_avx512(memory, bytes);
    }
    if (__builtin_cpu_supports("avx2")) {
        return read_all_avx2(memory, bytes);
    }
#endif
    return read_lanes<Lanes16>(memory, bytes);
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
    }
}

Result<double> ReadBandwidth::measure(unsigned threads) {
    if (memory_ == nullptr) {
        return Error{ErrorCode::out_of_memory,
                     "the system gives no " + std::to_string(bytes_ >> 20) + " MiB to read from; free some memory"};
    }
    threads = threads == 0 ? workers_.size() : std::min(threads, workers_.size());
    const std::size_t part = bytes_ / threads / 4096 * 4096;
    std::vector<std::uint64_t> sums(threads);
    const auto begin = std::chrono::steady_clock::now();
    workers_.run(threads, [&](unsigned index) {
        sums[index] = read_all(static_cast<const char*>(memory_.get()) + index * part, part);
    });
    const auto ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    for (const std::uint64_t sum : sums) {
        asm volatile("" ::"r"(sum)); // the sums are used
    }
    return static_cast<double>(part * threads) / ns;
}

} // namespace plumb::backends::cpu
