// SPDX-License-Identifier: Apache-2.0
// How a peak is found, and what kernels that look for one must compute: the same for the host and every device, so that
// their figures compare. Plain functions; one thread asks at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/peak_fields.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends {

inline Figure measured_peak(double value) { return {value, {}}; }
inline Figure absent_peak(std::string reason) { return {std::nullopt, std::move(reason)}; }

/// A peak is the best that was seen: what else the machine did can only take away from it. `pass` is told its number.
inline Figure best_of(const char* what, const PeakProgress& progress, const std::function<Result<double>(int)>& pass) {
    constexpr int most_passes = 40;
    constexpr int passes_without_gain = 10;
    double best = 0;
    for (int i = 0, last_gain = 0; i < most_passes && i - last_gain < passes_without_gain; ++i) {
        if (progress) {
            progress(what, i, most_passes);
        }
        const Result<double> value = pass(i);
        if (!value) {
            return absent_peak(value.error().message);
        }
        last_gain = *value > 1.01 * best ? i : last_gain;
        best = std::max(best, *value);
    }
    return best > 0 ? measured_peak(best) : absent_peak("it took no time on this clock");
}

/// Bytes to read so that no cache holds a noticeable part: at least 1 GiB and 8 times the last-level cache, at most 8 GiB
/// and a quarter of what is free (0: unknown). Devices that read faster than they
/// can be launched want more than that GiB. 0: that is less than 4 times the cache, and no bandwidth of memory can be
/// measured.
[[nodiscard]] inline std::size_t bytes_to_read(std::uint64_t last_level_bytes, std::uint64_t free_bytes,
                                               std::uint64_t least = std::uint64_t{1} << 30) noexcept {
    constexpr std::uint64_t gib = std::uint64_t{1} << 30;
    const std::uint64_t wanted = std::min(std::max(least, 8 * last_level_bytes), 8 * gib);
    // Where the system does not say what is free, 1 GiB is what a machine for inference has.
    const std::uint64_t bytes = free_bytes == 0 ? gib : std::min(wanted, free_bytes / 4);
    return bytes >= 4 * last_level_bytes && bytes >= gib / 16 ? static_cast<std::size_t>(bytes) : 0;
}
inline constexpr char too_little_to_read[] = "too little memory is free to read from; free some and measure again";

/// Of a place where nothing was measured yet.
inline Peaks unmeasured_peaks(std::string place, std::string name, const std::string& reason) {
    Peaks peaks;
    peaks.place = std::move(place);
    peaks.name = std::move(name);
    peaks.measured_unix_s =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    for (const PeakField& field : peak_fields) {
        peaks.*field.figure = absent_peak(reason);
    }
    return peaks;
}

// --- What kernels compute ---

/// Word i of the memory that is read is i * word_factor + 1, modulo 2^32: no two neighbours are alike, and a part that
/// was not read is missed in the sum.
inline constexpr std::uint32_t word_factor = 2654435761U;
[[nodiscard]] constexpr std::uint32_t sum_of_words(std::uint64_t words) noexcept {
    return static_cast<std::uint32_t>(words * (words - 1) / 2 * word_factor + words);
}

/// Chain c of lane l of work item g begins with chain_seed + c + 16 l + 256 (g mod 64) and is x = x / 2 + 1 so many times.
/// Chains that begin alike are one chain to a compiler, which does it once.
inline constexpr float chain_seed = 5;
inline constexpr unsigned chains_of_item = 12;
/// What the chains of one lane sum up to: 2 for each, and what its begin has left. Exact for few rounds: all in 24 bits.
[[nodiscard]] inline double sum_of_chains(unsigned lane, std::size_t item, std::uint32_t rounds) noexcept {
    constexpr double chains = chains_of_item;
    const double first = double{chain_seed} + 16.0 * lane + 256.0 * static_cast<double>(item % 64);
    return 2 * chains +
           std::ldexp(chains * (first - 2) + chains * (chains - 1) / 2, -static_cast<int>(std::min(rounds, 1000U)));
}
[[nodiscard]] inline bool are_sums_of_chains(const std::vector<float>& sums, unsigned lanes, std::uint32_t rounds) {
    const double may_differ = rounds <= 3 ? 0 : 1e-3; // each rounding costs half a bit
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double expected = sum_of_chains(static_cast<unsigned>(i % lanes), i / lanes, rounds);
        if (!(std::fabs(static_cast<double>(sums[i]) - expected) <= may_differ)) {
            return false;
        }
    }
    return true;
}
inline const Error wrong_result{ErrorCode::corrupt,
                                "the device computed another result than its kernel says; check device and driver"};

/// One pass of multiply-adds.
struct ArithmeticPass {
    double flops = 0; // a multiply-add counts 2
    double ns = 0;    // on the device's clock
};

/// The kernels of one device. Each call runs one pass, waits for it, and answers wrong_result unless it computed what is
/// said above. `shape` is any number: passes of different ones spread the work differently.
class PeakKernels {
  public:
    virtual ~PeakKernels() = default;
    PeakKernels() = default;
    PeakKernels(const PeakKernels&) = delete;
    PeakKernels& operator=(const PeakKernels&) = delete;

    /// Bytes per nanosecond of one pass over the memory, on the device's clock.
    [[nodiscard]] virtual Result<double> read(int shape) = 0;
    [[nodiscard]] virtual Result<ArithmeticPass> multiply_adds(int shape, std::uint32_t rounds) = 0;
};

namespace peak_details {

/// So many rounds that one pass takes about 20 ms.
inline Result<std::uint32_t> rounds_of_pass(PeakKernels& kernels) {
    constexpr double wanted_ns = 20e6;
    if (const Result<ArithmeticPass> exact = kernels.multiply_adds(0, 3); !exact) {
        return exact.error();
    }
    for (std::uint32_t rounds = 1024;; rounds *= 4) {
        const Result<ArithmeticPass> pass = kernels.multiply_adds(0, rounds);
        if (!pass) {
            return pass.error();
        }
        if (pass->ns > wanted_ns / 10 || rounds >= 1U << 28) {
            return static_cast<std::uint32_t>(std::clamp(rounds * wanted_ns / std::max(pass->ns, 1.0), 1024.0, 4e9));
        }
    }
}

} // namespace peak_details

inline void measure_reads(PeakKernels& kernels, Peaks& peaks, const PeakProgress& progress) {
    peaks.read_gigabytes_per_second =
        best_of(("read bandwidth, " + peaks.place).c_str(), progress, [&](int i) { return kernels.read(i); });
}

inline void measure_arithmetic(PeakKernels& kernels, Peaks& peaks, const PeakProgress& progress) {
    const Result<std::uint32_t> rounds = peak_details::rounds_of_pass(kernels);
    if (!rounds) {
        peaks.f32_teraflops = absent_peak(rounds.error().message);
        return;
    }
    peaks.f32_teraflops =
        best_of(("f32 multiply-adds, " + peaks.place).c_str(), progress, [&](int i) -> Result<double> {
            const Result<ArithmeticPass> pass = kernels.multiply_adds(i, *rounds);
            if (!pass) {
                return pass.error();
            }
            return pass->ns > 0 ? pass->flops / pass->ns / 1000 : 0;
        });
}

/// Both figures of a device. `create(bytes)` makes a Result of kernels that read so much memory; 0: they read none.
template <class Create>
void measure_all(const Create& create, std::size_t bytes, Peaks& peaks, const PeakProgress& progress) {
    auto kernels = create(bytes);
    if (bytes == 0) {
        peaks.read_gigabytes_per_second = absent_peak(too_little_to_read);
    } else if (kernels) {
        measure_reads(**kernels, peaks, progress);
    } else {
        peaks.read_gigabytes_per_second = absent_peak(kernels.error().message);
    }
    if (!kernels && bytes != 0) {
        kernels = create(0); // arithmetic needs no memory to read
    }
    if (kernels) {
        measure_arithmetic(**kernels, peaks, progress);
    } else {
        peaks.f32_teraflops = absent_peak(kernels.error().message);
    }
}

} // namespace plumb::backends
